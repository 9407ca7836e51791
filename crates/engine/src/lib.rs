//! The state machines behind a request: the client's side ([`request`]) with its transports
//! ([`transport`], [`exchange`]), and the origin's side ([`fetch`]) with its transports (`origin`).
//!
//! Everything is generic over `AsyncRead + AsyncWrite`, connects through [`backend::Dial`] and
//! takes its time from [`clock::Clock`], so that the whole engine also runs in memory under a
//! virtual clock (the simulation). There are no sockets, no wall clock and no files here.
//!
//! A file imports only files in layers below it; the groups of modules here are those layers, from
//! the bottom up. The state that `request` and `fetch` keep for one request or pass to each other
//! (`request/task.rs`, `fetch/order.rs` …) is in a layer below `context`, whose loop owns the pool
//! of requests. Their state machines are above it, and the state that VCL sees of both is in
//! between. Reading order: `context`, `storages`, `session`, `exchange`, `transport`, `bodies`,
//! `request` and its steps, `fetch` and its steps, `origin`, `loaded_vcl`, `vcl_life`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

// Self-contained helpers that are independent of the engine.
pub mod canary;
mod caught;
pub mod challenges;
pub mod clock;
mod deadline;
pub mod fleet;
mod forwarded;
mod groups;
pub mod idle_sessions;
pub mod leak_guard;
mod legacy_rules;
pub mod logged;
pub mod panics;
pub mod peer;
pub mod query_rules;
mod ruling;
mod slicing;
pub mod storages;
mod turns;
pub mod via;
pub mod vxid;

// State and tools of the state machines.
pub mod bodies;
pub mod exchange;
pub mod loaded_vcl;
pub mod memory;
pub mod mempool_counts;

// State shared by all event loops, and state of each.
pub mod context;
mod copies;
mod promotion;
pub mod session;
mod session_record;

// The state machines, and the part of them that VCL can access.
pub mod fetch;
mod origin;
pub mod request;
mod world;

// Entry points that start them.
pub mod mempool_sizes;
pub mod transport;
pub mod vcl_life;
