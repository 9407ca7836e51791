//! The terms in which a fetch and a transport speak of an exchange with an origin: limits, how a body comes, what goes wrong.

use crate::exchange::BodyAnnounced;
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
