//! HPACK, both directions: [`Decoder`] and [`Encoder`].
//!
//! Each has a dynamic table, bounded by the size that was announced for it. Responses are written
//! without Huffman's code, as in QPACK: that is a choice of the sender, and the fields that recur
//! are in the table anyway. *Invariants:* a decoder has read a whole block, or the connection ends;
//! the encoder's blocks are sent in the order in which they were written. Source: RFC 7541. Next
//! files: `hpack/table.rs`, `hpack/decoder.rs`, `hpack/encoder.rs`.

mod decoder;
mod encoder;
mod table;

pub use decoder::Decoder;
pub use encoder::Encoder;
pub use table::TABLE_BYTES_AT_FIRST;
