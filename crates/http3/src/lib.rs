//! HTTP/3 without connections: frames, settings, and heads in QPACK.
//!
//! Everything here works on bytes: a [`frames::FrameReader`] takes the bytes of one stream in
//! pieces of any size, and yields frames; [`control::ControlReader`] and
//! [`unidirectional::StreamKind`] handle unidirectional streams and check their frames; [`head`]
//! converts between a request's or response's head and a block of fields. Protocol violations are a
//! [`Code`] to close the connection or the stream with.
//!
//! There is no dynamic table: we announce a capacity of 0, so that no block ever waits for another
//! stream and a head costs no memory beyond its own. *Invariant:* only the payload of a frame that
//! is needed as a whole is buffered, up to a limit given by the caller; unknown frames are skipped
//! as they arrive. Source: RFC 9114, RFC 9204. Next files: `varint.rs`, `frames.rs`, `control.rs`,
//! `unidirectional.rs`, `head.rs`, `qpack.rs`.

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
