//! The machines that live through a request: the client's side ([`request`]), whatever carries it ([`transport`], [`exchange`]),
//! and the origin's side ([`fetch`]), with what carries that (`origin`).
//!
//! Everything is generic over `AsyncRead + AsyncWrite`, dials through [`backend::Dial`] and takes its time from
//! [`clock::Clock`], so that the whole engine also runs in memory under a virtual clock (the simulation). No sockets,
//! no wall clock, no files here.
//!
//! Reading order: `context`, `storages`, `session`, `exchange`, `transport`, `bodies`, `request` and its steps, `fetch` and its
//! steps, `origin`, `loaded_vcl`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bodies;
mod caught;
pub mod clock;
pub mod context;
mod deadline;
pub mod exchange;
pub mod fetch;
mod legacy_rules;
pub mod loaded_vcl;
pub mod logged;
pub mod memory;
pub mod mempool_counts;
pub mod mempool_sizes;
mod origin;
pub mod panics;
pub mod peer;
pub mod request;
mod ruling;
pub mod session;
pub mod storages;
pub mod transport;
mod turns;
pub mod vcl_life;
pub mod vxid;
mod world;
