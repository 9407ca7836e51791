//! The layout of a header, for reading and writing.

/// Start of a version 2 header.
pub const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// Start of a version 1 header.
pub(crate) const PREFIX: &str = "PROXY";
/// Bytes of a version 2 header before the addresses: signature, version and command, family, length
/// of the rest.
pub(crate) const HEAD_BYTES: usize = 16;
/// Version 2, on the sender's own behalf.
pub(crate) const COMMAND_LOCAL: u8 = 0x20;
/// Version 2, on behalf of a client.
pub(crate) const COMMAND_PROXY: u8 = 0x21;
pub(crate) const FAMILY_UNSPECIFIED: u8 = 0x00;
pub(crate) const FAMILY_TCP4: u8 = 0x11;
pub(crate) const FAMILY_TCP6: u8 = 0x21;
/// Bytes of two IPv4 addresses and two ports.
pub(crate) const TCP4_BYTES: usize = 12;
/// Bytes of two IPv6 addresses and two ports.
pub(crate) const TCP6_BYTES: usize = 36;
