//! Validation of a stored response with the origin, and the changes that its answer makes. Source:
//! RFC 9111 §4.3.

use message::Message;

/// True if a stored response has the fields that a conditional request needs. Compat: only a 200 is
/// revalidated.
#[must_use]
pub fn is_possible(stored: &Message) -> bool {
    stored.status() == 200 && (stored.has("ETag") || stored.has("Last-Modified"))
}

/// Makes a backend request conditional: `If-Modified-Since` from `Last-Modified`, `If-None-Match`
/// from `ETag`.
pub fn conditions(stored: &Message, bereq: &mut Message) {
    for (from, to) in [("Last-Modified", "If-Modified-Since"), ("ETag", "If-None-Match")] {
        if let Some(value) = stored.get(from) {
            bereq.set(to, value);
        }
    }
}

/// True if a 304 applies to a stored response: its tag, if it has one, is that of the response, and
/// without tags so is the date. Source: RFC 9111 §4.3.4.
#[must_use]
pub fn is_about(stored: &Message, response_304: &Message) -> bool {
    let opaque = |tag: &'_ [u8]| -> Vec<u8> { tag.strip_prefix(b"W/").unwrap_or(tag).to_vec() };
    match (response_304.get("ETag"), stored.get("ETag")) {
        (None, Some(_)) => true,
        (None, None) => match (response_304.get("Last-Modified"), stored.get("Last-Modified")) {
            (Some(named), Some(stored)) => named == stored,
            _ => true,
        },
        (Some(named), Some(stored)) => opaque(named) == opaque(stored),
        (Some(_), None) => false,
    }
}

/// Time, in seconds after its time to live, for which a stored response may be served when the
/// origin answers with an error. Source: RFC 5861 §4.
#[must_use]
pub fn stale_if_error(stored: &Message) -> Option<f64> {
    let of = |name| stored.get_all(name).find_map(|value| crate::list::directive(value, "stale-if-error"));
    of("CDN-Cache-Control").or_else(|| of("Cache-Control")).flatten().and_then(crate::request_directives::seconds)
}

/// True if a status may be answered with a stale response that has `stale-if-error`. Source: RFC
/// 5861 §4.
#[must_use]
pub fn is_error(status: u16) -> bool {
    matches!(status, 500 | 502 | 503 | 504)
}

/// Turns a 304 into the response that it confirms: start line and every header it does not mention
/// come from the stored response. The coding and the length are those of the stored body,
/// regardless of the 304.
pub fn merge(stored: &Message, response_304: &mut Message) {
    response_304.unset("Content-Encoding");
    response_304.unset("Content-Length");
    response_304.set_protocol(stored.protocol());
    response_304.set_status(stored.status());
    response_304.set_reason(stored.reason());
    let own = response_304.header_count();
    for header in stored.headers() {
        if !response_304.headers().take(own).any(|it| it.name().eq_ignore_ascii_case(header.name())) {
            let line = header.line();
            response_304.append_raw(line, header.name().len(), line.len() - header.value().len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(status: u16, lines: &[(&str, &str)]) -> Message {
        let mut message = Message::new();
        message.set_protocol(b"HTTP/1.1");
        message.set_status(status);
        message.set_reason(b"R");
        for (name, value) in lines {
            message.append(name.as_bytes(), value.as_bytes());
        }
        message
    }

    fn lines(message: &Message) -> Vec<String> {
        message.headers().map(|header| String::from_utf8(header.line().to_vec()).unwrap()).collect()
    }

    #[test]
    fn only_a_200_with_a_validator_is_asked_about() {
        assert!(is_possible(&message(200, &[("etag", "\"a\"")])));
        assert!(is_possible(&message(200, &[("Last-Modified", "x")])));
        assert!(!is_possible(&message(200, &[])));
        assert!(!is_possible(&message(404, &[("ETag", "\"a\"")])));
    }

    #[test]
    fn conditions_replace_those_of_the_client() {
        let stored = message(200, &[("ETag", "W/\"a\""), ("Last-Modified", "then")]);
        let mut bereq = message(0, &[("If-None-Match", "\"x\""), ("Host", "h")]);
        conditions(&stored, &mut bereq);
        assert_eq!(lines(&bereq), ["Host: h", "If-Modified-Since: then", "If-None-Match: W/\"a\""]);
    }

    #[test]
    fn a_304_keeps_its_headers_and_takes_the_rest() {
        let stored = message(
            200,
            &[
                ("Date", "old"),
                ("Content-Length", "5"),
                ("Content-Encoding", "gzip"),
                ("Set-Cookie", "a"),
                ("Set-Cookie", "b"),
                ("X", "old"),
            ],
        );
        let mut fresh = message(304, &[("date", "new"), ("Content-Length", "0"), ("X", "1"), ("X", "2")]);
        merge(&stored, &mut fresh);
        assert_eq!((fresh.status(), fresh.reason()), (200, &b"R"[..]));
        assert_eq!(
            lines(&fresh),
            [
                "date: new",
                "X: 1",
                "X: 2",
                "Content-Length: 5",
                "Content-Encoding: gzip",
                "Set-Cookie: a",
                "Set-Cookie: b"
            ]
        );
    }

    #[test]
    fn a_304_is_about_the_response_whose_tag_it_names() {
        let tagged = |tag: &str| message(200, &[("ETag", tag)]);
        assert!(is_about(&tagged("\"a\""), &message(304, &[])));
        assert!(is_about(&tagged("\"a\""), &tagged("\"a\"")));
        assert!(is_about(&tagged("W/\"a\""), &tagged("\"a\"")));
        assert!(!is_about(&tagged("\"a\""), &tagged("\"b\"")));
        assert!(!is_about(&message(200, &[]), &tagged("\"a\"")));
        assert!(is_about(&message(200, &[]), &message(304, &[])));
        let dated = |date: &str| message(304, &[("Last-Modified", date)]);
        let (old, new) = ("Mon, 02 Nov 2026 10:00:00 GMT", "Tue, 03 Nov 2026 10:00:00 GMT");
        assert!(is_about(&dated(new), &dated(new)) && is_about(&dated(new), &message(304, &[])));
        assert!(!is_about(&dated(new), &dated(old)), "the origin has gone back to an earlier version");
    }

    #[test]
    fn window_for_errors_is_read_from_the_stored_response() {
        let window = |name: &str, value: &str| stale_if_error(&message(200, &[(name, value)]));
        assert_eq!(window("Cache-Control", "max-age=1, stale-if-error=60"), Some(60.0));
        assert_eq!(window("CDN-Cache-Control", "max-age=1, stale-if-error=60"), Some(60.0));
        assert_eq!(window("Cache-Control", "max-age=1"), None);
        assert_eq!(window("Cache-Control", "stale-if-error"), None);
        assert!(is_error(503) && !is_error(501) && !is_error(404));
    }
}
