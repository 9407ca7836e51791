//! The Connection header: persistence of the connection, and forbidden options.
//!
//! Source: RFC 9110 §7.6.1, RFC 9112 §9.3.

use crate::framing::{FramingError, is_http10, is_unframed_keep_alive};
use crate::sample::Sample;
use message::Message;
use surface::header::{DROP_PASS, find};
use surface::limits::CONNECTION_OPTIONS_MAX;

/// Options in the Connection headers of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConnectionOptions {
    /// The connection ends after this message: `close`, or HTTP/1.0 without `keep-alive`, or a
    /// response without a known end. A later token overrides an earlier one.
    pub close: bool,
    /// `keep-alive` is listed.
    pub keep_alive: bool,
    /// `upgrade` is listed.
    pub upgrade: bool,
}

/// Reads the Connection headers.
///
/// # Errors
/// [`FramingError::ProtectedHeaderInConnection`]: it names an end-to-end header as if that belonged
/// to this connection alone. Answer 400 to a request; close the connection after such a response.
/// Compat: observed.
pub fn connection_options(message: &Message) -> Result<ConnectionOptions, FramingError> {
    let mut options = ConnectionOptions {
        close: is_http10(message) || is_unframed_keep_alive(message),
        ..ConnectionOptions::default()
    };
    let is_unframed = message.status() != 0 && options.close && is_unframed_keep_alive(message);
    if !message.may_have("Connection") {
        return Ok(options);
    }
    for header in message.headers() {
        if header.name().len() != 10 || !header.is("Connection") {
            continue;
        }
        for token in header.value().split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            if token.eq_ignore_ascii_case(b"close") {
                options.close = true;
            } else if token.eq_ignore_ascii_case(b"keep-alive") {
                options.keep_alive = true;
                options.close = is_unframed;
            } else if token.eq_ignore_ascii_case(b"upgrade") {
                options.upgrade = true;
            } else if find(token).is_some_and(|row| row.dropped & DROP_PASS == 0) {
                return Err(FramingError::ProtectedHeaderInConnection);
            }
        }
    }
    Ok(options)
}

/// True if a Connection header lists `close`, anywhere: a sender that lists it means to close.
/// Source: RFC 9112 §9.3.
#[must_use]
pub fn lists_close(message: &Message) -> bool {
    let mut options = message.get_all("Connection").flat_map(|value| value.split(|&byte| byte == b','));
    options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}

/// Time that the sender of a response keeps an idle connection, in seconds (`Keep-Alive:
/// timeout=`); `None` if it does not say. Source: RFC 2068 §19.7.1.1, and Apache, nginx, Node.js,
/// which send it.
#[must_use]
pub fn keep_alive_seconds(response: &Message) -> Option<u32> {
    if !response.may_have("Keep-Alive") {
        return None;
    }
    let parameters = response.get_all("Keep-Alive").flat_map(|value| value.split(|&byte| byte == b','));
    let named = parameters.filter_map(|parameter| {
        let (name, value) = parameter.split_at_checked(parameter.iter().position(|&byte| byte == b'=')?)?;
        name.trim_ascii().eq_ignore_ascii_case(b"timeout").then(|| value[1..].trim_ascii())
    });
    named.filter_map(|value| std::str::from_utf8(value).ok()?.trim_matches('"').parse().ok()).min()
}

/// Marks the headers that the Connection header names. They are not passed on, even if Connection
/// is changed afterwards. Headers set later under the same name are passed on: a client must not be
/// able to remove headers that VCL sends to an origin.
///
/// # Errors
/// More than [`CONNECTION_OPTIONS_MAX`] of them: the line in which there are too many.
pub(crate) fn mark_hops(message: &mut Message) -> Result<(), Sample> {
    if !message.may_have("Connection") {
        return Ok(());
    }
    let is_usual = |token: &[u8]| token.eq_ignore_ascii_case(b"close") || token.eq_ignore_ascii_case(b"keep-alive");
    // The options found, each followed by a comma.
    let (mut found, mut count) = (Vec::new(), 0);
    for value in message.get_all("Connection") {
        let tokens = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty());
        for token in tokens.filter(|token| !is_usual(token)) {
            count += 1;
            if count > CONNECTION_OPTIONS_MAX {
                return Err(Sample::of(value));
            }
            found.extend_from_slice(token);
            found.push(b',');
        }
    }
    if count > 0 {
        let named: Vec<&[u8]> = found.split(|&byte| byte == b',').collect();
        message.mark_hops(|name| named.iter().any(|token| token.eq_ignore_ascii_case(name)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(protocol: &str, status: u16, lines: &[(&str, &str)]) -> Result<(bool, bool, bool), FramingError> {
        let mut message = Message::new();
        message.set_protocol(protocol.as_bytes());
        message.set_status(status);
        for (name, value) in lines {
            message.append(name.as_bytes(), value.as_bytes());
        }
        connection_options(&message).map(|options| (options.close, options.keep_alive, options.upgrade))
    }

    #[test]
    fn time_for_which_an_idle_connection_is_kept_is_that_of_keep_alive() {
        for (value, seconds) in [
            ("timeout=5", Some(5)),
            ("timeout=5, max=100", Some(5)),
            ("max=3,Timeout = \"15\"", Some(15)),
            ("timeout=9, timeout=2", Some(2)),
            ("max=100", None),
            ("timeout", None),
            ("timeout=-1", None),
            ("timeout=1.5", None),
        ] {
            let mut message = Message::new();
            message.append(b"keep-alive", value.as_bytes());
            assert_eq!(keep_alive_seconds(&message), seconds, "{value}");
        }
        assert_eq!(keep_alive_seconds(&Message::new()), None);
    }

    #[test]
    fn headers_named_when_received_are_marked_and_later_ones_are_not() {
        let mut message = Message::new();
        for (name, value) in [("X-Hop", "1"), ("Connection", "close, x-hop"), ("X-Other", "2")] {
            message.append(name.as_bytes(), value.as_bytes());
        }
        mark_hops(&mut message).unwrap();
        message.append(b"x-hop", b"3");
        let marked: Vec<_> = message.headers().map(|header| header.is_hop()).collect();
        assert_eq!(marked, [true, false, false, false]);
    }

    #[test]
    fn options_beyond_the_limit_are_refused_in_one_line_or_many_and_usual_ones_do_not_count() {
        let marked = |lines: &[String]| {
            let mut message = Message::new();
            lines.iter().for_each(|line| message.append(b"Connection", line.as_bytes()));
            mark_hops(&mut message)
        };
        let options: Vec<String> = (0..CONNECTION_OPTIONS_MAX).map(|number| format!("x{number}")).collect();
        assert_eq!(marked(&options), Ok(()));
        let usual = "close, keep-alive,, ".repeat(CONNECTION_OPTIONS_MAX);
        assert_eq!(marked(&[options.join(","), usual.clone()]), Ok(()));
        assert_eq!(marked(&[options.join(","), usual, "te".into()]), Err(Sample::of(b"te")));
        assert!(marked(&[options.join(",") + ",te"]).is_err());
        assert!(marked(&[options, vec!["te".into()]].concat()).is_err());
    }

    #[test]
    fn the_version_decides_and_later_tokens_override() {
        let connection = |value| [("Connection", value)];
        assert_eq!(options("HTTP/1.1", 0, &[]), Ok((false, false, false)));
        assert_eq!(options("HTTP/1.0", 0, &[]), Ok((true, false, false)));
        assert_eq!(options("http/1.0", 0, &[]), Ok((true, false, false)));
        assert_eq!(options("HTTP/1.0", 0, &connection("Keep-Alive")), Ok((false, true, false)));
        assert_eq!(options("HTTP/1.1", 0, &connection("close")), Ok((true, false, false)));
        assert_eq!(options("HTTP/1.1", 0, &connection("x-hop , CLOSE,")), Ok((true, false, false)));
        assert_eq!(options("HTTP/1.1", 0, &connection("close, keep-alive")), Ok((false, true, false)));
        assert_eq!(options("HTTP/1.1", 0, &connection("keep-alive, close")), Ok((true, true, false)));
        assert_eq!(options("HTTP/1.1", 0, &connection("Upgrade, HTTP2-Settings")), Ok((false, false, true)));
        assert_eq!(
            options("HTTP/1.1", 0, &[("Connection", "keep-alive"), ("connection", "close")]),
            Ok((true, true, false))
        );
    }

    #[test]
    fn close_is_found_wherever_it_is_listed() {
        let lists = |values: &[&str]| {
            let mut message = Message::new();
            for value in values {
                message.append(b"connection", value.as_bytes());
            }
            lists_close(&message)
        };
        for values in [&["close"][..], &["keep-alive,\tCLOSE"], &["Close , keep-alive"], &["a", ",close,"]] {
            assert!(lists(values), "{values:?}");
        }
        for values in [&[][..], &[""], &["keep-alive"], &["closed, x-close"], &["close;x"]] {
            assert!(!lists(values), "{values:?}");
        }
    }

    #[test]
    fn a_header_that_everyone_relies_on_may_not_be_named() {
        for name in ["Host", "cookie", "Content-Length", "Age", "If-Range", "Cache-Control"] {
            assert_eq!(
                options("HTTP/1.1", 0, &[("Connection", name)]),
                Err(FramingError::ProtectedHeaderInConnection),
                "{name}"
            );
        }
        for name in ["TE", "Trailer", "Transfer-Encoding", "Keep-Alive", "Accept-Ranges", "X-Hop", ""] {
            assert!(options("HTTP/1.1", 0, &[("Connection", name)]).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_response_without_an_end_closes_the_connection_whatever_it_says() {
        let keep = ("Connection", "keep-alive");
        assert_eq!(options("HTTP/1.1", 200, &[keep]), Ok((true, true, false)));
        assert_eq!(options("HTTP/1.1", 200, &[keep, ("Content-Length", "0")]), Ok((false, true, false)));
        assert_eq!(options("HTTP/1.1", 304, &[keep]), Ok((false, true, false)));
    }
}
