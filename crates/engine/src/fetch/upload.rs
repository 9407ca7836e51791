//! Upload: a request's body is sent while the response is received.
//!
//! Some origins answer before they have read everything, and some exchange messages with the client
//! for hours (gRPC). For a pass between a client and an origin that can both do that, the body is
//! sent by a task of its own, so that neither direction waits for the other. It ends with the
//! exchange. *Invariant:* an incomplete body resets the stream: the origin never takes a part for
//! the whole.

use super::body_relay::{BodyRelay, SendError, relay_body};
use super::sent_body::UploadProgress;
use crate::bodies::filters::Filters;
use crate::bodies::request::RequestBody;
use crate::bodies::source::Handed;
use crate::origin::Sender;
use message::Message;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;
use surface::reason::Reason;

/// State needed to send a body.
pub(super) struct Upload {
    pub(super) sender: Sender,
    /// The fetch takes it back if it has to be sent again.
    pub(super) body: Rc<RefCell<RequestBody>>,
    /// The trailers that the request announces.
    pub(super) announced: Option<Vec<u8>>,
    /// Longest time in which the origin may accept no bytes.
    pub(super) stall: Duration,
    /// Progress of the upload.
    pub(super) progress: Rc<UploadProgress>,
    /// Trailers of the body.
    pub(super) trailers: Option<Message>,
}

impl Upload {
    /// Sends the body to its end.
    pub(super) async fn run(mut self, length: Option<u64>, stages: Filters) {
        match relay_body(&mut self, Handed::default(), length, stages).await {
            Ok(()) => {
                self.progress.complete();
                let trailers = self.trailers_to_send();
                // If the stream is gone, the receiver of the response reports why.
                let _ = self.sender.end(trailers.as_ref());
            }
            Err(SendError::Client(_)) => self.sender.give_up(Reason::ClientBodyLost),
            Err(SendError::Origin(_) | SendError::Answered | SendError::Unsayable(_)) => {
                self.sender.give_up(Reason::RequestNotSent)
            }
        }
    }

    fn trailers_to_send(&mut self) -> Option<Message> {
        let received = self.trailers.take()?;
        let mut trailers = Message::new();
        semantics::trailers::select(&received, self.announced.as_deref()?, &mut trailers);
        Some(trailers)
    }
}

impl BodyRelay for Upload {
    async fn send(&mut self, piece: &[u8]) -> Result<(), SendError> {
        self.sender.send(piece, self.stall).await.map_err(SendError::Origin)?;
        self.progress.add(piece.len() as u64);
        Ok(())
    }

    async fn next(&mut self) -> Result<Option<Vec<u8>>, SendError> {
        self.sender.await_client();
        let next = poll_fn(|context| self.body.borrow_mut().poll_next(context, &mut self.trailers)).await;
        self.sender.client_spoke();
        Ok(next.transpose()?)
    }
}
