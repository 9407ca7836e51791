//! Length of the body of a message.
//!
//! Request smuggling is prevented here: an ambiguous message is refused.
//! `docs/reference/request-smuggling.md` lists the cases. Source: RFC 9112 §6.

use message::Message;

/// Delimiter of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyLength {
    /// There is no body.
    None,
    /// A length in bytes was announced (0 is possible).
    Length(u64),
    /// Chunked.
    Chunked,
    /// The body ends with the connection: responses only.
    UntilClose,
}

/// Reason why a message cannot be framed, or its connection must not be reused. Always the peer's
/// fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FramingError {
    /// A Content-Length that is not a decimal number below 2^63.
    LengthSyntax,
    /// Several Content-Length headers (in a response: several that differ).
    SeveralLengths,
    /// A Transfer-Encoding that is not exactly `chunked`, once.
    UnknownTransferEncoding,
    /// Both Transfer-Encoding and Content-Length.
    LengthAndTransferEncoding,
    /// Transfer-Encoding in an HTTP/1.0 request.
    TransferEncodingInHttp10,
    /// POST or PUT without a length in HTTP/1.0.
    LengthRequired,
    /// A body where the method or status allows none.
    UnexpectedBody,
    /// A response with a status below 200 where a final one is needed.
    InterimResponse,
    /// The Connection header names a header that it must not remove.
    ProtectedHeaderInConnection,
}

impl FramingError {
    /// A description for Copal's own reports.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            FramingError::LengthSyntax => "malformed Content-Length",
            FramingError::SeveralLengths => "several Content-Length headers",
            FramingError::UnknownTransferEncoding => "unknown Transfer-Encoding",
            FramingError::LengthAndTransferEncoding => "both Transfer-Encoding and Content-Length",
            FramingError::TransferEncodingInHttp10 => "Transfer-Encoding in HTTP/1.0",
            FramingError::LengthRequired => "a length is required",
            FramingError::UnexpectedBody => "unexpected body",
            FramingError::InterimResponse => "interim response",
            FramingError::ProtectedHeaderInConnection => "protected header named in Connection",
        }
    }
}

/// The two headers that frame a body, counted and read in one pass.
#[derive(Default)]
struct Framing {
    length: Option<Result<u64, FramingError>>,
    lengths: usize,
    is_chunked: bool,
    transfer_encodings: usize,
}

impl Framing {
    fn of(message: &Message) -> Self {
        let mut framing = Framing::default();
        if !message.may_have("Content-Length") && !message.may_have("Transfer-Encoding") {
            return framing;
        }
        for header in message.headers() {
            // Two length comparisons are cheaper than two case-insensitive ones for every header.
            match header.name().len() {
                14 if header.is("Content-Length") => {
                    framing.lengths += 1;
                    framing.length.get_or_insert_with(|| parse_length(header.value()));
                }
                17 if header.is("Transfer-Encoding") => {
                    framing.transfer_encodings += 1;
                    framing.is_chunked = header.value().eq_ignore_ascii_case(b"chunked");
                }
                _ => {}
            }
        }
        framing
    }

    fn body_length(&self) -> Result<Option<BodyLength>, FramingError> {
        match (self.transfer_encodings, self.length) {
            (0, None) => Ok(None),
            (0, Some(length)) => {
                let length = length?;
                if self.lengths > 1 { Err(FramingError::SeveralLengths) } else { Ok(Some(BodyLength::Length(length))) }
            }
            (_, Some(_)) => Err(FramingError::LengthAndTransferEncoding),
            (1, None) if self.is_chunked => Ok(Some(BodyLength::Chunked)),
            (_, None) => Err(FramingError::UnknownTransferEncoding),
        }
    }
}

/// Digits only: no sign, no blanks inside, no list. Less than 2^63, so that sums of two lengths
/// cannot overflow.
fn parse_length(value: &[u8]) -> Result<u64, FramingError> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(FramingError::LengthSyntax);
    }
    value
        .iter()
        .try_fold(0u64, |sum, digit| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
        .filter(|&length| length <= i64::MAX as u64)
        .ok_or(FramingError::LengthSyntax)
}

/// True if the message is of HTTP/1.0.
#[inline]
#[must_use]
pub fn is_http10(message: &Message) -> bool {
    let protocol = message.protocol();
    protocol != b"HTTP/1.1" && protocol.eq_ignore_ascii_case(b"HTTP/1.0")
}

/// The length of a request body: never [`BodyLength::UntilClose`]. Source: RFC 9112 §6.3.
///
/// # Errors
/// Two parsers of this request could disagree: answer 400 and close. Several equal Content-Length
/// headers are an error too ([`FramingError::SeveralLengths`]; Compat: Varnish records `Multiple
/// Content-Length: headers`), and so are a HEAD with a body and an HTTP/1.0 POST or PUT without a
/// length.
pub fn request_body_length(message: &Message) -> Result<BodyLength, FramingError> {
    let framing = Framing::of(message);
    if framing.transfer_encodings > 0 && is_http10(message) {
        return Err(FramingError::TransferEncodingInHttp10);
    }
    let method = message.method();
    match framing.body_length()? {
        Some(BodyLength::Length(1..) | BodyLength::Chunked) if method == b"HEAD" => Err(FramingError::UnexpectedBody),
        Some(length) => Ok(length),
        None if is_http10(message) && (method == b"POST" || method == b"PUT") => Err(FramingError::LengthRequired),
        None => Ok(BodyLength::None),
    }
}

/// The length of the body of a final response to a request with that method. Source: RFC 9112 §6.3.
///
/// A response with `Connection: keep-alive` but without any length has no body: reading until close
/// would wait for a close that is not coming. Such a connection is not reused, see
/// [`connection_options`](crate::connection_options).
///
/// # Errors
/// Two parsers of this response could disagree: `Body cannot be fetched`. A status below 200 is an
/// error here: handle interim responses before calling this.
pub fn response_body_length(message: &Message, request_method: &[u8]) -> Result<BodyLength, FramingError> {
    match message.status() {
        ..200 => return Err(FramingError::InterimResponse),
        304 => return Ok(BodyLength::None),
        _ if request_method == b"HEAD" => return Ok(BodyLength::None),
        _ => {}
    }
    let length = Framing::of(message).body_length()?;
    if message.status() == 204 {
        return match length {
            None | Some(BodyLength::Length(0)) => Ok(BodyLength::None),
            Some(_) => Err(FramingError::UnexpectedBody),
        };
    }
    Ok(match length {
        Some(length) => length,
        None if is_unframed_keep_alive(message) => BodyLength::None,
        None => BodyLength::UntilClose,
    })
}

/// True if the framing of a response is only one Transfer-Encoding without chunks. A caller that
/// trusts the sender may read such a body up to the end of the connection, which must then be
/// closed. Source: RFC 9112 §6.3, rule 4.
#[must_use]
pub fn is_coded_until_close(message: &Message) -> bool {
    let mut codings = message.get_all("Transfer-Encoding");
    let Some(coding) = codings.next() else { return false };
    let mentions_chunks = coding.to_ascii_lowercase().windows(7).any(|word| word == b"chunked");
    codings.next().is_none()
        && !coding.is_empty()
        && !mentions_chunks
        && !message.has("Content-Length")
        && !is_http10(message)
        && !matches!(message.status(), ..200 | 204 | 304)
}

/// True if a response promises to keep the connection open but does not delimit its body.
#[must_use]
pub fn is_unframed_keep_alive(message: &Message) -> bool {
    message.status() >= 200
        && !matches!(message.status(), 204 | 304)
        && message.get("Connection").is_some_and(|value| value.eq_ignore_ascii_case(b"keep-alive"))
        && !message.has("Content-Length")
        && !message.has("Transfer-Encoding")
}

/// Reduces several equal lengths to one, on several lines or in a list. An invalid length stays as
/// it is and will be refused. Source: RFC 9112 §6.3.
pub(crate) fn merge_equal_lengths(message: &mut Message) {
    let mut values = message.get_all("Content-Length").flat_map(|value| value.split(|&byte| byte == b','));
    let Some(first) = values.next() else { return };
    let first = first.trim_ascii();
    if parse_length(first).is_err() {
        return;
    }
    let mut count = 1;
    for value in values {
        if value.trim_ascii() != first {
            return;
        }
        count += 1;
    }
    if count > 1 {
        let value = first.to_vec();
        message.set("Content-Length", &value);
    }
}
