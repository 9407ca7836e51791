//! The request's side of a stream, which sends the body, if there is one.
//!
//! It can be detached, so that another task sends while the response is already received. Each side
//! can then see the time of the last progress of the other.

use crate::exchange::BodyAnnounced;
use bytes::Bytes;
use h2::{Reason as Code, SendStream};
use message::Message;
use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use surface::reason::Reason;
use tokio::time::{Instant, timeout_at};

/// Largest piece that is handed to the library at a time, in bytes.
const PIECE_BYTES_MAX: usize = 16 << 10;
/// EINVAL, EPIPE, ETIMEDOUT.
const INVALID: i32 = 22;
const BROKEN: i32 = 32;
const TIMED_OUT: i32 = 110;

/// State shared by both sides.
#[derive(Default)]
struct Progress {
    /// Time when a detached sender last sent some of the body, or its end.
    moved_at: Cell<Option<Instant>>,
    /// Start of the current wait for more of it from the client.
    awaited_since: Cell<Option<Instant>>,
    /// Total time of earlier waits.
    client_time: Cell<Duration>,
    /// Reason why it was not sent to its end.
    failure: Cell<Option<Reason>>,
}

/// Sends a request's body.
#[derive(Default)]
pub(crate) struct Sender {
    stream: Option<SendStream<Bytes>>,
    /// Bytes that were announced and not sent; `None` = unknown length, the end is sent separately.
    left: Option<u64>,
    /// The end has been sent, or is sent with the head.
    is_over: bool,
    progress: Rc<Progress>,
    is_detached: bool,
}

impl Drop for Sender {
    /// A sender that is dropped in the middle of the body has not sent all of it.
    fn drop(&mut self) {
        if self.is_detached && !self.is_over {
            self.give_up(Reason::RequestNotSent);
        }
    }
}

impl Sender {
    pub(super) fn announce(&mut self, body: BodyAnnounced) {
        self.left = match body {
            BodyAnnounced::None => Some(0),
            BodyAnnounced::Length(bytes) => Some(bytes),
            BodyAnnounced::Unknown => None,
        };
        self.is_over = self.left == Some(0);
    }

    /// True if nothing follows the head.
    pub(super) fn is_complete(&self) -> bool {
        self.is_over
    }

    pub(super) fn open(&mut self, stream: SendStream<Bytes>) {
        self.stream = Some(stream);
    }

    /// Takes the right to send out of the exchange. `None` if there is nothing to send.
    pub(super) fn detach(&mut self) -> Option<Sender> {
        if self.is_over {
            return None;
        }
        let progress = Rc::clone(&self.progress);
        progress.moved_at.set(Some(Instant::now()));
        let left = self.left.take();
        self.is_over = true;
        Some(Sender { stream: self.stream.take(), left, is_over: false, progress, is_detached: true })
    }

    /// Marks that more of the body is awaited from the client: the time until
    /// [`Sender::client_spoke`] is not the origin's.
    pub(crate) fn await_client(&self) {
        self.progress.awaited_since.set(Some(Instant::now()));
    }

    /// Marks that some of the body was received, or its end.
    pub(crate) fn client_spoke(&self) {
        self.progress.client_time.set(self.client_time());
        self.progress.awaited_since.set(None);
    }

    /// True if a detached sender awaits more from the client.
    pub(super) fn awaits_client(&self) -> bool {
        self.progress.awaited_since.get().is_some()
    }

    /// Time for which a detached sender has awaited the client.
    pub(super) fn client_time(&self) -> Duration {
        let now = self.progress.awaited_since.get().map_or(Duration::ZERO, |since| since.elapsed());
        self.progress.client_time.get() + now
    }

    /// `deadline`, or later if a detached sender has made progress since.
    pub(super) fn extended(&self, deadline: Instant, limit: Duration) -> Instant {
        self.progress.moved_at.get().map_or(deadline, |moved_at| (moved_at + limit).max(deadline))
    }

    /// Reason why a detached sender has stopped, if it has.
    pub(super) fn failure(&self) -> Option<Reason> {
        self.progress.failure.get()
    }

    /// Waits until at least one byte of `wanted` can be sent. The error is that of the stream, if
    /// there is one.
    pub(super) fn poll_room(
        &mut self,
        context: &mut Context<'_>,
        wanted: usize,
    ) -> Poll<Result<usize, Option<h2::Error>>> {
        let Some(stream) = self.stream.as_mut().filter(|_| !self.is_over) else { return Poll::Ready(Err(None)) };
        let wanted = wanted.min(PIECE_BYTES_MAX);
        stream.reserve_capacity(wanted);
        loop {
            if stream.capacity() > 0 {
                return Poll::Ready(Ok(stream.capacity().min(wanted)));
            }
            match stream.poll_capacity(context) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(Some(error))),
                Poll::Ready(None) => {
                    // The stream is closed; the other side may have sent the reason.
                    return Poll::Ready(Err(match stream.poll_reset(context) {
                        Poll::Ready(Err(error)) => Some(error),
                        Poll::Ready(Ok(_)) | Poll::Pending => None,
                    }));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Sends a piece. If the origin accepts nothing for `stall`, that is an error.
    ///
    /// # Errors
    /// The error number.
    pub(crate) async fn send(&mut self, piece: &[u8], stall: Duration) -> Result<(), i32> {
        let mut rest = piece;
        while !rest.is_empty() {
            let room = poll_fn(|context| self.poll_room(context, rest.len()));
            let count = timeout_at(Instant::now() + stall, room).await.map_err(|_| TIMED_OUT)?.map_err(|_| BROKEN)?;
            let (now, later) = rest.split_at(count);
            self.put(now)?;
            rest = later;
        }
        Ok(())
    }

    /// Hands over a piece for which there is room.
    ///
    /// # Errors
    /// The error number.
    pub(super) fn put(&mut self, piece: &[u8]) -> Result<(), i32> {
        let Some(stream) = self.stream.as_mut() else { return Err(BROKEN) };
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(piece.len() as u64).ok_or(INVALID)?;
            self.is_over = *left == 0;
        }
        stream.send_data(Bytes::copy_from_slice(piece), self.is_over).map_err(|_| BROKEN)?;
        self.note_moved();
        Ok(())
    }

    /// Ends the body, with these trailers. Returns 0, as if nothing were sent for it.
    ///
    /// # Errors
    /// The error number.
    pub(crate) fn end(&mut self, trailers: Option<&Message>) -> Result<u64, i32> {
        if std::mem::replace(&mut self.is_over, true) {
            return Ok(0);
        }
        self.note_moved();
        let Some(stream) = self.stream.as_mut() else { return Err(BROKEN) };
        let trailers = trailers.and_then(|trailers| super::head::fields(trailers).ok());
        let sent = match trailers {
            Some(trailers) => stream.send_trailers(trailers),
            None => stream.send_data(Bytes::new(), true),
        };
        sent.map(|()| 0).map_err(|_| BROKEN)
    }

    /// Records progress: from here on the origin has its full time again.
    fn note_moved(&self) {
        if self.is_detached {
            self.progress.moved_at.set(Some(Instant::now()));
        }
    }

    /// Stops in the middle of the body: the origin must not take it for the whole.
    pub(crate) fn give_up(&mut self, why: Reason) {
        self.is_over = true;
        self.progress.failure.set(Some(why));
        self.progress.moved_at.set(None);
        if let Some(stream) = &mut self.stream {
            stream.send_reset(Code::CANCEL);
        }
    }
}
