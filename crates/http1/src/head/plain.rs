//! Fast parser for ordinary request heads, in one pass: most of those that a cache receives.
//!
//! *Invariant:* a head that is accepted here is also accepted by [`super::parse`], with the same
//! result; in every other case, an incomplete head included, this parser returns `None`. That is
//! tested with heads changed at random.

use super::limits::{HeadLimits, LINE_BYTES_MAX, START_LINE_SLOTS};
use super::start_line::request_line;
use crate::connection::mark_hops;
use crate::token::{is_blank, is_control, is_token};
use memchr::memchr2;
use message::Message;

/// Parses a head that begins at the first byte of `buffer`. Returns its length; `None` leaves it to
/// [`super::parse`], in which case the content of the message is undefined.
pub(super) fn parse_request(buffer: &[u8], limits: &HeadLimits, message: &mut Message) -> Option<usize> {
    let line_bytes_max = limits.line_bytes.min(LINE_BYTES_MAX);
    let headers_max = limits.headers_max.saturating_sub(START_LINE_SLOTS);
    // A long body may follow the head, and the length of the head is known only at its end.
    let received = &buffer[..buffer.len().min(limits.total_bytes).min(HEAD_BYTES_MAX)];
    if !received.first().is_some_and(|&byte| is_token(byte)) {
        return None;
    }
    message.begin_received(received);
    let (end, mut at) = line_end(received, 0)?;
    let start_line_end = end;
    loop {
        let (end, next) = line_end(received, at)?;
        if end == at {
            at = next;
            break;
        }
        let line = &received[at..end];
        // A line that begins with a blank continues the one before, and no blank is part of a name.
        let name_len = line.iter().position(|&byte| !is_token(byte))?;
        let is_plain = line[name_len] == b':' && name_len > 0 && line.len() <= line_bytes_max;
        if !is_plain || message.header_count() >= headers_max {
            return None;
        }
        let value_start = match line[name_len + 1..] {
            [b' ', first, ..] if !is_blank(first) => name_len + 2,
            [first, ..] if !is_blank(first) => name_len + 1,
            _ => return None,
        };
        if line.last().is_some_and(|&byte| is_blank(byte)) {
            return None;
        }
        message.append_received(at..end, name_len, value_start);
        at = next;
    }
    // All lines at once: their ends are the only control characters that they may have. A fold
    // rather than a search: without branches it runs sixteen bytes at a time.
    let is_wrong = |byte: u8| is_control(byte) & (byte != b'\r') & (byte != b'\n');
    if received[..at].iter().fold(false, |found, &byte| found | is_wrong(byte)) {
        return None;
    }
    request_line(&received[..start_line_end], message).ok()?;
    message.cut_received(at);
    mark_hops(message).ok()?;
    Some(at)
}

/// Longest head that is parsed here, in bytes.
const HEAD_BYTES_MAX: usize = 4 << 10;

/// End of the line that begins at `at`, and beginning of the next one. `None` if it does not end,
/// or has a CR within.
#[inline]
fn line_end(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let end = at + memchr2(b'\r', b'\n', &bytes[at..])?;
    match bytes[end..] {
        [b'\n', ..] => Some((end, end + 1)),
        [b'\r', b'\n', ..] => Some((end, end + 2)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HeadStatus, parse};
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::SmallRng};

    const HEADS: [&str; 4] = [
        "GET /b1 HTTP/1.1\r\nHost: example.com\r\nAccept: text/html,*/*;q=0.8\r\n\r\n",
        "POST  http://a/b?c  HTTP/1.0\nHost:x\nContent-Length: 3\nConnection: close, x-a\nX-A: b c\n\nabc",
        "OPTIONS * HTTP/1.1\r\nHost: a:80\r\nA: \tb \r\n folded\r\nEmpty:\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nCookie: a=b; c=d\r\n\r\n",
    ];

    /// Observable content of a message.
    fn shown(message: &Message) -> (Vec<&[u8]>, Vec<message::HeaderLine<'_>>) {
        let line = vec![message.method(), message.target(), message.protocol(), message.reason()];
        (line, message.headers().collect())
    }

    #[test]
    fn fast_path_accepts_the_same_heads_as_the_parser() {
        let mut random = SmallRng::seed_from_u64(21);
        let (mut here, mut there) = (Message::new(), Message::new());
        let mut accepted = [0, 0];
        for round in 0..60_000 {
            let mut head = HEADS[round % HEADS.len()].as_bytes().to_vec();
            for _ in 0..random.random_range(0..3) {
                let at = random.random_range(0..head.len());
                let byte = match random.random_range(0..4) {
                    0 => random.random_range(0..=255),
                    _ => b" \t\r\n:\x7f/,a\0"[random.random_range(0..10)],
                };
                match random.random_range(0..3) {
                    0 => head[at] = byte,
                    1 => head.insert(at, byte),
                    _ => _ = head.remove(at),
                }
            }
            let limits = HeadLimits {
                total_bytes: random.random_range(40..200),
                line_bytes: random.random_range(20..60),
                headers_max: START_LINE_SLOTS + random.random_range(1..6),
            };
            let careful = parse(&head, &limits, &mut there, request_line);
            accepted[0] += usize::from(matches!(careful, Ok(HeadStatus::Complete { .. })));
            let Some(consumed) = parse_request(&head, &limits, &mut here) else { continue };
            accepted[1] += 1;
            let text = String::from_utf8_lossy(&head);
            assert_eq!(careful, Ok(HeadStatus::Complete { consumed }), "{text:?}");
            assert_eq!(shown(&here), shown(&there), "{text:?}");
        }
        assert!(accepted[1] > 100 && accepted[0] > accepted[1], "{accepted:?}");
    }

    #[test]
    fn heads_of_browsers_take_the_fast_path() {
        let limits = HeadLimits { total_bytes: 32 << 10, line_bytes: 8 << 10, headers_max: 64 };
        let mut message = Message::new();
        assert_eq!(parse_request(HEADS[0].as_bytes(), &limits, &mut message), Some(HEADS[0].len()));
        assert_eq!(message.get("host"), Some(&b"example.com"[..]));
        let partial = &HEADS[0].as_bytes()[..HEADS[0].len() - 1];
        assert_eq!(parse_request(partial, &limits, &mut message), None);
    }
}
