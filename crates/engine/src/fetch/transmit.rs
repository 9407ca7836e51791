//! Transmit: sends the request, with its body passing the filters of `bereq.filters`.
//!
//! Opening those filters changes the headers that describe the body; a retry restores them. A
//! decoded body is sent without a length, even if it is kept completely, since its length is not
//! known in advance (VCL of Varnish 7.7). A kept body is sent together with the head; one that is
//! still being received is sent piece by piece: the next piece is requested from the client when
//! the last one has been sent. The transport decides about the framing (`origin.rs`), and if the
//! response may be received at the same time (`upload.rs`). Next file: `response.rs`.

use super::Fetch;
use super::body_relay::{BodyRelay, SendError, relay_body};
use super::order::Ordered;
use super::sent_body::SentBody;
use super::task::{Attempt, FetchTask, Life};
use super::upload::Upload;
use crate::bodies::filters::{Filters, Subject};
use crate::bodies::request::RequestBody;
use crate::bodies::source::Handed;
use crate::deadline::duration;
use crate::exchange::BodyAnnounced;
use crate::logged::{self, BEREQ};
use crate::origin::{Early, OriginExchange, Sender};
use body::Side;
use message::Message;
use std::cell::RefCell;
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::task::Poll;
use surface::counter::Vbe;
use surface::encoding::Encoding;
use surface::limits::{FILTER_STEP_BYTES_MAX, UPLOAD_KEPT_BYTES_MAX};
use tokio::time::{Instant, sleep_until, timeout_at};

impl BodyRelay for Fetch {
    async fn send(&mut self, piece: &[u8]) -> Result<(), SendError> {
        self.send_some(piece).await
    }

    /// A client that may receive at the same time has no idle timeout on its own side: the fetch
    /// applies it here, since before everything is sent only an early answer can be received.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, SendError> {
        let Ordered { is_duplex, parameters, .. } = &self.task.order;
        let idle = is_duplex.then(|| duration(parameters.timeout_idle));
        let asked = Instant::now();
        let next = loop {
            let FetchTask { life: Life { body, trailers, .. }, attempt: Attempt { exchange, .. }, .. } = &mut self.task;
            let next = tokio::select! {
                biased;
                next = body.next(trailers) => next.transpose().map_err(SendError::from),
                early = poll_fn(|context| {
                    exchange.as_mut().map_or(Poll::Pending, |exchange| exchange.poll_early(context))
                }) => match early {
                    Early::Interim => {
                        self.receive_interim().await?;
                        continue;
                    }
                    Early::Accepted | Early::Declined => Err(SendError::Answered),
                },
                () = async {
                    match idle {
                        Some(idle) => sleep_until(asked + idle).await,
                        None => pending().await,
                    }
                } => Err(SendError::Client("nothing came for timeout_idle".to_owned())),
            };
            break next;
        };
        // That time was not the origin's.
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

    /// Takes the filters for a body that is sent now; `None` if it is sent unchanged. For the next
    /// attempt they are set up again.
    pub(super) fn take_stages(&mut self) -> Option<Filters> {
        self.task.attempt.body_stages.take_if(|stages| !stages.is_empty())
    }

    /// Known facts about the length of the body that will be sent.
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
        if self.task.life.is_body_begun && self.task.bereq.has("Expect") {
            // A request that is sent again does not wait for `100 Continue`.
            logged::unset(&mut self.log, BEREQ, &mut self.task.bereq, "Expect");
        }
        let Some(exchange) = &mut self.task.attempt.exchange else { return Err(SendError::Origin(0)) };
        let head_bytes = exchange.put_head(&self.task.bereq).map_err(SendError::Unsayable)?;
        self.task.attempt.sent_body = match self.announced_body().is_empty() {
            true => SentBody::None,
            false => SentBody::Some(0),
        };
        self.count_request_head(head_bytes);
        match &self.task.life.body {
            RequestBody::None | RequestBody::Taken => self.send_some(b"").await?,
            RequestBody::Cached(body) => {
                let body = Rc::clone(body.bytes());
                match self.take_stages() {
                    None => self.send_some(&body).await?,
                    Some(stages) => {
                        self.send_some(b"").await?;
                        relay_body(self, Handed::whole(body), None, stages).await?;
                    }
                }
            }
            RequestBody::Stream { length, .. } => {
                let length = *length;
                // The client is asked for its body once the head has been sent.
                self.send_some(b"").await?;
                if self.task.life.body.awaits_leave() && self.task.bereq.has("Expect") {
                    self.await_leave().await?;
                }
                if std::mem::replace(&mut self.task.life.is_body_begun, true) {
                    self.task.life.body.rewind();
                }
                let kept_bytes = length.unwrap_or(u64::MAX).min(UPLOAD_KEPT_BYTES_MAX as u64) as usize;
                self.task.life.held.set_at_least(&self.context.memory, kept_bytes);
                let stages = self.take_stages().unwrap_or_default();
                if self.task.order.is_duplex
                    && let Some(sender) = self.task.attempt.exchange.as_mut().and_then(OriginExchange::detach_sender)
                {
                    self.upload(sender, length, stages);
                    return Ok(());
                }
                relay_body(self, Handed::default(), length, stages).await?;
            }
        }
        self.send_end().await?;
        self.task.attempt.sent_body.complete();
        Ok(())
    }

    /// Waits until the origin requests the body, or its time limit has passed: then the body is
    /// sent without `100 Continue`. Only then is the client asked for it. Source: RFC 9110 §10.1.1.
    async fn await_leave(&mut self) -> Result<(), SendError> {
        let due = Instant::now() + duration(self.task.order.parameters.expect_continue_timeout);
        loop {
            let Some(exchange) = &mut self.task.attempt.exchange else { return Err(SendError::Origin(0)) };
            match timeout_at(due, poll_fn(|context| exchange.poll_early(context))).await {
                Ok(Early::Interim) => {
                    self.receive_interim().await?;
                    if self.task.attempt.beresp.status() == 100 {
                        return Ok(());
                    }
                }
                Ok(Early::Accepted | Early::Declined) => return Err(SendError::Answered),
                Err(_) => return Ok(()),
            }
        }
    }

    /// Has the client's body sent while the response is received.
    fn upload(&mut self, sender: Sender, length: Option<u64>, stages: Filters) {
        let body = std::mem::replace(&mut self.task.life.body, RequestBody::Taken);
        let body = Rc::new(RefCell::new(body));
        self.task.life.uploading = Some(Rc::clone(&body));
        let is_filtered = self.task.choices.body_filters.is_some();
        let announced = semantics::trailers::announced(&self.task.bereq).filter(|_| !is_filtered);
        let stall = self.send_limit();
        let progress = Rc::clone(self.task.life.upload.get_or_insert_default());
        let upload = Upload { sender, body, announced, stall, progress, trailers: None };
        let running = tokio::task::spawn_local(upload.run(length, stages));
        if let Some(exchange) = &mut self.task.attempt.exchange {
            exchange.ends_upload(running.abort_handle());
        }
    }

    /// Sends some of the body, and before it the head if that has not been sent yet.
    async fn send_some(&mut self, piece: &[u8]) -> Result<(), SendError> {
        let stall = self.send_limit();
        let Some(exchange) = &mut self.task.attempt.exchange else { return Err(SendError::Origin(0)) };
        let bytes = exchange.send(piece, stall).await?;
        self.count_request_body(bytes);
        Ok(())
    }

    async fn send_end(&mut self) -> Result<(), SendError> {
        let stall = self.send_limit();
        let trailers = self.request_trailers();
        let Some(exchange) = &mut self.task.attempt.exchange else { return Err(SendError::Origin(0)) };
        let bytes = exchange.end(trailers.as_ref(), stall).await?;
        self.count_request_body(bytes);
        Ok(())
    }

    /// The client's trailers that the request announces. They do not describe a filtered body.
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
        self.task.attempt.sent_body.add(bytes);
        self.count_backend(Vbe::BereqBodybytes, bytes);
    }
}
