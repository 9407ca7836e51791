//! HTTP/1 framing without sockets: heads to [`message::Message`] and back, and the length and
//! position of a body in the received bytes.
//!
//! Everything takes bytes and returns positions; nothing here reads, writes, waits or keeps a
//! buffer of its own. The meaning of headers to a cache is in `semantics`.
//!
//! The codec is written by hand rather than with a parser crate, because a drop-in replacement has
//! to give Varnish's answers, and a generic parser does not: folded lines are joined with blanks,
//! bare line feeds end lines, and each refusal has its own `BogoHeader` text. Where Varnish is so
//! lenient that two servers may disagree about where a message ends, this crate is stricter;
//! `docs/reference/request-smuggling.md` lists every such case and `tests/smuggling.rs` checks it.
//!
//! Reading order: `head`, `target`, `authority`, `framing`, `connection`, `decode`, `write`.
//! Source: RFC 9112.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod authority;
mod connection;
mod decode;
mod framing;
mod head;
mod sample;
mod target;
mod token;
mod write;

pub use authority::is_host;
pub use connection::{ConnectionOptions, connection_options, keep_alive_seconds, lists_close};
pub use decode::{BodyDecoder, BodyError, Step};
pub use framing::{
    BodyLength, FramingError, is_coded_until_close, is_http10, is_unframed_keep_alive, request_body_length,
    response_body_length,
};
pub use head::{HeadError, HeadLimits, HeadStatus, START_LINE_SLOTS, parse_request, parse_response, parse_trailers};
pub use sample::Sample;
pub use target::{AbsoluteForm, MalformedTarget, split_absolute_form};
pub use write::{LAST_CHUNK, chunk_header, write_request_head, write_response_head, write_trailers};
