//! How long the body of a message is.

use message::Message;

/// How the end of a body is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyLength {
    /// There is no body.
    None,
    /// A length in bytes was announced (0 is possible).
    Length(u64),
    /// Chunked.
    Chunked,
    /// It ends with the connection: responses only.
    UntilClose,
}

/// Why the length of a body cannot be trusted. Always the peer's fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FramingError {
    /// A Content-Length that is not a number.
    LengthSyntax,
    /// Several Content-Length headers.
    SeveralLengths,
    /// A Transfer-Encoding that is not exactly `chunked`.
    UnknownTransferEncoding,
    /// Both Transfer-Encoding and Content-Length.
    LengthAndTransferEncoding,
    /// Transfer-Encoding in HTTP/1.0.
    TransferEncodingInHttp10,
    /// A method that needs a body, without a length, in HTTP/1.0.
    LengthRequired,
    /// A method that must not have a body has one.
    UnexpectedBody,
    /// The Connection header names a header that is not the connection's to take away.
    ProtectedHeaderInConnection,
}

impl FramingError {
    /// In words.
    #[must_use]
    pub fn text(self) -> &'static str {
        ""
    }
}

/// How long the body of a request is. Source: RFC 9112 §6.3.
///
/// # Errors
/// When two readers of this request could disagree: answer 400 and close.
pub fn request_body_length(_message: &Message) -> Result<BodyLength, FramingError> {
    Ok(BodyLength::None)
}

/// How long the body of a response to a request of that method is. Source: RFC 9112 §6.3.
///
/// # Errors
/// When two readers of this response could disagree: `Body cannot be fetched`.
pub fn response_body_length(_message: &Message, _request_method: &[u8]) -> Result<BodyLength, FramingError> {
    Ok(BodyLength::None)
}
