//! HTTP load generator that simulates many clients and measures the server without coordinated
//! omission.
//!
//! A [`plan::Plan`] defines the requests, the protocol and the rate; [`drive::run`] executes it on
//! its own threads, each with an event loop, and returns a [`results::Outcome`]. In a *closed* loop
//! each client sends the next request after its answer; in an *open* one requests are due at a
//! rate, independent of the answers, and each is timed from its due time, not from the time at
//! which a client was free to send it. So a server that stalls for a second has a second in its
//! percentiles. Percentiles of a closed loop are corrected for the requests that were not sent
//! during a stall (`results.rs`).
//!
//! [`client::Client`] is one connection of HTTP/1, 2 or 3, for sequential requests. The server's
//! certificate is not verified: the load contains no secrets.
//!
//! *Invariant:* the server is accessed from outside only: no crate of the engine is used. *Bounds:*
//! memory is that of the connections, the list of URLs and four histograms a thread; one example is
//! stored for each kind of failure.
//!
//! Reading order: `failure`, `choice`, `plan`, `wire`, `exchange`, `client`, `results`, `drive`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod failure;

pub mod choice;

pub mod plan;

mod wire;

pub mod exchange;

mod http1_client;
mod http2_client;
mod http3_client;

pub mod client;

pub mod results;

pub mod drive;
