//! TLS without sockets: certificates, which of them a client gets, tickets, and what is expected of an origin.
//!
//! The manager reads keys and certificates, checks them, and hands the worker a [`table::TlsTable`]; the worker builds from it what its
//! event loops shake hands with. Nothing is read from files by a worker. Versions 1.2 and 1.3 only, with the suites of rustls.
//! *Invariant:* a private key is a [`secret::Secret`]: it is never printed and is overwritten when it goes.
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
