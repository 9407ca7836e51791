//! Heads of messages with an origin, as HTTP/2 has them: [`Message`] to what the library sends, and
//! back.
//!
//! The host becomes `:authority`, and connection-specific fields are dropped. A head that cannot be
//! expressed is an error, so that no other head is sent instead; only a target is encoded
//! differently (RFC 3986 §2.1), as it is over HTTP/1. Source: RFC 9113 §8.2, §8.3.

use crate::origin::BrokenLimit;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Uri, Version};
use http1::HeadLimits;
use message::Message;
use semantics::{reason, trailers};
use surface::header::is_of_connection;

/// The head of a request, and its size in bytes as HTTP/1 would write it.
///
/// # Errors
/// The part that cannot be expressed in HTTP/2.
pub(super) fn request(bereq: &Message, is_secure: bool) -> Result<(Request<()>, u64), &'static str> {
    let mut request = Request::new(());
    *request.version_mut() = Version::HTTP_2;
    *request.method_mut() = Method::from_bytes(bereq.method()).map_err(|_| "method")?;
    if request.method() == Method::CONNECT {
        return Err("method");
    }
    let mut hosts = bereq.get_all("Host");
    let host = hosts.next();
    if hosts.any(|other| Some(other) != host) {
        return Err("two hosts");
    }
    *request.uri_mut() = uri(bereq.target(), host.filter(|host| !host.is_empty()), is_secure)?;
    if request.uri().authority().is_none() {
        // The library accepts a request without a host only if it has the version HTTP/1.
        *request.version_mut() = Version::HTTP_11;
    }
    *request.headers_mut() = fields(bereq)?;
    if trailers::are_taken(bereq) {
        request.headers_mut().insert(http::header::TE, HeaderValue::from_static("trailers"));
    }
    let fields: usize = bereq.headers().map(|header| header.line().len() + 2).sum();
    Ok((request, (bereq.method().len() + bereq.target().len() + fields + 14) as u64))
}

fn uri(target: &[u8], host: Option<&[u8]>, is_secure: bool) -> Result<Uri, &'static str> {
    let path = if target.first() == Some(&b'/') || target == b"*" {
        path(target).ok_or("target")?
    } else {
        return Err("target");
    };
    let Some(host) = host else { return Uri::try_from(path.as_str()).map_err(|_| "target") };
    if host.contains(&b'@') {
        return Err("host");
    }
    let authority = Authority::try_from(host).map_err(|_| "host")?;
    let scheme = if is_secure { Scheme::HTTPS } else { Scheme::HTTP };
    let builder = Uri::builder().scheme(scheme).authority(authority).path_and_query(path);
    builder.build().map_err(|_| "target")
}

/// A target, encoded so that every byte is sent.
fn path(target: &[u8]) -> Option<PathAndQuery> {
    let is_plain = target.iter().all(|&byte| (b'!'..=b'~').contains(&byte) && byte != b'#');
    if is_plain && let Ok(path) = PathAndQuery::try_from(target) {
        return Some(path);
    }
    let mut spelled = Vec::with_capacity(target.len() + 16);
    for &byte in target {
        if byte.is_ascii_alphanumeric() || b"-._~:/?@!$&'()*+,;=%[]".contains(&byte) {
            spelled.push(byte);
        } else {
            let digit = |value: u8| b"0123456789ABCDEF"[usize::from(value)];
            spelled.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    PathAndQuery::try_from(spelled.as_slice()).ok()
}

/// The fields of a request, or its trailers.
///
/// # Errors
/// The part that cannot be expressed in HTTP/2.
pub(super) fn fields(message: &Message) -> Result<HeaderMap, &'static str> {
    let mut fields = HeaderMap::with_capacity(message.header_count());
    let named: Vec<_> = message
        .get_all("Connection")
        .flat_map(|value| value.split(|&byte| byte == b','))
        .map(<[u8]>::trim_ascii)
        .collect();
    for header in message.headers() {
        let name = header.name();
        let is_of_connection = is_of_connection(name) || named.iter().any(|other| name.eq_ignore_ascii_case(other));
        if is_of_connection || name.eq_ignore_ascii_case(b"Host") || name.eq_ignore_ascii_case(b"TE") {
            continue;
        }
        let name = HeaderName::from_bytes(name).map_err(|_| "name of a header")?;
        let value = HeaderValue::from_bytes(header.value().trim_ascii()).map_err(|_| "value of a header")?;
        fields.try_append(name, value).map_err(|_| "too many headers")?;
    }
    Ok(fields)
}

/// Takes the head of a response, interim or final. Returns its size in bytes as HTTP/1 would write
/// it.
///
/// # Errors
/// The limit that it exceeds.
pub(super) fn take_response<T>(
    response: &http::Response<T>,
    limits: HeadLimits,
    beresp: &mut Message,
) -> Result<u64, BrokenLimit> {
    beresp.clear();
    let status = response.status().as_u16();
    beresp.set_protocol(b"HTTP/2.0");
    beresp.set_status(status);
    let phrase = reason::phrase(status);
    beresp.set_reason(phrase.as_bytes());
    let bytes = take_fields(response.headers(), limits, beresp)? + phrase.len() + "HTTP/2.0 200 \r\n\r\n".len();
    if bytes > limits.total_bytes { Err(BrokenLimit::of_total(&limits)) } else { Ok(bytes as u64) }
}

/// Takes trailers; `None` if they are too large.
pub(super) fn take_trailers(fields: &HeaderMap, limits: HeadLimits) -> Option<Message> {
    let mut trailers = Message::new();
    let bytes = take_fields(fields, limits, &mut trailers).ok()?;
    (bytes <= limits.total_bytes).then_some(trailers)
}

fn take_fields(fields: &HeaderMap, limits: HeadLimits, message: &mut Message) -> Result<usize, BrokenLimit> {
    if fields.len() > limits.headers_max {
        return Err(BrokenLimit::of_headers(&limits));
    }
    let mut bytes = 0;
    for (name, value) in fields {
        let value = value.as_bytes().trim_ascii();
        let line = name.as_str().len() + value.len() + 2;
        bytes += line + 2;
        if line > limits.line_bytes {
            return Err(BrokenLimit::of_line(&limits));
        }
        if bytes > limits.total_bytes {
            return Err(BrokenLimit::of_total(&limits));
        }
        message.append(name.as_str().as_bytes(), value);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bereq(target: &str, headers: &[(&str, &str)]) -> Message {
        let mut message = Message::new();
        message.set_method(b"GET");
        message.set_target(target.as_bytes());
        message.set_protocol(b"HTTP/1.1");
        for (name, value) in headers {
            message.append(name.as_bytes(), value.as_bytes());
        }
        message
    }

    #[test]
    fn connection_specific_fields_are_removed() {
        let message = bereq(
            "/a?b=c",
            &[
                ("Host", "example.com:8080"),
                ("Connection", "close, X-Mine"),
                ("X-Mine", "1"),
                ("Keep-Alive", "1"),
                ("Proxy-Connection", "close"),
                ("Transfer-Encoding", "chunked"),
                ("Upgrade", "websocket"),
                ("HTTP2-Settings", "x"),
                ("TE", "gzip, trailers"),
                ("X-Yours", "2"),
            ],
        );
        let (request, _) = request(&message, true).unwrap();
        assert_eq!(request.uri(), "https://example.com:8080/a?b=c");
        let fields: Vec<_> = request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        assert_eq!(fields, [("x-yours", &b"2"[..]), ("te", b"trailers")]);
    }

    #[test]
    fn requests_that_http2_cannot_express_are_refused() {
        let of = |target, headers: &[_]| request(&bereq(target, headers), false).map(drop);
        assert_eq!(of("/", &[("Host", "user@example.com")]), Err("host"));
        assert_eq!(of("/", &[("Host", "exa mple.com")]), Err("host"));
        assert_eq!(of("/", &[("Host", "a"), ("Host", "b")]), Err("two hosts"));
        assert_eq!(of("http://other/", &[("Host", "a")]), Err("target"));
        assert_eq!(of("", &[("Host", "a")]), Err("target"));
        assert_eq!(of("/", &[("Host", "a"), ("X-A", "\u{1}")]), Err("value of a header"));
        assert_eq!(of("/", &[("Host", "a"), ("X(A", "1")]), Err("name of a header"));
        let mut connect = bereq("/", &[("Host", "a")]);
        connect.set_method(b"CONNECT");
        assert_eq!(request(&connect, false).map(drop), Err("method"));
    }

    #[test]
    fn every_byte_of_a_target_is_sent() {
        let path = |target: &str| {
            let (request, _) = request(&bereq(target, &[("Host", "a")]), false).unwrap();
            request.uri().path_and_query().unwrap().as_str().to_owned()
        };
        assert_eq!(path("/a%20b?c=d&e"), "/a%20b?c=d&e");
        assert_eq!(path("/?c={\"d\"}"), "/?c=%7B%22d%22%7D");
        assert_eq!(path("/a b#c<é>"), "/a%20b%23c%3C%C3%A9%3E");
        assert_eq!(path("*"), "*");
        assert_eq!(path("//a?b?c"), "//a?b?c");
        let without_host = request(&bereq("/a", &[]), false).unwrap().0;
        assert_eq!((without_host.uri().authority(), without_host.uri().path()), (None, "/a"));
    }

    #[test]
    fn a_response_within_the_limits_is_taken_whole() {
        let limits = HeadLimits { total_bytes: 100, line_bytes: 40, headers_max: 3 };
        let mut taken = Message::new();
        let build = |fields: &[(&str, &str)]| {
            let mut response = http::Response::builder().status(404);
            for (name, value) in fields {
                response = response.header(*name, *value);
            }
            response.body(()).unwrap()
        };
        let bytes = take_response(&build(&[("set-cookie", "a=1"), ("set-cookie", "b=2")]), limits, &mut taken);
        assert_eq!(bytes, Ok("HTTP/2.0 404 Not Found\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n\r\n".len() as u64));
        assert_eq!((taken.protocol(), taken.status(), taken.reason()), (&b"HTTP/2.0"[..], 404, &b"Not Found"[..]));
        assert_eq!(taken.get_all("Set-Cookie").collect::<Vec<_>>(), [b"a=1", b"b=2"]);
        let long = "x".repeat(40);
        let mut broken =
            |fields: &[(&str, &str)]| take_response(&build(fields), limits, &mut taken).unwrap_err().parameter;
        assert_eq!(broken(&[("a", &long)]), "http_resp_hdr_len");
        assert_eq!(broken(&[("a", "1"), ("b", "1"), ("c", "1"), ("d", "1")]), "http_max_hdr");
        let half = "x".repeat(30);
        assert_eq!(broken(&[("a", &half), ("b", &half), ("c", &half)]), "http_resp_size");
    }
}
