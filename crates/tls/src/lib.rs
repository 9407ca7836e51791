//! TLS without sockets: certificates and their selection, tickets, and verification of origins.
//!
//! The manager reads keys and certificates, checks them, and sends the worker a
//! [`table::TlsTable`]; the worker builds from it the configurations of its event loops. A worker
//! reads no files. Versions 1.2 and 1.3 only, with the suites of rustls. *Invariant:* a private key
//! is a [`secret::Secret`]: it is never printed and is overwritten when it is dropped.
//!
//! Next files: `certificate.rs`, `table.rs`, `server.rs`, `origin.rs`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod secret;

mod distinguished;

pub mod table;

pub mod hitch;

pub mod certificate;
pub mod cipher_list;
pub mod ja3;
mod resolver;
pub mod server;
mod sessions;
pub mod staple;
pub mod suites;
mod tickets;

pub mod quic;

pub mod origin;
