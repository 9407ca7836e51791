//! Encoding of the integers and strings in compressed header fields, common to HPACK and QPACK, and
//! decoded fields in one buffer.
//!
//! Both directions, for code that reads or writes header blocks itself: HTTP/2 (`http2`), HTTP/3
//! (`http3`), and test scripts (`vtc`). Non-goals: the meaning of fields, and tables; these belong
//! to the users. Source: RFC 7541 §5, which RFC 9204 §4.1 adopts. Next files: `integer.rs`,
//! `huffman.rs`, `string.rs`, `list.rs`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod huffman;
pub mod integer;
pub mod list;
pub mod string;

/// Size of a field besides its name and value, in dynamic tables and in the limits of a head.
/// Source: RFC 7541 §4.1, RFC 9113 §6.5.2, RFC 9114 §4.2.2.
pub const FIELD_EXTRA_BYTES: usize = 32;

pub use list::FieldList;
pub use string::Undecodable;
