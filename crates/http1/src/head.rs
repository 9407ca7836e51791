//! Request and response heads: bytes to [`Message`].

use message::Message;

/// How large a head may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeadLimits {
    /// Largest head, line ends included, in bytes (`http_req_size`, `http_resp_size`).
    pub total_bytes: usize,
    /// Longest line, in bytes (`http_req_hdr_len`, `http_resp_hdr_len`).
    pub line_bytes: usize,
    /// Most header lines (`http_max_hdr`).
    pub headers_max: usize,
}

/// How far the parser came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeadStatus {
    /// The head is not complete; call again from the same start when there are more bytes.
    Partial,
    /// The message is filled; the body starts after `consumed` bytes.
    Complete {
        /// Bytes of the head, leading blank lines and the empty line at the end included.
        consumed: usize,
    },
}

/// The first bytes of an offending line, for the log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    bytes: [u8; 20],
    len: u8,
}

impl Sample {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl std::fmt::Debug for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.as_bytes()))
    }
}

/// Why a head was refused. Always the peer's fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeadError {
    /// Larger than [`HeadLimits::total_bytes`].
    Overflow,
    /// No, or a malformed, start line.
    StartLine,
    /// A protocol that is not HTTP/1.0 or HTTP/1.1.
    Version,
    /// A control character in a header line.
    ControlCharacter(u8),
    /// A header line longer than [`HeadLimits::line_bytes`].
    LineTooLong(Sample),
    /// The first header line starts with a blank: there is nothing it could continue.
    FirstLineFolded(Sample),
    /// A header line that starts with its colon.
    NameMissing(Sample),
    /// A character that may not stand in a header name, a blank before the colon among them.
    NameCharacter(u8),
    /// A header line without a colon.
    ColonMissing(Sample),
    /// More than [`HeadLimits::headers_max`] header lines.
    TooManyHeaders(Sample),
}

impl HeadError {
    /// The payload of the `BogoHeader` record that goes with it; `None` when there is none.
    #[must_use]
    pub fn bogo_header(&self) -> Option<String> {
        None
    }

    /// In words.
    #[must_use]
    pub fn text(&self) -> &'static str {
        ""
    }
}

/// Parses a request head from the start of `buffer` into `message`, which is cleared first.
///
/// # Errors
/// [`HeadError`] says what is wrong with it.
pub fn parse_request(_buffer: &[u8], _limits: &HeadLimits, _message: &mut Message) -> Result<HeadStatus, HeadError> {
    Ok(HeadStatus::Partial)
}

/// Parses a response head from the start of `buffer` into `message`, which is cleared first.
///
/// # Errors
/// [`HeadError`] says what is wrong with it.
pub fn parse_response(_buffer: &[u8], _limits: &HeadLimits, _message: &mut Message) -> Result<HeadStatus, HeadError> {
    Ok(HeadStatus::Partial)
}
