//! One client connection: reads requests one after the other, runs each, until somebody closes.

use crate::context::{Loop, Peer};
use std::rc::Rc;
use tokio::io::{AsyncRead, AsyncWrite};

/// Serves a connection to its end. `preread` are bytes already read from it (after a PROXY header).
pub async fn serve<S: AsyncRead + AsyncWrite + Unpin>(_context: Rc<Loop>, _stream: S, _peer: Peer, _preread: Vec<u8>) {}
