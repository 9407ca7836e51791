//! A client's request body on its way to an origin: nothing, held whole, or streamed through a bounded queue.
//!
//! The session reads the client and pushes pieces ([`feed`]); the fetch takes them ([`RequestBody::next`]). A body held whole
//! (`std.cache_req_body`) can be sent again on a retry or restart, a streamed one only once.

use std::rc::Rc;
use tokio::sync::mpsc;

/// Pieces that may wait in the queue.
const QUEUE_PIECES: usize = 4;

/// Why a request body ended early, for `req.body read error`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyReadError(pub String);

/// The body of a client request.
pub enum RequestBody {
    /// There is none.
    None,
    /// Held whole.
    Cached(Rc<Vec<u8>>),
    /// Being received. `None` for the length means chunked.
    Stream {
        /// Content-Length.
        length: Option<u64>,
        /// The queue.
        pieces: mpsc::Receiver<Result<Vec<u8>, BodyReadError>>,
    },
    /// Streamed once and gone: cannot be sent again.
    Taken,
}

/// The session's end of a streamed body.
pub struct Feed {
    sender: mpsc::Sender<Result<Vec<u8>, BodyReadError>>,
}

/// Makes a streamed body and the end to push pieces into.
#[must_use]
pub fn feed(length: Option<u64>) -> (Feed, RequestBody) {
    let (sender, pieces) = mpsc::channel(QUEUE_PIECES);
    (Feed { sender }, RequestBody::Stream { length, pieces })
}

impl Feed {
    /// Hands over a piece, waiting for room. False when nobody wants the body any more.
    pub async fn push(&self, piece: Vec<u8>) -> bool {
        self.sender.send(Ok(piece)).await.is_ok()
    }

    /// Says that the client broke off.
    pub async fn fail(self, error: BodyReadError) {
        let _ = self.sender.send(Err(error)).await;
    }
}

impl RequestBody {
    /// Whether there is a body to send (even one of length 0 that was announced).
    #[must_use]
    pub fn is_present(&self) -> bool {
        !matches!(self, RequestBody::None)
    }

    /// Whether it can be sent (again).
    #[must_use]
    pub fn is_sendable(&self) -> bool {
        !matches!(self, RequestBody::Taken)
    }

    /// Length for `Content-Length`; `None` when it must be sent chunked or there is none.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        match self {
            RequestBody::None | RequestBody::Taken => None,
            RequestBody::Cached(bytes) => Some(bytes.len() as u64),
            RequestBody::Stream { length, .. } => *length,
        }
    }

    /// The next piece of a streamed body; `None` at its end.
    pub async fn next(&mut self) -> Option<Result<Vec<u8>, BodyReadError>> {
        match self {
            RequestBody::Stream { pieces, .. } => {
                let piece = pieces.recv().await;
                if piece.is_none() {
                    *self = RequestBody::Taken;
                }
                piece
            }
            RequestBody::None | RequestBody::Cached(_) | RequestBody::Taken => None,
        }
    }
}
