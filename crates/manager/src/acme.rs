//! Certificates by themselves (ACME, RFC 8555): ordered, installed, and renewed long before their end.
//!
//! ```text
//!               a name is due, and nobody else holds the folder's lock
//!   keeper ──────────────────────────────────────────────────────────▶ conversation (a thread with few rights)
//!     │  ◀── account to keep, challenges to answer, certificate or failure ──┘ │ client: bounded responses
//!     ├─▶ folder: account, certificates, challenges, what happened             ▼
//!     └─▶ tls::apply: certificates and answers, to the worker               authority
//! ```
//!
//! [`table::Acme`] is the state, [`plan`] decides when, [`folder`] keeps, [`conversation`] orders, [`keeper`] leads. While there is no
//! certificate yet, handshakes fail; nothing self-signed stands in (`docs/acme.md`). *Invariant:* what an authority sends is read by a
//! thread with the rights of the jail's user. *Invariant:* only who holds the folder's lock orders, and after a failure nobody does for
//! as long as its record says. Next file: `acme/table.rs`.

pub mod client;
pub mod conversation;
pub mod failure;
pub mod folder;
pub mod keeper;
pub mod plan;
pub mod table;
