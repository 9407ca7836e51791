//! A response's head and trailers in the form that the crates for HTTP/2 and HTTP/3 take, and the
//! trailers of a request in the form that the machine takes: pure functions.
//!
//! Names are written in lower case, each header is a field of its own, and connection-specific
//! fields are not sent. A field that HTTP/2 cannot express is left out: it would make the whole
//! response malformed. Source: RFC 9113 §8.2.

use field_coding::FieldList;
use field_coding::list::{is_name_byte, is_value};
use message::Message;
use surface::header::is_of_connection;
use surface::limits::{CHUNK_TRAILER_BYTES_MAX, TRAILER_FIELDS_MAX};

/// The head of a response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::transport) struct ResponseHead {
    /// Three digits.
    pub(in crate::transport) status: u16,
    /// The fields, without pseudo headers.
    pub(in crate::transport) fields: FieldList,
}

/// Bytes that a status counts for: `:status 200`.
const STATUS_BYTES: usize = 11;
/// Colon, blank and line end of a header line.
const FIELD_EXTRA_BYTES: usize = 4;
/// The status for one that cannot be sent.
const INTERNAL_SERVER_ERROR: u16 = 500;

impl ResponseHead {
    /// The head of a message.
    pub(in crate::transport) fn of(message: &Message) -> ResponseHead {
        ResponseHead { status: status(message.status()), fields: fields(message) }
    }

    /// A status without fields.
    pub(in crate::transport) fn bare(code: u16) -> ResponseHead {
        ResponseHead { status: status(code), fields: FieldList::new() }
    }

    /// True if another head follows.
    pub(in crate::transport) fn is_interim(&self) -> bool {
        self.status < 200
    }

    /// Number of bytes that the head would have in HTTP/1.
    pub(in crate::transport) fn http1_bytes(&self) -> usize {
        let fields = self.fields.iter().map(|(name, value)| name.len() + value.len() + FIELD_EXTRA_BYTES);
        STATUS_BYTES + fields.sum::<usize>()
    }
}

/// VCL may set statuses of 1000 and above, of which the last three digits are sent.
fn status(code: u16) -> u16 {
    match code % 1000 {
        ..100 => INTERNAL_SERVER_ERROR,
        code => code,
    }
}

/// The fields of a message.
pub(super) fn fields(message: &Message) -> FieldList {
    let bytes = message.headers().map(|header| header.line().len()).sum();
    let mut fields = FieldList::with_capacity(message.header_count(), bytes);
    let names_hops = message.has("Connection");
    for header in message.headers() {
        let (name, value) = (header.name(), header.value());
        let is_named = names_hops && is_hop(name, message);
        if header.is_hop() || is_named || is_of_connection(name) || name.eq_ignore_ascii_case(b"te") {
            continue;
        }
        let is_valid_name = !name.is_empty() && name.iter().all(|byte| is_name_byte(byte.to_ascii_lowercase()));
        if is_valid_name && is_value(value) {
            fields.push(name, value);
        }
    }
    fields
}

/// True if the message's own Connection header, which VCL may have set, names a header as
/// hop-by-hop.
fn is_hop(name: &[u8], message: &Message) -> bool {
    let mut options = message.get_all("Connection").flat_map(|value| value.split(|&byte| byte == b','));
    options.any(|option| option.trim_ascii().eq_ignore_ascii_case(name))
}

/// The trailers of a request; `None` if there are none, or more than allowed.
pub(super) fn trailers(received: &FieldList) -> Option<Message> {
    let bytes: usize = received.iter().map(|(name, value)| name.len() + value.len() + FIELD_EXTRA_BYTES).sum();
    if received.is_empty() || received.len() > TRAILER_FIELDS_MAX || bytes > CHUNK_TRAILER_BYTES_MAX {
        return None;
    }
    let mut trailers = Message::new();
    for (name, value) in received {
        trailers.append(name, value.trim_ascii());
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
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        fields(message).iter().map(|(name, value)| format!("{}: {}", text(name), text(value))).collect()
    }

    #[test]
    fn names_are_in_lower_case_and_each_cookie_is_a_field() {
        let message = message(&[("Set-Cookie", "a=1"), ("X-A", "b"), ("Set-Cookie", "c=2")]);
        assert_eq!(sent(&message), ["set-cookie: a=1", "x-a: b", "set-cookie: c=2"]);
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
    fn invalid_fields_are_omitted() {
        assert_eq!(sent(&message(&[("a b", "1"), ("c", "x\u{1}y"), ("d", "2")])), ["d: 2"]);
    }

    #[test]
    fn a_status_is_sent_modulo_a_thousand() {
        for (set, sent) in [(200, 200), (1404, 404), (2000, 500)] {
            assert_eq!(ResponseHead::bare(set).status, sent);
        }
    }

    #[test]
    fn trailers_without_measure_are_dropped() {
        let mut few = FieldList::new();
        few.push(b"x-sum", b" 1 ");
        assert_eq!(trailers(&few).unwrap().get("X-Sum"), Some(&b"1"[..]));
        let mut many = FieldList::new();
        for number in 0..=TRAILER_FIELDS_MAX {
            many.push(format!("x{number}").as_bytes(), b"1");
        }
        assert!(trailers(&many).is_none() && trailers(&FieldList::new()).is_none());
    }
}
