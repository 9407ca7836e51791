//! A client's request body on its way to an origin: none, kept completely, or handed over piece by piece.
//!
//! The session reads the body from the client and hands it over ([`Feed`]); the fetch takes it ([`RequestBody::next`]). The
//! client is read only when the fetch has asked, so nothing piles up, and a late `100 Continue` is sent only when the body is
//! really needed. A kept body (`std.cache_req_body`) can be sent again on a retry or restart, a streamed one only once.
//!
//! *Invariant:* both ends are on one event loop; at most one piece is between them.

use message::Message;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use store::Reservation;

/// Why a request body ended early, for `req.body read error`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyReadError(pub String);

/// A body kept completely. It counts against a storage as long as anybody holds it.
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
    /// There is no body.
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
    /// Was streamed before and is gone: a fetch that needs it fails.
    Taken,
}

/// What is between the two ends.
#[derive(Default)]
struct Slot {
    piece: Option<Result<Vec<u8>, BodyReadError>>,
    /// The fetch is waiting for a piece.
    is_wanted: bool,
    /// What came after the body.
    trailers: Option<Message>,
    /// No more pieces will come.
    is_finished: bool,
    /// The fetch is gone.
    is_unread: bool,
    fetch: Option<Waker>,
    session: Option<Waker>,
}

/// The session's end of a streamed body.
pub struct Feed(Rc<RefCell<Slot>>);

/// The fetch's end of a streamed body.
pub struct Pieces(Rc<RefCell<Slot>>);

/// Creates a streamed body, and the end into which pieces are pushed.
#[must_use]
pub fn feed(length: Option<u64>) -> (Feed, RequestBody) {
    let slot = Rc::new(RefCell::new(Slot::default()));
    (Feed(Rc::clone(&slot)), RequestBody::Stream { length, pieces: Pieces(slot) })
}

impl Feed {
    /// Waits until the fetch asks for a piece. False if it wants no more.
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

    /// Hands over a piece; call it only after the fetch has asked for one.
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
    /// A feed dropped before it is finished has failed: the fetch must not take what it has for the whole body.
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
    async fn next(&mut self) -> Option<Result<Vec<u8>, BodyReadError>> {
        poll_fn(|context| {
            let mut slot = self.0.borrow_mut();
            if let Some(piece) = slot.piece.take() {
                return Poll::Ready(Some(piece));
            }
            if slot.is_finished {
                return Poll::Ready(None);
            }
            slot.is_wanted = true;
            wake(&mut slot.session);
            remember(&mut slot.fetch, context);
            Poll::Pending
        })
        .await
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        let mut slot = self.0.borrow_mut();
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
    /// Whether there is a body to send (even one with an announced length of 0).
    #[must_use]
    pub fn is_present(&self) -> bool {
        !matches!(self, RequestBody::None)
    }

    /// Whether the body can be sent (again).
    #[must_use]
    pub fn is_sendable(&self) -> bool {
        !matches!(self, RequestBody::Taken)
    }

    /// The length for `Content-Length`; `None` when the body must be sent chunked, or there is none.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        match self {
            RequestBody::None | RequestBody::Taken => None,
            RequestBody::Cached(body) => Some(body.bytes.len() as u64),
            RequestBody::Stream { length, .. } => *length,
        }
    }

    /// The next piece of a streamed body; `None` at its end, after which `trailers` are what came there.
    pub async fn next(&mut self, trailers: &mut Option<Message>) -> Option<Result<Vec<u8>, BodyReadError>> {
        match self {
            RequestBody::Stream { pieces, .. } => {
                let piece = pieces.next().await;
                if piece.is_none() {
                    *trailers = pieces.0.borrow_mut().trailers.take();
                    *self = RequestBody::Taken;
                }
                piece
            }
            RequestBody::None | RequestBody::Cached(_) | RequestBody::Taken => None,
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
        assert!(!body.is_sendable());
    }

    #[tokio::test]
    async fn a_feed_that_goes_away_is_an_error_and_not_the_end() {
        let (first, mut body) = feed(None);
        drop(first);
        assert_eq!(body.next(&mut None).await, Some(Err(BodyReadError("aborted".to_owned()))));
        let (second, body) = feed(None);
        drop(body);
        assert!(!poll_fn(|context| second.poll_wanted(context)).await);
    }
}
