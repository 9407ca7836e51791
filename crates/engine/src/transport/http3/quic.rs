//! QUIC as HTTP/3 needs it: [`Connection`] and its streams.
//!
//! The functions that wait are polled by one task at a time; the last one is woken. Source: RFC
//! 9000 §2, §10.

use bytes::Bytes;
use std::task::{Context, Poll};

/// Cause of the end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionEnd {
    /// The client closed it, or does not know it any more.
    ByClient,
    /// QUIC idle timeout.
    TimedOut,
    /// The client violated the QUIC protocol.
    Broken,
    /// Copal closed it.
    ByUs,
}

/// A stream is over: reset or stopped by the client, or its connection is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamOver;

/// The two sides of a stream.
pub type Sides<C> = (<C as Connection>::Send, <C as Connection>::Receive);

/// A connection with a client, from the moment when streams may arrive. While its handshake is
/// under way, the session's peer has that state.
pub trait Connection: Sized {
    /// The sending side of a stream.
    type Send: SendStream + 'static;
    /// The receiving side of a stream.
    type Receive: ReceiveStream + 'static;

    /// Waits for the next bidirectional stream.
    ///
    /// # Errors
    /// The connection is over.
    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<Result<Sides<Self>, ConnectionEnd>>;

    /// Waits for the next unidirectional stream of the client.
    ///
    /// # Errors
    /// The connection is over.
    fn poll_accept_one_way(&mut self, context: &mut Context<'_>) -> Poll<Result<Self::Receive, ConnectionEnd>>;

    /// Opens a unidirectional stream.
    ///
    /// # Errors
    /// The connection is over.
    fn poll_open_one_way(&mut self, context: &mut Context<'_>) -> Poll<Result<Self::Send, ConnectionEnd>>;

    /// True if much memory has been reserved for bytes that are sent ahead of the client's
    /// acknowledgements.
    fn holds_room(&self) -> bool {
        false
    }

    /// Releases that memory: nothing is being sent.
    fn give_room_back(&mut self) {}

    /// Closes the connection with an HTTP/3 error code.
    fn close(&mut self, code: u64);
}

/// The sending side of a stream.
pub trait SendStream: Unpin {
    /// The stream's number.
    fn id(&self) -> u64;

    /// Sends some of the bytes, at least one, and returns their number.
    ///
    /// # Errors
    /// The stream is over.
    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, StreamOver>>;

    /// Ends the stream after the bytes that have been sent.
    fn finish(&mut self);

    /// Ends the stream at once.
    fn reset(&mut self, code: u64);

    /// Ready when the client needs no more of it, or its connection is gone; or, after
    /// [`SendStream::finish`], when the client has received everything.
    fn poll_stopped(&mut self, context: &mut Context<'_>) -> Poll<()>;

    /// Sets the urgency, from 0 (most urgent) to 7. Source: RFC 9218 §4.1.
    fn set_urgency(&mut self, urgency: u8);
}

/// The receiving side of a stream.
pub trait ReceiveStream: Unpin {
    /// Waits for the next bytes, at most the given number; `None` at the end.
    ///
    /// # Errors
    /// The stream is over.
    fn poll_chunk(&mut self, context: &mut Context<'_>, bytes_max: usize) -> Poll<Result<Option<Bytes>, StreamOver>>;

    /// Signals that no more of it is needed.
    fn stop(&mut self, code: u64);
}
