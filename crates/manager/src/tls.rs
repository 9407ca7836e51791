//! The manager's side of TLS: certificates and keys, which outlive every worker.
//!
//! [`registry::Registry`] is the state: what is active, what is staged, tickets' keys. Whoever changes what is active does so through
//! [`apply::change`], which checks the result and tells the worker before it counts. Files are read by [`files`], with the manager's own
//! rights; [`reload`] reads them again and looks whether they changed. The commands are in `commands/tls.rs`, `-A` is in `arguments/tls_file.rs`.
//!
//! Next files: `tls/registry.rs`, `tls/apply.rs`.

pub mod files;
pub mod tickets;

pub mod registry;

pub mod expiry;
pub mod open;

pub mod apply;

pub mod reload;
