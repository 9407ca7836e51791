//! The state machines behind a request: the client's side ([`request`]) with what carries it ([`transport`], [`exchange`]), and
//! the origin's side ([`fetch`]) with what carries that (`origin`).
//!
//! Everything is generic over `AsyncRead + AsyncWrite`, connects through [`backend::Dial`] and takes its time from
//! [`clock::Clock`], so that the whole engine also runs in memory under a virtual clock (the simulation). There are no sockets,
//! no wall clock and no files here.
//!
//! A file imports only files in layers below it; the groups of modules here are those layers, from the bottom up. What
//! `request` and `fetch` keep for one request or pass to each other (`request/task.rs`, `fetch/order.rs` …) lies below
//! `context`, whose loop owns the pool of requests. Their state machines lie above it, and what VCL sees of both lies in
//! between. Reading order: `context`, `storages`, `session`, `exchange`, `transport`, `bodies`, `request` and its steps,
//! `fetch` and its steps, `origin`, `loaded_vcl`, `vcl_life`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

// Self-contained helpers that know nothing of the engine.
mod caught;
pub mod challenges;
pub mod clock;
mod deadline;
mod groups;
pub mod idle_sessions;
mod legacy_rules;
pub mod logged;
pub mod panics;
pub mod peer;
pub mod query_rules;
mod ruling;
mod slicing;
pub mod storages;
mod turns;
pub mod vxid;

// What the state machines work on and with.
pub mod bodies;
pub mod exchange;
pub mod loaded_vcl;
pub mod memory;
pub mod mempool_counts;

// What all event loops share, and what each has for itself.
pub mod context;
mod copies;
mod promotion;
pub mod session;

// The state machines, and what VCL can access of them.
pub mod fetch;
mod origin;
pub mod request;
mod world;

// What starts them.
pub mod mempool_sizes;
pub mod transport;
pub mod vcl_life;
