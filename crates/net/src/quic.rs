//! QUIC endpoints of HTTP/3, one for each listener and event loop.
//!
//! ```text
//! UDP sockets of a port (SO_REUSEPORT)    the kernel chooses one by addresses and ports
//!   loop 0: socket ─ whose connection? ─┬ ours ────→ quinn ─→ connections ─→ engine (HTTP/3)
//!   loop 1: socket ─        …           └ another's → its mailbox
//! ```
//!
//! A connection stays on the loop of its handshake. When its client's address changes, the kernel
//! may choose another loop's socket; connection ids name the loop (`quic/ids.rs`), and the datagram
//! is forwarded to it (`quic/socket.rs`). A worker has the keys of the one before it: it resets
//! connections that died with that one, so their clients reconnect at once. *Invariant:* memory
//! held for unauthenticated peers is bounded, before the handshake and in it (`quic/endpoint.rs`).
//! Source: RFC
//! 9000. Next files: `quic/ids.rs`, `quic/socket.rs`, `quic/batch.rs`, `quic/endpoint.rs`,
//!       `quic/streams.rs`.

mod batch;
mod endpoint;
mod ids;
mod socket;
mod streams;

pub use endpoint::{QuicConfiguration, QuicEndpoint, accept_loop};
pub use ids::WorkerIds;
pub use socket::Mailboxes;
