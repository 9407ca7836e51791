//! One exchange with an origin: a request goes out, a response comes in. A fetch knows nothing else of the wire.
//!
//! ```text
//! describe_body → put_head → send … → end → receive_head … → begin_body → more_body, consume_body … → release
//!      at any moment: close, with the reason that operators read
//! ```
//!
//! How a message is written, where a body ends and whether the connection can be used again is up to the transport. There is
//! one, HTTP/1.1 (`origin/http1.rs`); another one would become a second variant of [`OriginExchange`]. Interim responses,
//! retries and the meaning of a response are up to the fetch. *Invariant:* `fetch` names no codec; this module names no step
//! and no VCL. Next files: `origin/terms.rs`, `origin/http1.rs`.

mod http1;
mod terms;

#[cfg(test)]
pub(crate) use terms::Carriage;
pub(crate) use terms::{BodyTerms, CutShort, HeadFailure, ReceiveLimits, ResponseBody, Standing, close_reason};

use crate::context::Loop;
use crate::exchange::BodyAnnounced;
use backend::BackendConnection;
use message::Message;
use shm::log::LogBuffer;
use std::time::Duration;

/// Appends the head of a request that opens a pipe. What follows is not ours, so there is no exchange. Pipes use HTTP/1.1.
pub(crate) fn write_piped_head(bereq: &Message, out: &mut Vec<u8>) {
    ::http1::write_request_head(bereq, out);
}

/// An exchange, used by one fetch.
pub(crate) enum OriginExchange {
    /// Over HTTP/1.1.
    Http1(http1::Http1Exchange),
}

impl OriginExchange {
    /// Bytes of buffers needed to receive a long body.
    pub(crate) const BODY_BUFFER_BYTES: usize = http1::BUFFER_BYTES_LONG;

    /// Starts the first or the next exchange on a connection.
    pub(crate) fn new(connection: BackendConnection) -> OriginExchange {
        OriginExchange::Http1(http1::Http1Exchange::new(connection))
    }

    /// Makes the headers of a request describe its body as the transport needs it.
    pub(crate) fn describe_body(&mut self, body: BodyAnnounced, bereq: &mut Message, log: &mut LogBuffer) {
        match self {
            OriginExchange::Http1(exchange) => exchange.describe_body(body, bereq, log),
        }
    }

    /// Prepares the request's head, to be sent together with what is sent next. Returns its size in bytes.
    pub(crate) fn put_head(&mut self, bereq: &Message) -> u64 {
        match self {
            OriginExchange::Http1(exchange) => exchange.put_head(bereq),
        }
    }

    /// Sends the head if it has not been sent, and a piece of the body (perhaps empty). Returns how many body bytes were sent.
    /// If nothing moves for `stall`, the connection counts as broken, with ETIMEDOUT. An early answer is received meanwhile.
    ///
    /// # Errors
    /// The error number.
    pub(crate) async fn send(&mut self, piece: &[u8], stall: Duration) -> Result<u64, i32> {
        match self {
            OriginExchange::Http1(exchange) => exchange.send(piece, stall).await,
        }
    }

    /// As [`OriginExchange::send`], for the mark at the end of the body, with these trailers if the transport can send any.
    ///
    /// # Errors
    /// The error number.
    pub(crate) async fn end(&mut self, trailers: Option<&Message>, stall: Duration) -> Result<u64, i32> {
        match self {
            OriginExchange::Http1(exchange) => exchange.end(trailers, stall).await,
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
        }
    }

    /// Call this when the last head received is final. Returns what follows it; `None` when that is not certain. What both
    /// messages say about the connection is decided here, whatever VCL changes later.
    pub(crate) fn begin_body(&mut self, bereq: &Message, beresp: &Message, terms: BodyTerms) -> Option<ResponseBody> {
        match self {
            OriginExchange::Http1(exchange) => exchange.begin_body(bereq, beresp, terms),
        }
    }

    /// Waits for bytes of the body once the earlier ones are consumed. Returns how many there are, 0 at the end.
    ///
    /// # Errors
    /// [`CutShort`].
    pub(crate) async fn more_body(&mut self, limits: &ReceiveLimits) -> Result<usize, CutShort> {
        match self {
            OriginExchange::Http1(exchange) => exchange.more_body(limits).await,
        }
    }

    /// The bytes of the body that were received and not consumed.
    pub(crate) fn body(&self) -> &[u8] {
        match self {
            OriginExchange::Http1(exchange) => exchange.body(),
        }
    }

    /// Marks `count` of these bytes as used.
    pub(crate) fn consume_body(&mut self, count: usize) {
        match self {
            OriginExchange::Http1(exchange) => exchange.consume_body(count),
        }
    }

    /// Whether trailers may come after the body.
    pub(crate) fn may_have_trailers(&self) -> bool {
        match self {
            OriginExchange::Http1(exchange) => exchange.may_have_trailers(),
        }
    }

    /// The trailers, once the body has ended; `None` if there were none, or nobody wanted them.
    pub(crate) fn take_trailers(&mut self, limits: &ReceiveLimits) -> Option<Message> {
        match self {
            OriginExchange::Http1(exchange) => exchange.take_trailers(limits),
        }
    }

    /// How far the exchange has got.
    pub(crate) fn standing(&self) -> Standing {
        match self {
            OriginExchange::Http1(exchange) => exchange.standing(),
        }
    }

    /// The connection must not be used again; the first reason counts.
    pub(crate) fn must_close(&mut self, why: &'static str) {
        match self {
            OriginExchange::Http1(exchange) => exchange.must_close(why),
        }
    }

    /// Closes the connection.
    pub(crate) fn close(self, why: &'static str, log: &mut LogBuffer) {
        match self {
            OriginExchange::Http1(exchange) => exchange.close(why, log),
        }
    }

    /// Call this when both messages are complete: the connection goes back to the pool, or is closed if it must not be used
    /// again. The response's head counts as VCL left it.
    pub(crate) fn release(self, beresp: &Message, context: &Loop, log: &mut LogBuffer) {
        match self {
            OriginExchange::Http1(exchange) => exchange.release(beresp, context, log),
        }
    }
}
