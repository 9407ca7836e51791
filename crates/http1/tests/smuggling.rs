//! Requests and responses that two parsers could split differently, and our result for each.
//!
//! The table is the source of `docs/reference/request-smuggling.md`; a test compares the two. To
//! write the document again: `COPAL_WRITE_DOCS=1 cargo test -p http1 --test smuggling`.
//!
//! `varnish` is the answer of varnishd 7.1.1 to the same bytes; if our answer differs, `why` gives
//! the reason.

use http1::{
    BodyDecoder, BodyLength, HeadLimits, HeadStatus, connection_options, parse_request, parse_response,
    request_body_length, response_body_length, split_absolute_form,
};
use message::Message;
use std::fmt::Write;

const LIMITS: HeadLimits = HeadLimits { total_bytes: 32 << 10, line_bytes: 8 << 10, headers_max: 64 };

struct Case {
    what: &'static str,
    bytes: &'static str,
    /// Our answer, see [`request`] and [`response`].
    ours: &'static str,
    /// Varnish's answer, in the same form; empty if it is the same.
    varnish: &'static str,
    why: &'static str,
}

const fn same(what: &'static str, bytes: &'static str, ours: &'static str) -> Case {
    Case { what, bytes, ours, varnish: "", why: "" }
}

const fn differs(
    what: &'static str,
    bytes: &'static str,
    ours: &'static str,
    varnish: &'static str,
    why: &'static str,
) -> Case {
    Case { what, bytes, ours, varnish, why }
}

/// Reads one request and shows the body and the rest: `accepted, body "hello", next "GET"`. In the
/// cases, the bytes after the body begin with `GET`, so a parser that is led astray shows it.
fn request(bytes: &[u8]) -> String {
    let mut message = Message::new();
    let consumed = match parse_request(bytes, &LIMITS, &mut message) {
        Err(error) => return refused(error.bogo_header()),
        Ok(HeadStatus::Partial) => return "waits for more".to_owned(),
        Ok(HeadStatus::Complete { consumed }) => consumed,
    };
    if let Err(error) = connection_options(&message) {
        return refused(Some(error.text().to_owned()));
    }
    // The request machine refuses several Host headers; the table shows the behaviour of the whole.
    if message.get_all("Host").count() > 1 {
        return refused(Some("Multiple Host: headers".to_owned()));
    }
    match request_body_length(&message) {
        Err(error) => refused(Some(error.text().to_owned())),
        Ok(length) => {
            assert_ne!(length, BodyLength::UntilClose, "a request has an end");
            read_body(length, &bytes[consumed..])
        }
    }
}

fn response(bytes: &[u8]) -> String {
    let mut message = Message::new();
    let consumed = match parse_response(bytes, &LIMITS, &mut message) {
        Err(error) => return refused(error.bogo_header()),
        Ok(HeadStatus::Partial) => return "waits for more".to_owned(),
        Ok(HeadStatus::Complete { consumed }) => consumed,
    };
    let closes = connection_options(&message).map_or(true, |options| options.close);
    match response_body_length(&message, b"GET") {
        Err(error) => refused(Some(error.text().to_owned())),
        Ok(length) => read_body(length, &bytes[consumed..]) + if closes { ", then close" } else { "" },
    }
}

/// Reads one request and shows the request to its origin: `GET /a at "example.com"`.
fn asked(bytes: &[u8]) -> String {
    let mut message = Message::new();
    match parse_request(bytes, &LIMITS, &mut message) {
        Err(error) => return refused(error.bogo_header()),
        Ok(HeadStatus::Partial) => return "waits for more".to_owned(),
        Ok(HeadStatus::Complete { .. }) => {}
    }
    let form = split_absolute_form(message.method(), message.target()).expect("it was looked at");
    let target = form.map_or_else(|| message.target().to_vec(), |form| form.origin_form(message.method()));
    let host = form.map(|form| form.host).or(message.get("Host")).unwrap_or_default();
    let [method, target, host] = [message.method(), &target, host].map(String::from_utf8_lossy);
    format!("{method} {target} at \"{host}\"")
}

fn refused(why: Option<String>) -> String {
    why.map_or_else(|| "refused".to_owned(), |why| format!("refused: {why}"))
}

fn read_body(length: BodyLength, mut rest: &[u8]) -> String {
    let mut decoder = BodyDecoder::new(length);
    let mut body = Vec::new();
    loop {
        match decoder.step(rest) {
            Err(error) => return format!("body refused: {}", error.text()),
            Ok(step) => {
                body.extend_from_slice(&rest[step.skip..][..step.data]);
                rest = &rest[step.skip + step.data..];
                if step.done {
                    break;
                }
                if step.data == 0 {
                    if length == BodyLength::UntilClose {
                        break;
                    }
                    return "waits for more of the body".to_owned();
                }
            }
        }
    }
    let next: String = rest.iter().take(3).map(|&byte| char::from(byte)).collect();
    format!("accepted, body {:?}, next {next:?}", String::from_utf8_lossy(&body))
}

const PLAIN: &str = "accepted, body \"\", next \"\"";
const HELLO: &str = "accepted, body \"hello\", next \"GET\"";
const TE: &str = "refused: unknown Transfer-Encoding";
const LENGTH: &str = "refused: malformed Content-Length";

static HEADS: &[Case] = &[
    same("bare LF ends lines", "GET /a HTTP/1.1\nHost: a\n\n", PLAIN),
    same("bare LF ends the head only", "GET /a HTTP/1.1\r\nHost: a\r\n\n", PLAIN),
    same("CR CR LF does not end the head", "GET /a HTTP/1.1\r\nHost: a\r\n\r\r\n", "waits for more"),
    same("blank lines first", "\r\n\r\n  \t\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n", PLAIN),
    same("bare CR in a value", "GET /a HTTP/1.1\r\nX: a\rb\r\n\r\n", "refused: Header has ctrl char 0x0d"),
    same("CR before the line end", "GET /a HTTP/1.1\r\nX: a\r\r\n\r\n", "refused: Header has ctrl char 0x0d"),
    same("NUL in a value", "GET /a HTTP/1.1\r\nX: a\0b\r\n\r\n", "refused: Header has ctrl char 0x00"),
    same("NUL in a name", "GET /a HTTP/1.1\r\nX\0Y: a\r\n\r\n", "refused: Header has ctrl char 0x00"),
    same("DEL in a value", "GET /a HTTP/1.1\r\nX: a\x7fb\r\n\r\n", "refused: Header has ctrl char 0x7f"),
    same("vertical tab in a value", "GET /a HTTP/1.1\r\nX: a\x0bb\r\n\r\n", "refused: Header has ctrl char 0x0b"),
    same("tab in a value", "GET /a HTTP/1.1\r\nX: a\tb\r\n\r\n", PLAIN),
    same("blank before the colon", "GET /a HTTP/1.1\r\nX : a\r\n\r\n", "refused: Illegal char 0x20 in header name"),
    same("tab before the colon", "GET /a HTTP/1.1\r\nX\t: a\r\n\r\n", "refused: Illegal char 0x09 in header name"),
    same("blank in a name", "GET /a HTTP/1.1\r\nX Y: a\r\n\r\n", "refused: Illegal char 0x20 in header name"),
    same("separator in a name", "GET /a HTTP/1.1\r\nX(Y: a\r\n\r\n", "refused: Illegal char 0x28 in header name"),
    same("no name", "GET /a HTTP/1.1\r\n: a\r\n\r\n", "refused: Missing header name: : a"),
    same(
        "no colon",
        "GET /a HTTP/1.1\r\nJustoneverylongwordthathasnone\r\n\r\n",
        "refused: Header without ':' Justoneverylongwordt",
    ),
    same("folded value", "GET /a HTTP/1.1\r\nX: a\r\n b\r\n\r\n", PLAIN),
    same("fold first", "GET /a HTTP/1.1\r\n X: a\r\n\r\n", "refused: 1st header has white space:  X: a"),
    differs(
        "folded Content-Length",
        "POST /a HTTP/1.1\r\nContent-Length:\r\n 5\r\n\r\nhelloGET",
        "refused: Folded framing header: Content-Length:   5",
        HELLO,
        "A reader that ignores folded lines sees no length.",
    ),
    differs(
        "folded Transfer-Encoding",
        "POST /a HTTP/1.1\r\nTransfer-Encoding:\r\n chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET",
        "refused: Folded framing header: Transfer-Encoding:  ",
        HELLO,
        "A reader that ignores folded lines sees no coding.",
    ),
    differs(
        "folded Host",
        "GET /a HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
        "refused: Folded framing header: Host: a   b",
        PLAIN,
        "The host decides what is answered; readers disagree on a folded one.",
    ),
    same("two Hosts", "GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "refused: Multiple Host: headers"),
    same("two equal Hosts", "GET /a HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", "refused: Multiple Host: headers"),
    same(
        "Connection names Host",
        "GET /a HTTP/1.1\r\nHost: a\r\nConnection: host\r\n\r\n",
        "refused: protected header named in Connection",
    ),
    same(
        "Connection names Content-Length",
        "GET /a HTTP/1.1\r\nConnection: close, content-length\r\n\r\n",
        "refused: protected header named in Connection",
    ),
];

static START_LINES: &[Case] = &[
    same("several spaces", "GET  /a  HTTP/1.1\r\n\r\n", PLAIN),
    same("tabs for spaces", "GET\t/a\tHTTP/1.1\r\n\r\n", "refused"),
    same("space in the target", "GET /a b HTTP/1.1\r\n\r\n", "refused"),
    same("space behind the version", "GET /a HTTP/1.1 \r\n\r\n", "refused"),
    same("junk behind the version", "GET /a HTTP/1.1 x\r\n\r\n", "refused"),
    same("HTTP/0.9", "GET /a\r\n\r\n", "refused"),
    same("HTTP/1.2", "GET /a HTTP/1.2\r\n\r\n", "refused"),
    same("HTTP/2.0", "GET /a HTTP/2.0\r\n\r\n", "refused"),
    same("HTTP/1.10", "GET /a HTTP/1.10\r\n\r\n", "refused"),
    same("HTTP/01.1", "GET /a HTTP/01.1\r\n\r\n", "refused"),
    same("http/1.1", "GET /a http/1.1\r\n\r\n", PLAIN),
    same("no method", " /a HTTP/1.1\r\n\r\n", "refused"),
    same("control character in the method", "G\x01T /a HTTP/1.1\r\n\r\n", "refused"),
    same("NUL in the target", "GET /a\0b HTTP/1.1\r\n\r\n", "refused"),
    same("bare CR in the target", "GET /a\rb HTTP/1.1\r\n\r\n", "refused"),
    same("bytes above 127 in the target", "GET /\u{e9} HTTP/1.1\r\n\r\n", PLAIN),
];

macro_rules! post {
    ($headers:literal, $body:literal) => {
        concat!("POST /a HTTP/1.1\r\nHost: a\r\n", $headers, "\r\n", $body, "GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
    };
}

macro_rules! length {
    ($value:literal) => {
        concat!("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length:", $value, "\r\n\r\nhelloGET /next HTTP/1.1\r\n\r\n")
    };
}

macro_rules! coding {
    ($headers:literal) => {
        post!($headers, "5\r\nhello\r\n0\r\n\r\n")
    };
}

static LENGTHS: &[Case] = &[
    same("a number", length!(" 5"), HELLO),
    same("blanks around it", length!("\t5 "), HELLO),
    same("leading zeros", length!(" 0000000005"), HELLO),
    same("+5", length!(" +5"), LENGTH),
    same("-5", length!(" -5"), LENGTH),
    same("0x5", length!(" 0x5"), LENGTH),
    same("5.0", length!(" 5.0"), LENGTH),
    same("5;", length!(" 5;"), LENGTH),
    same("5x", length!(" 5x"), LENGTH),
    same("5 5", length!(" 5 5"), LENGTH),
    same("5, 5", length!(" 5, 5"), LENGTH),
    same("empty", length!(""), LENGTH),
    same("2^63", length!(" 9223372036854775808"), LENGTH),
    same("more than 64 bits", length!(" 99999999999999999999"), LENGTH),
    same(
        "twice, different",
        post!("Content-Length: 5\r\nContent-Length: 6\r\n", "hello"),
        "refused: several Content-Length headers",
    ),
    same(
        "twice, equal",
        post!("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"),
        "refused: several Content-Length headers",
    ),
    same("none", "POST /a HTTP/1.1\r\n\r\nGET", "accepted, body \"\", next \"GET\""),
    same("none, HTTP/1.0 POST", "POST /a HTTP/1.0\r\n\r\nGET", "refused: a length is required"),
    same("none, HTTP/1.0 PUT", "PUT /a HTTP/1.0\r\n\r\nGET", "refused: a length is required"),
    same("none, HTTP/1.0 GET", "GET /a HTTP/1.0\r\n\r\nGET", "accepted, body \"\", next \"GET\""),
    same("HEAD with a body", "HEAD /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhelloGET", "refused: unexpected body"),
    same("HEAD, length 0", "HEAD /a HTTP/1.1\r\nContent-Length: 0\r\n\r\nGET", "accepted, body \"\", next \"GET\""),
    same("GET with a body", "GET /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhelloGET", HELLO),
];

static CODINGS: &[Case] = &[
    same("chunked", coding!("Transfer-Encoding: chunked\r\n"), HELLO),
    same("ChunKed", coding!("Transfer-Encoding: ChunKed\r\n"), HELLO),
    same("blanks around it", coding!("Transfer-Encoding:\t  chunked \t\r\n"), HELLO),
    same(
        "and Content-Length",
        coding!("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
        "refused: both Transfer-Encoding and Content-Length",
    ),
    same(
        "behind Content-Length",
        coding!("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
        "refused: both Transfer-Encoding and Content-Length",
    ),
    same("xchunked", coding!("Transfer-Encoding: xchunked\r\n"), TE),
    same("chunked, identity", coding!("Transfer-Encoding: chunked, identity\r\n"), TE),
    same("identity", coding!("Transfer-Encoding: identity\r\n"), TE),
    same("gzip, chunked", coding!("Transfer-Encoding: gzip, chunked\r\n"), TE),
    same("chunked, chunked", coding!("Transfer-Encoding: chunked, chunked\r\n"), TE),
    same(",chunked", coding!("Transfer-Encoding: ,chunked\r\n"), TE),
    same("\"chunked\"", coding!("Transfer-Encoding: \"chunked\"\r\n"), TE),
    same("chunked;q=1", coding!("Transfer-Encoding: chunked;q=1\r\n"), TE),
    same("empty", coding!("Transfer-Encoding:\r\n"), TE),
    same("vertical tab", coding!("Transfer-Encoding: \x0bchunked\r\n"), "refused: Header has ctrl char 0x0b"),
    same(
        "blank before the colon",
        coding!("Transfer-Encoding : chunked\r\n"),
        "refused: Illegal char 0x20 in header name",
    ),
    differs(
        "twice",
        coding!("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        TE,
        HELLO,
        "Together they say `chunked, chunked`, which is not allowed; readers take the first, the last or both.",
    ),
    differs(
        "a second, other one",
        coding!("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"),
        TE,
        HELLO,
        "A reader that takes the last header sees no chunks.",
    ),
    differs(
        "in HTTP/1.0",
        "POST /a HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET",
        "refused: Transfer-Encoding in HTTP/1.0",
        HELLO,
        "HTTP/1.0 has no such header: a 1.0 proxy in front may have passed it on unread (RFC 9112 §6.1).",
    ),
];

macro_rules! chunks {
    ($body:literal) => {
        post!("Transfer-Encoding: chunked\r\n", $body)
    };
}

const NO_LINE_END: &str = "body refused: chunked header no NL";
const NOT_HEX: &str = "body refused: chunked header non-hex";
const TAIL: &str = "body refused: chunked tail no NL";
const TOO_LARGE: &str = "body refused: bogusly large chunk size";
const IGNORED: &str =
    "According to RFC 9112 §7.1 it is ignored; Copal does so if it is within bounds and free of control characters.";

static CHUNKS: &[Case] = &[
    same("leading zeros", chunks!("0000005\r\nhello\r\n000\r\n\r\n"), HELLO),
    same("blanks behind the size", chunks!("5 \t\r\nhello\r\n0\r\n\r\n"), HELLO),
    differs(
        "blank before the size",
        chunks!(" 5\r\nhello\r\n0\r\n\r\n"),
        NOT_HEX,
        HELLO,
        "Not in the grammar, and no sender is known to write it.",
    ),
    same("0x5", chunks!("0x5\r\nhello\r\n0\r\n\r\n"), NO_LINE_END),
    same("+5", chunks!("+5\r\nhello\r\n0\r\n\r\n"), NOT_HEX),
    same("-5", chunks!("-5\r\nhello\r\n0\r\n\r\n"), NOT_HEX),
    same("no size", chunks!("\r\nhello\r\n0\r\n\r\n"), NOT_HEX),
    same("5g", chunks!("5g\r\nhello\r\n0\r\n\r\n"), NO_LINE_END),
    same("NUL behind the size", chunks!("5\0\r\nhello\r\n0\r\n\r\n"), NO_LINE_END),
    same("2^63", chunks!("8000000000000000\r\nhello\r\n0\r\n\r\n"), TOO_LARGE),
    same("a size that wraps to 5", chunks!("10000000000000005\r\nhello\r\n0\r\n\r\n"), TOO_LARGE),
    same("bare LF behind sizes and chunks", chunks!("5\nhello\n0\n\n"), HELLO),
    same("bare CR behind the size", chunks!("5\rhello\r\n0\r\n\r\n"), NO_LINE_END),
    same("CR CR LF behind the size", chunks!("5\r\r\nhello\r\n0\r\n\r\n"), NO_LINE_END),
    same("nothing behind the chunk", chunks!("5\r\nhello0\r\n\r\n"), TAIL),
    same("other bytes behind the chunk", chunks!("5\r\nhelloxx0\r\n\r\n"), TAIL),
    same("bare CR behind the chunk", chunks!("5\r\nhello\r0\r\n\r\n"), TAIL),
    same("junk for a trailer", chunks!("5\r\nhello\r\n0\r\nxx"), TAIL),
    differs("extension", chunks!("5;a=b\r\nhello\r\n0;c\r\n\r\n"), HELLO, NO_LINE_END, IGNORED),
    differs("blank before the extension", chunks!("5 ;a=b\r\nhello\r\n0\r\n\r\n"), HELLO, NO_LINE_END, IGNORED),
    same("bare LF behind an extension", chunks!("5;a\nhello\r\n0\r\n\r\n"), NO_LINE_END),
    same("bare LF in a quoted extension", chunks!("5;a=\"b\nc\"\r\nhello\r\n0\r\n\r\n"), NO_LINE_END),
    same("bare CR in an extension", chunks!("5;a\rb\r\nhello\r\n0\r\n\r\n"), NO_LINE_END),
    differs("trailer", chunks!("5\r\nhello\r\n0\r\nX-T: a\r\n\r\n"), HELLO, TAIL, IGNORED),
    differs(
        "Content-Length for a trailer",
        chunks!("5\r\nhello\r\n0\r\nContent-Length: 50\r\n\r\n"),
        HELLO,
        TAIL,
        "Trailers are dropped unread; they change nothing.",
    ),
    same("folded trailer", chunks!("5\r\nhello\r\n0\r\nX-T: a\r\n b\r\n\r\n"), TAIL),
    same("blank before a trailer's colon", chunks!("5\r\nhello\r\n0\r\nX-T : a\r\n\r\n"), TAIL),
    same("control character in a trailer", chunks!("5\r\nhello\r\n0\r\nX-T: \x01\r\n\r\n"), TAIL),
];

static RESPONSES: &[Case] = &[
    same("a length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTT", "accepted, body \"ok\", next \"HTT\""),
    differs(
        "lengths that differ",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        "refused: several Content-Length headers",
        "accepted, body \"ok\", next \"\"",
        "Varnish uses the first and passes both on.",
    ),
    same(
        "equal lengths",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
        "accepted, body \"ok\", next \"\"",
    ),
    differs(
        "equal lengths in a list",
        "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok",
        "accepted, body \"ok\", next \"\"",
        LENGTH,
        "RFC 9112 §6.3 allows it; Copal turns the list into one number before anybody else sees it.",
    ),
    same("+2", "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok", LENGTH),
    same(
        "Transfer-Encoding and Content-Length",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "refused: both Transfer-Encoding and Content-Length",
    ),
    same("unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", TE),
    differs(
        "coding twice",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        TE,
        "accepted, body \"ok\", next \"\"",
        "As for requests.",
    ),
    same(
        "chunked from HTTP/1.0",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "accepted, body \"ok\", next \"\", then close",
    ),
    same("no length", "HTTP/1.1 200 OK\r\n\r\nall of it", "accepted, body \"all of it\", next \"\""),
    differs(
        "no length, keep-alive",
        "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\nall of it",
        "accepted, body \"\", next \"all\", then close",
        "accepted, body \"\", next \"all\"",
        "No body, as in Varnish, but the connection is not used again: what follows is not a response.",
    ),
    same("204 with a body", "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok", "refused: unexpected body"),
    same(
        "304 with a length",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nHTT",
        "accepted, body \"\", next \"HTT\"",
    ),
    same("interim response", "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "refused: interim response"),
];

static HOSTS: &[Case] = &[
    same("an empty port", "GET /p HTTP/1.1\r\nHost: a:\r\n\r\n", "GET /p at \"a:\""),
    same("port 0", "GET /p HTTP/1.1\r\nHost: a:0\r\n\r\n", "GET /p at \"a:0\""),
    same("the last port", "GET /p HTTP/1.1\r\nHost: a:65535\r\n\r\n", "GET /p at \"a:65535\""),
    same("an IPv6 address", "GET /p HTTP/1.1\r\nHost: [::1]\r\n\r\n", "GET /p at \"[::1]\""),
    same("an IPv6 address and a port", "GET /p HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "GET /p at \"[::1]:80\""),
    same("a zone", "GET /p HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\n\r\n", "GET /p at \"[fe80::1%25eth0]\""),
    same("an address of a later version", "GET /p HTTP/1.1\r\nHost: [v1.x]\r\n\r\n", "GET /p at \"[v1.x]\""),
    same("empty", "GET /p HTTP/1.1\r\nHost: \r\n\r\n", "GET /p at \"\""),
    same("underscore", "GET /p HTTP/1.1\r\nHost: a_b\r\n\r\n", "GET /p at \"a_b\""),
    same("a letter in hexadecimal", "GET /p HTTP/1.1\r\nHost: a%41\r\n\r\n", "GET /p at \"a%41\""),
    same("comma", "GET /p HTTP/1.1\r\nHost: a,b\r\n\r\n", "GET /p at \"a,b\""),
    same("bytes above 127", "GET /p HTTP/1.1\r\nHost: é\r\n\r\n", "GET /p at \"é\""),
    differs(
        "blank",
        "GET /p HTTP/1.1\r\nHost: a b\r\n\r\n",
        "refused: Malformed Host: a b",
        "GET /p at \"a b\"",
        "One reader takes what comes before the blank, another takes everything.",
    ),
    differs(
        "tab",
        "GET /p HTTP/1.1\r\nHost: a\tb\r\n\r\n",
        "refused: Malformed Host: a\tb",
        "GET /p at \"a\tb\"",
        "As with a blank.",
    ),
    differs(
        "slash",
        "GET /p HTTP/1.1\r\nHost: a/b\r\n\r\n",
        "refused: Malformed Host: a/b",
        "GET /p at \"a/b\"",
        "A reader that puts the URI together again takes what follows the slash for the path.",
    ),
    differs(
        "user",
        "GET /p HTTP/1.1\r\nHost: u@a\r\n\r\n",
        "refused: Malformed Host: u@a",
        "GET /p at \"u@a\"",
        "One reader takes what comes before the sign for the host, another takes what follows.",
    ),
    differs(
        "backslash",
        "GET /p HTTP/1.1\r\nHost: a\\b\r\n\r\n",
        "refused: Malformed Host: a\\b",
        "GET /p at \"a\\b\"",
        "Some readers take it for a slash.",
    ),
    differs(
        "fragment",
        "GET /p HTTP/1.1\r\nHost: a#b\r\n\r\n",
        "refused: Malformed Host: a#b",
        "GET /p at \"a#b\"",
        "For a reader that puts the URI together again, the host ends there.",
    ),
    differs(
        "question mark",
        "GET /p HTTP/1.1\r\nHost: a?b\r\n\r\n",
        "refused: Malformed Host: a?b",
        "GET /p at \"a?b\"",
        "As with a fragment.",
    ),
    differs(
        "a port that is no number",
        "GET /p HTTP/1.1\r\nHost: a:x\r\n\r\n",
        "refused: Malformed Host: a:x",
        "GET /p at \"a:x\"",
        "Readers disagree on what the host is then.",
    ),
    differs(
        "a port too large",
        "GET /p HTTP/1.1\r\nHost: a:65536\r\n\r\n",
        "refused: Malformed Host: a:65536",
        "GET /p at \"a:65536\"",
        "It wraps in 16 bits: to 0, or to 80 with 65616.",
    ),
    differs(
        "a port of more than 64 bits",
        "GET /p HTTP/1.1\r\nHost: a:99999999999999999999\r\n\r\n",
        "refused: Malformed Host: a:999999999999999999",
        "GET /p at \"a:99999999999999999999\"",
        "As above.",
    ),
    differs(
        "two ports",
        "GET /p HTTP/1.1\r\nHost: a:80:80\r\n\r\n",
        "refused: Malformed Host: a:80:80",
        "GET /p at \"a:80:80\"",
        "One reader cuts at the first colon, another at the last.",
    ),
    differs(
        "a port alone",
        "GET /p HTTP/1.1\r\nHost: :80\r\n\r\n",
        "refused: Malformed Host: :80",
        "GET /p at \":80\"",
        "No host is named.",
    ),
    differs(
        "an IPv6 address without brackets",
        "GET /p HTTP/1.1\r\nHost: ::1\r\n\r\n",
        "refused: Malformed Host: ::1",
        "GET /p at \"::1\"",
        "As with two ports.",
    ),
    differs(
        "a bracket that is not closed",
        "GET /p HTTP/1.1\r\nHost: [::1\r\n\r\n",
        "refused: Malformed Host: [::1",
        "GET /p at \"[::1\"",
        "Not in the grammar.",
    ),
    differs(
        "junk behind the bracket",
        "GET /p HTTP/1.1\r\nHost: [::1]x\r\n\r\n",
        "refused: Malformed Host: [::1]x",
        "GET /p at \"[::1]x\"",
        "One reader takes only the address, another takes everything.",
    ),
    differs(
        "a port of an IPv6 address that is no number",
        "GET /p HTTP/1.1\r\nHost: [::1]:x\r\n\r\n",
        "refused: Malformed Host: [::1]:x",
        "GET /p at \"[::1]:x\"",
        "As above.",
    ),
    differs(
        "no address in brackets",
        "GET /p HTTP/1.1\r\nHost: [a]\r\n\r\n",
        "refused: Malformed Host: [a]",
        "GET /p at \"[a]\"",
        "Not in the grammar.",
    ),
    differs(
        "a slash in hexadecimal",
        "GET /p HTTP/1.1\r\nHost: b%2fc\r\n\r\n",
        "refused: Malformed Host: b%2fc",
        "GET /p at \"b%2fc\"",
        "A reader that decodes it sees a slash.",
    ),
    differs(
        "a user in hexadecimal",
        "GET /p HTTP/1.1\r\nHost: u%40a\r\n\r\n",
        "refused: Malformed Host: u%40a",
        "GET /p at \"u%40a\"",
        "A reader that decodes it sees a user.",
    ),
    differs(
        "half a hexadecimal byte",
        "GET /p HTTP/1.1\r\nHost: a%4\r\n\r\n",
        "refused: Malformed Host: a%4",
        "GET /p at \"a%4\"",
        "Not in the grammar.",
    ),
    differs(
        "quotes",
        "GET /p HTTP/1.1\r\nHost: \"a\"\r\n\r\n",
        "refused: Malformed Host: \"a\"",
        "GET /p at \"\"a\"\"",
        "Not in the grammar.",
    ),
    differs(
        "angle brackets",
        "GET /p HTTP/1.1\r\nHost: a<b>\r\n\r\n",
        "refused: Malformed Host: a<b>",
        "GET /p at \"a<b>\"",
        "Not in the grammar.",
    ),
    differs(
        "braces",
        "GET /p HTTP/1.1\r\nHost: a{b}\r\n\r\n",
        "refused: Malformed Host: a{b}",
        "GET /p at \"a{b}\"",
        "Not in the grammar.",
    ),
    differs(
        "vertical bar",
        "GET /p HTTP/1.1\r\nHost: a|b\r\n\r\n",
        "refused: Malformed Host: a|b",
        "GET /p at \"a|b\"",
        "Not in the grammar.",
    ),
];

static TARGETS: &[Case] = &[
    same("a URI", "GET http://b.example/x?y HTTP/1.1\r\nHost: a\r\n\r\n", "GET /x?y at \"b.example\""),
    same("a URI with an IPv6 address", "GET http://[::1]/x HTTP/1.1\r\nHost: a\r\n\r\n", "GET /x at \"[::1]\""),
    same("a URI with an empty port", "GET http://b.example:/x HTTP/1.1\r\nHost: a\r\n\r\n", "GET /x at \"b.example:\""),
    differs(
        "a URI without a path",
        "GET http://b.example HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / at \"b.example\"",
        "GET http://b.example at \"a\"",
        "RFC 9112 §3.2.2: the target's host counts. Left as it is, the cache keys on one host and the origin answers for the other.",
    ),
    differs(
        "a URI with a query and no path",
        "GET http://b.example?x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /?x at \"b.example\"",
        "GET http://b.example?x at \"a\"",
        "As above.",
    ),
    differs(
        "a URI without a path, OPTIONS",
        "OPTIONS http://b.example HTTP/1.1\r\nHost: a\r\n\r\n",
        "OPTIONS * at \"b.example\"",
        "OPTIONS http://b.example at \"a\"",
        "RFC 9112 §3.2.4.",
    ),
    differs(
        "a URI with a query and no path, OPTIONS",
        "OPTIONS http://b.example?x HTTP/1.1\r\nHost: a\r\n\r\n",
        "OPTIONS /?x at \"b.example\"",
        "OPTIONS http://b.example?x at \"a\"",
        "As above.",
    ),
    differs(
        "a URI of https",
        "GET https://b.example/x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /x at \"b.example\"",
        "GET https://b.example/x at \"a\"",
        "As above; Varnish does this if a feature bit is set.",
    ),
    differs(
        "a URI of HTTPS without a path",
        "GET HTTPS://b.example HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / at \"b.example\"",
        "GET HTTPS://b.example at \"a\"",
        "As above.",
    ),
    differs(
        "a URI with a user",
        "GET http://u@b.example/x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /x at \"b.example\"",
        "GET /x at \"u@b.example\"",
        "RFC 9112 §3.2.2: the user is not part of the host.",
    ),
    differs(
        "a URI with a user and a password",
        "GET http://u:p@b.example/x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /x at \"b.example\"",
        "GET /x at \"u:p@b.example\"",
        "As above; and the password does not get into the origin's log.",
    ),
    differs(
        "a URI with two users",
        "GET http://u@v@b.example/x HTTP/1.1\r\nHost: a\r\n\r\n",
        "refused",
        "GET /x at \"u@v@b.example\"",
        "One reader cuts at the first sign, another at the last.",
    ),
    differs(
        "a URI with a backslash in the user",
        "GET http://u\\@b.example/x HTTP/1.1\r\nHost: a\r\n\r\n",
        "refused",
        "GET /x at \"u\\@b.example\"",
        "Some readers see the host end at the backslash.",
    ),
    differs(
        "a URI without a host",
        "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n",
        "refused",
        "GET /x at \"\"",
        "RFC 9110 §4.2.1 demands that it is refused.",
    ),
    differs(
        "a URI without anything",
        "GET http:// HTTP/1.1\r\nHost: a\r\n\r\n",
        "refused",
        "GET http:// at \"a\"",
        "As above.",
    ),
    differs(
        "a URI with a query alone",
        "GET http://?x HTTP/1.1\r\nHost: a\r\n\r\n",
        "refused",
        "GET http://?x at \"a\"",
        "As above.",
    ),
    differs(
        "a URI with a fragment and no path",
        "GET http://b.example#f HTTP/1.1\r\nHost: a\r\n\r\n",
        "refused",
        "GET http://b.example#f at \"a\"",
        "A fragment is not part of a target.",
    ),
    differs(
        "a URI with a port that is no number",
        "GET http://b.example:x/x HTTP/1.1\r\nHost: a\r\n\r\n",
        "refused",
        "GET /x at \"b.example:x\"",
        "As in Host.",
    ),
    differs(
        "a URI with a backslash in the host",
        "GET http://b\\c/x HTTP/1.1\r\nHost: a\r\n\r\n",
        "refused",
        "GET /x at \"b\\c\"",
        "As in Host.",
    ),
    differs(
        "a URI with a slash in hexadecimal in the host",
        "GET http://b%2fc/x HTTP/1.1\r\nHost: a\r\n\r\n",
        "refused",
        "GET /x at \"b%2fc\"",
        "As in Host.",
    ),
    differs(
        "a URI of http with one slash",
        "GET http:/x HTTP/1.1\r\nHost: a\r\n\r\n",
        "refused",
        "GET http:/x at \"a\"",
        "Some readers see a host in it.",
    ),
    differs(
        "a URI of http without slashes",
        "GET http:b HTTP/1.1\r\nHost: a\r\n\r\n",
        "refused",
        "GET http:b at \"a\"",
        "As above.",
    ),
    differs(
        "a URI and CONNECT",
        "CONNECT http://b.example/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "refused",
        "CONNECT / at \"b.example\"",
        "RFC 9112 §3.2.3: only a host and port may be asked for.",
    ),
    same(
        "host and port, CONNECT",
        "CONNECT b.example:443 HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT b.example:443 at \"a\"",
    ),
    same(
        "a URI of another scheme",
        "GET ftp://b.example/x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET ftp://b.example/x at \"a\"",
    ),
    same("an asterisk, OPTIONS", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * at \"a\""),
    same("two slashes", "GET //b.example/x HTTP/1.1\r\nHost: a\r\n\r\n", "GET //b.example/x at \"a\""),
];

static METHODS: &[Case] = &[
    same("lower case", "get /x HTTP/1.1\r\nHost: a\r\n\r\n", "get /x at \"a\""),
    same("every mark of a token", "!#$%&'*+-.^_`|~ /x HTTP/1.1\r\nHost: a\r\n\r\n", "!#$%&'*+-.^_`|~ /x at \"a\""),
    same("a colon first", ":x /x HTTP/1.1\r\nHost: a\r\n\r\n", ":x /x at \"a\""),
    differs(
        "two colons first",
        "::x /x HTTP/1.1\r\nHost: a\r\n\r\n",
        "refused",
        "::x /x at \"a\"",
        "RFC 9110 §9.1: a method is a token.",
    ),
    differs("a colon alone", ": /x HTTP/1.1\r\nHost: a\r\n\r\n", "refused", ": /x at \"a\"", "As above."),
    differs("commercial at", "G@T /x HTTP/1.1\r\nHost: a\r\n\r\n", "refused", "G@T /x at \"a\"", "As above."),
    differs(
        "colon",
        "GET: /x HTTP/1.1\r\nHost: a\r\n\r\n",
        "refused",
        "GET: /x at \"a\"",
        "A reader may take it for a header line.",
    ),
    differs(
        "parenthesis",
        "G(T /x HTTP/1.1\r\nHost: a\r\n\r\n",
        "refused",
        "G(T /x at \"a\"",
        "RFC 9110 §9.1: a method is a token.",
    ),
    differs("comma", "G,T /x HTTP/1.1\r\nHost: a\r\n\r\n", "refused", "G,T /x at \"a\"", "As above."),
    differs("slash", "G/T /x HTTP/1.1\r\nHost: a\r\n\r\n", "refused", "G/T /x at \"a\"", "As above."),
    differs("quote", "G\"T /x HTTP/1.1\r\nHost: a\r\n\r\n", "refused", "G\"T /x at \"a\"", "As above."),
    differs("brackets", "G[T] /x HTTP/1.1\r\nHost: a\r\n\r\n", "refused", "G[T] /x at \"a\"", "As above."),
    differs("brace", "G{T /x HTTP/1.1\r\nHost: a\r\n\r\n", "refused", "G{T /x at \"a\"", "As above."),
    differs("semicolon", "G;T /x HTTP/1.1\r\nHost: a\r\n\r\n", "refused", "G;T /x at \"a\"", "As above."),
    differs("equals sign", "G=T /x HTTP/1.1\r\nHost: a\r\n\r\n", "refused", "G=T /x at \"a\"", "As above."),
    differs("question mark", "G?T /x HTTP/1.1\r\nHost: a\r\n\r\n", "refused", "G?T /x at \"a\"", "As above."),
    differs("backslash", "G\\T /x HTTP/1.1\r\nHost: a\r\n\r\n", "refused", "G\\T /x at \"a\"", "As above."),
    differs("angle bracket", "<GET /x HTTP/1.1\r\nHost: a\r\n\r\n", "refused", "<GET /x at \"a\"", "As above."),
    differs("bytes above 127", "GÉT /x HTTP/1.1\r\nHost: a\r\n\r\n", "refused", "GÉT /x at \"a\"", "As above."),
];

/// A heading, the parser of its cases, and the cases.
type Group = (&'static str, fn(&[u8]) -> String, &'static [Case]);

static GROUPS: &[Group] = &[
    ("Start lines of requests", request, START_LINES),
    ("Methods", asked, METHODS),
    ("Targets", asked, TARGETS),
    ("Hosts", asked, HOSTS),
    ("Heads of requests", request, HEADS),
    ("Content-Length of requests", request, LENGTHS),
    ("Transfer-Encoding of requests", request, CODINGS),
    ("Chunked bodies", request, CHUNKS),
    ("Responses of backends", response, RESPONSES),
];

#[test]
fn every_case_has_its_documented_answer() {
    for (group, answer, cases) in GROUPS {
        for case in *cases {
            assert_eq!(answer(case.bytes.as_bytes()), case.ours, "{group}: {}: {:?}", case.what, case.bytes);
            assert_ne!(case.ours, case.varnish, "{}: no difference", case.what);
            assert_eq!(case.varnish.is_empty(), case.why.is_empty(), "{}: a difference has a reason", case.what);
        }
    }
}

/// True if an answer accepts the message rather than refusing it or waiting for more.
fn is_accepted(answer: &str) -> bool {
    !["refused", "body refused", "waits for more"].iter().any(|other| answer.starts_with(other))
}

#[test]
fn every_refusal_stands_however_the_bytes_come() {
    // A head is judged once it is complete: a message that is refused in one packet must not be
    // accepted in two.
    for (_, answer, cases) in GROUPS {
        for case in *cases {
            let whole = answer(case.bytes.as_bytes());
            if is_accepted(&whole) {
                continue;
            }
            for cut in 0..case.bytes.len() {
                let early = answer(&case.bytes.as_bytes()[..cut]);
                assert!(!is_accepted(&early) || early.contains("next \"\""), "{}: {early} at {cut}", case.what);
            }
        }
    }
}

#[test]
fn the_document_is_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/request-smuggling.md");
    let text = document();
    if std::env::var_os("COPAL_WRITE_DOCS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap();
    assert!(
        found == text,
        "docs/reference/request-smuggling.md is not what this table says; see the head of this file"
    );
}

fn document() -> String {
    let mut out = String::from(
        "# Request smuggling: every case and its answer\n\n\
         <!-- Written by `crates/http1/tests/smuggling.rs` from its tables; do not edit. -->\n\n\
         A proxy is open to request smuggling when it disagrees with the server behind it, or with a proxy before it, about\n\
         where a message ends. Copal refuses whatever can be read in two ways. Whatever it accepts, it sends on in one form only:\n\
         with one length or freshly made chunks, one Host, no folded lines and CR LF everywhere, without trailers and without\n\
         chunk extensions.\n\n\
         The column \"varnishd 7.1.1\" shows what that program answered to the same bytes. Where Copal answers differently, the row\n\
         says why. \"refused\" means, for a request, 400 and the connection is closed; for a response, 503 and nothing of it is\n\
         stored. When a body is refused, the request and the connection end, and the other side never sees a body that looks\n\
         complete.\n\n\
         These rules judge what a client or an origin sends. What VCL sets has the last word: if an operator writes\n\
         `set req.http.Host = \"a b\"`, the origin gets that. But no method, URL or header that VCL makes can split a message, and\n\
         Copal always decides how long a body is.\n",
    );
    for (group, _, cases) in GROUPS {
        let _ = write!(
            out,
            "\n## {group}\n\n| case | bytes | answer | varnishd 7.1.1 | why |\n| --- | --- | --- | --- | --- |\n"
        );
        for Case { what, bytes, ours, varnish, why } in *cases {
            let (cell, ours, varnish) = (cell(bytes), cell(ours), cell(varnish));
            let varnish = if varnish.is_empty() { "same".to_owned() } else { varnish };
            let _ = writeln!(out, "| {} | `{cell}` | {ours} | {varnish} | {why} |", what.replace('|', "\\|"));
        }
    }
    out.push_str(RANGES);
    out
}

/// Content of `crates/semantics/tests/range.rs`.
const RANGES: &str = "
## Numbers in ranges

These ranges are of an object of ten bytes. A client's range and the range in an origin's answer are read alike. A number beyond 64 bits
counts as a large number (RFC 9110 §14.1.1): a proxy that refused it would answer differently from the origin. The test
`crates/semantics/tests/range.rs` checks these rows.

| Range | answer | varnishd 7.1.1 |
| --- | --- | --- |
| `bytes=0-9223372036854775807` | 206, bytes 0-9/10 | same |
| `bytes=0-9223372036854775808` | 206, bytes 0-9/10 | 416 |
| `bytes=0-99999999999999999999` | 206, bytes 0-9/10 | 416 |
| `bytes=5-99999999999999999999` | 206, bytes 5-9/10 | 416 |
| `bytes=-99999999999999999999` | 206, bytes 0-9/10 | 416 |
| `bytes=99999999999999999999-` | 416 | same |
| `bytes=99999999999999999999-1` | 416 | same |
";

/// Bytes as they appear in a table cell.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '\r' => out.push('␍'),
            '\n' => out.push('␊'),
            '\t' => out.push('␉'),
            '\0' => out.push('␀'),
            '\x7f' => out.push('␡'),
            '\x01'..='\x1f' => {
                let _ = write!(out, "\\x{:02x}", u32::from(character));
            }
            '|' => out.push_str("\\|"),
            _ => out.push(character),
        }
    }
    out
}
