//! HTTP/3 without connections: frames, settings, and heads as QPACK writes them.
//!
//! Everything here works on bytes: a [`frames::FrameReader`] takes what arrives on one stream in whatever pieces, and yields
//! frames; [`control::ControlReader`] and [`unidirectional::StreamKind`] say what streams beside requests are and whether their
//! frames may be there; [`head`] makes a request's head of a block of fields and the other way round. What breaks the protocol is a
//! [`Code`] to close the connection or the stream with.
//!
//! There is no dynamic table: we announce a capacity of 0, so that no block ever waits for another stream and a head costs
//! no memory beyond its own. *Invariant:* nothing is buffered but the payload of a frame that is needed whole, up to a limit
//! given by the caller; unknown frames are skipped as they come. Source: RFC 9114, RFC 9204. Next files: `varint.rs`,
//! `frames.rs`, `control.rs`, `unidirectional.rs`, `head.rs`, `qpack.rs`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod code;
pub mod control;
pub mod frames;
pub mod head;
pub mod qpack;
pub mod unidirectional;
pub mod varint;

pub use code::Code;
