//! Types that a fetch and a transport share about an exchange with an origin: limits, kinds of body
//! transfer, errors.

use crate::exchange::BodyAnnounced;
use std::time::Duration;
use surface::counter::Main;
use surface::reason::Reason;
use tokio::time::Instant;

/// Reasons for closing a connection instead of keeping it: the texts of the `BackendClose` record.
pub(crate) mod close_reason {
    /// Requested by the origin or VCL.
    pub(crate) const REQUESTED: &str = "Backend/VCL requested close";
    /// The response is of HTTP/1.0, without an option to keep the connection.
    pub(crate) const PROTOCOL: &str = "Proto < HTTP/1.1";
    /// No party requested it, but the connection serves no other request: it began with a PROXY
    /// header, or its address is no longer the backend's.
    pub(crate) const SINGLE: &str = "Not Closing";
    /// Requested by the request.
    pub(crate) const REQUEST: &str = "Client requested close";
    /// The response is invalid.
    pub(crate) const BAD: &str = "Received bad req/resp";
    /// The received bytes are not HTTP.
    pub(crate) const JUNK: &str = "Received junk data";
    /// The head is too large.
    pub(crate) const OVERFLOW: &str = "Received buffer overflow";
    /// A timeout.
    pub(crate) const TIMEOUT: &str = "Receive timeout";
    /// The body is incomplete.
    pub(crate) const BODY: &str = "Failure receiving req.body";
    /// The request could not be sent.
    pub(crate) const SEND: &str = "Error transaction";
    /// A resource of Copal was exhausted.
    pub(crate) const EXHAUSTED: &str = "Out of some resource";
}

/// A way in which a transport transfers bodies, with its names in records and counters.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Carriage {
    /// Counts the responses whose body is transferred this way.
    pub(crate) counter: Main,
    /// Number and name in `FetchBody`.
    pub(crate) fetch_body: &'static str,
    /// Name in `VfpAcct`.
    pub(crate) account: &'static str,
}

/// Framing of a response's body according to its head.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ResponseBody {
    /// Length of the body.
    pub(crate) size: BodyAnnounced,
    /// Transfer of the body; `None` if there is no body.
    pub(crate) carriage: Option<&'static Carriage>,
}

/// Settings of the transport for a response's body.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BodySettings {
    /// An unknown transfer coding is taken for the body itself (parameter
    /// `unknown_transfer_encoding`).
    pub(crate) takes_unknown_coding: bool,
    /// A body that ends with an encrypted connection is complete only if the origin sent
    /// close_notify (parameter `backend_close_notify`).
    pub(crate) needs_close_notify: bool,
    /// A response without any length ends with its connection even if it has `Connection:
    /// keep-alive`. Compat: in Varnish it has no body. Source: RFC 9112 §6.3, rule 8.
    pub(crate) reads_until_close: bool,
    /// The trailers are kept, for
    /// [`OriginExchange::take_trailers`](super::OriginExchange::take_trailers).
    pub(crate) keeps_trailers: bool,
}

/// Limits for an origin's answer: time and bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveLimits {
    /// Deadline of the first byte of a head.
    pub(crate) first_byte_by: Instant,
    /// The same limit as a duration, for a wait that begins later.
    pub(crate) first_byte: Duration,
    /// The longest silence after that.
    pub(crate) between_bytes: Duration,
    /// Deadline of the last byte; `None` = there is no limit.
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
    /// Returns the same limits with a later deadline of the last byte.
    pub(super) fn later_by(&self, time: Duration) -> ReceiveLimits {
        ReceiveLimits { last_byte_by: self.last_byte_by.map(|last| last + time), ..*self }
    }

    /// The earlier of a deadline and that of the last byte.
    pub(super) fn at_most(&self, deadline: Instant) -> Instant {
        self.last_byte_by.map_or(deadline, |last| last.min(deadline))
    }

    /// True if the deadline of the last byte has passed.
    pub(super) fn is_over(&self) -> bool {
        self.last_byte_by.is_some_and(|last| Instant::now() >= last)
    }

    /// The limits of a head, in the form that `http1` takes.
    pub(super) fn of_head(&self) -> http1::HeadLimits {
        http1::HeadLimits {
            total_bytes: self.head_bytes_max,
            line_bytes: self.header_bytes_max,
            headers_max: self.headers_max,
        }
    }
}

/// Reason why the rest of a request is not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unsent {
    /// The origin does not accept bytes: error number.
    Broken(i32),
    /// The origin has answered, or will not answer any more, and does not accept the rest.
    Answered,
}

/// News from an origin to which a request is still being sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Early {
    /// Interim heads are complete:
    /// [`OriginExchange::receive_head`](super::OriginExchange::receive_head) does not wait.
    Interim,
    /// A final answer has begun that does not refuse the request: the origin may still read the
    /// rest.
    Accepted,
    /// The origin has refused the request, or will not answer any more: the rest is not needed.
    Declined,
}

impl Early {
    /// The meaning of a final status. Source: RFC 9112 §9.5.
    pub(super) fn of_status(status: u16) -> Early {
        if status / 100 == 2 { Early::Accepted } else { Early::Declined }
    }
}

/// A limit that a response's head has exceeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BrokenLimit {
    /// The parameter's name.
    pub(crate) parameter: &'static str,
    /// The parameter's value.
    pub(crate) max: usize,
}

impl BrokenLimit {
    pub(super) fn of_total(limits: &http1::HeadLimits) -> BrokenLimit {
        BrokenLimit { parameter: "http_resp_size", max: limits.total_bytes }
    }

    pub(super) fn of_line(limits: &http1::HeadLimits) -> BrokenLimit {
        BrokenLimit { parameter: "http_resp_hdr_len", max: limits.line_bytes }
    }

    pub(super) fn of_headers(limits: &http1::HeadLimits) -> BrokenLimit {
        BrokenLimit { parameter: "http_max_hdr", max: limits.headers_max }
    }
}

/// Reason why there is no response head.
#[derive(Debug)]
pub(crate) enum HeadFailure {
    /// The connection ended by a TLS error: its text.
    Tls(String),
    /// Nothing at all arrived in time.
    FirstByteTimeout,
    /// The head stopped in the middle.
    Timeout,
    /// The head is larger than allowed.
    TooLarge(BrokenLimit),
    /// No client needs it any more.
    Abandoned,
    /// Not everything arrived in time.
    LastByteTimeout,
    /// The connection is over, or the stream of this exchange.
    Broken {
        /// Reason for the end, which implies the party at fault.
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
        /// The limit that the head has exceeded, if that is the cause.
        limit: Option<BrokenLimit>,
    },
}

impl HeadFailure {
    /// The origin closed the connection.
    pub(crate) const ENDED: HeadFailure = HeadFailure::Broken { reason: Reason::OriginClosed, text: "HTC eof (-1)" };
    /// The origin, or a device on the path, reset the connection.
    pub(super) const RESET: HeadFailure = HeadFailure::Broken { reason: Reason::OriginReset, text: "HTC eof (-1)" };
}

/// Reason why a response body is incomplete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CutShort {
    /// The connection's error number, if there was one.
    pub(crate) errno: Option<i32>,
    /// Reason, which implies the party at fault.
    pub(crate) reason: Reason,
    /// The payload of the `FetchError` record.
    pub(crate) text: &'static str,
}

impl CutShort {
    /// No client needs the rest.
    pub(crate) const ABANDONED: CutShort = CutShort { errno: None, reason: Reason::FetchGivenUp, text: "client gone" };
    /// There is no connection to receive it from.
    pub(crate) const GONE: CutShort =
        CutShort { errno: None, reason: Reason::BodyCutShort, text: "straight insufficient bytes" };
    /// A timeout.
    pub(super) const LATE: CutShort =
        CutShort { errno: None, reason: Reason::LastByteTimeout, text: "last byte timeout" };
}

/// Progress of an exchange; decides if the request may be sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExchangeProgress {
    /// The connection served an earlier request.
    pub(crate) is_reused: bool,
    /// The origin may have seen part of the request.
    pub(crate) has_sent: bool,
    /// Part of an answer has arrived, perhaps an interim one.
    pub(crate) has_answered: bool,
    /// The origin has declared, or it is certain, that it has not processed the request.
    pub(crate) is_unprocessed: bool,
    /// Bytes that were received and do not belong to a message yet.
    pub(crate) unused_bytes: u64,
    /// Some of the request is still awaited from the client, while the response is received.
    pub(crate) awaits_client: bool,
    /// Time for which that has been so.
    pub(crate) client_time: Duration,
}
