//! Reasons for refusing a head, and their records.

use crate::sample::Sample;

/// Reason for refusing a head. Always the peer's fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeadError {
    /// Larger than [`HeadLimits::total_bytes`].
    Overflow,
    /// A missing or malformed start line; this includes a method that is not a token and a URI
    /// without a valid host.
    StartLine,
    /// A protocol that is not HTTP/1.0 or HTTP/1.1 (in a response: not HTTP at all).
    Version,
    /// A response status that is not three digits, from 100 on.
    Status,
    /// A control character in a header line.
    ControlCharacter(u8),
    /// A header line longer than [`HeadLimits::line_bytes`].
    LineTooLong(Sample),
    /// The first header line starts with a blank, so there is nothing it could continue.
    FirstLineFolded(Sample),
    /// A folded Host, Content-Length or Transfer-Encoding.
    FramingFolded(Sample),
    /// A header line that starts with its colon.
    NameMissing(Sample),
    /// A character that may not appear in a header name; a blank before the colon is one.
    NameCharacter(u8),
    /// A header line without a colon.
    ColonMissing(Sample),
    /// More than [`HeadLimits::headers_max`] header lines.
    TooManyHeaders(Sample),
    /// Connection lines that name more than
    /// [`CONNECTION_OPTIONS_MAX`](surface::limits::CONNECTION_OPTIONS_MAX) options.
    TooManyOptions(Sample),
    /// A Host that is not a host with an optional port.
    Host(Sample),
}

impl HeadError {
    /// The payload of the `BogoHeader` record for this error; `None` if there is none.
    #[must_use]
    pub fn bogo_header(&self) -> Option<String> {
        let sampled = |text: &str, sample: &Sample| {
            // The record is bytes; latin-1 keeps each of them visible.
            let shown: String = sample.as_bytes().iter().map(|&byte| char::from(byte)).collect();
            Some(format!("{text} {shown}"))
        };
        match self {
            HeadError::Overflow | HeadError::StartLine | HeadError::Version | HeadError::Status => None,
            HeadError::ControlCharacter(byte) => Some(format!("Header has ctrl char 0x{byte:02x}")),
            HeadError::LineTooLong(sample) => sampled("Header too long:", sample),
            HeadError::FirstLineFolded(sample) => sampled("1st header has white space:", sample),
            HeadError::FramingFolded(sample) => sampled("Folded framing header:", sample),
            HeadError::NameMissing(sample) => sampled("Missing header name:", sample),
            HeadError::NameCharacter(byte) => Some(format!("Illegal char 0x{byte:02x} in header name")),
            HeadError::ColonMissing(sample) => sampled("Header without ':'", sample),
            HeadError::TooManyHeaders(sample) => sampled("Too many headers:", sample),
            HeadError::TooManyOptions(sample) => sampled("Too many Connection options:", sample),
            HeadError::Host(sample) => sampled("Malformed Host:", sample),
        }
    }

    /// A description for Copal's own reports.
    #[must_use]
    pub fn text(&self) -> &'static str {
        match self {
            HeadError::Overflow => "head too large",
            HeadError::StartLine => "malformed start line",
            HeadError::Version => "unsupported HTTP version",
            HeadError::Status => "malformed status",
            HeadError::ControlCharacter(_) => "control character in a header",
            HeadError::LineTooLong(_) => "header line too long",
            HeadError::FirstLineFolded(_) => "folded line without a line before it",
            HeadError::FramingFolded(_) => "folded framing header",
            HeadError::NameMissing(_) => "header without a name",
            HeadError::NameCharacter(_) => "illegal character in a header name",
            HeadError::ColonMissing(_) => "header without a colon",
            HeadError::TooManyHeaders(_) => "too many headers",
            HeadError::TooManyOptions(_) => "too many options in Connection",
            HeadError::Host(_) => "malformed Host",
        }
    }
}
