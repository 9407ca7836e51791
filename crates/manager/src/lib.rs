//! The manager process: it owns everything that must outlive a crash of the worker, and it is the
//! process that operators control.
//!
//! It holds the listening sockets, the cache arena and the ban journal (memory files, and files on
//! disks), the parameters, the VCL texts and compiled programs, and its part of the shared memory.
//! It starts the worker with all of these, and starts the next one when it dies. It never serves a
//! client itself, and never looks into the arena.
//!
//! One thread, one event loop; the state is one value ([`state::Manager`]) that tasks share.
//! Compiling VCL and reading standard input happen on other threads.
//!
//! Reading order: `arguments` (the command line) → `start` (the steps of the start) → `state` →
//! `life` (the worker's life) → `link` (the connection to it) → `cli_server` → `commands` →
//! `vcl_table`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod acme;
pub mod arguments;
mod background;
mod canary;
mod canary_end;
mod cli_connections;
mod cli_server;
mod clock;
mod commands;
mod compile;
mod dash_sessions;
mod dash_tokens;
mod default_parameters;
mod directory;
mod fd_store;
mod fleet;
pub mod getopt;
mod handover;
mod life;
mod link;
mod listeners;
mod memory;
mod memory_files;
mod memory_limits;
mod metrics_sockets;
mod observer;
mod orders;
mod parameter_text;
mod platform;
mod port_holder;
mod program;
mod published_state;
mod recovery;
mod report;
mod rights;
mod shortage;
mod socket_file;
mod start;
mod start_report;
mod state;
mod storage_files;
mod system_error;
mod systemd;
mod tls;
mod vcl_files;
mod vcl_history;
mod vcl_table;

pub use default_parameters::default_parameters;
pub use start::daemon;
