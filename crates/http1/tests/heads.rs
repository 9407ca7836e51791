//! Results of the head parsers for well-formed, odd and broken heads. The refusals that guard
//! against smuggling are in `smuggling.rs`.

use http1::{
    HeadError, HeadLimits, HeadStatus, parse_request, parse_response, write_request_head, write_response_head,
};
use message::Message;

const LIMITS: HeadLimits = HeadLimits { total_bytes: 32 << 10, line_bytes: 8 << 10, headers_max: 64 };

fn lines(message: &Message) -> Vec<String> {
    message.headers().map(|header| String::from_utf8_lossy(header.line()).into_owned()).collect()
}

fn response(bytes: &[u8]) -> Result<Message, HeadError> {
    let mut message = Message::new();
    match parse_response(bytes, &LIMITS, &mut message)? {
        HeadStatus::Complete { consumed } => assert_eq!(consumed, bytes.len()),
        HeadStatus::Partial => panic!("partial: {bytes:?}"),
    }
    Ok(message)
}

const BROWSER: &[u8] =
    b"GET /assets/app.js?v=3 HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux \
x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\nAccept: */*\r\nAccept-Language: en-US,en;q=0.5\r\nAccept-Encoding: \
gzip, deflate, br\r\nReferer: https://www.example.com/\r\nCookie: a=1; b=2\r\nConnection: keep-alive\r\n\r\n";

#[test]
fn a_request_is_complete_only_when_its_last_byte_is_there() {
    let mut message = Message::new();
    for cut in 0..BROWSER.len() {
        assert_eq!(parse_request(&BROWSER[..cut], &LIMITS, &mut message), Ok(HeadStatus::Partial), "{cut}");
    }
    let mut bytes = BROWSER.to_vec();
    bytes.extend_from_slice(b"GET /next");
    let status = parse_request(&bytes, &LIMITS, &mut message);
    assert_eq!(status, Ok(HeadStatus::Complete { consumed: BROWSER.len() }));
    assert_eq!(
        (message.method(), message.target(), message.protocol()),
        (&b"GET"[..], &b"/assets/app.js?v=3"[..], &b"HTTP/1.1"[..])
    );
    assert_eq!(message.header_count(), 8);
    assert_eq!(message.get("cookie"), Some(&b"a=1; b=2"[..]));
}

#[test]
fn a_request_is_written_as_it_was_read() {
    let mut message = Message::new();
    parse_request(BROWSER, &LIMITS, &mut message).unwrap();
    let mut out = Vec::new();
    write_request_head(&message, &mut out);
    assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(BROWSER));
}

#[test]
fn values_lose_surrounding_blanks_and_lines_keep_leading_ones() {
    let mut message = Message::new();
    let bytes = b"GET / HTTP/1.1\r\nA: \t one \t \r\nB:two\r\nC:\r\nD:   \r\n\r\n";
    parse_request(bytes, &LIMITS, &mut message).unwrap();
    assert_eq!(lines(&message), ["A: \t one", "B:two", "C:", "D:"]);
    let values: Vec<_> = message.headers().map(|header| header.value().to_vec()).collect();
    assert_eq!(values, [&b"one"[..], b"two", b"", b""]);
}

#[test]
fn folded_lines_are_joined_with_one_space_for_each_byte_of_the_fold() {
    let mut message = Message::new();
    let bytes = b"GET / HTTP/1.1\r\nA: one\r\n  two\r\n\tthree\r\nB: b\n c\r\n \r\nC: d\r\n\r\n";
    parse_request(bytes, &LIMITS, &mut message).unwrap();
    assert_eq!(lines(&message), ["A: one    two   three", "B: b  c", "C: d"]);
}

#[test]
fn the_head_limit_counts_every_byte_and_is_inclusive() {
    let mut message = Message::new();
    let head = b"GET / HTTP/1.1\r\nA: b\r\n\r\n";
    let limits = |total_bytes| HeadLimits { total_bytes, ..LIMITS };
    assert!(matches!(parse_request(head, &limits(head.len()), &mut message), Ok(HeadStatus::Complete { .. })));
    assert_eq!(parse_request(head, &limits(head.len() - 1), &mut message), Err(HeadError::Overflow));
    assert_eq!(parse_request(&head[..10], &limits(10), &mut message), Err(HeadError::Overflow));
    assert_eq!(parse_request(&head[..10], &limits(11), &mut message), Ok(HeadStatus::Partial));
    assert_eq!(parse_request(&[b'\n'; 50], &limits(50), &mut message), Err(HeadError::Overflow));
}

#[test]
fn line_and_count_limits_are_inclusive() {
    let mut message = Message::new();
    let mut parse = |line_len: usize, count: usize| {
        let mut bytes = b"GET / HTTP/1.1\r\n".to_vec();
        for _ in 0..count {
            bytes.extend_from_slice(b"A: ");
            bytes.resize(bytes.len() + line_len - 3, b'x');
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        parse_request(&bytes, &LIMITS, &mut message).map_err(|error| error.bogo_header())
    };
    assert!(parse(8192, 1).is_ok());
    assert_eq!(parse(8193, 1), Err(Some("Header too long: A: xxxxxxxxxxxxxxxxx".to_owned())));
    assert!(parse(4, 59).is_ok());
    assert_eq!(parse(4, 60), Err(Some("Too many headers: A: x".to_owned())));
}

#[test]
fn no_limit_lets_a_line_outgrow_its_offsets() {
    let mut message = Message::new();
    let unlimited = HeadLimits { total_bytes: usize::MAX, line_bytes: usize::MAX, headers_max: usize::MAX };
    let mut bytes = b"GET / HTTP/1.1\r\n".to_vec();
    bytes.resize(bytes.len() + 70_000, b'n');
    bytes.extend_from_slice(b": v\r\n\r\n");
    assert!(matches!(parse_request(&bytes, &unlimited, &mut message), Err(HeadError::LineTooLong(_))));
}

#[test]
fn status_lines_are_read_as_leniently_as_varnish_reads_them() {
    let start = |line: &str| {
        response(format!("{line}\r\n\r\n").as_bytes()).map(|message| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            format!("{}|{}|{}", text(message.protocol()), message.status(), text(message.reason()))
        })
    };
    let good = [
        ("HTTP/1.1 200 OK", "HTTP/1.1|200|OK"),
        ("HTTP/1.0 404 Not there", "HTTP/1.0|404|Not there"),
        ("HTTP/1.1 200", "HTTP/1.1|200|OK"),
        ("HTTP/1.1 200 ", "HTTP/1.1|200|OK"),
        ("HTTP/1.1 299", "HTTP/1.1|299|Unknown HTTP Status"),
        ("HTTP/1.1  200  OK  fine", "HTTP/1.1|200|OK  fine"),
        ("HTTP/1.2 200 OK", "HTTP/1.1|200|OK"),
        ("HTTP/2.0 200 OK", "HTTP/1.1|200|OK"),
        ("http/1.1 200 OK", "http/1.1|200|OK"),
        ("HTTP/1.1 999 O\tK", "HTTP/1.1|999|O\tK"),
    ];
    for (line, expect) in good {
        assert_eq!(start(line).as_deref(), Ok(expect), "{line}");
    }
    let bad = [
        ("ICY 200 OK", HeadError::Version),
        ("HTTP/1 200 OK", HeadError::Version),
        ("HTTP/1.1\t200\tOK", HeadError::StartLine),
        ("hello", HeadError::Version),
        ("HTTP/1.1", HeadError::StartLine),
        ("HTTP/1.1 99 OK", HeadError::Status),
        ("HTTP/1.1 099 OK", HeadError::Status),
        ("HTTP/1.1 1000 OK", HeadError::Status),
        ("HTTP/1.1 20x OK", HeadError::Status),
        ("HTTP/1.1 +20 OK", HeadError::Status),
        ("HTTP/1.1 200 O\x01K", HeadError::StartLine),
        ("HTTP/1.1 200 O\rK", HeadError::StartLine),
    ];
    for (line, expect) in bad {
        assert_eq!(start(line), Err(expect), "{line}");
    }
}

#[test]
fn equal_lengths_of_a_response_become_one() {
    let lengths = |headers: &str| {
        let message = response(format!("HTTP/1.1 200 OK\r\n{headers}\r\n").as_bytes()).unwrap();
        lines(&message)
    };
    assert_eq!(lengths("Content-Length: 2\r\nA: b\r\ncontent-length: 2\r\n"), ["A: b", "Content-Length: 2"]);
    assert_eq!(lengths("Content-Length: 2 , 2\r\n"), ["Content-Length: 2"]);
    assert_eq!(lengths("Content-Length: 2, 3\r\n"), ["Content-Length: 2, 3"]);
}

#[test]
fn a_response_is_written_with_its_status_modulo_1000() {
    let mut message = response(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n").unwrap();
    let mut out = Vec::new();
    message.set_status(3206);
    write_response_head(&message, &mut out);
    message.set_status(1004);
    write_response_head(&message, &mut out);
    assert_eq!(str::from_utf8(&out), Ok("HTTP/1.1 206 OK\r\nA: b\r\n\r\nHTTP/1.1 004 OK\r\nA: b\r\n\r\n"));
}
