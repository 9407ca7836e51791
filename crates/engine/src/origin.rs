//! One exchange with an origin: a request is sent, a response is received. It hides the wire format
//! from a fetch.
//!
//! ```text
//! describe_body → put_head → send … → end → receive_head …
//!     → begin_body → more_body, consume_body … → release
//! at any moment: close, with the reason that operators read
//! ```
//!
//! The transport decides about the encoding of a message, the end of a body and the reuse of the
//! connection. There are two: HTTP/1.1 (`origin/http1.rs`), whose connections have one exchange at
//! a time, and HTTP/2 (`origin/http2.rs`), whose connections are shared. The fetch handles interim
//! responses, retries and the meaning of a response. *Invariant:* `fetch` names no codec; this
//! module names no step and no VCL. Next files: `origin/types.rs`, `origin/http1.rs`,
//! `origin/http2.rs`.

pub(crate) mod http1;
pub(crate) mod http2;
mod types;

#[cfg(test)]
pub(crate) use types::Carriage;
pub(crate) use types::{
    BodySettings, BrokenLimit, CutShort, Early, ExchangeProgress, HeadFailure, ReceiveLimits, ResponseBody, Unsent,
    close_reason,
};

use crate::context::Loop;
use crate::exchange::BodyAnnounced;
use crate::fetch::interest::Interested;
use backend::open::{OpenRecord, Place};
use backend::{BackendConnection, Ends, OpenError, OpenRequest};
pub(crate) use http2::Sender;
use http2::connection::Got;
use message::Message;
use shm::log::LogBuffer;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::task::AbortHandle;
use vcl_run::tls::TlsFacts;

/// Appends the head of a request that opens a pipe. The following bytes are not HTTP messages of
/// Copal, so there is no exchange. Pipes use HTTP/1.1.
pub(crate) fn write_piped_head(bereq: &Message, out: &mut Vec<u8>) {
    ::http1::write_request_head(bereq, out);
}

/// An exchange, used by one fetch.
pub(crate) enum OriginExchange {
    /// Over HTTP/1.1.
    Http1(Box<http1::Http1Exchange>),
    /// Over HTTP/2.
    Http2(Box<http2::Http2Exchange>),
}

impl OriginExchange {
    /// Gets a connection, or a share in one, and starts an exchange on it.
    ///
    /// # Errors
    /// See [`OpenError`]; the failure is already counted.
    pub(crate) async fn open(request: &OpenRequest<'_>, context: &Loop) -> Result<OriginExchange, OpenError> {
        if request.backend.definition().http2 {
            return Ok(match context.connections.get(request).await? {
                Got::Stream(lease) => OriginExchange::Http2(Box::new(http2::Http2Exchange::new(lease))),
                Got::Connection(connection) => OriginExchange::over_http1(connection, context),
            });
        }
        Ok(OriginExchange::over_http1(backend::open(request).await?, context))
    }

    fn over_http1(connection: BackendConnection, context: &Loop) -> OriginExchange {
        OriginExchange::Http1(Box::new(http1::Http1Exchange::new(connection, context)))
    }

    /// Bytes of buffers needed to receive a long body.
    pub(crate) fn body_buffer_bytes(&self) -> usize {
        match self {
            OriginExchange::Http1(_) => http1::BUFFER_BYTES_LONG,
            OriginExchange::Http2(_) => http2::BUFFER_BYTES,
        }
    }

    /// The addresses of the connection.
    pub(crate) fn ends(&self) -> Ends {
        match self {
            OriginExchange::Http1(exchange) => exchange.ends(),
            OriginExchange::Http2(exchange) => exchange.ends(),
        }
    }

    /// Length of the PROXY header that was sent for it, in bytes.
    pub(crate) fn proxy_header_bytes(&self) -> u64 {
        match self {
            OriginExchange::Http1(exchange) => exchange.proxy_header_bytes(),
            OriginExchange::Http2(exchange) => exchange.proxy_header_bytes(),
        }
    }

    /// The payload of the `BackendOpen` record.
    pub(crate) fn open_record(&self) -> OpenRecord<'_> {
        match self {
            OriginExchange::Http1(exchange) => exchange.open_record(),
            OriginExchange::Http2(exchange) => exchange.open_record(),
        }
    }

    /// The payload of the `BackendSSL` record; `None` in clear, and for later requests on the
    /// connection.
    pub(crate) fn tls_record(&self) -> Option<String> {
        match self {
            OriginExchange::Http1(exchange) => exchange.tls_record(),
            OriginExchange::Http2(exchange) => exchange.tls_record(),
        }
    }

    /// TLS parameters of the connection, negotiated for this request or an earlier one; `None` in
    /// clear.
    pub(crate) fn tls(&self) -> Option<&TlsFacts> {
        match self {
            OriginExchange::Http1(exchange) => exchange.tls(),
            OriginExchange::Http2(exchange) => exchange.tls(),
        }
    }

    /// Makes the headers of a request describe its body as the transport needs it.
    pub(crate) fn describe_body(&mut self, body: BodyAnnounced, bereq: &mut Message, log: &mut LogBuffer) {
        match self {
            OriginExchange::Http1(exchange) => exchange.describe_body(body, bereq, log),
            OriginExchange::Http2(exchange) => exchange.describe_body(body, bereq, log),
        }
    }

    /// Prepares the request's head, to be sent together with the next bytes. Returns its size in
    /// bytes.
    ///
    /// # Errors
    /// The part of it that the transport cannot express. Then there is nothing to send.
    pub(crate) fn put_head(&mut self, bereq: &Message) -> Result<u64, &'static str> {
        match self {
            OriginExchange::Http1(exchange) => Ok(exchange.put_head(bereq)),
            OriginExchange::Http2(exchange) => exchange.put_head(bereq),
        }
    }

    /// Sends the head if it has not been sent, and a piece of the body (perhaps empty). Returns the
    /// number of body bytes sent. If no byte is accepted for `stall`, the connection counts as
    /// broken, with ETIMEDOUT. An early answer is received at the same time.
    ///
    /// # Errors
    /// [`Unsent`].
    pub(crate) async fn send(&mut self, piece: &[u8], stall: Duration) -> Result<u64, Unsent> {
        match self {
            OriginExchange::Http1(exchange) => exchange.send(piece, stall).await,
            OriginExchange::Http2(exchange) => exchange.send(piece, stall).await,
        }
    }

    /// As [`OriginExchange::send`], for the mark at the end of the body, with these trailers if the
    /// transport can send any.
    ///
    /// # Errors
    /// [`Unsent`].
    pub(crate) async fn end(&mut self, trailers: Option<&Message>, stall: Duration) -> Result<u64, Unsent> {
        match self {
            OriginExchange::Http1(exchange) => exchange.end(trailers, stall).await,
            OriginExchange::Http2(exchange) => exchange.end(trailers).map_err(Unsent::Broken),
        }
    }

    /// Watches for an answer while the client's next piece is awaited. Ready with an interim head,
    /// or when the rest of the request is not needed.
    pub(crate) fn poll_early(&mut self, context: &mut Context<'_>) -> Poll<Early> {
        match self {
            OriginExchange::Http1(exchange) => exchange.poll_early(context),
            OriginExchange::Http2(exchange) => exchange.poll_early(context),
        }
    }

    /// Waits, after a failed write, for an answer that the origin sent before: at most `patience`.
    pub(crate) async fn await_answer(&mut self, patience: Duration) {
        match self {
            OriginExchange::Http1(exchange) => exchange.await_answer(patience).await,
            OriginExchange::Http2(exchange) => exchange.await_answer(patience).await,
        }
    }

    /// Ends waiting for the response when no client needs it any more. An HTTP/1.1 origin may not
    /// notice that and continue to work: its exchange is cancelled only if something bounds the
    /// rate of cancellations.
    pub(crate) fn serves(&mut self, interest: Option<Interested>, is_bounded: bool) {
        match self {
            OriginExchange::Http1(exchange) => exchange.serves(interest.filter(|_| is_bounded)),
            OriginExchange::Http2(exchange) => exchange.serves(interest),
        }
    }

    /// Takes the right to send the request's body out of the exchange: it can be used while the
    /// response is received. `None` if the transport sends and receives one after the other, or
    /// there is nothing to send. The head must have been sent.
    pub(crate) fn detach_sender(&mut self) -> Option<Sender> {
        match self {
            OriginExchange::Http1(_) => None,
            OriginExchange::Http2(exchange) => exchange.detach_sender(),
        }
    }

    /// Makes the task that has that right end with the exchange.
    pub(crate) fn ends_upload(&mut self, upload: AbortHandle) {
        match self {
            OriginExchange::Http1(_) => {}
            OriginExchange::Http2(exchange) => exchange.ends_upload(upload),
        }
    }

    /// Receives the next head, which may be interim. Returns its size in bytes.
    ///
    /// # Errors
    /// [`HeadFailure`].
    pub(crate) async fn receive_head(
        &mut self,
        beresp: &mut Message,
        limits: &ReceiveLimits,
    ) -> Result<u64, HeadFailure> {
        match self {
            OriginExchange::Http1(exchange) => exchange.receive_head(beresp, limits).await,
            OriginExchange::Http2(exchange) => exchange.receive_head(beresp, limits).await,
        }
    }

    /// Must be called when the last head received is final. Returns the framing of the following
    /// body; `None` if that is ambiguous. The connection options of both messages are evaluated
    /// here, whatever VCL changes later.
    pub(crate) fn begin_body(
        &mut self,
        bereq: &Message,
        beresp: &Message,
        settings: BodySettings,
    ) -> Option<ResponseBody> {
        match self {
            OriginExchange::Http1(exchange) => exchange.begin_body(bereq, beresp, settings),
            OriginExchange::Http2(exchange) => exchange.begin_body(bereq, beresp, settings),
        }
    }

    /// Waits for bytes of the body once the earlier ones are consumed. Returns their number, 0 at
    /// the end.
    ///
    /// # Errors
    /// [`CutShort`].
    pub(crate) async fn more_body(&mut self, limits: &ReceiveLimits) -> Result<usize, CutShort> {
        match self {
            OriginExchange::Http1(exchange) => exchange.more_body(limits).await,
            OriginExchange::Http2(exchange) => exchange.more_body(limits).await,
        }
    }

    /// The bytes of the body that were received and not consumed.
    pub(crate) fn body(&self) -> &[u8] {
        match self {
            OriginExchange::Http1(exchange) => exchange.body(),
            OriginExchange::Http2(exchange) => exchange.body(),
        }
    }

    /// Marks `count` of these bytes as used.
    pub(crate) fn consume_body(&mut self, count: usize) {
        match self {
            OriginExchange::Http1(exchange) => exchange.consume_body(count),
            OriginExchange::Http2(exchange) => exchange.consume_body(count),
        }
    }

    /// Takes these bytes in a buffer of their own, instead of consuming them; `None` if there is
    /// none.
    pub(crate) fn take_body(&mut self) -> Option<Vec<u8>> {
        match self {
            OriginExchange::Http1(exchange) => exchange.take_body(),
            OriginExchange::Http2(_) => None,
        }
    }

    /// Skips the rest of the body, if all of it has been received. Returns true if so: then the
    /// connection can be used again, whatever the quality of the response.
    pub(crate) fn skip_body(&mut self) -> bool {
        match self {
            OriginExchange::Http1(exchange) => exchange.skip_body(),
            // The stream is reset; the connection is not its own.
            OriginExchange::Http2(_) => false,
        }
    }

    /// True if trailers may follow the body.
    pub(crate) fn may_have_trailers(&self) -> bool {
        match self {
            OriginExchange::Http1(exchange) => exchange.may_have_trailers(),
            OriginExchange::Http2(exchange) => exchange.may_have_trailers(),
        }
    }

    /// The trailers, once the body has ended; `None` if there were none, or none were requested.
    pub(crate) fn take_trailers(&mut self, limits: &ReceiveLimits) -> Option<Message> {
        match self {
            OriginExchange::Http1(exchange) => exchange.take_trailers(limits),
            OriginExchange::Http2(exchange) => exchange.take_trailers(limits),
        }
    }

    /// Progress of the exchange.
    pub(crate) fn progress(&self) -> ExchangeProgress {
        match self {
            OriginExchange::Http1(exchange) => exchange.progress(),
            OriginExchange::Http2(exchange) => exchange.progress(),
        }
    }

    /// Marks the connection as not reusable; the first reason counts.
    pub(crate) fn must_close(&mut self, why: &'static str) {
        match self {
            OriginExchange::Http1(exchange) => exchange.must_close(why),
            // The stream ends with the exchange; the connection is not its own.
            OriginExchange::Http2(_) => {}
        }
    }

    /// Closes the connection. Returns its slot, for a request that is sent once more.
    pub(crate) fn close(self, why: &'static str, log: &mut LogBuffer) -> Option<Place> {
        match self {
            OriginExchange::Http1(exchange) => Some(exchange.close(why, log)),
            OriginExchange::Http2(exchange) => exchange.close(why, log),
        }
    }

    /// Must be called when both messages are complete: the connection returns to the pool, or is
    /// closed if it must not be used again. The response's head counts as VCL left it.
    pub(crate) fn release(self, beresp: &Message, context: &Loop, log: &mut LogBuffer) {
        match self {
            OriginExchange::Http1(exchange) => exchange.release(beresp, context, log),
            OriginExchange::Http2(exchange) => exchange.release(context, log),
        }
    }
}
