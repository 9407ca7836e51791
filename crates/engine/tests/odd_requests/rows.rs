//! The rows: the request, and its outcome over HTTP/1, HTTP/2 and HTTP/3.
//!
//! A malformed request of HTTP/2 or HTTP/3 ends its stream where a codec detects it, and
//! is answered with 400 where Copal does; RFC 9113 §8.1.1 and RFC 9114 §4.1.2 allow both.

use super::End::{Answered, Reset, Served, Unsaid};
use super::{End, LEFT_OUT, Row};

/// The same everywhere.
fn all(end: End) -> [End; 3] {
    [end; 3]
}

pub(super) fn paths() -> Vec<Row> {
    let path = |what, path: &str, ends| Row::changed(what, &[(":path", path)], ends);
    vec![
        path("empty", "", [Answered(400), Reset, Reset]),
        path("no leading slash", "odd", [Served("GET odd | host: a.example"), Reset, Reset]),
        path("*", "*", [Served("GET * | host: a.example"), Answered(400), Answered(400)]),
        Row::changed(
            "* of OPTIONS",
            &[(":method", "OPTIONS"), (":path", "*")],
            all(Served("OPTIONS * | host: a.example")),
        ),
        path("a query alone", "?a", [Served("GET ?a | host: a.example"), Answered(400), Answered(400)]),
        path("a URI", "http://b.example/odd", [Served("GET /odd | host: b.example"), Reset, Reset]),
        path("two slashes", "//b.example/odd", all(Served("GET //b.example/odd | host: a.example"))),
        path("backslash", "/a\\b", all(Served("GET /a\\b | host: a.example"))),
        path("dots", "/a/../../b", all(Served("GET /a/../../b | host: a.example"))),
        path("a blank", "/a b", [Answered(400), Reset, Reset]),
        path("a blank behind", "/a ", [Served("GET /a | host: a.example"), Reset, Reset]),
        path("a second request line", "/a HTTP/1.1\r\nX: y\r\n\r\nGET /b", [Unsaid, Reset, Reset]),
        path("tab", "/a\tb", [Answered(400), Reset, Reset]),
        path("NUL", "/a\0b", [Answered(400), Reset, Reset]),
        path("escape", "/a\x1bb", [Answered(400), Reset, Reset]),
        path("delete", "/a\x7fb", [Answered(400), Reset, Reset]),
        path("bare CR", "/a\rb", [Answered(400), Reset, Reset]),
        path("bare LF", "/a\nb", [Answered(400), Reset, Reset]),
        path("a fragment", "/a#b", [Served("GET /a | host: a.example"), Reset, Reset]),
        path("above 127", "/\u{e9}", all(Served("GET /\u{e9} | host: a.example"))),
        path("what some do not escape", "/\"^{|}?^`{|}", all(Served("GET /\"^{|}?^`{|} | host: a.example"))),
        path(
            "what everybody escapes",
            "/<>`",
            [Served("GET /<>` | host: a.example"), Served("GET /<>` | host: a.example"), Reset],
        ),
        path("half an escape", "/%", all(Served("GET /% | host: a.example"))),
    ]
}

pub(super) fn methods() -> Vec<Row> {
    let method = |what, method: &str, ends| Row::changed(what, &[(":method", method)], ends);
    vec![
        method("lower case", "get", all(Served("get /odd | host: a.example"))),
        method("unknown", "BREW", all(Served("BREW /odd | host: a.example"))),
        method("all marks", "!#$%&'*+-.^_`|~", all(Served("!#$%&'*+-.^_`|~ /odd | host: a.example"))),
        method("empty", "", [Answered(400), Reset, Reset]),
        method("a blank", "GE T", [Answered(400), Reset, Reset]),
        method("a request line", "GET /a HTTP/1.1\r\nX:", [Unsaid, Reset, Reset]),
        method("a slash", "GET/", [Answered(400), Reset, Reset]),
        method("a colon", "GET:", [Answered(400), Reset, Reset]),
        method("above 127", "G\u{c9}T", [Answered(400), Reset, Reset]),
        method("NUL", "GET\0", [Answered(400), Reset, Reset]),
        method("CONNECT with a path", "CONNECT", [Served("CONNECT /odd | host: a.example"), Reset, Reset]),
        Row::changed(
            "CONNECT",
            &[(":method", "CONNECT"), (":scheme", LEFT_OUT), (":path", LEFT_OUT), (":authority", "b.example:443")],
            [Unsaid, Answered(400), Answered(400)],
        ),
        method("TRACE", "TRACE", all(Served("TRACE /odd | host: a.example"))),
        method("PRI", "PRI", all(Served("PRI /odd | host: a.example"))),
    ]
}

pub(super) fn hosts() -> Vec<Row> {
    let host = |what, host: &str, ends| Row::changed(what, &[(":authority", host)], ends);
    let refused = [Answered(400), Reset, Reset];
    vec![
        host("missing", LEFT_OUT, [Served("GET /odd | host: 10.0.0.1"), Served("GET /odd | host: 10.0.0.1"), Reset]),
        host("empty", "", [Served("GET /odd | host: "), Reset, Reset]),
        host("a port", "a.example:8080", all(Served("GET /odd | host: a.example:8080"))),
        host("an empty port", "a.example:", all(Served("GET /odd | host: a.example:"))),
        host("a port too large", "a.example:65536", all(Answered(400))),
        host("a port that is no number", "a.example:x", all(Answered(400))),
        host("an address", "[2001:db8::1]:80", all(Served("GET /odd | host: [2001:db8::1]:80"))),
        host("half an address", "[2001:db8::1", [Answered(400), Answered(400), Reset]),
        host("a user", "u@a.example", all(Answered(400))),
        host("a user and a password", "u:p@a.example", all(Answered(400))),
        host("a blank", "a b", refused),
        host("a slash", "a/b", refused),
        host("a backslash", "a\\b", refused),
        host("a question mark", "a?b", refused),
        host("a fragment", "a#b", refused),
        host("a comma", "a,b", all(Served("GET /odd | host: a,b"))),
        host("NUL", "a\0", [Answered(400), Reset, Reset]),
        host("a line end", "a\r\nX: y", [Unsaid, Reset, Reset]),
        Row::changed(
            "in a field alone",
            &[(":authority", LEFT_OUT), ("host", "b.example")],
            all(Served("GET /odd | host: b.example")),
        ),
        Row::changed(
            "in both, the same",
            &[("host", "a.example")],
            [Answered(400), Served("GET /odd | host: a.example"), Served("GET /odd | host: a.example")],
        ),
        Row::changed(
            "in both, in other case",
            &[("host", "A.EXAMPLE")],
            [Unsaid, Served("GET /odd | host: a.example"), Served("GET /odd | host: a.example")],
        ),
        Row::changed("in both, and different", &[("host", "b.example")], all(Answered(400))),
        Row::changed("in both, with another port", &[("host", "a.example:443")], all(Answered(400))),
        Row::changed("in both, one empty", &[("host", "")], all(Answered(400))),
        Row::changed(
            "twice in fields, different",
            &[(":authority", LEFT_OUT), ("host", "a.example"), ("host", "b.example")],
            all(Answered(400)),
        ),
        Row::changed(
            "twice in fields, one as :authority",
            &[("host", "a.example"), ("host", "b.example")],
            all(Answered(400)),
        ),
        Row::changed("with a blank in a field", &[(":authority", LEFT_OUT), ("host", "a b")], all(Answered(400))),
        Row::text("folded", "GET /odd HTTP/1.1\r\nHost: a\r\n .example\r\n\r\n", Answered(400)),
    ]
}

pub(super) fn lengths() -> Vec<Row> {
    let length = |what, length: &str, ends| {
        Row::changed(what, &[(":method", "POST"), ("content-length", length)], ends).body("abc")
    };
    let malformed = [Answered(400), Reset, Answered(400)];
    let post = Served("POST /odd | host: a.example | content-length: 3 > abc");
    vec![
        length("right", "3", all(post)),
        length("zeros before", "003", all(Served("POST /odd | host: a.example | content-length: 3 > abc"))),
        length("plus", "+3", malformed),
        length("minus", "-3", malformed),
        length("hexadecimal", "0x3", malformed),
        length("a fraction", "3.0", malformed),
        length("a list", "3, 3", malformed),
        length("a blank inside", "3 3", malformed),
        length("empty", "", malformed),
        length("letters", "abc", malformed),
        length("more than 2^63", "9999999999999999999", malformed),
        length("more than 2^64", "18446744073709551619", malformed),
        length("too long by one", "4", [Unsaid, Reset, Reset]),
        length("too short by one", "2", [Unsaid, Reset, Reset]),
        // With HTTP/3 it is answered before the body is read, which is then ignored.
        length("none, with a body", "0", [Unsaid, Reset, Served("POST /odd | host: a.example | content-length: 0")]),
        Row::changed(
            "of a body that does not come",
            &[(":method", "POST"), ("content-length", "3")],
            [Unsaid, Reset, Answered(400)],
        ),
        Row::changed(
            "none, of no body",
            &[(":method", "POST"), ("content-length", "0")],
            all(Served("POST /odd | host: a.example | content-length: 0")),
        ),
        Row::changed(
            "twice, the same",
            &[(":method", "POST"), ("content-length", "3"), ("content-length", "3")],
            [Answered(400), post, post],
        )
        .body("abc"),
        Row::changed(
            "twice, different",
            &[(":method", "POST"), ("content-length", "3"), ("content-length", "4")],
            malformed,
        )
        .body("abc"),
        Row::changed(
            "and chunks",
            &[(":method", "POST"), ("content-length", "3"), ("transfer-encoding", "chunked")],
            [Answered(400), Reset, Answered(400)],
        )
        .body("abc"),
    ]
}

pub(super) fn fields() -> Vec<Row> {
    let field = |what, name: &str, value: &str, ends| Row::changed(what, &[(name, value)], ends);
    let of_connection = [Unsaid, Reset, Answered(400)];
    vec![
        field("chunks in a stream", "transfer-encoding", "chunked", of_connection),
        field("connection", "connection", "close", of_connection),
        field("connection that names", "connection", "x-a", of_connection),
        field("keep-alive", "keep-alive", "1", of_connection),
        field("proxy-connection", "proxy-connection", "close", of_connection),
        field("upgrade", "upgrade", "h2c", of_connection),
        field("te", "te", "gzip", [Served("GET /odd | host: a.example"), Reset, Answered(400)]),
        field("te with trailers and more", "te", "trailers, gzip", [Unsaid, Reset, Answered(400)]),
        field("te with trailers", "te", "trailers", all(Served("GET /odd | host: a.example"))),
        field("upper case", "X-A", "1", [Served("GET /odd | host: a.example | x-a: 1"), Reset, Reset]),
        field("underscore", "x_a", "1", all(Served("GET /odd | host: a.example | x_a: 1"))),
        field("a blank in the name", "x a", "1", [Answered(400), Reset, Reset]),
        field("a blank behind the name", "x-a ", "1", [Answered(400), Reset, Reset]),
        field("a colon in the name", "x:a", "1", [Unsaid, Reset, Reset]),
        field("a line end in the name", "x\r\ny", "1", [Unsaid, Reset, Reset]),
        field("NUL in the name", "x\0", "1", [Answered(400), Reset, Reset]),
        field("above 127 in the name", "x\u{e9}", "1", [Answered(400), Reset, Reset]),
        field("empty name", "", "1", [Answered(400), Reset, Reset]),
        field("a line end in the value", "x-a", "1\r\ny: 2", [Unsaid, Reset, Reset]),
        field("CR in the value", "x-a", "1\r2", [Answered(400), Reset, Reset]),
        field("LF in the value", "x-a", "1\n2", [Answered(400), Reset, Reset]),
        field("NUL in the value", "x-a", "1\x002", [Answered(400), Reset, Reset]),
        field("tab in the value", "x-a", "1\t2", all(Served("GET /odd | host: a.example | x-a: 1\t2"))),
        field("above 127 in the value", "x-a", "\u{e9}", all(Served("GET /odd | host: a.example | x-a: \u{e9}"))),
        field("blanks around the value", "x-a", "  1  ", all(Served("GET /odd | host: a.example | x-a: 1"))),
        field("empty value", "x-a", "", all(Served("GET /odd | host: a.example | x-a: "))),
        Row::changed(
            "the same name thrice",
            &[("x-a", "1"), ("x-b", "2"), ("x-a", "3")],
            [
                Served("GET /odd | host: a.example | x-a: 1 | x-b: 2 | x-a: 3"),
                Served("GET /odd | host: a.example | x-a: 1 | x-b: 2 | x-a: 3"),
                Served("GET /odd | host: a.example | x-a: 1 | x-a: 3 | x-b: 2"),
            ],
        ),
        Row::changed(
            "crumbs of a cookie",
            &[("cookie", "a=1"), ("x-b", "2"), ("cookie", "c=3"), ("cookie", "d=4")],
            [
                Unsaid,
                Served("GET /odd | host: a.example | cookie: a=1; c=3; d=4 | x-b: 2"),
                Served("GET /odd | host: a.example | cookie: a=1; c=3; d=4 | x-b: 2"),
            ],
        ),
        field("an expectation of nothing", "expect", "100-continue", all(Served("GET /odd | host: a.example"))),
        field("another expectation", "expect", "miracles", all(Answered(417))),
        Row::text(
            "folded",
            "GET /odd HTTP/1.1\r\nHost: a.example\r\nX-A: 1\r\n 2\r\n\r\n",
            Served("GET /odd | host: a.example | x-a: 1   2"),
        ),
        Row::text("folded first", "GET /odd HTTP/1.1\r\n Host: a.example\r\n\r\n", Answered(400)),
        Row::text("no colon", "GET /odd HTTP/1.1\r\nHost: a.example\r\nX-A\r\n\r\n", Answered(400)),
        Row::text(
            "chunked and identity",
            "POST /odd HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
            Answered(400),
        ),
        Row::text(
            "identity",
            "POST /odd HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: identity\r\n\r\n",
            Answered(400),
        ),
        Row::text(
            "chunked twice",
            "POST /odd HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            Answered(400),
        ),
    ]
}

pub(super) fn pseudo_headers() -> Vec<Row> {
    let malformed = [Reset, Reset];
    let scheme = |what, scheme: &str, [http2, http3]: [End; 2]| {
        Row::changed(what, &[(":scheme", scheme)], [Unsaid, http2, http3])
    };
    let served = Served("GET /odd | host: a.example");
    vec![
        Row::appended(":method twice", &[(":method", "GET")], malformed),
        Row::appended(":path twice", &[(":path", "/odd")], malformed),
        Row::appended(":authority twice", &[(":authority", "a.example")], malformed),
        Row::appended(":scheme twice", &[(":scheme", "https")], malformed),
        Row::appended("behind a field", &[("x-a", "1"), (":path", "/b")], malformed),
        Row::appended("of a response", &[(":status", "200")], malformed),
        Row::appended("unknown", &[(":odd", "1")], [Reset, Reset]),
        Row::appended("without a name", &[(":", "1")], [Reset, Reset]),
        Row::appended(":protocol without CONNECT", &[(":protocol", "websocket")], malformed),
        Row::changed("no :method", &[(":method", LEFT_OUT)], [Unsaid, Reset, Reset]),
        Row::changed("no :path", &[(":path", LEFT_OUT)], [Unsaid, Reset, Reset]),
        Row::changed("no :scheme", &[(":scheme", LEFT_OUT)], [Unsaid, Reset, Reset]),
        scheme("another scheme", "http", [served, served]),
        scheme("a scheme in upper case", "HTTPS", [served, served]),
        scheme("an unknown scheme", "odd", [served, served]),
        scheme("an empty scheme", "", malformed),
        scheme("a scheme with a host", "https://b.example/?", malformed),
        scheme("a scheme with a blank", "ht tps", malformed),
        Row::appended("with a value that is a header line", &[(":protocol", "a\r\nb: c")], malformed),
    ]
}

pub(super) fn bodies() -> Vec<Row> {
    let post = |what, ends| Row::changed(what, &[(":method", "POST")], ends);
    let head = |what, more: &[(&str, &str)], http1, stream| {
        Row::changed(what, &[&[(":method", "HEAD")], more].concat(), [http1, stream, stream])
    };
    let chunked = Served("POST /odd | host: a.example | transfer-encoding: chunked > abc");
    vec![
        post("of a length that nobody knows", all(chunked)).body("abc"),
        post(
            "empty",
            [
                Served("POST /odd | host: a.example | transfer-encoding: chunked"),
                Served("POST /odd | host: a.example"),
                Served("POST /odd | host: a.example"),
            ],
        )
        .body(""),
        post("with trailers", all(chunked)).body("abc").trailers(&[("x-sum", "1")]),
        post("with trailers that frame", all(chunked))
            .body("abc")
            .trailers(&[("content-length", "5"), ("host", "b.example")]),
        post("with trailers about the connection", [chunked, Reset, Reset])
            .body("abc")
            .trailers(&[("transfer-encoding", "chunked"), ("connection", "close")]),
        Row::changed(
            "with trailers that frame and are announced",
            &[(":method", "POST"), ("trailer", "content-length, host, x-sum")],
            all(Served("POST /odd | host: a.example | transfer-encoding: chunked > abc")),
        )
        .body("abc")
        .trailers(&[("content-length", "5"), ("host", "b.example"), ("x-sum", "1")]),
        post("with a pseudo header in trailers", [Unsaid, Reset, Reset]).body("abc").trailers(&[(":path", "/b")]),
        post("with a line end in trailers", [Unsaid, Reset, Reset]).body("abc").trailers(&[("x-a", "1\r\n\r\nGET /b")]),
        Row::changed("of a GET", &[], all(Served("GET /odd | host: a.example"))).body("abc"),
        Row::changed("of a GET, empty", &[], all(Served("GET /odd | host: a.example"))).body(""),
        head("of HEAD", &[], Answered(400), Served("HEAD /odd | host: a.example")).body("abc"),
        head("of HEAD, empty", &[], Answered(400), Served("HEAD /odd | host: a.example")).body(""),
        head("of HEAD, with a length", &[("content-length", "3")], Answered(400), Answered(400)).body("abc"),
        // Compat: as in Varnish.
        Row::changed(
            "of TRACE",
            &[(":method", "TRACE")],
            all(Served("TRACE /odd | host: a.example | transfer-encoding: chunked > abc")),
        )
        .body("abc"),
        Row::changed(
            "expected",
            &[(":method", "POST"), ("expect", "100-continue"), ("content-length", "3")],
            all(Served("POST /odd | host: a.example | content-length: 3 > abc")),
        )
        .body("abc"),
    ]
}

pub(super) fn sizes() -> Vec<Row> {
    let long = |count| "y".repeat(count);
    let path = format!("/{}", long(64 << 10));
    let many: Vec<(String, String)> = (0..100).map(|number| (format!("x-{number}"), "1".to_owned())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let crumbs = vec![("cookie", "a=1"); 50];
    vec![
        Row::changed("a path of 64 KiB", &[(":path", &path)], all(Answered(431))),
        Row::changed("a field of 9 KiB", &[("x-a", &long(9 << 10))], [Answered(431), Answered(431), Answered(431)]),
        Row::changed("a field of 64 KiB", &[("x-a", &long(64 << 10))], [Answered(431), Answered(431), Answered(431)]),
        Row::changed("a name of 9 KiB", &[(&long(9 << 10), "1")], [Answered(431), Answered(431), Answered(431)]),
        Row::changed("a hundred fields", &many, [Answered(431), Answered(431), Answered(431)]),
        Row::changed(
            "fifty crumbs are one cookie",
            &crumbs,
            [Unsaid, Served(crumbs_joined()), Served(crumbs_joined())],
        ),
    ]
}

fn crumbs_joined() -> &'static str {
    format!("GET /odd | host: a.example | cookie: {}", ["a=1"; 50].join("; ")).leak()
}
