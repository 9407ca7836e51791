//! Selection of the headers that are copied from one message to the next.
//!
//! The table of known headers is `surface::header`; this applies it, together with the marks that
//! the codec sets on headers named by the Connection header of the message as received. Source: RFC
//! 9110 §7.6.1, RFC 9111 §3.1.

use message::{HeaderLine, Message};
use surface::header::{CONNECTION_SPECIFIC, DROP_FETCH, DROP_INSERT, DROP_PASS, DROP_STORE_PASS, find};

/// The direction in which a message is passed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// From a client request to a backend request, for a pass.
    Pass,
    /// From a client request to a backend request, for the cache.
    Fetch,
    /// From a backend response to an object that is kept.
    InsertStored,
    /// The same under the policy `rfc`: a field without meaning in this response is kept anyway.
    InsertRfc,
    /// From a backend response to an object that serves one request.
    StorePass,
    /// From an object to a response.
    Deliver,
}

impl Class {
    /// The bit of `surface::header` that drops a header in this direction.
    fn dropped(self) -> u8 {
        match self {
            Class::Pass => DROP_PASS,
            Class::Fetch => DROP_FETCH,
            Class::InsertStored | Class::InsertRfc => DROP_INSERT,
            Class::StorePass => DROP_STORE_PASS,
            Class::Deliver => CONNECTION_SPECIFIC,
        }
    }
}

/// Appends to `to` the headers of `from` that may be passed on in that direction. The caller sets
/// the start line of `to`.
pub fn copy_filtered(from: &Message, to: &mut Message, class: Class) {
    let dropped = class.dropped();
    for header in from.headers() {
        let row = find(header.name());
        if row.is_some_and(|row| row.dropped & dropped != 0)
            && !(class == Class::InsertRfc && header.is("Content-Range"))
        {
            continue;
        }
        if class == Class::InsertRfc && header.is("Proxy-Authentication-Info") {
            continue;
        }
        // A header that is essential to HTTP is kept, even if Connection names it.
        if header.is_hop() && row.is_none_or(|row| row.dropped & DROP_PASS != 0) && !is_mark_of_replay(header, class) {
            continue;
        }
        let line = header.line();
        let name_len = header.name().len();
        to.append_raw(line, name_len, line.len() - header.value().len());
    }
}

/// Early-Data may not be named by Connection: that would hide from the origin that a request may be
/// a replay. Source: RFC 8470 §5.1.
fn is_mark_of_replay(header: HeaderLine<'_>, class: Class) -> bool {
    matches!(class, Class::Pass | Class::Fetch) && header.is("Early-Data")
}

/// Makes `to` the interim response (1xx) that is passed on for `from`. Fields that describe a body
/// are left out. Source: RFC 9110 §8.6 and §15.2, RFC 9112 §6.1.
pub fn copy_interim(from: &Message, to: &mut Message) {
    to.set_protocol(b"HTTP/1.1");
    to.set_status(from.status());
    to.set_reason(from.reason());
    copy_filtered(from, to, Class::StorePass);
    to.unset("Content-Length");
}

/// Joins all headers of this name into one, separated by `, `, at the position of the first. Does
/// nothing if there are fewer than two.
pub fn collapse(message: &mut Message, name: &str) {
    message.join(name);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(class: Class, connection: &str) -> Vec<String> {
        let mut from = Message::new();
        for name in [
            "Host",
            "accept-ranges",
            "AGE",
            "Cache-Control",
            "Content-Range",
            "If-None-Match",
            "Keep-Alive",
            "Proxy-Authorization",
            "Range",
            "TE",
            "Transfer-Encoding",
            "X-Hop",
            "X-Other",
        ] {
            from.append(name.as_bytes(), b"v");
        }
        from.append(b"Connection", connection.as_bytes());
        from.mark_hops(|name| {
            crate::list::members(connection.as_bytes()).any(|named| named.eq_ignore_ascii_case(name))
        });
        let mut to = Message::new();
        copy_filtered(&from, &mut to, class);
        to.headers()
            .map(|header| {
                assert_eq!(header.value(), b"v");
                String::from_utf8(header.name().to_vec()).unwrap()
            })
            .collect()
    }

    #[test]
    fn each_way_drops_its_headers() {
        assert_eq!(
            kept(Class::Pass, "close"),
            [
                "Host",
                "AGE",
                "Cache-Control",
                "Content-Range",
                "If-None-Match",
                "Proxy-Authorization",
                "Range",
                "X-Hop",
                "X-Other"
            ]
        );
        assert_eq!(kept(Class::Fetch, "close"), ["Host", "AGE", "X-Hop", "X-Other"]);
        assert_eq!(kept(Class::InsertStored, "close"), ["Host", "Cache-Control", "If-None-Match", "X-Hop", "X-Other"]);
        assert_eq!(
            kept(Class::StorePass, "close"),
            [
                "Host",
                "accept-ranges",
                "Cache-Control",
                "Content-Range",
                "If-None-Match",
                "Proxy-Authorization",
                "Range",
                "X-Hop",
                "X-Other"
            ]
        );
        assert_eq!(
            kept(Class::Deliver, "close"),
            [
                "Host",
                "accept-ranges",
                "AGE",
                "Cache-Control",
                "Content-Range",
                "If-None-Match",
                "Proxy-Authorization",
                "Range",
                "TE",
                "X-Hop",
                "X-Other"
            ]
        );
    }

    #[test]
    fn fields_named_by_connection_are_removed_except_essential_ones() {
        assert_eq!(kept(Class::Fetch, "x-hop, Host"), ["Host", "AGE", "X-Other"]);
        assert!(!kept(Class::StorePass, "accept-ranges").contains(&"accept-ranges".to_owned()));
        assert_eq!(kept(Class::Fetch, "X-OTHER ,keep-alive,x-hop"), ["Host", "AGE"]);
    }
}
