//! A response's head and trailers as the crates for HTTP/2 and HTTP/3 take them, and the trailers of a request as the machine
//! takes them: pure functions.
//!
//! Names are written in lower case, each header is a field of its own, and nothing about a connection is sent. What HTTP/2
//! cannot express is left out: it would make the whole response malformed. Source: RFC 9113 §8.2.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use message::Message;
use surface::header::is_of_connection;
use surface::limits::{CHUNK_TRAILER_BYTES_MAX, TRAILER_FIELDS_MAX};

/// The head of a response, and how many bytes it would have in HTTP/1.
pub(super) fn response(message: &Message) -> (Response<()>, usize) {
    let mut response = Response::new(());
    *response.status_mut() = status(message.status());
    *response.headers_mut() = fields(message);
    let bytes = response.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum::<usize>();
    (response, bytes + STATUS_BYTES)
}

/// As [`response`], for a status alone.
pub(super) fn bare(code: u16) -> (Response<()>, usize) {
    let mut response = Response::new(());
    *response.status_mut() = status(code);
    (response, STATUS_BYTES)
}

/// What a status counts for: `:status 200`.
const STATUS_BYTES: usize = 11;

/// VCL may set statuses of 1000 and above, of which the last three digits are sent.
fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code % 1000).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// The fields of a message.
///
/// X-Varnish and Cache-Status hardly ever have the same value twice. They are kept out of HPACK's table: there they would push out
/// what comes again, and `h2` compares a value with all that its name has in the table.
pub(super) fn fields(message: &Message) -> HeaderMap {
    // One buffer for all values, which the fields share: one allocation instead of one for each.
    let bytes = message.headers().map(|header| header.value().len()).sum();
    let mut values = BytesMut::with_capacity(bytes);
    message.headers().for_each(|header| values.extend_from_slice(header.value()));
    let mut values = values.freeze();
    let mut fields = HeaderMap::with_capacity(message.header_count());
    let names_hops = message.has("Connection");
    for header in message.headers() {
        let value: Bytes = values.split_to(header.value().len());
        let is_named = names_hops && is_hop(header.name(), message);
        if header.is_hop() || is_named || is_of_connection(header.name()) || header.name().eq_ignore_ascii_case(b"te") {
            continue;
        }
        let (Ok(name), Ok(mut value)) = (HeaderName::from_bytes(header.name()), HeaderValue::from_maybe_shared(value))
        else {
            continue;
        };
        value.set_sensitive(header.is("X-Varnish") || header.is("Cache-Status"));
        fields.append(name, value);
    }
    fields
}

/// Whether the message's own Connection header, which VCL may have set, names a header as one for this hop.
fn is_hop(name: &[u8], message: &Message) -> bool {
    let mut options = message.get_all("Connection").flat_map(|value| value.split(|&byte| byte == b','));
    options.any(|option| option.trim_ascii().eq_ignore_ascii_case(name))
}

/// The trailers of a request; `None` if there are none, or more than anybody may send.
pub(super) fn trailers(received: &HeaderMap) -> Option<Message> {
    let bytes: usize = received.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if received.is_empty() || received.len() > TRAILER_FIELDS_MAX || bytes > CHUNK_TRAILER_BYTES_MAX {
        return None;
    }
    let mut trailers = Message::new();
    for (name, value) in received {
        trailers.append(name.as_str().as_bytes(), value.as_bytes().trim_ascii());
    }
    Some(trailers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(headers: &[(&str, &str)]) -> Message {
        let mut message = Message::new();
        message.set_status(200);
        headers.iter().for_each(|(name, value)| message.append(name.as_bytes(), value.as_bytes()));
        message
    }

    fn sent(message: &Message) -> Vec<String> {
        let fields = fields(message);
        fields.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
    }

    #[test]
    fn names_are_in_lower_case_and_each_cookie_is_a_field() {
        let message = message(&[("Set-Cookie", "a=1"), ("X-A", "b"), ("Set-Cookie", "c=2")]);
        assert_eq!(sent(&message), ["set-cookie: a=1", "set-cookie: c=2", "x-a: b"]);
    }

    #[test]
    fn nothing_about_the_connection_is_sent() {
        let names =
            ["Connection", "Keep-Alive", "Proxy-Connection", "TE", "Transfer-Encoding", "Upgrade", "HTTP2-Settings"];
        let mut message = message(&names.map(|name| (name, "x")));
        message.append(b"X-Hop", b"1");
        message.mark_hops(|name| name == b"X-Hop");
        message.append(b"Connection", b"close, x-named");
        message.append(b"X-Named", b"1");
        message.append(b"Date", b"today");
        assert_eq!(sent(&message), ["date: today"]);
    }

    #[test]
    fn what_is_new_in_each_response_stays_out_of_the_table_of_fields() {
        let fields = fields(&message(&[("X-Varnish", "3 2"), ("Cache-Status", "copal; hit; ttl=9"), ("Server", "x")]));
        let kept_out = fields.iter().filter(|(_, value)| value.is_sensitive()).map(|(name, _)| name.as_str());
        assert_eq!(kept_out.collect::<Vec<_>>(), ["x-varnish", "cache-status"]);
    }

    #[test]
    fn what_cannot_be_expressed_is_left_out() {
        assert_eq!(sent(&message(&[("a b", "1"), ("c", "x\u{1}y"), ("d", "2")])), ["d: 2"]);
    }

    #[test]
    fn a_status_is_sent_modulo_a_thousand() {
        for (set, sent) in [(200, 200), (1404, 404), (2000, 500)] {
            assert_eq!(bare(set).0.status().as_u16(), sent);
        }
    }

    #[test]
    fn trailers_without_measure_are_dropped() {
        let mut few = HeaderMap::new();
        few.append("x-sum", HeaderValue::from_static(" 1 "));
        assert_eq!(trailers(&few).unwrap().get("X-Sum"), Some(&b"1"[..]));
        let mut many = HeaderMap::new();
        for number in 0..=TRAILER_FIELDS_MAX {
            many.append(HeaderName::try_from(format!("x{number}")).unwrap(), HeaderValue::from_static("1"));
        }
        assert!(trailers(&many).is_none() && trailers(&HeaderMap::new()).is_none());
    }
}
