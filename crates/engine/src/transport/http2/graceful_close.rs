//! Graceful close of a connection: all bytes that were collected or encrypted are sent, the sending
//! side is closed, and the bytes that the client still sends are read and discarded.
//!
//! ```text
//! Sending ─flushed, and no active request→ Said ─client has ended, or a limit→ over
//! ```
//!
//! For the log the session ends once everything is sent.
//!
//! Unread bytes make the system reset a connection that is closed, and discard the bytes that it
//! has not delivered: a WINDOW_UPDATE or the answer to a PING would cost a slow client megabytes of
//! its last response. *Invariants:* sending may take `idle_send_timeout`; once everything is sent,
//! the client is waited for [`GRACEFUL_CLOSE_SECONDS`], and longer only while the system delivers
//! more.

use super::socket::Socket;
use crate::context::Loop;
use crate::deadline::Deadline;
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;
use surface::limits::{GRACEFUL_CLOSE_BYTES_MAX, GRACEFUL_CLOSE_SECONDS};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

/// Graceful close of a connection, under way.
pub(super) struct GracefulClose {
    /// The sending side is closed.
    is_sending_closed: bool,
    has_client_ended: bool,
    is_over: bool,
    /// Number of bytes that may still be read.
    bytes_left: usize,
    due: Instant,
    /// Bytes that the system had not delivered at the last query, and the time since when that
    /// number has not decreased.
    undelivered_bytes: u64,
    delivered_at: Instant,
    /// `idle_send_timeout`.
    timeout: Duration,
}

impl GracefulClose {
    /// Begins a graceful close now.
    pub(super) fn new(timeout: Duration) -> GracefulClose {
        let now = Instant::now();
        GracefulClose {
            is_sending_closed: false,
            has_client_ended: false,
            is_over: false,
            bytes_left: GRACEFUL_CLOSE_BYTES_MAX,
            due: now + timeout,
            undelivered_bytes: u64::MAX,
            delivered_at: now,
            timeout,
        }
    }

    /// The close of a connection whose client accepts no bytes.
    pub(super) fn abandoned() -> GracefulClose {
        GracefulClose { is_over: true, ..GracefulClose::new(Duration::ZERO) }
    }

    /// Sends the rest, and reads. Ready when neither is useful any more. `is_flushed` means that
    /// the socket has sent everything, and nothing will follow.
    pub(super) fn poll<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        task: &mut Context<'_>,
        socket: &mut Socket<S>,
        is_flushed: bool,
    ) -> Poll<()> {
        if self.is_over {
            return Poll::Ready(());
        }
        if is_flushed && !self.is_sending_closed && socket.poll_shut_down(task).is_ready() {
            self.is_sending_closed = true;
            self.delivered_at = Instant::now();
            self.due = self.delivered_at + Duration::from_secs(GRACEFUL_CLOSE_SECONDS);
        }
        while !self.has_client_ended
            && self.bytes_left > 0
            && let Poll::Ready(count) = socket.poll_discard(task)
        {
            self.has_client_ended = count == 0;
            self.bytes_left = self.bytes_left.saturating_sub(count);
        }
        self.is_over = self.is_sending_closed && (self.has_client_ended || self.bytes_left == 0);
        if self.is_over { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Time at which [`GracefulClose::time_is_up`] must be called.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Handles a close that has taken long: ends it, unless the client is still receiving.
    /// `undelivered_bytes` is the number of bytes that the system still has to deliver; `None` if
    /// it is unknown.
    pub(super) fn time_is_up(&mut self, undelivered_bytes: Option<u64>) {
        let now = Instant::now();
        match undelivered_bytes {
            Some(left @ 1..) if self.is_sending_closed => {
                if left < self.undelivered_bytes {
                    self.undelivered_bytes = left;
                    self.delivered_at = now;
                }
                self.is_over = now.duration_since(self.delivered_at) >= self.timeout;
                self.due = now + Duration::from_secs(GRACEFUL_CLOSE_SECONDS);
            }
            _ => self.is_over = true,
        }
    }

    /// True if everything is sent, or the client accepts no bytes.
    pub(super) fn is_everything_sent(&self) -> bool {
        self.is_sending_closed || self.is_over
    }

    /// Reads until that is not useful any more, after everything is sent.
    pub(super) async fn discard_rest<S: AsyncRead + AsyncWrite + Unpin>(
        mut self,
        context: &Loop,
        mut socket: Socket<S>,
        descriptor: i32,
    ) {
        let mut deadline = Deadline::new();
        poll_fn(|task| {
            while self.poll(task, &mut socket, true).is_pending() {
                deadline.set(self.due);
                if deadline.poll(task).is_pending() {
                    return Poll::Pending;
                }
                self.time_is_up(context.sockets.undelivered(descriptor).ok());
            }
            Poll::Ready(())
        })
        .await;
    }
}
