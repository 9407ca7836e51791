//! A connection to an origin, used by one exchange: sends and receives bytes within time limits.
//!
//! While a request is being sent, bytes that the origin already sends are received, so that an
//! origin that answers before it has read everything neither blocks nor is blocked. A request with
//! a body is sent no further once the origin has refused it, or has closed its side: its answer
//! would be lost with the connection. A timer is created only for an operation that has to wait.
//! *Invariant:* a connection whose answer has not begun holds no buffer. Source: RFC 9112 §9.5.
//! Next file: `received.rs`.

use super::received::{BUFFER_BYTES, ReceiveBuffers, Received};
use crate::fetch::interest::Interested;
use crate::origin::types::{Early, Unsent};
use backend::{BackendConnection, TlsFailure};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use surface::limits::EARLY_ANSWER_STALL_SECONDS;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep_until};

/// Error number for a timeout without progress.
const ETIMEDOUT: i32 = 110;

/// Longest time in which an origin that has begun to answer may accept no bytes of the request.
const EARLY_ANSWER_STALL: Duration = Duration::from_secs(EARLY_ANSWER_STALL_SECONDS);

/// Length of `HTTP/1.1 200`.
const STATUS_BYTES: usize = 12;

/// Reason why nothing could be received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReceiveError {
    /// The time limit passed.
    Timeout,
    /// The connection broke, with this error number.
    Broken(i32),
    /// No client needs it any more.
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
    /// The error number by which that happened, if it was not reported yet.
    ended_by: Option<i32>,
    /// The request has a body, which an early answer may make unnecessary.
    is_watching: bool,
    /// Ends waiting when no client needs the response any more.
    interest: Option<Interested>,
    /// The TLS error by which the connection ended.
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
            ended_by: None,
            is_watching: false,
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

    /// Ends waiting when no client needs the response any more.
    pub(super) fn serves(&mut self, interest: Option<Interested>) {
        self.interest = interest;
    }

    /// Stores that the origin keeps the idle connection for at least this many seconds.
    pub(super) fn kept_for(&mut self, seconds: f64) {
        self.connection.kept_seconds = seconds;
    }

    /// Watches for an early answer while the request is sent.
    pub(super) fn watches(&mut self, is_watching: bool) {
        self.is_watching = is_watching;
    }

    /// True if the origin may have received any of the request.
    pub(super) fn has_sent(&self) -> bool {
        self.sent_bytes > 0
    }

    /// True if a byte of an answer has arrived since the connection was taken.
    pub(super) fn has_answered(&self) -> bool {
        self.has_answered
    }

    /// The TLS error by which the connection ended, if that was the cause.
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

    /// Takes all bytes that were received and not used, in their buffer; `None` if that would save
    /// nothing.
    pub(super) fn take_received(&mut self) -> Option<Vec<u8>> {
        self.received.take()
    }

    /// Sends all of `bytes`. If no byte is accepted for `stall`, the connection counts as broken,
    /// with ETIMEDOUT.
    ///
    /// # Errors
    /// [`Unsent`].
    pub(super) async fn send(&mut self, bytes: &[u8], stall: Duration) -> Result<(), Unsent> {
        let mut sent = 0;
        while sent < bytes.len() {
            let rest = &bytes[sent..];
            let count = self
                .push(stall, |connection, context| match Pin::new(&mut connection.stream).poll_write(context, rest) {
                    Poll::Ready(Ok(0)) => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                    polled => polled,
                })
                .await?;
            sent += count;
            self.sent_bytes += count as u64;
        }
        // An encrypted connection keeps the bytes that its socket did not accept.
        let flushed =
            self.push(stall, |connection, context| Pin::new(&mut connection.stream).poll_flush(context).map_ok(|()| 0));
        flushed.await.map(drop)
    }

    /// Waits until the connection accepts bytes. An origin that has begun to answer is given less
    /// time for that.
    async fn push(
        &mut self,
        stall: Duration,
        mut poll: impl FnMut(&mut BackendConnection, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Result<usize, Unsent> {
        loop {
            let is_accepted = self.early() == Some(Early::Accepted);
            let stall = if is_accepted { stall.min(EARLY_ANSWER_STALL) } else { stall };
            let moved = within(
                || Instant::now() + stall,
                |context| {
                    if self.is_watching {
                        self.take_answer(context);
                        if self.early() == Some(Early::Declined) {
                            return Poll::Ready(Some(Err(Unsent::Answered)));
                        }
                    }
                    match poll(&mut self.connection, context) {
                        Poll::Ready(Ok(count)) => return Poll::Ready(Some(Ok(count))),
                        Poll::Ready(Err(error)) => {
                            let number = backend::backend::error_number(&error);
                            return Poll::Ready(Some(Err(Unsent::Broken(number))));
                        }
                        Poll::Pending => {}
                    }
                    if !self.is_watching {
                        self.take_answer(context);
                    }
                    // The time limit has changed.
                    if !is_accepted && self.early() == Some(Early::Accepted) {
                        Poll::Ready(None)
                    } else {
                        Poll::Pending
                    }
                },
            );
            match moved.await {
                Some(Some(moved)) => return moved,
                Some(None) => {}
                None if is_accepted => return Err(Unsent::Answered),
                None => return Err(Unsent::Broken(ETIMEDOUT)),
            }
        }
    }

    /// The answer so far, if it matters for the rest of the request.
    fn early(&self) -> Option<Early> {
        if self.is_watching { early(self.received.bytes(), self.is_ended).1 } else { None }
    }

    /// Watches for an answer while nothing is sent. Ready with an interim head, or when the rest is
    /// not needed.
    pub(super) fn poll_early(&mut self, context: &mut Context<'_>) -> Poll<Early> {
        if !self.is_watching {
            return Poll::Pending;
        }
        self.take_answer(context);
        match early(self.received.bytes(), self.is_ended) {
            (_, Some(Early::Declined)) => Poll::Ready(Early::Declined),
            (true, _) => Poll::Ready(Early::Interim),
            (false, _) => Poll::Pending,
        }
    }

    /// Receives the origin's bytes while it accepts none: an origin that waits for Copal to read
    /// would never accept the rest.
    fn take_answer(&mut self, context: &mut Context<'_>) {
        while !self.is_ended && self.received.len() < BUFFER_BYTES {
            match self.poll_receive(context, BUFFER_BYTES - self.received.len()) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0)) => self.is_ended = true,
                Poll::Ready(Err(error)) => {
                    self.is_ended = true;
                    self.ended_by = Some(backend::backend::error_number(&error));
                }
                Poll::Pending => break,
            }
        }
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
                // An origin may take long: until then every request that waits for one would hold a
                // buffer.
                if !self.has_answered {
                    self.received.discard();
                }
                Poll::Pending
            }
        }
    }

    /// Receives more bytes, at most `most` (0 = no limit), until `deadline`. 0 means the end of the
    /// stream.
    ///
    /// # Errors
    /// [`ReceiveError`].
    pub(super) async fn receive(&mut self, most: usize, deadline: Instant) -> Result<usize, ReceiveError> {
        if self.is_ended {
            return self.ended_by.map_or(Ok(0), |errno| Err(ReceiveError::Broken(errno)));
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
                let errno = backend::backend::error_number(&error);
                self.is_ended = true;
                self.ended_by = Some(errno);
                Err(ReceiveError::Broken(errno))
            }
            Some(None) => Err(ReceiveError::Abandoned),
            None => Err(ReceiveError::Timeout),
        }
    }
}

/// The meaning of the received part of an answer for a request that is still being sent: if
/// complete interim heads precede it, and the final answer.
fn early(received: &[u8], is_ended: bool) -> (bool, Option<Early>) {
    let mut rest = received;
    let mut has_interim = false;
    let ended = is_ended.then_some(Early::Declined);
    loop {
        while let [b'\r' | b'\n', after @ ..] = rest {
            rest = after;
        }
        if rest.len() < STATUS_BYTES {
            return (has_interim, ended);
        }
        let is_interim = rest.starts_with(b"HTTP/") && rest[9] == b'1' && &rest[9..STATUS_BYTES] != b"101";
        if !is_interim {
            let is_accepted = rest.starts_with(b"HTTP/") && rest[9] == b'2' && !is_ended;
            return (has_interim, Some(if is_accepted { Early::Accepted } else { Early::Declined }));
        }
        match head_bytes(rest) {
            Some(count) => rest = &rest[count..],
            None => return (has_interim, ended),
        }
        has_interim = true;
    }
}

/// Length of the head at the front; `None` if it is incomplete.
fn head_bytes(bytes: &[u8]) -> Option<usize> {
    let ends = |at: usize| {
        let after = &bytes[at + 1..];
        if after.starts_with(b"\n") { Some(at + 2) } else { after.starts_with(b"\r\n").then_some(at + 3) }
    };
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').find_map(|(at, _)| ends(at))
}

/// Waits for an event until a time that is computed only if a wait is needed; `None` if it has
/// passed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_so_far_is_known_by_its_status_after_any_interim_heads() {
        let hint = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
        for (received, expected) in [
            ("", (false, None)),
            ("HTTP/1.1 41", (false, None)),
            ("HTTP/1.1 413", (false, Some(Early::Declined))),
            ("HTTP/1.1 302 Found\r\n", (false, Some(Early::Declined))),
            ("HTTP/1.1 101 Switching Protocols\r\n", (false, Some(Early::Declined))),
            ("\r\nHTTP/1.1 200 OK", (false, Some(Early::Accepted))),
            ("this is not HTTP", (false, Some(Early::Declined))),
            ("HTTP/1.1 100 Continue\r\n", (false, None)),
            ("HTTP/1.1 100 Continue\n\nHTTP/1.1 ", (true, None)),
        ] {
            assert_eq!(early(received.as_bytes(), false), expected, "{received}");
            let after_hint = early(format!("{hint}{received}").as_bytes(), false);
            assert_eq!(after_hint, (true, expected.1), "{received}");
            assert_eq!(early(received.as_bytes(), true).1, Some(Early::Declined), "{received}");
        }
    }
}
