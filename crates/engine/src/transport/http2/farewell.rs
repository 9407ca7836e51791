//! How a connection ends: all that was collected or encrypted is sent, the sending side is closed, and what the client still sends
//! is read and thrown away.
//!
//! ```text
//! Sending ─flushed, and no request at work→ Said ─client has ended, or enough→ over
//! ```
//!
//! For the log the session ends once all is said.
//!
//! Unread bytes make the system reset a connection that is closed, and throw away what it has not delivered: a WINDOW_UPDATE or the
//! answer to a PING would cost a slow client megabytes of its last response. *Invariants:* sending may take `idle_send_timeout`; once
//! all is said, the client is waited for [`FAREWELL_SECONDS`], and longer only while the system delivers more.

use super::socket::Socket;
use crate::context::Loop;
use crate::deadline::Deadline;
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;
use surface::limits::{FAREWELL_BYTES_MAX, FAREWELL_SECONDS};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

/// The end of a connection, under way.
pub(super) struct Farewell {
    /// The sending side is closed.
    is_said: bool,
    has_client_ended: bool,
    is_over: bool,
    /// Most bytes that are read yet.
    bytes_left: usize,
    due: Instant,
    /// What the system had not delivered when it was asked last, and since when that has not become less.
    undelivered_bytes: u64,
    delivered_at: Instant,
    /// `idle_send_timeout`.
    patience: Duration,
}

impl Farewell {
    /// A farewell that begins now.
    pub(super) fn new(patience: Duration) -> Farewell {
        let now = Instant::now();
        Farewell {
            is_said: false,
            has_client_ended: false,
            is_over: false,
            bytes_left: FAREWELL_BYTES_MAX,
            due: now + patience,
            undelivered_bytes: u64::MAX,
            delivered_at: now,
            patience,
        }
    }

    /// That of a client that takes nothing.
    pub(super) fn given_up() -> Farewell {
        Farewell { is_over: true, ..Farewell::new(Duration::ZERO) }
    }

    /// Says what is left, and listens. Ready when neither is of use any more. `is_flushed` says that the socket has nothing left, and
    /// nothing is to come.
    pub(super) fn poll<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        task: &mut Context<'_>,
        socket: &Socket<S>,
        is_flushed: bool,
    ) -> Poll<()> {
        if self.is_over {
            return Poll::Ready(());
        }
        if is_flushed && !self.is_said && socket.poll_shut_down(task).is_ready() {
            self.is_said = true;
            self.delivered_at = Instant::now();
            self.due = self.delivered_at + Duration::from_secs(FAREWELL_SECONDS);
        }
        while !self.has_client_ended
            && self.bytes_left > 0
            && let Poll::Ready(count) = socket.poll_discard(task)
        {
            self.has_client_ended = count == 0;
            self.bytes_left = self.bytes_left.saturating_sub(count);
        }
        self.is_over = self.is_said && (self.has_client_ended || self.bytes_left == 0);
        if self.is_over { Poll::Ready(()) } else { Poll::Pending }
    }

    /// When [`Farewell::time_is_up`] is to be called.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// It has taken long: ends it, unless the client is still receiving. `undelivered_bytes` is what the system has yet to deliver;
    /// `None` if it does not say.
    pub(super) fn time_is_up(&mut self, undelivered_bytes: Option<u64>) {
        let now = Instant::now();
        match undelivered_bytes {
            Some(left @ 1..) if self.is_said => {
                if left < self.undelivered_bytes {
                    self.undelivered_bytes = left;
                    self.delivered_at = now;
                }
                self.is_over = now.duration_since(self.delivered_at) >= self.patience;
                self.due = now + Duration::from_secs(FAREWELL_SECONDS);
            }
            _ => self.is_over = true,
        }
    }

    /// Whether all is said, or nobody takes it.
    pub(super) fn has_spoken(&self) -> bool {
        self.is_said || self.is_over
    }

    /// Listens until that is of no use any more, after all is said.
    pub(super) async fn listen<S: AsyncRead + AsyncWrite + Unpin>(
        mut self,
        context: &Loop,
        socket: Socket<S>,
        descriptor: i32,
    ) {
        let mut deadline = Deadline::new();
        poll_fn(|task| {
            while self.poll(task, &socket, true).is_pending() {
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
