//! The client's connection: receives and sends bytes within time limits, independently of HTTP.
//!
//! Generic over the stream, so that the same code runs over TCP, Unix-domain sockets, TLS and
//! memory. Nothing is buffered here: received bytes are appended to the slot of the request, and
//! sent bytes are written from where they are.

use crate::deadline::{Deadline, duration};
use crate::exchange::{ClientEvent, SendError, SendLimits};
use crate::transport::discard::poll_discard;
use shm::log::LogBuffer;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use surface::limits::{GRACEFUL_CLOSE_BYTES_MAX, GRACEFUL_CLOSE_SECONDS};
use surface::tag::Tag;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Reason why nothing was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReceiveError {
    /// The client closed, or the connection broke.
    Closed,
    /// The time limit has passed.
    TimedOut,
}

/// The shortest time to wait for a write without progress, so that a wait cannot become a busy
/// loop.
const IDLE_MIN: Duration = Duration::from_millis(1);

/// A client's connection.
pub(in crate::transport) struct Connection<S> {
    stream: S,
    deadline: Deadline,
    /// Seconds as VCL and parameters give them: a response that is sent in one write needs neither
    /// the clock nor durations.
    limits: SendLimits,
    /// Something was sent since the limits began to count.
    has_sent: bool,
    /// The send in progress; `None` between two sends.
    sending: Option<Sending>,
    /// The last request was answered before it was read to its end.
    pub(super) has_unread: bool,
    /// The last response broke off, and only the end of the connection shows where it ends.
    pub(super) is_cut: bool,
}

/// Progress of one send.
#[derive(Clone, Copy, Default)]
struct Sending {
    bytes: usize,
    /// Time when writing stopped making progress.
    stalled_at: Option<Instant>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(in crate::transport) fn new(stream: S) -> Self {
        let limits = SendLimits { idle: f64::INFINITY, total: f64::INFINITY, since: Instant::now() };
        Connection {
            stream,
            deadline: Deadline::new(),
            limits,
            has_sent: false,
            sending: None,
            has_unread: false,
            is_cut: false,
        }
    }

    /// Begins to send a response: the limits count from zero.
    pub(super) fn begin_sending(&mut self, limits: SendLimits) {
        self.limits = limits;
        self.has_sent = false;
        self.sending = None;
    }

    /// The stream, for another protocol.
    pub(in crate::transport) fn into_stream(self) -> S {
        self.stream
    }

    /// The stream itself, for a pipe.
    pub(super) fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Reads once into the buffer that `take_buffer` returns. Each attempt takes a buffer and
    /// returns it if there is nothing to read, so that a waiting connection holds none.
    pub(super) async fn receive_first<B: AsMut<Vec<u8>>>(
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

    /// Reserves `room` bytes in the buffer and reads once; appends at least one byte.
    pub(super) async fn receive(
        &mut self,
        buffer: &mut Vec<u8>,
        room: usize,
        due: Instant,
    ) -> Result<usize, ReceiveError> {
        buffer.reserve(room);
        poll_fn(|context| self.poll_receive(context, buffer, due)).await
    }

    /// Reads once into the spare room of the buffer.
    pub(super) fn poll_receive(
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

    /// Ready when the connection breaks or ends during a time without reads, or bytes arrive, which
    /// are appended to the buffer.
    pub(super) fn poll_client_event(&mut self, context: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<ClientEvent> {
        pin!(self.stream.read_buf(buffer)).poll(context).map(|read| match read {
            Ok(0) => ClientEvent::End,
            Ok(_) => ClientEvent::More,
            Err(_) => ClientEvent::Gone,
        })
    }

    /// Reads nothing, which on a TLS connection lets the handshake proceed. Its result is reported
    /// by its `EarlyPhase`.
    pub(super) fn drive_handshake(&mut self, context: &mut Context<'_>) {
        let _ = Pin::new(&mut self.stream).poll_read(context, &mut ReadBuf::new(&mut []));
    }

    /// Sends all parts in order, in as few writes as the peer allows, and flushes them. Returns the
    /// number of bytes sent, and true if that was everything. Must be polled with the same parts
    /// until it is ready.
    pub(super) fn poll_send<const PARTS: usize>(
        &mut self,
        context: &mut Context<'_>,
        parts: &[&[u8]; PARTS],
        log: &mut LogBuffer,
    ) -> Poll<(usize, Result<(), SendError>)> {
        let total: usize = parts.iter().map(|part| part.len()).sum();
        let mut sending = match self.sending.take() {
            Some(sending) => sending,
            // Compat: checked before every write but the first. Time the origin took counts as
            // well.
            None if std::mem::replace(&mut self.has_sent, true) && self.total_due() <= Instant::now() => {
                log.record_fmt(Tag::Debug, format_args!("Hit total send timeout, wrote = 0/{total}; not retrying"));
                return Poll::Ready((0, Err(SendError)));
            }
            None => Sending::default(),
        };
        let result = self.poll_send_on(context, parts, total, &mut sending, log);
        if result.is_pending() {
            self.sending = Some(sending);
        }
        result.map(|result| (sending.bytes, result))
    }

    fn poll_send_on<const PARTS: usize>(
        &mut self,
        context: &mut Context<'_>,
        parts: &[&[u8]; PARTS],
        total: usize,
        sending: &mut Sending,
        log: &mut LogBuffer,
    ) -> Poll<Result<(), SendError>> {
        loop {
            let attempt = if sending.bytes < total {
                poll_write_from(&mut self.stream, context, parts, sending.bytes)
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
                    sending.bytes += count;
                    sending.stalled_at = None;
                }
                Poll::Pending => {
                    let since = *sending.stalled_at.get_or_insert_with(Instant::now);
                    let is_total = self.limit_from(since);
                    ready!(self.deadline.poll(context));
                    let sent = sending.bytes;
                    if is_total {
                        let text = format_args!("Hit total send timeout, wrote = {sent}/{total}; not retrying");
                        log.record_fmt(Tag::Debug, text);
                        return Poll::Ready(Err(SendError));
                    }
                    let text = format_args!("Hit idle send timeout, wrote = {sent}/{total}; retrying");
                    log.record_fmt(Tag::Debug, text);
                    sending.stalled_at = None;
                }
            }
        }
    }

    fn total_due(&self) -> Instant {
        self.limits.since + duration(self.limits.total)
    }

    /// Sets the limit for a write that has made no progress since then. Returns true if the limit
    /// is the one for the whole response.
    fn limit_from(&mut self, stalled_at: Instant) -> bool {
        let idle = stalled_at + duration(self.limits.idle).max(IDLE_MIN);
        let total = self.total_due();
        self.deadline.set(idle.min(total));
        total <= idle
    }

    /// Closes the sending side, without waiting.
    pub(in crate::transport) async fn shut_down(&mut self) {
        poll_fn(|context| {
            let _ = Pin::new(&mut self.stream).poll_shutdown(context);
            Poll::Ready(())
        })
        .await;
    }

    /// True if the bytes that the client still sends have to be read, see [`Connection::linger`].
    pub(in crate::transport) fn has_unread(&self) -> bool {
        self.has_unread
    }

    /// True if the client must not take the end of the connection for the end of the response.
    pub(in crate::transport) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Reads and discards the bytes that the client still sends, within limits.
    pub(in crate::transport) async fn linger(&mut self) {
        self.deadline.set(Instant::now() + Duration::from_secs(GRACEFUL_CLOSE_SECONDS));
        let mut bytes_left = GRACEFUL_CLOSE_BYTES_MAX;
        poll_fn(|context| {
            while bytes_left > 0 && self.deadline.poll(context).is_pending() {
                let count = ready!(poll_discard(&mut self.stream, context));
                bytes_left = if count == 0 { 0 } else { bytes_left.saturating_sub(count) };
            }
            Poll::Ready(())
        })
        .await;
    }
}

fn poll_write_from<S: AsyncWrite + Unpin, const PARTS: usize>(
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
    match slices[..count] {
        [one] => Pin::new(stream).poll_write(context, &one),
        _ => Pin::new(stream).poll_write_vectored(context, &slices[..count]),
    }
}
