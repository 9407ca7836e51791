//! Tables of every word that a user of Copal can type or read: log tags, counters, run-time
//! parameters, the words of VCL, VMOD signatures, CLI commands, close reasons, limits.
//!
//! One table for each kind of thing that a user can name; parsers, help texts, documents and the
//! other crates derive from the rows. This crate only defines words: no I/O, no state.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod access_log;
pub mod canary;
pub mod cli;
pub mod close_reason;
pub mod closed_set;
pub mod counter;
pub mod diagnostic;
pub mod encoding;
pub mod eviction;
pub mod failure;
pub mod fleet;
pub mod front;
pub mod header;
pub mod histogram;
pub mod legible;
pub mod limits;
pub mod lint;
pub mod metric;
pub mod nearest;
pub mod operation;
pub mod option;
pub mod otlp;
pub mod parameter;
pub mod profile;
pub mod program;
pub mod quantity;
pub mod reason;
pub mod reference;
pub mod replay;
pub mod secrets;
pub mod status;
pub mod tag;
pub mod test_script;
pub mod tracker;
pub mod vcl;
pub mod version;
pub mod vmod;
