//! The manager's side of TLS: certificates and keys, which outlive every worker.
//!
//! [`registry::Registry`] is the state: active and staged certificates, ticket keys. All changes of
//! the active state go through [`apply::change`], which checks the result and sends it to the
//! worker before it takes effect. Files are read by [`files`], with the manager's own rights;
//! [`reload`] reads them again and detects changes. The commands are in `commands/tls.rs`, `-A` is
//! in `arguments/tls_file.rs`.
//!
//! Next files: `tls/registry.rs`, `tls/apply.rs`.

pub mod files;
pub mod tickets;

pub mod registry;

pub mod expiry;
pub mod open;

pub mod apply;

pub mod reload;
mod self_signed;
