//! A connection to an origin, used by one exchange: sends and receives bytes within time limits.
//!
//! While a request is being sent, whatever the origin already sends is received, so that an origin that answers before it has
//! read everything neither blocks nor is blocked. A timer is made only for what has to wait. *Invariant:* a connection whose answer has
//! not begun holds no buffer. Next file: `received.rs`.

use super::received::{BUFFER_BYTES, ReceiveBuffers, Received};
use crate::fetch::interest::Interested;
use backend::{BackendConnection, TlsFailure};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep_until};

/// The number of the error when nothing moves.
const ETIMEDOUT: i32 = 110;

/// Why nothing could be received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReceiveError {
    /// The time limit passed.
    Timeout,
    /// The connection broke, with this error number.
    Broken(i32),
    /// Nobody wants it any more.
    Abandoned,
}

/// A connection in use.
pub(super) struct OriginWire {
    connection: BackendConnection,
    received: Received,
    /// Bytes of the request that the connection has accepted.
    sent_bytes: u64,
    /// Part of an answer has arrived, perhaps an interim one.
    has_answered: bool,
    /// The origin will send nothing more.
    is_ended: bool,
    /// Ends waiting when nobody wants the response any more.
    interest: Option<Interested>,
    /// The error of TLS by which the connection ended.
    tls_failure: Option<TlsFailure>,
}

impl OriginWire {
    pub(super) fn new(connection: BackendConnection, buffers: Rc<ReceiveBuffers>) -> OriginWire {
        OriginWire {
            connection,
            received: Received::new(buffers),
            sent_bytes: 0,
            has_answered: false,
            is_ended: false,
            interest: None,
            tls_failure: None,
        }
    }

    /// The buffers that its event loop shares.
    pub(super) fn buffers(&self) -> &ReceiveBuffers {
        self.received.buffers()
    }

    /// The connection itself.
    pub(super) fn connection(&self) -> &BackendConnection {
        &self.connection
    }

    /// Ends waiting when nobody wants the response any more.
    pub(super) fn serves(&mut self, interest: Option<Interested>) {
        self.interest = interest;
    }

    /// Whether the origin may have seen any of the request.
    pub(super) fn has_sent(&self) -> bool {
        self.sent_bytes > 0
    }

    /// Whether a byte of an answer has arrived since the connection was taken.
    pub(super) fn has_answered(&self) -> bool {
        self.has_answered
    }

    /// The error of TLS by which the connection ended, if that is what happened.
    pub(super) fn take_tls_failure(&mut self) -> Option<String> {
        self.tls_failure.take().map(|failure| failure.text)
    }

    /// Returns the connection.
    pub(super) fn into_connection(self) -> BackendConnection {
        self.connection
    }

    /// The bytes that were received and not used.
    pub(super) fn received(&self) -> &[u8] {
        self.received.bytes()
    }

    /// Marks bytes as used.
    pub(super) fn consume(&mut self, count: usize) {
        self.received.consume(count);
    }

    /// Takes all bytes that were received and not used, in their buffer; `None` if that would save nothing.
    pub(super) fn take_received(&mut self) -> Option<Vec<u8>> {
        self.received.take()
    }

    /// Sends all of `bytes`. If nothing moves for `stall`, the connection counts as broken, with ETIMEDOUT.
    ///
    /// # Errors
    /// The error number.
    pub(super) async fn send(&mut self, bytes: &[u8], stall: Duration) -> Result<(), i32> {
        let mut sent = 0;
        while sent < bytes.len() {
            match within(|| Instant::now() + stall, |context| self.poll_send(context, &bytes[sent..])).await {
                Some(Ok(count)) => {
                    sent += count;
                    self.sent_bytes += count as u64;
                }
                Some(Err(error)) => return Err(backend::backend::error_number(&error)),
                None => return Err(ETIMEDOUT),
            }
        }
        self.flush(stall).await
    }

    /// An encrypted connection keeps what its socket did not take.
    async fn flush(&mut self, stall: Duration) -> Result<(), i32> {
        let flushed = within(
            || Instant::now() + stall,
            |context| match Pin::new(&mut self.connection.stream).poll_flush(context) {
                Poll::Pending => self.poll_answer(context),
                done => done,
            },
        );
        match flushed.await {
            Some(result) => result.map_err(|error| backend::backend::error_number(&error)),
            None => Err(ETIMEDOUT),
        }
    }

    fn poll_send(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.connection.stream).poll_write(context, bytes) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => self.poll_answer(context),
        }
    }

    /// Takes what the origin sends while it does not accept anything: one that waits for us to read would never accept the rest.
    /// Never ready.
    fn poll_answer<T>(&mut self, context: &mut Context<'_>) -> Poll<T> {
        while !self.is_ended && self.received.len() < BUFFER_BYTES {
            match self.poll_receive(context, BUFFER_BYTES - self.received.len()) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0) | Err(_)) => self.is_ended = true,
                Poll::Pending => break,
            }
        }
        Poll::Pending
    }

    fn poll_receive(&mut self, context: &mut Context<'_>, most: usize) -> Poll<io::Result<usize>> {
        let mut into = self.received.room(most);
        match pin!(self.connection.stream.read_buf(&mut into)).poll(context) {
            Poll::Ready(Ok(count)) => {
                self.has_answered |= count > 0;
                Poll::Ready(Ok(count))
            }
            Poll::Ready(Err(error)) => {
                self.tls_failure = error.get_ref().and_then(|inner| inner.downcast_ref()).cloned();
                Poll::Ready(Err(error))
            }
            Poll::Pending => {
                // An origin may take its time: until then every request that waits for one would hold a buffer.
                if !self.has_answered {
                    self.received.discard();
                }
                Poll::Pending
            }
        }
    }

    /// Receives more bytes, at most `most` (0 = no limit), until `deadline`. 0 means the end of the stream.
    ///
    /// # Errors
    /// [`ReceiveError`].
    pub(super) async fn receive(&mut self, most: usize, deadline: Instant) -> Result<usize, ReceiveError> {
        if self.is_ended {
            return Ok(0);
        }
        self.received.make_room();
        let most = if most == 0 { usize::MAX } else { most };
        let some = within(
            || deadline,
            |context| match (self.poll_receive(context, most), &self.interest) {
                (Poll::Pending, Some(interest)) => interest.poll_lost(context).map(|()| None),
                (polled, _) => polled.map(Some),
            },
        );
        match some.await {
            Some(Some(Ok(0))) => {
                self.is_ended = true;
                Ok(0)
            }
            Some(Some(Ok(count))) => Ok(count),
            Some(Some(Err(error))) => {
                self.is_ended = true;
                Err(ReceiveError::Broken(backend::backend::error_number(&error)))
            }
            Some(None) => Err(ReceiveError::Abandoned),
            None => Err(ReceiveError::Timeout),
        }
    }
}

/// Waits for something until a time that is asked for only if there is something to wait for; `None` when it has passed.
async fn within<T>(due: impl FnOnce() -> Instant, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
    let mut due = Some(due);
    let mut timer = pin!(None::<Sleep>);
    poll_fn(|context| {
        if let Poll::Ready(done) = poll(context) {
            return Poll::Ready(Some(done));
        }
        if let Some(due) = due.take() {
            timer.set(Some(sleep_until(due())));
        }
        timer.as_mut().as_pin_mut().map_or(Poll::Pending, |timer| timer.poll(context).map(|()| None))
    })
    .await
}
