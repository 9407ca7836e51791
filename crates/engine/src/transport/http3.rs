//! HTTP/3: the requests of a QUIC connection, each on a stream of its own.
//!
//! ```text
//! connection ─┬ control stream, ours and theirs      http3/connection.rs
//!             ├ streams of QPACK, unknown ones       (http3/beside.rs)
//!             └ request stream ─ head → Exchange → delivered     http3/request.rs, http3/stream.rs
//! ```
//!
//! There are no sockets here: QUIC is what [`quic::Connection`] says, implemented over UDP by the owner of the sockets. The
//! connection is one task, and each request one of its own on the same event loop; they share a [`shared::Shared`].
//! *Invariant:* a stream counts until its work is over, whoever has reset it: its sides are closed only then, and QUIC gives no
//! credit for another one before that. Source: RFC 9114; the bytes are read and written by the crate `http3`. Next files:
//! `http3/quic.rs`, `http3/connection.rs`.

mod beside;
mod connection;
pub mod quic;
mod request;
mod shared;
mod stream;
mod tails;

pub(super) use connection::serve;
