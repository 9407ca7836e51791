//! Transmit: sends the request, with its body going through the filters of `bereq.filters`.
//!
//! Opening those filters changes the headers that describe the body; a retry restores them. An unpacked body is sent without a
//! length, even if it is kept completely, since nobody knows how long it will be (VCL of Varnish 7.7). A kept body is sent
//! together with the head, one that is still being received goes out piece by piece: the client is asked for the next piece
//! when the last one has been sent. The framing is up to the transport (`origin.rs`), and whether the response may come meanwhile
//! (`upload.rs`). Next file: `response.rs`.

use super::Fetch;
use super::passage::{Passage, SendError, pass_on};
use super::task::Ordered;
use super::upload::Upload;
use crate::bodies::filters::{Filters, Subject};
use crate::bodies::request::{BodyReadError, RequestBody};
use crate::bodies::source::Handed;
use crate::deadline::duration;
use crate::exchange::BodyAnnounced;
use crate::logged::{self, BEREQ};
use crate::origin::{OriginExchange, Sender};
use body::Side;
use message::Message;
use std::rc::Rc;
use surface::counter::Vbe;
use surface::encoding::Encoding;
use surface::limits::FILTER_STEP_BYTES_MAX;
use tokio::time::Instant;

impl Passage for Fetch {
    async fn send(&mut self, piece: &[u8]) -> Result<(), SendError> {
        self.send_some(piece).await
    }

    /// A client that may receive meanwhile is not told how long it may be silent by its own side: the fetch knows that here it can receive
    /// nothing before it has sent everything.
    async fn next(&mut self) -> Option<Result<Vec<u8>, BodyReadError>> {
        let Ordered { is_duplex, parameters, .. } = &self.task.order;
        let idle = is_duplex.then_some(parameters.timeout_idle);
        let asked = Instant::now();
        let next = self.task.life.body.next(&mut self.task.life.trailers);
        let next = match idle {
            None => next.await,
            Some(idle) => tokio::time::timeout(duration(idle), next)
                .await
                .unwrap_or_else(|_| Some(Err(BodyReadError("nothing came for timeout_idle".to_owned())))),
        };
        // That was not the origin's time.
        if let Some(due) = &mut self.task.attempt.last_byte_by {
            *due += asked.elapsed();
        }
        next
    }
}

impl Fetch {
    /// Sets up the filters, unless they are set up already and still unused.
    ///
    /// # Errors
    /// The text for the log: a name is unknown.
    pub(super) fn open_request_filters(&mut self) -> Result<(), String> {
        if self.task.attempt.body_stages.is_some() || !self.task.life.body.is_present() {
            return Ok(());
        }
        self.restore_body_headers();
        let Some(list) = &self.task.choices.body_filters else { return Ok(()) };
        let length = self.task.life.body.length();
        let coding = self.task.bereq.get("Content-Encoding").and_then(Encoding::of_name);
        let mut subject = Subject::new(Side::Bereq, &mut self.task.bereq, &mut self.log, length);
        let stages = Filters::open(list, &mut subject, &self.task.order.parameters, &self.context.counters)?;
        self.task.attempt.unpacked = coding.filter(|_| stages.unpack());
        self.task.life.held.set_at_least(&self.context.memory, stages.memory_bytes() + FILTER_STEP_BYTES_MAX);
        self.task.attempt.body_stages = Some(stages);
        Ok(())
    }

    /// Restores the headers that describe the unfiltered body, since it is about to be sent again.
    pub(super) fn restore_body_headers(&mut self) {
        if let Some(coding) = self.task.attempt.unpacked.take() {
            let name = coding.name().as_bytes();
            logged::set(&mut self.log, BEREQ, &mut self.task.bereq, "Content-Encoding", name);
        }
        self.task.attempt.body_stages = None;
    }

    /// The length to announce; `None` = the body is sent chunked, since filters change it.
    pub(super) fn announced_length(&self) -> Option<u64> {
        let changes = self.task.attempt.body_stages.as_ref().is_some_and(Filters::change_length);
        self.task.life.body.length().filter(|_| !changes)
    }

    /// Takes the filters for a body that is sent now; `None` when it is sent unchanged. For the next attempt they are set up
    /// again.
    pub(super) fn take_stages(&mut self) -> Option<Filters> {
        self.task.attempt.body_stages.take_if(|stages| !stages.is_empty())
    }

    /// What is known about the length of the body that will be sent.
    pub(super) fn announced_body(&self) -> BodyAnnounced {
        match &self.task.life.body {
            RequestBody::None | RequestBody::Taken => BodyAnnounced::None,
            RequestBody::Cached(_) | RequestBody::Stream { .. } => {
                self.announced_length().map_or(BodyAnnounced::Unknown, BodyAnnounced::Length)
            }
        }
    }

    /// Sends the head and then the body.
    pub(super) async fn transmit(&mut self) -> Result<(), SendError> {
        let Some(exchange) = &mut self.task.attempt.exchange else { return Err(SendError::Origin(0)) };
        let head_bytes = exchange.put_head(&self.task.bereq).map_err(SendError::Unsayable)?;
        self.count_request_head(head_bytes);
        match &self.task.life.body {
            RequestBody::None | RequestBody::Taken => self.send_some(b"").await?,
            RequestBody::Cached(body) => {
                let body = Rc::clone(body.bytes());
                match self.take_stages() {
                    None => self.send_some(&body).await?,
                    Some(stages) => {
                        self.send_some(b"").await?;
                        pass_on(self, Handed::whole(body), None, stages).await?;
                    }
                }
            }
            RequestBody::Stream { length, .. } => {
                let length = *length;
                // The client is asked for its body once the head has been sent.
                self.send_some(b"").await?;
                self.task.life.is_body_begun = true;
                let stages = self.take_stages().unwrap_or_default();
                if self.task.order.is_duplex
                    && let Some(sender) = self.task.attempt.exchange.as_mut().and_then(OriginExchange::detach_sender)
                {
                    self.upload(sender, length, stages);
                    return Ok(());
                }
                pass_on(self, Handed::default(), length, stages).await?;
            }
        }
        self.send_end().await
    }

    /// Has the client's body sent while the response is received.
    fn upload(&mut self, sender: Sender, length: Option<u64>, stages: Filters) {
        let body = std::mem::replace(&mut self.task.life.body, RequestBody::Taken);
        let is_filtered = self.task.choices.body_filters.is_some();
        let announced = semantics::trailers::announced(&self.task.bereq).filter(|_| !is_filtered);
        let stall = self.send_limit();
        let sent_bytes = Rc::clone(&self.task.life.uploaded_bytes);
        let upload = Upload { sender, body, announced, stall, sent_bytes, trailers: None };
        let running = tokio::task::spawn_local(upload.run(length, stages));
        if let Some(exchange) = &mut self.task.attempt.exchange {
            exchange.ends_upload(running.abort_handle());
        }
    }

    /// Sends some of the body, and before it the head if that has not been sent yet.
    async fn send_some(&mut self, piece: &[u8]) -> Result<(), SendError> {
        let stall = self.send_limit();
        let Some(exchange) = &mut self.task.attempt.exchange else { return Err(SendError::Origin(0)) };
        let bytes = exchange.send(piece, stall).await.map_err(SendError::Origin)?;
        self.count_request_body(bytes);
        Ok(())
    }

    async fn send_end(&mut self) -> Result<(), SendError> {
        let stall = self.send_limit();
        let trailers = self.request_trailers();
        let Some(exchange) = &mut self.task.attempt.exchange else { return Err(SendError::Origin(0)) };
        let bytes = exchange.end(trailers.as_ref(), stall).await.map_err(SendError::Origin)?;
        self.count_request_body(bytes);
        Ok(())
    }

    /// The client's trailers that the request announces. A body that was filtered is not the one they describe.
    fn request_trailers(&mut self) -> Option<Message> {
        if self.task.choices.body_filters.is_some() {
            return None;
        }
        let received = self.task.life.trailers.take()?;
        let announced = semantics::trailers::announced(&self.task.bereq)?;
        let mut trailers = Message::new();
        semantics::trailers::select(&received, &announced, &mut trailers);
        logged::log_headers(&mut self.log, BEREQ, &trailers);
        Some(trailers)
    }

    fn count_request_head(&mut self, bytes: u64) {
        self.task.life.account.request_head += bytes;
        self.count_backend(Vbe::BereqHdrbytes, bytes);
    }

    fn count_request_body(&mut self, bytes: u64) {
        self.task.life.account.request_body += bytes;
        self.count_backend(Vbe::BereqBodybytes, bytes);
    }
}
