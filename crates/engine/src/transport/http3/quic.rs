//! QUIC as HTTP/3 needs it: [`Connection`] and its streams.
//!
//! The functions that wait are polled by one task at a time; it is the last one that is woken. Source: RFC 9000 §2, §10.

use bytes::Bytes;
use std::task::{Context, Poll};

/// How a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionEnd {
    /// The client closed it, or knows nothing of it any more.
    ByClient,
    /// Nothing was heard for too long.
    TimedOut,
    /// The client broke the rules of QUIC.
    Broken,
    /// We closed it.
    ByUs,
}

/// A stream is over: reset or stopped by the client, or its connection is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamOver;

/// The two sides of a stream.
pub type Sides<C> = (<C as Connection>::Send, <C as Connection>::Receive);

/// A connection with a client, from the moment when streams may come. While its handshake is under way, the session's peer says so.
pub trait Connection: Sized {
    /// The side of a stream on which we send.
    type Send: SendStream + 'static;
    /// The side of a stream on which we receive.
    type Receive: ReceiveStream + 'static;

    /// Waits for the next stream with two sides.
    ///
    /// # Errors
    /// The connection is over.
    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<Result<Sides<Self>, ConnectionEnd>>;

    /// Waits for the next stream on which only the client sends.
    ///
    /// # Errors
    /// The connection is over.
    fn poll_accept_one_way(&mut self, context: &mut Context<'_>) -> Poll<Result<Self::Receive, ConnectionEnd>>;

    /// Opens a stream on which only we send.
    ///
    /// # Errors
    /// The connection is over.
    fn poll_open_one_way(&mut self, context: &mut Context<'_>) -> Poll<Result<Self::Send, ConnectionEnd>>;

    /// Whether much has been set aside for what is sent ahead of the client's acknowledgements.
    fn holds_room(&self) -> bool {
        false
    }

    /// Gives that back: nothing is being sent.
    fn give_room_back(&mut self) {}

    /// Closes the connection with a code of HTTP/3.
    fn close(&mut self, code: u64);
}

/// The side of a stream on which we send.
pub trait SendStream: Unpin {
    /// The stream's number.
    fn id(&self) -> u64;

    /// Sends some of the bytes, at least one, and returns how many.
    ///
    /// # Errors
    /// The stream is over.
    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, StreamOver>>;

    /// Ends the stream after what has been sent.
    fn finish(&mut self);

    /// Ends the stream at once.
    fn reset(&mut self, code: u64);

    /// Ready when the client wants no more of it, or its connection is gone; or, after [`SendStream::finish`], when it has all.
    fn poll_stopped(&mut self, context: &mut Context<'_>) -> Poll<()>;

    /// How urgent it is, from 0 (most) to 7. Source: RFC 9218 §4.1.
    fn set_urgency(&mut self, urgency: u8);
}

/// The side of a stream on which we receive.
pub trait ReceiveStream: Unpin {
    /// Waits for the next bytes, at most so many; `None` at the end.
    ///
    /// # Errors
    /// The stream is over.
    fn poll_chunk(&mut self, context: &mut Context<'_>, bytes_max: usize) -> Poll<Result<Option<Bytes>, StreamOver>>;

    /// Says that nothing more of it is wanted.
    fn stop(&mut self, code: u64);
}
