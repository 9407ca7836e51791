//! What a stream's request says, as a head for the request machine: [`translate`], a pure function.
//!
//! The `h2` and `h3` crates have decoded the block and refuse most of what is malformed. Checked here is what their types let
//! pass, or one of them does: strange authorities and paths, hosts that differ, headers about a connection, lengths that
//! contradict each other. *Invariant:* the head can be written as HTTP/1 without meaning anything else; it has at most one
//! `Host` and one `Content-Length`. Source: RFC 9113 §8.2, §8.3; RFC 9114 §4.2, §4.3; RFC 9110 §7.2.

use super::websocket::WebSocketWish;
use crate::exchange::{BodyAnnounced, Malformed};
use ::http1::{HeadLimits, START_LINE_SLOTS, is_host};
use http::header::{CONTENT_LENGTH, COOKIE, HOST, HeaderMap, HeaderName, SEC_WEBSOCKET_KEY, TE};
use http::request::Parts;
use http::uri::{PathAndQuery, Uri};
use message::Message;
use surface::header;
use surface::limits::WHY_TEXT_BYTES_MAX;

/// What the head does not say by itself.
#[derive(Clone, Copy, Debug)]
pub(in crate::transport) struct Circumstances<'a> {
    /// `HTTP/2.0`, `HTTP/3.0`.
    pub(in crate::transport) protocol: &'a [u8],
    /// The request ends with its head.
    pub(in crate::transport) is_last: bool,
    /// How large the head may be.
    pub(in crate::transport) limits: HeadLimits,
    /// Whether `:scheme` becomes a header `scheme`. Compat: Varnish 7.1, policy `varnish`.
    pub(in crate::transport) shows_scheme: bool,
    /// The scheme of a request whose `:scheme` was lost on the way.
    pub(in crate::transport) scheme: &'a str,
    /// The request is an extended CONNECT for a WebSocket.
    pub(in crate::transport) websocket: Option<&'a WebSocketWish>,
}

/// A valid head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::transport) struct Translated {
    /// What body follows.
    pub(in crate::transport) announced: BodyAnnounced,
    /// How many bytes the head would have in HTTP/1, for the account.
    pub(in crate::transport) bytes: usize,
}

/// A head that is refused.
#[derive(Clone, Debug)]
pub(in crate::transport) struct Refused {
    /// What is told to the machine.
    pub(in crate::transport) malformed: Malformed,
    /// The part that is wrong, for the log.
    pub(in crate::transport) garbage: Vec<u8>,
}

/// Fills an empty message with the head of a request.
///
/// # Errors
/// The head is malformed, or too large.
pub(in crate::transport) fn translate(
    parts: &Parts,
    circumstances: &Circumstances<'_>,
    head: &mut Message,
) -> Result<Translated, Refused> {
    let mut writer = Writer { head, limits: circumstances.limits, bytes: 0 };
    let host = host(parts)?;
    let method = if circumstances.websocket.is_some() { "GET" } else { parts.method.as_str() };
    let path = path(parts, method)?;
    let line_bytes = method.len() + path.len() + circumstances.protocol.len() + LINE_EXTRA_BYTES;
    writer.count(line_bytes, b":path", path)?;
    writer.head.set_method(method.as_bytes());
    writer.head.set_target(path);
    writer.head.set_protocol(circumstances.protocol);
    if circumstances.shows_scheme {
        let scheme = parts.uri.scheme_str().unwrap_or(circumstances.scheme);
        writer.field("scheme", scheme.as_bytes())?;
    }
    if let Some(host) = host {
        writer.field("host", host)?;
    }
    let length = length(&parts.headers)?;
    for name in parts.headers.keys() {
        let is_replaced = circumstances.websocket.is_some() && name == SEC_WEBSOCKET_KEY;
        if !is_replaced {
            writer.fields_of(name, &parts.headers)?;
        }
    }
    if let Some(wish) = circumstances.websocket {
        if length.is_some() {
            return Err(refuse("A length of a WebSocket", name_of(&CONTENT_LENGTH), b""));
        }
        writer.websocket(wish)?;
        return Ok(Translated { announced: BodyAnnounced::None, bytes: writer.bytes });
    }
    let announced = match length {
        Some(length) if length > 0 && circumstances.is_last => {
            return Err(refuse("Body shorter than its Content-Length", name_of(&CONTENT_LENGTH), b""));
        }
        // As in HTTP/1: many a server does not look for a body there.
        Some(1..) if method == "HEAD" => return Err(refuse("Body of a HEAD", name_of(&CONTENT_LENGTH), b"")),
        Some(0) => BodyAnnounced::None,
        // Whatever comes is not asked for.
        None if method == "HEAD" => BodyAnnounced::None,
        _ if circumstances.is_last => BodyAnnounced::None,
        Some(length) => BodyAnnounced::Length(length),
        None => BodyAnnounced::Unknown,
    };
    Ok(Translated { announced, bytes: writer.bytes })
}

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

    fn field(&mut self, name: &str, value: &[u8]) -> Result<(), Refused> {
        self.count(name.len() + value.len() + FIELD_EXTRA_BYTES, name.as_bytes(), value)?;
        self.head.append(name.as_bytes(), value);
        Ok(())
    }

    /// Writes what a client of HTTP/1 sends to open a WebSocket. Source: RFC 6455 §4.1.
    fn websocket(&mut self, wish: &WebSocketWish) -> Result<(), Refused> {
        self.field("connection", b"Upgrade")?;
        self.field("upgrade", b"websocket")?;
        self.field("sec-websocket-key", wish.key.as_bytes())?;
        self.head.mark_hops(|name| name.eq_ignore_ascii_case(b"upgrade"));
        Ok(())
    }

    /// Writes all headers of a name.
    fn fields_of(&mut self, name: &HeaderName, headers: &HeaderMap) -> Result<(), Refused> {
        let mut values = headers.get_all(name).iter().map(|value| value.as_bytes().trim_ascii());
        // The Host is written already.
        if name == HOST {
            return Ok(());
        }
        if name == COOKIE {
            let joined = values.collect::<Vec<_>>().join(&b"; "[..]);
            return self.field(name.as_str(), &joined);
        }
        if name == CONTENT_LENGTH {
            return self.field(name.as_str(), values.next().unwrap_or_default());
        }
        if name == TE && headers.get_all(name).iter().any(|value| !value.as_bytes().eq_ignore_ascii_case(b"trailers")) {
            return Err(refuse("Illegal header in a request", name.as_str().as_bytes(), b""));
        }
        if header::is_of_connection(name.as_str().as_bytes()) {
            if name == "http2-settings" {
                return Ok(());
            }
            return Err(refuse("Illegal header in a request", name.as_str().as_bytes(), b""));
        }
        values.try_for_each(|value| self.field(name.as_str(), value))
    }
}

/// The host: what `:authority` says, or else `Host`. Both may be there if they agree.
fn host(parts: &Parts) -> Result<Option<&[u8]>, Refused> {
    let authority = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    let mut host = authority;
    for value in parts.headers.get_all(HOST) {
        let value = value.as_bytes().trim_ascii();
        match host {
            Some(host) if !host.eq_ignore_ascii_case(value) => return Err(refuse("Hosts differ", b"host", value)),
            Some(_) => {}
            None => host = Some(value),
        }
    }
    match host {
        Some(value) if !is_host(value) => Err(refuse("Illegal host", b":authority", value)),
        host => Ok(host),
    }
}

/// The target. A cache is no tunnel, so CONNECT is refused, unless it means a WebSocket.
fn path<'a>(parts: &'a Parts, method: &str) -> Result<&'a [u8], Refused> {
    if method == "CONNECT" {
        return Err(refuse("CONNECT", b":method", method.as_bytes()));
    }
    // To the library, a head with neither `:path` nor `:authority` has an empty path, which is shown as `/`.
    let is_missing =
        |path: &PathAndQuery| Uri::from_parts(Default::default()).is_ok_and(|of| of.path_and_query() == Some(path));
    let path = parts.uri.path_and_query().filter(|path| parts.uri.authority().is_some() || !is_missing(path));
    let path = path.map_or(&b""[..], |path| path.as_str().as_bytes());
    let is_legal = match path {
        [b'/', rest @ ..] => !rest.iter().any(|byte| *byte <= b' ' || *byte == 0x7f || *byte == b'#'),
        [b'*'] => parts.method == http::Method::OPTIONS,
        _ => false,
    };
    if is_legal { Ok(path) } else { Err(refuse("Illegal path", b":path", path)) }
}

/// The length that a head announces.
fn length(headers: &HeaderMap) -> Result<Option<u64>, Refused> {
    let mut values = headers.get_all(CONTENT_LENGTH).iter().map(|value| value.as_bytes().trim_ascii());
    let Some(first) = values.next() else { return Ok(None) };
    if values.any(|value| value != first) {
        return Err(refuse("Content-Lengths differ", name_of(&CONTENT_LENGTH), first));
    }
    // Less than 2^63, as in HTTP/1, so that sums of two lengths cannot overflow.
    let digits = std::str::from_utf8(first).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    match digits.and_then(|digits| digits.parse().ok()).filter(|length| *length <= i64::MAX as u64) {
        Some(length) => Ok(Some(length)),
        None => Err(refuse("Illegal Content-Length", name_of(&CONTENT_LENGTH), first)),
    }
}

fn name_of(name: &HeaderName) -> &[u8] {
    name.as_str().as_bytes()
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
