//! quinn's connections and streams in the form that HTTP/3 uses.
//!
//! The amount that a connection sends ahead of the client's acknowledgements follows the observed
//! capacity of its path: a client that acknowledges nothing makes us hold [`QUIC_SEND_BYTES_MIN`]
//! and no more. *Invariant:* all connections of an endpoint together send ahead beyond that at most
//! [`QUIC_SEND_BYTES_SUM_MAX`].

use bytes::Bytes;
use engine::context::Loop;
use engine::transport::http3::quic::{self, ConnectionEnd, StreamOver};
use quinn::{ConnectionError, ReadError, VarInt};
use std::cell::Cell;
use std::future::{self, Future};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use surface::limits::{QUIC_SEND_BYTES_MAX, QUIC_SEND_BYTES_MIN, QUIC_SEND_BYTES_SUM_MAX};

type Waiting<T> = Option<Pin<Box<dyn Future<Output = T>>>>;
type Both = (quinn::SendStream, quinn::RecvStream);

/// A connection.
pub(super) struct Connection {
    connection: quinn::Connection,
    window: Rc<Window>,
    accepting: Waiting<Result<Both, ConnectionError>>,
    accepting_one_way: Waiting<Result<quinn::RecvStream, ConnectionError>>,
    opening: Waiting<Result<quinn::SendStream, ConnectionError>>,
}

impl Connection {
    /// A connection that accepts streams.
    pub(super) fn new(context: &Rc<Loop>, room: &Rc<SendRoom>, connection: quinn::Connection) -> Connection {
        let window = Rc::new(Window {
            context: Rc::clone(context),
            room: Rc::clone(room),
            connection: connection.clone(),
            bytes: Cell::new(QUIC_SEND_BYTES_MIN),
        });
        Connection { connection, window, accepting: None, accepting_one_way: None, opening: None }
    }

    /// Ready when a client's stream has arrived, which will be the next one that is accepted.
    pub(super) fn poll_any_stream(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let has_come = match self.poll_accept_both(context) {
            Poll::Ready(accepted) => {
                self.accepting = Some(Box::pin(future::ready(accepted)));
                true
            }
            Poll::Pending => false,
        };
        match self.poll_accept_one(context) {
            Poll::Ready(accepted) => self.accepting_one_way = Some(Box::pin(future::ready(accepted))),
            Poll::Pending if !has_come => return Poll::Pending,
            Poll::Pending => {}
        }
        Poll::Ready(())
    }

    fn poll_accept_both(&mut self, context: &mut Context<'_>) -> Poll<Result<Both, ConnectionError>> {
        let connection = &self.connection;
        poll(&mut self.accepting, context, || {
            let connection = connection.clone();
            Box::pin(async move { connection.accept_bi().await })
        })
    }

    fn poll_accept_one(&mut self, context: &mut Context<'_>) -> Poll<Result<quinn::RecvStream, ConnectionError>> {
        let connection = &self.connection;
        poll(&mut self.accepting_one_way, context, || {
            let connection = connection.clone();
            Box::pin(async move { connection.accept_uni().await })
        })
    }

    fn send(&self, stream: quinn::SendStream) -> SendStream {
        SendStream { stream, window: Rc::clone(&self.window), stopping: None }
    }
}

/// Shared allowance of an endpoint's connections to send ahead beyond their guaranteed minimum.
#[derive(Default)]
pub(super) struct SendRoom {
    taken_bytes: Cell<u64>,
}

impl SendRoom {
    /// Takes some of it; false if less is left.
    fn take(&self, bytes: u64) -> bool {
        let taken = self.taken_bytes.get() + bytes;
        let has_room = taken <= QUIC_SEND_BYTES_SUM_MAX;
        if has_room {
            self.taken_bytes.set(taken);
        }
        has_room
    }

    fn give_back(&self, bytes: u64) {
        self.taken_bytes.set(self.taken_bytes.get().saturating_sub(bytes));
    }
}

/// Limit of unacknowledged bytes.
struct Window {
    context: Rc<Loop>,
    room: Rc<SendRoom>,
    connection: quinn::Connection,
    bytes: Cell<u64>,
}

impl Window {
    /// Grows if the path carries more than was assumed. Returns true if there is more room.
    fn grow(&self) -> bool {
        let bytes = self.bytes.get();
        if bytes >= QUIC_SEND_BYTES_MAX {
            return false;
        }
        let wanted = (2 * self.connection.stats().path.cwnd).min(QUIC_SEND_BYTES_MAX);
        if wanted <= bytes || self.context.is_memory_short() || !self.room.take(wanted - bytes) {
            return false;
        }
        self.bytes.set(wanted);
        self.connection.set_send_window(wanted);
        true
    }

    fn is_grown(&self) -> bool {
        self.bytes.get() > QUIC_SEND_BYTES_MIN
    }

    fn shrink(&self) {
        if self.is_grown() {
            self.connection.set_send_window(QUIC_SEND_BYTES_MIN);
            self.room.give_back(self.bytes.replace(QUIC_SEND_BYTES_MIN) - QUIC_SEND_BYTES_MIN);
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.room.give_back(self.bytes.get() - QUIC_SEND_BYTES_MIN);
    }
}

/// Polls the pending future; creates one with `begin`.
fn poll<T>(
    waiting: &mut Waiting<T>,
    context: &mut Context<'_>,
    begin: impl FnOnce() -> Pin<Box<dyn Future<Output = T>>>,
) -> Poll<T> {
    let result = ready!(waiting.get_or_insert_with(begin).as_mut().poll(context));
    *waiting = None;
    Poll::Ready(result)
}

fn end(error: &ConnectionError) -> ConnectionEnd {
    match error {
        ConnectionError::ApplicationClosed(_) | ConnectionError::ConnectionClosed(_) | ConnectionError::Reset => {
            ConnectionEnd::ByClient
        }
        ConnectionError::TimedOut => ConnectionEnd::TimedOut,
        ConnectionError::LocallyClosed => ConnectionEnd::ByUs,
        ConnectionError::TransportError(_) | ConnectionError::VersionMismatch | ConnectionError::CidsExhausted => {
            ConnectionEnd::Broken
        }
    }
}

fn code(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

impl quic::Connection for Connection {
    type Send = SendStream;
    type Receive = ReceiveStream;

    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<Result<quic::Sides<Self>, ConnectionEnd>> {
        Poll::Ready(match ready!(self.poll_accept_both(context)) {
            Ok((send, receive)) => Ok((self.send(send), ReceiveStream(receive))),
            Err(error) => Err(end(&error)),
        })
    }

    fn poll_accept_one_way(&mut self, context: &mut Context<'_>) -> Poll<Result<ReceiveStream, ConnectionEnd>> {
        let accepted = ready!(self.poll_accept_one(context));
        Poll::Ready(accepted.map(ReceiveStream).map_err(|error| end(&error)))
    }

    fn poll_open_one_way(&mut self, context: &mut Context<'_>) -> Poll<Result<SendStream, ConnectionEnd>> {
        let connection = &self.connection;
        let opened = ready!(poll(&mut self.opening, context, || {
            let connection = connection.clone();
            Box::pin(async move { connection.open_uni().await })
        }));
        Poll::Ready(opened.map(|stream| self.send(stream)).map_err(|error| end(&error)))
    }

    fn holds_room(&self) -> bool {
        self.window.is_grown()
    }

    fn give_room_back(&mut self) {
        self.window.shrink();
    }

    fn close(&mut self, number: u64) {
        self.connection.close(code(number), b"");
    }
}

/// The side of a stream on which we send.
pub(super) struct SendStream {
    stream: quinn::SendStream,
    window: Rc<Window>,
    stopping: Waiting<()>,
}

impl quic::SendStream for SendStream {
    fn id(&self) -> u64 {
        VarInt::from(self.stream.id()).into_inner()
    }

    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, StreamOver>> {
        loop {
            match Pin::new(&mut self.stream).poll_write(context, bytes) {
                Poll::Ready(written) => return Poll::Ready(written.map_err(|_| StreamOver)),
                Poll::Pending if self.window.grow() => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn finish(&mut self) {
        let _ = self.stream.finish();
    }

    fn reset(&mut self, number: u64) {
        let _ = self.stream.reset(code(number));
    }

    fn poll_stopped(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let stream = &self.stream;
        poll(&mut self.stopping, context, || {
            let stopped = stream.stopped();
            Box::pin(async move { drop(stopped.await) })
        })
    }

    fn set_urgency(&mut self, urgency: u8) {
        // quinn sends larger numbers first; the default 0 is urgency 3.
        let _ = self.stream.set_priority(3 - i32::from(urgency));
    }
}

/// The side of a stream on which we receive.
pub(super) struct ReceiveStream(quinn::RecvStream);

impl quic::ReceiveStream for ReceiveStream {
    fn poll_chunk(&mut self, context: &mut Context<'_>, bytes_max: usize) -> Poll<Result<Option<Bytes>, StreamOver>> {
        let chunk = ready!(pin!(self.0.read_chunk(bytes_max, true)).poll(context));
        Poll::Ready(match chunk {
            Ok(chunk) => Ok(chunk.map(|chunk| chunk.bytes)),
            Err(ReadError::ClosedStream) => Ok(None),
            Err(_) => Err(StreamOver),
        })
    }

    fn stop(&mut self, number: u64) {
        let _ = self.0.stop(code(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_connections_together_send_no_more_ahead_than_there_is_room() {
        let room = SendRoom::default();
        let most = QUIC_SEND_BYTES_MAX - QUIC_SEND_BYTES_MIN;
        let count = (0..1000).take_while(|_| room.take(most)).count() as u64;
        assert_eq!(count, QUIC_SEND_BYTES_SUM_MAX / most);
        room.give_back(most);
        assert!(room.take(most) && !room.take(most));
    }
}
