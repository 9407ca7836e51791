//! The PROXY protocol, versions 1 and 2: who the client is when another proxy stands in front. Its bytes are read and
//! written here and nowhere else.
//!
//! Pure functions over bytes. Whoever has a socket (`net`, the origins of `backend`, the clients of test scripts) fills the
//! buffer and sends what was written.
//!
//! Reading order: `read`, `element`, `write`. Source: the PROXY protocol specification, §2.1 (version 1) and §2.2 (version 2).

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod element;
mod read;
mod write;

pub use read::{Parsed, ProxyHeader, parse};
pub use write::{write_version_1, write_version_1_unknown, write_version_2, write_version_2_local};

/// Start of a version 2 header.
pub const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// What a version 1 header begins with.
const PREFIX: &str = "PROXY";
/// Bytes of a version 2 header before the addresses: signature, version and command, family, length of the rest.
const HEAD_BYTES: usize = 16;
/// Version 2, and the sender speaks for itself.
const COMMAND_LOCAL: u8 = 0x20;
/// Version 2, and the sender speaks for a client.
const COMMAND_PROXY: u8 = 0x21;
const FAMILY_UNSPECIFIED: u8 = 0x00;
const FAMILY_TCP4: u8 = 0x11;
const FAMILY_TCP6: u8 = 0x21;
/// Bytes of two IPv4 addresses and two ports.
const TCP4_BYTES: usize = 12;
/// Bytes of two IPv6 addresses and two ports.
const TCP6_BYTES: usize = 36;
