//! One client connection: reads requests one after the other, runs each, until somebody closes.

use crate::context::{Loop, Peer};
use std::rc::Rc;
use tokio::io::{AsyncRead, AsyncWrite};

/// Serves a connection to its end. `preread` are bytes already read from it.
pub async fn serve<S: AsyncRead + AsyncWrite + Unpin>(_context: Rc<Loop>, _stream: S, _peer: Peer, _preread: Vec<u8>) {}

/// As [`serve`], for a connection that began with a PROXY header. `record` is the payload of its `Proxy` record,
/// `ignored` that of a `ProxyGarbage` record when something in the header was passed over.
pub async fn serve_with_proxy<S: AsyncRead + AsyncWrite + Unpin>(
    _context: Rc<Loop>,
    _stream: S,
    _peer: Peer,
    _preread: Vec<u8>,
    _record: &str,
    _ignored: Option<&str>,
) {
}

/// Logs and counts a session that ended in its PROXY header. `garbage` is the payload of the `ProxyGarbage` record; empty
/// when the client just went away or stayed silent.
pub fn refuse_proxy(_context: &Rc<Loop>, _peer: &Peer, _garbage: &str) {}
