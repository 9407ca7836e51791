//! Transports: each reads a connection, opens a session, and runs the requests on it as exchanges.
//!
//! [`serve`] is the entry for a byte-stream connection, in clear or encrypted, with HTTP/1 or
//! HTTP/2. The transports whose exchanges are streams of one connection (HTTP/2, HTTP/3) share the
//! interface of a stream to the request machine: `transport/stream.rs`.
//!
//! Next files: `transport/detect.rs`, `transport/http1.rs`, `transport/http2.rs`,
//! `transport/stream.rs`, `transport/opening.rs`.

mod detect;
mod discard;
mod http1;
mod http2;
pub mod http3;
mod opening;
mod stream;
mod upgrade;

pub use detect::FirstProtocol;
pub use discard::poll_discard;
pub use opening::{OpeningSession, ProxyFacts};

use crate::context::Loop;
use crate::peer::Peer;
use crate::session::Session;
use std::rc::Rc;
use tokio::io::{AsyncRead, AsyncWrite};

/// First protocol name of a session in the log. Compat: used for HTTP/2 as well.
const BEGINS_WITH: &str = "HTTP/1";

/// Opens a session; the future serves it until it ends. `preread` are bytes already read from the
/// connection.
pub fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    context: Rc<Loop>,
    stream: S,
    peer: Peer,
    preread: Vec<u8>,
    speaks: FirstProtocol,
) -> impl Future<Output = ()> {
    // Outside of the future, which reserves memory for its captures as long as it exists.
    let session = Session::open(&context, peer, BEGINS_WITH);
    detect::serve(context, session, stream, preread, speaks)
}
