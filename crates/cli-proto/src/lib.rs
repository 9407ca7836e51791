//! The protocol of the management CLI, as machines without sockets: bytes in, events out.
//!
//! [`words`] splits a command line into words; [`request`] splits a byte stream into command lines
//! and here-documents; [`response`] frames replies; [`auth`] is the challenge and its answer;
//! [`server`] and [`client`] combine these for the two ends of a connection. [`json`] is the format
//! of `-j` replies, [`table`] the layout of column output.
//!
//! Not here: sockets, and the commands themselves (their table is in `surface::cli`, `manager` and
//! `worker` execute them). Invariant: nothing that the other end sends causes a panic or lets a
//! buffer grow past its limit. Source: the CLI of Varnish 7.1, observed.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod auth;
pub mod client;
pub mod command_line;
pub mod json;
pub mod request;
pub mod response;
pub mod server;
pub mod table;
