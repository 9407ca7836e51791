//! Translation of a stream's request to a head for the request machine: [`translate`], a pure
//! function.
//!
//! The crates `http2` and `http3` have decoded the block and refuse most malformed heads. The
//! checks here are for those that both, or one of them, let pass: strange authorities and paths,
//! hosts that differ, connection-specific headers, lengths that contradict each other.
//! *Invariant:* the head can be written as HTTP/1 without meaning anything else; it has at most one
//! `Host` and one `Content-Length`. Source: RFC 9113 §8.2, §8.3; RFC 9114 §4.2, §4.3; RFC 9110
//! §7.2.

use super::websocket::WebSocketRequest;
use crate::exchange::{BodyAnnounced, Malformed};
use ::http1::{HeadLimits, START_LINE_SLOTS, is_host};
use ::http2::head::RequestHead;
use http::request::Parts;
use message::Message;
use surface::header;
use surface::limits::WHY_TEXT_BYTES_MAX;

/// Context of a head that the head itself does not contain.
#[derive(Clone, Copy, Debug)]
pub(in crate::transport) struct Circumstances<'a> {
    /// `HTTP/2.0`, `HTTP/3.0`.
    pub(in crate::transport) protocol: &'a [u8],
    /// The request ends with its head.
    pub(in crate::transport) is_last: bool,
    /// Limits for the size of the head.
    pub(in crate::transport) limits: HeadLimits,
    /// True if `:scheme` becomes a header `scheme`. Compat: Varnish 7.1, policy `varnish`.
    pub(in crate::transport) shows_scheme: bool,
    /// The scheme of a request whose `:scheme` was lost in between.
    pub(in crate::transport) scheme: &'a str,
    /// The request is an extended CONNECT for a WebSocket.
    pub(in crate::transport) websocket: Option<&'a WebSocketRequest>,
}

/// The decoded head of a request.
pub(in crate::transport) trait ReceivedHead {
    /// `:method`.
    fn method(&self) -> &[u8];

    /// `:scheme`.
    fn scheme(&self) -> Option<&[u8]>;

    /// `:authority`.
    fn authority(&self) -> Option<&[u8]>;

    /// `:path`.
    fn path(&self) -> Option<&[u8]>;

    /// The other fields, names in lower case.
    fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])>;
}

impl ReceivedHead for RequestHead {
    fn method(&self) -> &[u8] {
        RequestHead::method(self)
    }

    fn scheme(&self) -> Option<&[u8]> {
        RequestHead::scheme(self)
    }

    fn authority(&self) -> Option<&[u8]> {
        RequestHead::authority(self)
    }

    fn path(&self) -> Option<&[u8]> {
        RequestHead::path(self)
    }

    fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        RequestHead::fields(self)
    }
}

impl ReceivedHead for Parts {
    fn method(&self) -> &[u8] {
        self.method.as_str().as_bytes()
    }

    fn scheme(&self) -> Option<&[u8]> {
        self.uri.scheme_str().map(str::as_bytes)
    }

    fn authority(&self) -> Option<&[u8]> {
        self.uri.authority().map(|authority| authority.as_str().as_bytes())
    }

    fn path(&self) -> Option<&[u8]> {
        self.uri.path_and_query().map(|path| path.as_str().as_bytes())
    }

    fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()))
    }
}

/// A valid head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::transport) struct Translated {
    /// The body that follows.
    pub(in crate::transport) announced: BodyAnnounced,
    /// Number of bytes that the head would have in HTTP/1, for the account.
    pub(in crate::transport) bytes: usize,
}

/// A head that is refused.
#[derive(Clone, Debug)]
pub(in crate::transport) struct Refused {
    /// Fault to report to the machine.
    pub(in crate::transport) malformed: Malformed,
    /// The part that is wrong, for the log.
    pub(in crate::transport) garbage: Vec<u8>,
}

/// Fills an empty message with the head of a request.
///
/// # Errors
/// The head is malformed, or too large.
pub(in crate::transport) fn translate(
    received: &impl ReceivedHead,
    circumstances: &Circumstances<'_>,
    head: &mut Message,
) -> Result<Translated, Refused> {
    let mut writer = Writer { head, limits: circumstances.limits, bytes: 0 };
    let host = host(received)?;
    let method = if circumstances.websocket.is_some() { b"GET" } else { received.method() };
    let path = path(received, method)?;
    let line_bytes = method.len() + path.len() + circumstances.protocol.len() + LINE_EXTRA_BYTES;
    writer.count(line_bytes, b":path", path)?;
    writer.head.set_method(method);
    writer.head.set_target(path);
    writer.head.set_protocol(circumstances.protocol);
    if circumstances.shows_scheme {
        writer.field(b"scheme", received.scheme().unwrap_or(circumstances.scheme.as_bytes()))?;
    }
    if let Some(host) = host {
        writer.field(b"host", host)?;
    }
    let length = length(received)?;
    writer.fields_of(received, circumstances.websocket.is_some())?;
    if let Some(websocket_request) = circumstances.websocket {
        if length.is_some() {
            return Err(refuse("A length of a WebSocket", CONTENT_LENGTH, b""));
        }
        writer.websocket(websocket_request)?;
        return Ok(Translated { announced: BodyAnnounced::None, bytes: writer.bytes });
    }
    let announced = match length {
        Some(length) if length > 0 && circumstances.is_last => {
            return Err(refuse("Body shorter than its Content-Length", CONTENT_LENGTH, b""));
        }
        // As in HTTP/1: many servers do not expect a body there.
        Some(1..) if method == b"HEAD" => return Err(refuse("Body of a HEAD", CONTENT_LENGTH, b"")),
        Some(0) => BodyAnnounced::None,
        // Any received body is unexpected.
        None if method == b"HEAD" => BodyAnnounced::None,
        _ if circumstances.is_last => BodyAnnounced::None,
        Some(length) => BodyAnnounced::Length(length),
        None => BodyAnnounced::Unknown,
    };
    Ok(Translated { announced, bytes: writer.bytes })
}

const CONTENT_LENGTH: &[u8] = b"content-length";
const COOKIE: &[u8] = b"cookie";
const HOST: &[u8] = b"host";
/// Blanks and line end of a request line, and the line end after the head.
const LINE_EXTRA_BYTES: usize = 6;
/// Colon, blank and line end of a header line.
const FIELD_EXTRA_BYTES: usize = 4;

/// Writes a head within its limits.
struct Writer<'a> {
    head: &'a mut Message,
    limits: HeadLimits,
    bytes: usize,
}

impl Writer<'_> {
    /// Counts a line of the head before it is written.
    fn count(&mut self, line_bytes: usize, name: &[u8], value: &[u8]) -> Result<(), Refused> {
        self.bytes += line_bytes;
        let limits = &self.limits;
        let broken = if self.bytes > limits.total_bytes {
            Some(("http_req_size", limits.total_bytes))
        } else if line_bytes > limits.line_bytes {
            Some(("http_req_hdr_len", limits.line_bytes))
        } else if self.head.header_count() + START_LINE_SLOTS >= limits.headers_max {
            Some(("http_max_hdr", limits.headers_max))
        } else {
            None
        };
        let Some((parameter, max)) = broken else { return Ok(()) };
        let malformed = Malformed {
            limit: Some(format!("limit={parameter} max={max}")),
            is_oversize: true,
            ..Malformed::default()
        };
        Err(Refused { malformed, garbage: garbage(name, value) })
    }

    fn field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Refused> {
        self.count(name.len() + value.len() + FIELD_EXTRA_BYTES, name, value)?;
        self.head.append(name, value);
        Ok(())
    }

    /// Writes the fields that an HTTP/1 client sends to open a WebSocket. Source: RFC 6455 §4.1.
    fn websocket(&mut self, websocket_request: &WebSocketRequest) -> Result<(), Refused> {
        self.field(b"connection", b"Upgrade")?;
        self.field(b"upgrade", b"websocket")?;
        self.field(b"sec-websocket-key", websocket_request.key.as_bytes())?;
        self.head.mark_hops(|name| name.eq_ignore_ascii_case(b"upgrade"));
        Ok(())
    }

    /// Writes all fields but the host, which is written already.
    fn fields_of(&mut self, received: &impl ReceivedHead, is_websocket: bool) -> Result<(), Refused> {
        let (mut has_cookie, mut has_length) = (false, false);
        for (name, value) in received.fields() {
            let value = value.trim_ascii();
            match name {
                HOST => {}
                COOKIE if std::mem::replace(&mut has_cookie, true) => {}
                COOKIE => self.cookies(received)?,
                CONTENT_LENGTH if std::mem::replace(&mut has_length, true) => {}
                b"sec-websocket-key" if is_websocket => {}
                b"te" if !value.eq_ignore_ascii_case(b"trailers") => {
                    return Err(refuse("Illegal header in a request", name, b""));
                }
                b"http2-settings" => {}
                _ if header::is_of_connection(name) => return Err(refuse("Illegal header in a request", name, b"")),
                _ => self.field(name, value)?,
            }
        }
        Ok(())
    }

    /// Writes the crumbs of a cookie as one field. Source: RFC 9113 §8.2.3.
    fn cookies(&mut self, received: &impl ReceivedHead) -> Result<(), Refused> {
        let mut crumbs = received.fields().filter(|(name, _)| *name == COOKIE).map(|(_, value)| value.trim_ascii());
        let first = crumbs.next().unwrap_or_default();
        let Some(second) = crumbs.next() else { return self.field(COOKIE, first) };
        let mut joined = [first, b"; ", second].concat();
        for crumb in crumbs {
            joined.extend_from_slice(b"; ");
            joined.extend_from_slice(crumb);
        }
        self.field(COOKIE, &joined)
    }
}

/// The host: the value of `:authority`, or else of `Host`. Both may be present if they agree.
fn host(received: &impl ReceivedHead) -> Result<Option<&[u8]>, Refused> {
    let mut host = received.authority();
    for (_, value) in received.fields().filter(|(name, _)| *name == HOST) {
        let value = value.trim_ascii();
        match host {
            Some(host) if !host.eq_ignore_ascii_case(value) => return Err(refuse("Hosts differ", HOST, value)),
            Some(_) => {}
            None => host = Some(value),
        }
    }
    match host {
        Some(value) if !is_host(value) => Err(refuse("Illegal host", b":authority", value)),
        host => Ok(host),
    }
}

/// The target. A cache is not a tunnel, so CONNECT is refused, unless it opens a WebSocket.
fn path<'a>(received: &'a impl ReceivedHead, method: &[u8]) -> Result<&'a [u8], Refused> {
    if method == b"CONNECT" {
        return Err(refuse("CONNECT", b":method", method));
    }
    let path = received.path().unwrap_or_default();
    let is_legal = match path {
        [b'/', rest @ ..] => !rest.iter().any(|byte| *byte <= b' ' || *byte == 0x7f || *byte == b'#'),
        [b'*'] => received.method() == b"OPTIONS",
        _ => false,
    };
    if is_legal { Ok(path) } else { Err(refuse("Illegal path", b":path", path)) }
}

/// The length that a head announces.
fn length(received: &impl ReceivedHead) -> Result<Option<u64>, Refused> {
    let mut values = received.fields().filter(|(name, _)| *name == CONTENT_LENGTH).map(|(_, value)| value.trim_ascii());
    let Some(first) = values.next() else { return Ok(None) };
    if values.any(|value| value != first) {
        return Err(refuse("Content-Lengths differ", CONTENT_LENGTH, first));
    }
    // Less than 2^63, as in HTTP/1, so that sums of two lengths cannot overflow.
    let digits = std::str::from_utf8(first).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    match digits.and_then(|digits| digits.parse().ok()).filter(|length| *length <= i64::MAX as u64) {
        Some(length) => Ok(Some(length)),
        None => Err(refuse("Illegal Content-Length", CONTENT_LENGTH, first)),
    }
}

fn refuse(what: &str, name: &[u8], value: &[u8]) -> Refused {
    let name_text = String::from_utf8_lossy(name);
    let malformed = Malformed { bogo_header: Some(format!("{what}: {name_text}")), ..Malformed::default() };
    Refused { malformed, garbage: garbage(name, value) }
}

fn garbage(name: &[u8], value: &[u8]) -> Vec<u8> {
    let value = &value[..value.len().min(WHY_TEXT_BYTES_MAX)];
    [name, b": ", value].concat()
}

#[cfg(test)]
mod tests;
