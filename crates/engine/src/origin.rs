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
//! Next file: `origin/http1.rs`.

mod http1;

use crate::context::Loop;
use crate::exchange::BodyAnnounced;
use backend::BackendConnection;
use message::Message;
use shm::log::LogBuffer;
use std::time::Duration;
use surface::counter::Main;
use surface::reason::Reason;
use tokio::time::Instant;

/// Why a connection is closed rather than kept: the words of the `BackendClose` record.
pub(crate) mod close_reason {
    /// The origin or VCL asked for it.
    pub(crate) const REQUESTED: &str = "Backend/VCL requested close";
    /// The request asked for it.
    pub(crate) const REQUEST: &str = "Client requested close";
    /// The response makes no sense.
    pub(crate) const BAD: &str = "Received bad req/resp";
    /// What came is not HTTP.
    pub(crate) const JUNK: &str = "Received junk data";
    /// The head is too large.
    pub(crate) const OVERFLOW: &str = "Received buffer overflow";
    /// It took too long.
    pub(crate) const TIMEOUT: &str = "Receive timeout";
    /// The body did not come whole.
    pub(crate) const BODY: &str = "Failure receiving req.body";
    /// The request could not be sent.
    pub(crate) const SEND: &str = "Error transaction";
    /// Something of ours ran out.
    pub(crate) const EXHAUSTED: &str = "Out of some resource";
}

/// A way in which a transport carries bodies, in the words of records and counters.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Carriage {
    /// Counts the responses whose body comes so.
    pub(crate) counter: Main,
    /// In `FetchBody`: number and name.
    pub(crate) fetch_body: &'static str,
    /// In `VfpAcct`.
    pub(crate) account: &'static str,
}

/// What a response's head says about its body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ResponseBody {
    /// Its length.
    pub(crate) size: BodyAnnounced,
    /// How it comes; `None` when there is none.
    pub(crate) carriage: Option<&'static Carriage>,
}

/// How long an origin may take to answer, and how much it may say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveLimits {
    /// By then the first byte of a head must have come.
    pub(crate) first_byte_by: Instant,
    /// The longest silence from then on.
    pub(crate) between_bytes: Duration,
    /// Most bytes to read at once; 0 = no limit.
    pub(crate) at_once_bytes: usize,
    /// Largest head, in bytes.
    pub(crate) head_bytes_max: usize,
    /// Longest line of a head, in bytes.
    pub(crate) header_bytes_max: usize,
    /// Most lines of a head.
    pub(crate) headers_max: usize,
}

/// Why there is no response head.
#[derive(Debug)]
pub(crate) enum HeadFailure {
    /// The connection ended.
    Ended,
    /// Nothing at all came in time.
    FirstByteTimeout,
    /// It stopped in the middle.
    Timeout,
    /// It is larger than allowed.
    TooLarge,
    /// It makes no sense.
    Garbage {
        /// The payload of the `BogoHeader` record, if it is a header that makes none.
        header: Option<String>,
        /// The first line of what came.
        line: Vec<u8>,
    },
}

/// Why a response body did not come whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CutShort {
    /// The error of the connection, when it was that.
    pub(crate) errno: Option<i32>,
    /// Whose fault it is.
    pub(crate) reason: Reason,
    /// The payload of the `FetchError` record.
    pub(crate) text: &'static str,
}

impl CutShort {
    /// Nobody is there to send it.
    pub(crate) const GONE: CutShort =
        CutShort { errno: None, reason: Reason::OriginClosed, text: "straight insufficient bytes" };
}

/// How far an exchange has come, for those who think of sending the request again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    /// The connection served a request before.
    pub(crate) is_reused: bool,
    /// The origin may have seen some of the request.
    pub(crate) has_sent: bool,
    /// Some of an answer has come, be it an interim one.
    pub(crate) has_answered: bool,
    /// Bytes that have come and belong to nothing yet.
    pub(crate) unused_bytes: u64,
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
