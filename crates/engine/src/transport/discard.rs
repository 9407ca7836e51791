//! Discarding of the bytes that a client still sends when none of them are needed: they are read
//! and dropped, since unread bytes make the system reset a connection that is closed, and the
//! client may lose the end of its answer by that. Source: RFC 9112 §9.6.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// Most bytes that are discarded at a time.
const DISCARDED_BYTES: usize = 4 << 10;

/// Reads and discards bytes. Returns their number; 0 at the end, whatever its cause.
pub fn poll_discard(stream: &mut (impl AsyncRead + Unpin), context: &mut Context<'_>) -> Poll<usize> {
    let mut bytes = [0; DISCARDED_BYTES];
    let mut buffer = ReadBuf::new(&mut bytes);
    let read = ready!(Pin::new(stream).poll_read(context, &mut buffer));
    Poll::Ready(read.map_or(0, |()| buffer.filled().len()))
}
