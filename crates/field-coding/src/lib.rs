//! How the numbers and texts of compressed header fields are written, which HPACK and QPACK have in common.
//!
//! Both directions, for whoever reads or writes blocks of fields by hand: HTTP/3 (`http3`), the opening that stands for an
//! upgraded request (`http2`), and test scripts (`vtc`). What a field is, and tables, are theirs. Source: RFC 7541 §5, which
//! RFC 9204 §4.1 takes over. Next files: `integer.rs`, `huffman.rs`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod huffman;
pub mod integer;
