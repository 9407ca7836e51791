//! Upload: a request's body goes out while the response already comes in.
//!
//! Some origins answer before they have read everything, and some talk to the client for hours (gRPC). For a pass between a client
//! and an origin that can both do that, the body is sent by a task of its own, so that neither direction waits for the other. It
//! ends with the exchange. *Invariant:* a body that does not come whole resets the stream: the origin never takes a part for all.

use super::passage::{Passage, SendError, pass_on};
use crate::bodies::filters::Filters;
use crate::bodies::request::{BodyReadError, RequestBody};
use crate::bodies::source::Handed;
use crate::origin::Sender;
use message::Message;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use surface::reason::Reason;

/// What is needed to send a body.
pub(super) struct Upload {
    pub(super) sender: Sender,
    pub(super) body: RequestBody,
    /// What the request announces as trailers.
    pub(super) announced: Option<Vec<u8>>,
    /// How long the origin may take nothing.
    pub(super) stall: Duration,
    /// Counts the bytes.
    pub(super) sent_bytes: Rc<Cell<u64>>,
    /// What came after the body.
    pub(super) trailers: Option<Message>,
}

impl Upload {
    /// Sends it to its end.
    pub(super) async fn run(mut self, length: Option<u64>, stages: Filters) {
        match pass_on(&mut self, Handed::default(), length, stages).await {
            Ok(()) => {
                let trailers = self.trailers_to_send();
                // If the stream is gone, whoever receives the response knows why.
                let _ = self.sender.end(trailers.as_ref());
            }
            Err(SendError::Client(_)) => self.sender.give_up(Reason::ClientBodyLost),
            Err(SendError::Origin(_) | SendError::Unsayable(_)) => self.sender.give_up(Reason::RequestNotSent),
        }
    }

    fn trailers_to_send(&mut self) -> Option<Message> {
        let received = self.trailers.take()?;
        let mut trailers = Message::new();
        semantics::trailers::select(&received, self.announced.as_deref()?, &mut trailers);
        Some(trailers)
    }
}

impl Passage for Upload {
    async fn send(&mut self, piece: &[u8]) -> Result<(), SendError> {
        self.sender.send(piece, self.stall).await.map_err(SendError::Origin)?;
        self.sent_bytes.set(self.sent_bytes.get() + piece.len() as u64);
        Ok(())
    }

    async fn next(&mut self) -> Option<Result<Vec<u8>, BodyReadError>> {
        self.sender.await_client();
        let next = self.body.next(&mut self.trailers).await;
        self.sender.client_spoke();
        next
    }
}
