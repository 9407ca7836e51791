//! The only crate with sockets: accepting clients, reading PROXY headers, TLS handshakes, dialling
//! origins.
//!
//! It turns a listening descriptor into sessions of [`engine::session`] on the event loop it is
//! called from, and provides the engine with a [`backend::Dial`] over TCP and Unix-domain sockets.
//! It makes no decisions about requests.
//!
//! Next files: `accept.rs`, `handshake.rs`, `dial.rs`, `options.rs`, `resolve.rs`.

#![warn(missing_docs)]

pub mod accept;
mod accepted;
pub mod descriptors;
pub mod dial;
pub mod handshake;
pub mod options;
pub mod quic;
pub mod resolve;
mod tls_stream;
