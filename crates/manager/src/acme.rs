//! Automatic certificates (ACME, RFC 8555): ordered, installed, and renewed long before their end.
//!
//! ```text
//!          a certificate is due, and the folder's lock is free
//!   keeper ───────────────────────────────────────────────────▶ conversation (unprivileged thread)
//!     │  ◀── account, challenges, certificate or failure ───────┘ │ client: bounded responses
//!     ├─▶ folder: account, certificates, challenges, records      ▼
//!     └─▶ tls::apply: certificates and answers, to the worker  authority
//! ```
//!
//! [`table::Acme`] is the state, [`plan`] computes due times, [`folder`] stores files,
//! [`conversation`] runs an order, [`keeper`] drives all of them. Until the first certificate is
//! issued, handshakes fail; no self-signed certificate is used (`docs/guide/certificates.md`).
//! *Invariant:* data from an authority is read by a thread with the rights of the jail's user.
//! *Invariant:* only the holder of the folder's lock orders, and after a failure no server orders
//! for as long as the failure's record demands. Next file: `acme/table.rs`.

pub mod client;
pub mod conversation;
pub mod failure;
pub mod folder;
pub mod keeper;
pub mod plan;
pub mod table;
