//! What carries requests to us: a transport reads a connection, opens a session, and runs exchanges on it.
//!
//! Next files: `transport/http1.rs`, `transport/proxied.rs`.

pub mod http1;
mod proxied;

pub use proxied::{ProxiedSession, ProxyFacts};
