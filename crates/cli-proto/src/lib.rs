//! The protocol of the management CLI, as machines without sockets: bytes in, events out.
//!
//! [`words`] cuts a command line into words; [`request`] cuts a byte stream into command lines and here-documents;
//! [`response`] frames replies; [`auth`] is the challenge and its answer; [`server`] and [`client`] put them together for
//! the two ends of a connection. [`json`] holds the shape of `-j` replies, [`table`] the layout of column output.
//!
//! Not here: sockets, the commands themselves (`surface::cli` has their table, `manager` and `worker` do them).
//! Invariant: nothing that the other end sends panics or makes a buffer grow past its limit.
//! Source: the CLI of Varnish 7.1, observed.

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
