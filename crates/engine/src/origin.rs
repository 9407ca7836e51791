//! One exchange with an origin: a request goes out, a response comes in. This is all that a fetch knows of the wire.
//!
//! ```text
//! describe_body → put_head → send … → end → receive_head … → begin_body → more_body, consume_body … → release
//!      at any moment: close, with the reason that operators read
//! ```
//!
//! How a message is written, where a body ends and whether the connection serves once more are the affair of a transport.
//! There is one, HTTP/1.1 (`origin/http1.rs`); a second is a second variant of [`OriginExchange`]. Interim responses, retries and
//! what a response means are the fetch's affair. *Invariant:* `fetch` names no codec, this no step and no VCL.
//! Next files: `origin/terms.rs`, `origin/http1.rs`.

mod http1;
mod terms;

#[cfg(test)]
pub(crate) use terms::Carriage;
pub(crate) use terms::{CutShort, HeadFailure, ReceiveLimits, ResponseBody, Standing, close_reason};

use crate::context::Loop;
use crate::exchange::BodyAnnounced;
use backend::BackendConnection;
use message::Message;
use shm::log::LogBuffer;
use std::time::Duration;

/// Appends the head of a request that opens a pipe: what follows it is not ours, so there is no exchange. Pipes speak HTTP/1.1.
pub(crate) fn write_piped_head(bereq: &Message, out: &mut Vec<u8>) {
    ::http1::write_request_head(bereq, out);
}

/// An exchange in the hands of one fetch.
pub(crate) enum OriginExchange {
    /// Over HTTP/1.1.
    Http1(http1::Http1Exchange),
}

impl OriginExchange {
    /// Bytes of buffers that receiving a long body takes.
    pub(crate) const BODY_BUFFER_BYTES: usize = http1::BUFFER_BYTES_LONG;

    /// The first or next exchange on a connection.
    pub(crate) fn new(connection: BackendConnection) -> OriginExchange {
        OriginExchange::Http1(http1::Http1Exchange::new(connection))
    }

    /// Makes the headers of a request say what the transport wants them to say of its body.
    pub(crate) fn describe_body(&mut self, body: BodyAnnounced, bereq: &mut Message, log: &mut LogBuffer) {
        match self {
            OriginExchange::Http1(exchange) => exchange.describe_body(body, bereq, log),
        }
    }

    /// Writes the request's head down, to be sent with what is sent next; gives its size in bytes.
    pub(crate) fn put_head(&mut self, bereq: &Message) -> u64 {
        match self {
            OriginExchange::Http1(exchange) => exchange.put_head(bereq),
        }
    }

    /// Sends the head, if it has not gone, and some of the body, or none. Gives how many bytes that made of the body. No
    /// progress for as long as `stall` counts as broken, with ETIMEDOUT. An answer that comes meanwhile is taken in.
    ///
    /// # Errors
    /// The error number.
    pub(crate) async fn send(&mut self, piece: &[u8], stall: Duration) -> Result<u64, i32> {
        match self {
            OriginExchange::Http1(exchange) => exchange.send(piece, stall).await,
        }
    }

    /// As [`OriginExchange::send`], of what says that the body is complete.
    ///
    /// # Errors
    /// The error number.
    pub(crate) async fn end(&mut self, stall: Duration) -> Result<u64, i32> {
        match self {
            OriginExchange::Http1(exchange) => exchange.end(stall).await,
        }
    }

    /// Receives the next head, which may be interim; gives its size in bytes.
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

    /// The head received last is final: what comes after it? `None` when that is not certain. From now on it is settled what
    /// the two messages say about the connection, whatever VCL makes of them.
    pub(crate) fn begin_body(&mut self, bereq: &Message, beresp: &Message) -> Option<ResponseBody> {
        match self {
            OriginExchange::Http1(exchange) => exchange.begin_body(bereq, beresp),
        }
    }

    /// Waits for bytes of the body, when those that came before are consumed; gives how many have come, 0 at the end.
    ///
    /// # Errors
    /// [`CutShort`].
    pub(crate) async fn more_body(&mut self, limits: &ReceiveLimits) -> Result<usize, CutShort> {
        match self {
            OriginExchange::Http1(exchange) => exchange.more_body(limits).await,
        }
    }

    /// Received bytes of the body.
    pub(crate) fn body(&self) -> &[u8] {
        match self {
            OriginExchange::Http1(exchange) => exchange.body(),
        }
    }

    /// So many of them were used.
    pub(crate) fn consume_body(&mut self, count: usize) {
        match self {
            OriginExchange::Http1(exchange) => exchange.consume_body(count),
        }
    }

    /// How far it has come.
    pub(crate) fn standing(&self) -> Standing {
        match self {
            OriginExchange::Http1(exchange) => exchange.standing(),
        }
    }

    /// The connection must not serve again; the first reason counts.
    pub(crate) fn must_close(&mut self, why: &'static str) {
        match self {
            OriginExchange::Http1(exchange) => exchange.must_close(why),
        }
    }

    /// Gives it up.
    pub(crate) fn close(self, why: &'static str, log: &mut LogBuffer) {
        match self {
            OriginExchange::Http1(exchange) => exchange.close(why, log),
        }
    }

    /// Both messages are whole: the connection goes back to the pool, or is closed when it must not serve again. What VCL made
    /// of the response's head counts as if the origin had said it.
    pub(crate) fn release(self, beresp: &Message, context: &Loop, log: &mut LogBuffer) {
        match self {
            OriginExchange::Http1(exchange) => exchange.release(beresp, context, log),
        }
    }
}
