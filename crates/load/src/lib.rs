//! Load on a server, as many clients would make it, and an honest account of how it fared.
//!
//! A [`plan::Plan`] says what is asked for, over what, and how fast; [`drive::run`] carries it out on threads of its own, each
//! with an event loop of its own, and returns a [`tally::Outcome`]. In a *closed* loop each client asks again when it has its
//! answer; in an *open* one requests fall due at a rate, whatever the answers do, and each is timed from when it was due, not
//! from when there was somebody free to send it. So a server that stands still for a second has a second in its percentiles.
//! Percentiles of a closed loop are corrected for the requests that nobody sent meanwhile (`tally.rs`).
//!
//! [`client::Client`] is one connection of HTTP/1, 2 or 3, for those who ask one thing after another. Nothing is verified of a
//! server's certificate: load tells nobody a secret.
//!
//! *Invariant:* the server is seen from outside only: no crate of the engine is used. *Bounds:* memory is that of the
//! connections, the list of URLs and four histograms a thread; a failure keeps one example of its kind.
//!
//! Reading order: `failure`, `choice`, `plan`, `wire`, `client`, `tally`, `drive`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod failure;

pub mod choice;

pub mod plan;

mod wire;

mod http1_client;
mod http2_client;
mod http3_client;

pub mod client;

pub mod tally;

pub mod drive;
