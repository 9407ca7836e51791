//! HTTP/3: the requests of a QUIC connection, each on a stream of its own.
//!
//! ```text
//! connection ─┬ control stream, both directions       http3/connection.rs
//!             ├ streams of QPACK, unknown ones       (http3/unidirectional.rs)
//!             └ request stream ─ head → Exchange → delivered     http3/request.rs, http3/stream.rs
//! ```
//!
//! There are no sockets here: QUIC is the trait [`quic::Connection`], implemented over UDP by the
//! owner of the sockets. The connection is one task, and each request one of its own on the same
//! event loop; they share a [`shared::Shared`]. *Invariant:* a stream counts until its work is
//! over, even if it was reset: its sides are closed only then, and QUIC gives no credit for another
//! one before that. Source: RFC 9114; the bytes are read and written by the crate `http3`. Next
//! files: `http3/quic.rs`, `http3/connection.rs`.

mod connection;
pub mod quic;
mod request;
mod shared;
mod stream;
mod unacknowledged;
mod unidirectional;

pub(super) use connection::serve;
