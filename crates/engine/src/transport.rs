//! What carries requests to us: a transport reads a connection, opens a session, and runs exchanges on it.
//!
//! [`serve`] is the entry for a connection of bytes, in clear or encrypted, on which HTTP/1 or HTTP/2 is spoken. The transports
//! whose exchanges are streams of one connection (HTTP/2, HTTP/3) share what a stream is to the request machine:
//! `transport/stream.rs`.
//!
//! Next files: `transport/detect.rs`, `transport/http1.rs`, `transport/http2.rs`, `transport/stream.rs`, `transport/opening.rs`.

mod detect;
mod discard;
mod http1;
mod http2;
pub mod http3;
mod opening;
mod stream;
mod upgrade;

pub use detect::Speaks;
pub use discard::poll_discard;
pub use opening::{OpeningSession, ProxyFacts};

use crate::context::Loop;
use crate::peer::Peer;
use crate::session::Session;
use std::rc::Rc;
use tokio::io::{AsyncRead, AsyncWrite};

/// What a session begins with in the log. Compat: that of HTTP/2 as well.
const BEGINS_WITH: &str = "HTTP/1";

/// Opens a session; the future serves it until it ends. `preread` are bytes already read from the connection.
pub fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    context: Rc<Loop>,
    stream: S,
    peer: Peer,
    preread: Vec<u8>,
    speaks: Speaks,
) -> impl Future<Output = ()> {
    // Outside of the future, which holds whatever it is given as long as it lives.
    let session = Session::open(&context, peer, BEGINS_WITH);
    detect::serve(context, session, stream, preread, speaks)
}
