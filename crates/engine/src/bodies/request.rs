//! A client's request body on its way to an origin: none, kept completely, or handed over piece by
//! piece.
//!
//! The session reads the body from the client and hands it over ([`Feed`]); the fetch takes it
//! ([`RequestBody::next`]). The client is read only when the fetch has requested a piece, so
//! nothing accumulates, and a late `100 Continue` is sent only when the body is really needed. A
//! kept body (`std.cache_req_body`) can be sent again on a retry or restart. A streamed one is sent
//! once, but its beginning is kept until the origin has begun to answer: an origin that refuses a
//! stream, or leaves a connection, has not processed it.
//!
//! *Invariant:* both ends are on one event loop; at most one piece is between them.

use message::Message;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use store::Reservation;
use surface::limits::UPLOAD_KEPT_BYTES_MAX;

/// Reason why a request body ended early, for `req.body read error`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyReadError(pub String);

/// A body kept completely. It counts against a storage as long as a holder exists.
#[derive(Clone, Debug)]
pub struct HeldBody {
    bytes: Rc<Vec<u8>>,
    _room: Rc<Reservation>,
}

impl HeldBody {
    /// Keeps these bytes; `room` accounts for them.
    #[must_use]
    pub fn new(bytes: Vec<u8>, room: Reservation) -> HeldBody {
        HeldBody { bytes: Rc::new(bytes), _room: Rc::new(room) }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &Rc<Vec<u8>> {
        &self.bytes
    }
}

/// The body of a client request.
pub enum RequestBody {
    /// No body.
    None,
    /// Kept completely.
    Cached(HeldBody),
    /// Being received. `None` for the length means chunked.
    Stream {
        /// Content-Length.
        length: Option<u64>,
        /// The end from which pieces are taken.
        pieces: Pieces,
    },
    /// Streamed before and gone: a fetch that needs it fails.
    Taken,
}

/// State between the two ends.
#[derive(Default)]
struct Slot {
    piece: Option<Result<Vec<u8>, BodyReadError>>,
    /// The fetch is waiting for a piece.
    is_wanted: bool,
    /// Trailers of the body.
    trailers: Option<Message>,
    /// No more pieces will follow.
    is_finished: bool,
    /// The client sends nothing before `100 Continue`.
    awaits_leave: bool,
    /// The fetch is gone.
    is_unread: bool,
    fetch: Option<Waker>,
    session: Option<Waker>,
}

/// The session's end of a streamed body.
pub struct Feed(Rc<RefCell<Slot>>);

/// The fetch's end of a streamed body.
pub struct Pieces {
    slot: Rc<RefCell<Slot>>,
    /// All bytes that were taken; `None` if they are too many, or the origin has begun to answer.
    kept: Option<Vec<u8>>,
    /// Bytes that are sent again before more is taken.
    again: Vec<u8>,
}

/// Creates a streamed body, and the end into which pieces are pushed.
#[must_use]
pub fn feed(length: Option<u64>) -> (Feed, RequestBody) {
    let slot = Rc::new(RefCell::new(Slot::default()));
    (
        Feed(Rc::clone(&slot)),
        RequestBody::Stream { length, pieces: Pieces { slot, kept: Some(Vec::new()), again: Vec::new() } },
    )
}

impl Feed {
    /// Waits until the fetch requests a piece. False if it needs no more.
    pub fn poll_wanted(&self, context: &mut Context<'_>) -> Poll<bool> {
        let mut slot = self.0.borrow_mut();
        if slot.is_unread {
            return Poll::Ready(false);
        }
        if slot.is_wanted && slot.piece.is_none() {
            return Poll::Ready(true);
        }
        remember(&mut slot.session, context);
        Poll::Pending
    }

    /// Marks that the client waits for `100 Continue`, which the origin may send it.
    pub fn awaits_leave(&self) {
        self.0.borrow_mut().awaits_leave = true;
    }

    /// Hands over a piece; must be called only after the fetch has requested one.
    pub fn push(&self, piece: Vec<u8>) {
        self.put(Ok(piece));
    }

    /// Ends the body: it is complete, with these trailers.
    pub fn finish(self, trailers: Option<Message>) {
        let mut slot = self.0.borrow_mut();
        slot.trailers = trailers;
        slot.is_finished = true;
        wake(&mut slot.fetch);
    }

    /// Ends the body: the client broke off.
    pub fn fail(self, error: BodyReadError) {
        self.put(Err(error));
        self.0.borrow_mut().is_finished = true;
    }

    fn put(&self, piece: Result<Vec<u8>, BodyReadError>) {
        let mut slot = self.0.borrow_mut();
        slot.piece = Some(piece);
        slot.is_wanted = false;
        wake(&mut slot.fetch);
    }
}

impl Drop for Feed {
    /// A feed dropped before it is finished has failed: the fetch must not take the bytes it has
    /// for the whole body.
    fn drop(&mut self) {
        let mut slot = self.0.borrow_mut();
        if !slot.is_finished {
            slot.is_finished = true;
            slot.piece = Some(Err(BodyReadError("aborted".to_owned())));
            wake(&mut slot.fetch);
        }
    }
}

impl Pieces {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, BodyReadError>>> {
        if !self.again.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut self.again))));
        }
        let mut slot = self.slot.borrow_mut();
        if let Some(piece) = slot.piece.take() {
            let bytes = piece.as_deref().unwrap_or_default();
            match &mut self.kept {
                Some(kept) if kept.len() + bytes.len() <= UPLOAD_KEPT_BYTES_MAX => kept.extend_from_slice(bytes),
                kept => *kept = None,
            }
            return Poll::Ready(Some(piece));
        }
        if slot.is_finished {
            return Poll::Ready(None);
        }
        slot.is_wanted = true;
        wake(&mut slot.session);
        remember(&mut slot.fetch, context);
        Poll::Pending
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        let mut slot = self.slot.borrow_mut();
        slot.is_unread = true;
        wake(&mut slot.session);
    }
}

fn remember(place: &mut Option<Waker>, context: &Context<'_>) {
    match place {
        Some(waker) if waker.will_wake(context.waker()) => {}
        _ => *place = Some(context.waker().clone()),
    }
}

fn wake(place: &mut Option<Waker>) {
    if let Some(waker) = place.take() {
        waker.wake();
    }
}

impl RequestBody {
    /// True if there is a body to send (even one with an announced length of 0).
    #[must_use]
    pub fn is_present(&self) -> bool {
        !matches!(self, RequestBody::None)
    }

    /// True if the body can be sent (again).
    #[must_use]
    pub fn is_sendable(&self) -> bool {
        !matches!(self, RequestBody::Taken)
    }

    /// The length for `Content-Length`; `None` if the body must be sent chunked, or there is none.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        match self {
            RequestBody::None | RequestBody::Taken => None,
            RequestBody::Cached(body) => Some(body.bytes.len() as u64),
            RequestBody::Stream { length, .. } => *length,
        }
    }

    /// Takes nothing more of a streamed body.
    pub fn let_go(&mut self) {
        if let RequestBody::Stream { .. } = self {
            *self = RequestBody::Taken;
        }
    }

    /// True if the client waits for `100 Continue`, which the origin may send it.
    #[must_use]
    pub fn awaits_leave(&self) -> bool {
        matches!(self, RequestBody::Stream { pieces, .. } if pieces.slot.borrow().awaits_leave)
    }

    /// True if all bytes taken of a streamed body are kept.
    #[must_use]
    pub fn can_rewind(&self) -> bool {
        matches!(self, RequestBody::Stream { pieces: Pieces { kept: Some(_), .. }, .. })
    }

    /// Makes a streamed body start again with the bytes that are kept of it.
    pub fn rewind(&mut self) {
        if let RequestBody::Stream { pieces, .. } = self
            && let Some(kept) = &pieces.kept
        {
            pieces.again.clone_from(kept);
        }
    }

    /// Keeps no further bytes of a streamed body: it will not be sent again.
    pub fn forget(&mut self) {
        if let RequestBody::Stream { pieces, .. } = self {
            pieces.kept = None;
        }
    }

    /// The next piece of a streamed body; `None` at its end, after which `trailers` are those of
    /// the body.
    pub async fn next(&mut self, trailers: &mut Option<Message>) -> Option<Result<Vec<u8>, BodyReadError>> {
        poll_fn(|context| self.poll_next(context, trailers)).await
    }

    /// As [`RequestBody::next`]. Cancelling a wait loses nothing.
    pub fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        trailers: &mut Option<Message>,
    ) -> Poll<Option<Result<Vec<u8>, BodyReadError>>> {
        match self {
            RequestBody::Stream { pieces, .. } => {
                let piece = ready!(pieces.poll_next(context));
                if piece.is_none() {
                    trailers.clone_from(&pieces.slot.borrow().trailers);
                    if pieces.kept.is_none() {
                        *self = RequestBody::Taken;
                    }
                }
                Poll::Ready(piece)
            }
            RequestBody::None | RequestBody::Cached(_) | RequestBody::Taken => Poll::Ready(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_client_is_read_only_when_the_fetch_has_asked() {
        let (feed, mut body) = feed(Some(4));
        let is_wanted = poll_fn(|context| Poll::Ready(feed.poll_wanted(context).is_ready())).await;
        assert!(!is_wanted);
        let (_, first) = tokio::join!(
            async {
                assert!(poll_fn(|context| feed.poll_wanted(context)).await);
                feed.push(b"ab".to_vec());
            },
            async { body.next(&mut None).await }
        );
        assert_eq!(first, Some(Ok(b"ab".to_vec())));
        let (_, rest) = tokio::join!(
            async {
                assert!(poll_fn(|context| feed.poll_wanted(context)).await);
                feed.finish(None);
            },
            async { body.next(&mut None).await }
        );
        assert_eq!(rest, None);
        assert!(body.can_rewind());
        body.rewind();
        assert_eq!(body.next(&mut None).await, Some(Ok(b"ab".to_vec())), "once more");
        assert_eq!(body.next(&mut None).await, None);
        body.forget();
        assert_eq!(body.next(&mut None).await, None);
        assert!(!body.is_sendable());
    }

    #[tokio::test]
    async fn kept_body_stays_within_the_limit() {
        let (feed, mut body) = feed(None);
        for (bytes, is_kept) in [(UPLOAD_KEPT_BYTES_MAX - 1, true), (1, true), (1, false)] {
            let (_, piece) = tokio::join!(
                async {
                    assert!(poll_fn(|context| feed.poll_wanted(context)).await);
                    feed.push(vec![b'x'; bytes]);
                },
                async { body.next(&mut None).await }
            );
            assert_eq!((piece.unwrap().unwrap().len(), body.can_rewind()), (bytes, is_kept));
        }
    }

    #[tokio::test]
    async fn lost_feed_is_an_error_and_not_the_end() {
        let (first, mut body) = feed(None);
        drop(first);
        assert_eq!(body.next(&mut None).await, Some(Err(BodyReadError("aborted".to_owned()))));
        let (second, body) = feed(None);
        drop(body);
        assert!(!poll_fn(|context| second.poll_wanted(context)).await);
    }
}
