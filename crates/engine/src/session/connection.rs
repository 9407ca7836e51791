//! The client's connection: bytes in, bytes out, and the time each may take. It knows nothing of HTTP.
//!
//! Generic over the stream, so that the same code runs over TCP, Unix-domain sockets, TLS and memory. Nothing is buffered
//! here: what is received lies in the request's buffer, what is sent is written from where it lies.

use super::deadline::{Deadline, duration};
use shm::log::LogBuffer;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use surface::tag::Tag;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::time::Instant;

/// Slices of one vectored write: head with chunk line, bytes, end of chunk.
pub(crate) const PARTS: usize = 3;

/// Why nothing was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReceiveError {
    /// The client closed, or the connection broke.
    Closed,
    /// The time is up.
    TimedOut,
}

/// The shortest time that a write without progress is waited for, so that waiting cannot become spinning.
const IDLE_MIN: Duration = Duration::from_millis(1);

/// Why not everything was sent. What exactly broke is nobody's concern: the session ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SendError;

/// How long sending a response may take. Neither is the clock read nor a duration made of it for a response that goes out in one
/// write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendLimits {
    /// For each write to make some progress, in seconds. That it made none is logged; sending goes on, as in Varnish.
    pub(crate) idle: f64,
    /// For everything from `since` on, in seconds, however long the origin takes for it.
    pub(crate) total: f64,
    /// When the delivery began.
    pub(crate) since: Instant,
}

/// A client's connection.
pub(crate) struct Connection<S> {
    stream: S,
    deadline: Deadline,
    limits: SendLimits,
    /// Something was sent since the limits began to count.
    has_sent: bool,
    /// Bytes sent since the start.
    pub(crate) sent_bytes: u64,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(crate) fn new(stream: S) -> Self {
        let limits = SendLimits { idle: f64::INFINITY, total: f64::INFINITY, since: Instant::now() };
        Connection { stream, deadline: Deadline::new(), limits, has_sent: false, sent_bytes: 0 }
    }

    /// Begins to send a response: the limits count anew.
    pub(crate) fn begin_sending(&mut self, limits: SendLimits) {
        self.limits = limits;
        self.has_sent = false;
    }

    /// The stream itself, for a pipe.
    pub(crate) fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Reads once into the buffer that `take_buffer` yields, which is asked for anew with every attempt and given back when
    /// there is nothing to read: so a connection that waits holds no buffer.
    pub(crate) async fn receive_first<B: AsMut<Vec<u8>>>(
        &mut self,
        due: Instant,
        mut take_buffer: impl FnMut() -> B,
        mut give_back: impl FnMut(B),
    ) -> Result<B, ReceiveError> {
        poll_fn(|context| {
            let mut buffer = take_buffer();
            match self.poll_receive(context, buffer.as_mut(), due) {
                Poll::Ready(Ok(_)) => Poll::Ready(Ok(buffer)),
                Poll::Ready(Err(error)) => {
                    give_back(buffer);
                    Poll::Ready(Err(error))
                }
                Poll::Pending => {
                    give_back(buffer);
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Adds at most `room` bytes to the buffer, at least one.
    pub(crate) async fn receive(
        &mut self,
        buffer: &mut Vec<u8>,
        room: usize,
        due: Instant,
    ) -> Result<usize, ReceiveError> {
        buffer.reserve(room);
        poll_fn(|context| self.poll_receive(context, buffer, due)).await
    }

    fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        due: Instant,
    ) -> Poll<Result<usize, ReceiveError>> {
        match pin!(self.stream.read_buf(buffer)).poll(context) {
            Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(Err(ReceiveError::Closed)),
            Poll::Ready(Ok(count)) => Poll::Ready(Ok(count)),
            Poll::Pending => {
                self.deadline.set(due);
                ready!(self.deadline.poll(context));
                Poll::Ready(Err(ReceiveError::TimedOut))
            }
        }
    }

    /// Returns when the connection breaks while nobody reads from it. A client that only ends its side may still want its
    /// answer, so that is not noticed; nor is anything after the first bytes that it sends meanwhile, which are added to the
    /// buffer as far as that has room. Dropping this loses nothing.
    pub(crate) async fn broken(&mut self, buffer: &mut Vec<u8>) {
        if self.stream.read_buf(buffer).await.is_ok() {
            std::future::pending::<()>().await;
        }
    }

    /// Sends all parts, one after the other, in as few writes as the peer allows, and flushes them.
    pub(crate) async fn send(&mut self, parts: [&[u8]; PARTS], log: &mut LogBuffer) -> Result<(), SendError> {
        let total: usize = parts.iter().map(|part| part.len()).sum();
        let mut sent = 0;
        // Compat: looked at before every write but the first. What the origin took counts, too.
        if std::mem::replace(&mut self.has_sent, true) && self.total_due() <= Instant::now() {
            log.record_fmt(Tag::Debug, format_args!("Hit total send timeout, wrote = 0/{total}; not retrying"));
            return Err(SendError);
        }
        let mut stalled_at: Option<Instant> = None;
        poll_fn(|context| {
            loop {
                let attempt = if sent < total {
                    poll_write_from(&mut self.stream, context, &parts, sent)
                } else {
                    match Pin::new(&mut self.stream).poll_flush(context) {
                        Poll::Ready(Ok(())) => return Poll::Ready(Ok(())),
                        Poll::Ready(Err(_)) => return Poll::Ready(Err(SendError)),
                        Poll::Pending => Poll::Pending,
                    }
                };
                match attempt {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(SendError)),
                    Poll::Ready(Ok(count)) => {
                        sent += count;
                        self.sent_bytes += count as u64;
                        stalled_at = None;
                    }
                    Poll::Pending => {
                        let since = *stalled_at.get_or_insert_with(Instant::now);
                        let is_total = self.limit_from(since);
                        ready!(self.deadline.poll(context));
                        if is_total {
                            let text = format_args!("Hit total send timeout, wrote = {sent}/{total}; not retrying");
                            log.record_fmt(Tag::Debug, text);
                            return Poll::Ready(Err(SendError));
                        }
                        let text = format_args!("Hit idle send timeout, wrote = {sent}/{total}; retrying");
                        log.record_fmt(Tag::Debug, text);
                        stalled_at = None;
                    }
                }
            }
        })
        .await
    }

    fn total_due(&self) -> Instant {
        self.limits.since + duration(self.limits.total)
    }

    /// Sets the limit for a write that has made no progress since then; returns whether it is the one for everything.
    fn limit_from(&mut self, stalled_at: Instant) -> bool {
        let idle = stalled_at + duration(self.limits.idle).max(IDLE_MIN);
        let total = self.total_due();
        self.deadline.set(idle.min(total));
        total <= idle
    }

    /// Says that no more will be sent, without waiting for anything.
    pub(crate) async fn shut_down(&mut self) {
        poll_fn(|context| {
            let _ = Pin::new(&mut self.stream).poll_shutdown(context);
            Poll::Ready(())
        })
        .await;
    }
}

fn poll_write_from<S: AsyncWrite + Unpin>(
    stream: &mut S,
    context: &mut Context<'_>,
    parts: &[&[u8]; PARTS],
    sent: usize,
) -> Poll<io::Result<usize>> {
    let mut slices = [IoSlice::new(b""); PARTS];
    let mut count = 0;
    let mut skip = sent;
    for part in parts {
        if skip >= part.len() {
            skip -= part.len();
            continue;
        }
        slices[count] = IoSlice::new(&part[skip..]);
        count += 1;
        skip = 0;
    }
    Pin::new(stream).poll_write_vectored(context, &slices[..count])
}
