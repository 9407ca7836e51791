//! The PROXY protocol, versions 1 and 2: the client's address behind another proxy. Headers are
//! read and written here and nowhere else.
//!
//! Pure functions over bytes. The owner of the socket (`net`, the origins of `backend`, the clients
//! of test scripts) fills the buffer and sends the written bytes.
//!
//! Reading order: `layout`, `read`, `element`, `write`. Source: the PROXY protocol specification,
//! §2.1 (version 1) and §2.2 (version 2).

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod element;
mod layout;
mod read;
mod write;

pub use layout::SIGNATURE;
pub use read::{Parsed, ProxyHeader, parse};
pub use write::{write_version_1, write_version_1_unknown, write_version_2, write_version_2_local};
