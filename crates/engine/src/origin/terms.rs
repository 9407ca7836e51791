//! The terms that a fetch and a transport share about an exchange with an origin: limits, kinds of body transfer, errors.

use crate::exchange::BodyAnnounced;
use std::time::Duration;
use surface::counter::Main;
use surface::reason::Reason;
use tokio::time::Instant;

/// Why a connection is closed rather than kept: the texts of the `BackendClose` record.
pub(crate) mod close_reason {
    /// The origin or VCL asked for it.
    pub(crate) const REQUESTED: &str = "Backend/VCL requested close";
    /// The response is of HTTP/1.0, and does not say that the connection stays.
    pub(crate) const PROTOCOL: &str = "Proto < HTTP/1.1";
    /// Nobody asked for it, but the connection serves no other request: it began with a PROXY header, or its address is no longer
    /// the backend's.
    pub(crate) const SINGLE: &str = "Not Closing";
    /// The request asked for it.
    pub(crate) const REQUEST: &str = "Client requested close";
    /// The response is invalid.
    pub(crate) const BAD: &str = "Received bad req/resp";
    /// What was received is not HTTP.
    pub(crate) const JUNK: &str = "Received junk data";
    /// The head is too large.
    pub(crate) const OVERFLOW: &str = "Received buffer overflow";
    /// It took too long.
    pub(crate) const TIMEOUT: &str = "Receive timeout";
    /// The body is incomplete.
    pub(crate) const BODY: &str = "Failure receiving req.body";
    /// The request could not be sent.
    pub(crate) const SEND: &str = "Error transaction";
    /// Something of ours ran out.
    pub(crate) const EXHAUSTED: &str = "Out of some resource";
}

/// A way in which a transport transfers bodies, in the words of records and counters.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Carriage {
    /// Counts the responses whose body is transferred this way.
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
    /// How it is transferred; `None` when there is no body.
    pub(crate) carriage: Option<&'static Carriage>,
}

/// What is asked of the transport for a response's body.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BodyTerms {
    /// A transfer coding that nobody knows is taken for the body itself (parameter `unknown_transfer_encoding`).
    pub(crate) takes_unknown_coding: bool,
    /// A body that ends with an encrypted connection is complete only if the origin said so (parameter `backend_close_notify`).
    pub(crate) needs_close_notify: bool,
    /// A response without any length ends with its connection even if it says `Connection: keep-alive`. Compat: to Varnish it has no
    /// body. Source: RFC 9112 §6.3, rule 8.
    pub(crate) reads_until_close: bool,
    /// The trailers are kept, for [`OriginExchange::take_trailers`](super::OriginExchange::take_trailers).
    pub(crate) keeps_trailers: bool,
}

/// How long an origin may take to answer, and how much it may send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveLimits {
    /// When the first byte of a head must have arrived.
    pub(crate) first_byte_by: Instant,
    /// The same as a time, for one that begins later.
    pub(crate) first_byte: Duration,
    /// The longest silence after that.
    pub(crate) between_bytes: Duration,
    /// When everything must have arrived; `None` = there is no limit.
    pub(crate) last_byte_by: Option<Instant>,
    /// Most bytes to read at a time; 0 = no limit.
    pub(crate) at_once_bytes: usize,
    /// Largest head, in bytes.
    pub(crate) head_bytes_max: usize,
    /// Longest line of a head, in bytes.
    pub(crate) header_bytes_max: usize,
    /// Most lines of a head.
    pub(crate) headers_max: usize,
}

impl ReceiveLimits {
    /// The same with a later time of the last byte.
    pub(super) fn later_by(&self, time: Duration) -> ReceiveLimits {
        ReceiveLimits { last_byte_by: self.last_byte_by.map(|last| last + time), ..*self }
    }

    /// The earlier of a time and that of the last byte.
    pub(super) fn at_most(&self, deadline: Instant) -> Instant {
        self.last_byte_by.map_or(deadline, |last| last.min(deadline))
    }

    /// Whether the time of the last byte has come.
    pub(super) fn is_over(&self) -> bool {
        self.last_byte_by.is_some_and(|last| Instant::now() >= last)
    }

    /// The limits of a head, as HTTP/1 wants them.
    pub(super) fn of_head(&self) -> http1::HeadLimits {
        http1::HeadLimits {
            total_bytes: self.head_bytes_max,
            line_bytes: self.header_bytes_max,
            headers_max: self.headers_max,
        }
    }
}

/// Why there is no response head.
#[derive(Debug)]
pub(crate) enum HeadFailure {
    /// The connection ended by an error of TLS; which one.
    Tls(String),
    /// Nothing at all arrived in time.
    FirstByteTimeout,
    /// The head stopped in the middle.
    Timeout,
    /// The head is larger than allowed.
    TooLarge,
    /// Nobody wants it any more.
    Abandoned,
    /// Not everything arrived in time.
    LastByteTimeout,
    /// The connection is over, or the stream of this exchange.
    Broken {
        /// How it ended, and whose fault that is.
        reason: Reason,
        /// The payload of the `FetchError` record.
        text: &'static str,
    },
    /// The head is invalid.
    Garbage {
        /// The payload of the `BogoHeader` record, if a header is the cause.
        header: Option<String>,
        /// The first line that was received.
        line: Vec<u8>,
    },
}

impl HeadFailure {
    /// The origin closed the connection.
    pub(crate) const ENDED: HeadFailure = HeadFailure::Broken { reason: Reason::OriginClosed, text: "HTC eof (-1)" };
    /// The origin, or somebody on the way, reset the connection.
    pub(super) const RESET: HeadFailure = HeadFailure::Broken { reason: Reason::OriginReset, text: "HTC eof (-1)" };
}

/// Why a response body is incomplete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CutShort {
    /// The connection's error number, if there was one.
    pub(crate) errno: Option<i32>,
    /// The reason, which tells whose fault it is.
    pub(crate) reason: Reason,
    /// The payload of the `FetchError` record.
    pub(crate) text: &'static str,
}

impl CutShort {
    /// Nobody wants the rest.
    pub(crate) const ABANDONED: CutShort = CutShort { errno: None, reason: Reason::FetchGivenUp, text: "client gone" };
    /// There is no connection to receive it from.
    pub(crate) const GONE: CutShort =
        CutShort { errno: None, reason: Reason::BodyCutShort, text: "straight insufficient bytes" };
    /// It took too long.
    pub(super) const LATE: CutShort =
        CutShort { errno: None, reason: Reason::LastByteTimeout, text: "last byte timeout" };
}

/// How far an exchange has got; decides whether the request may be sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    /// The connection served an earlier request.
    pub(crate) is_reused: bool,
    /// The origin may have seen part of the request.
    pub(crate) has_sent: bool,
    /// Part of an answer has arrived, perhaps an interim one.
    pub(crate) has_answered: bool,
    /// The origin has said, or it is certain, that it has not looked at the request.
    pub(crate) is_unprocessed: bool,
    /// Bytes that were received and belong to nothing yet.
    pub(crate) unused_bytes: u64,
    /// Some of the request is still to come from the client, while the response is received.
    pub(crate) awaits_client: bool,
    /// For how long that has been so.
    pub(crate) client_time: Duration,
}
