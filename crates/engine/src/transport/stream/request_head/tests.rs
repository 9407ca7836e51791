//! Faults that make a head malformed, and the translation of a valid one.

use super::*;
use http::Request;

const LIMITS: HeadLimits = HeadLimits { total_bytes: 1000, line_bytes: 300, headers_max: 20 };

const HERE: Circumstances<'static> = Circumstances {
    protocol: b"HTTP/2.0",
    is_last: true,
    limits: LIMITS,
    shows_scheme: false,
    scheme: "http",
    websocket: None,
};

fn parts(method: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn translated(parts: &Parts, circumstances: &Circumstances<'_>) -> Result<(String, Translated), Refused> {
    let mut head = Message::new();
    let translated = translate(parts, circumstances, &mut head)?;
    let mut text = Vec::new();
    ::http1::write_request_head(&head, &mut text);
    Ok((String::from_utf8(text).unwrap().replace("\r\n", "|"), translated))
}

#[track_caller]
fn refused(parts: &Parts, why: &str) {
    let refused = translated(parts, &HERE).unwrap_err();
    assert_eq!(refused.malformed.bogo_header.unwrap_or_default(), why);
}

#[test]
fn a_request_becomes_a_head() {
    let parts =
        parts("GET", "https://example.com:81/a?b", &[("accept", "*/*"), ("x-a", "1"), ("x-b", "2"), ("x-a", "3")]);
    let (text, translated) = translated(&parts, &HERE).unwrap();
    assert_eq!(text, "GET /a?b HTTP/2.0|host: example.com:81|accept: */*|x-a: 1|x-a: 3|x-b: 2||");
    assert_eq!(translated.announced, BodyAnnounced::None);
    assert_eq!(translated.bytes, text.replace('|', "\r\n").len());
}

#[test]
fn the_scheme_is_shown_to_those_who_know_it() {
    let circumstances = Circumstances { shows_scheme: true, ..HERE };
    let (text, _) = translated(&parts("GET", "https://a/", &[]), &circumstances).unwrap();
    assert_eq!(text, "GET / HTTP/2.0|scheme: https|host: a||");
    let (text, _) = translated(&parts("GET", "/", &[("host", "a")]), &circumstances).unwrap();
    assert_eq!(text, "GET / HTTP/2.0|scheme: http|host: a||", "the crate drops a scheme without an authority");
}

#[test]
fn exactly_one_host_remains() {
    let (text, _) = translated(&parts("GET", "http://a/", &[("host", "A")]), &HERE).unwrap();
    assert_eq!(text, "GET / HTTP/2.0|host: a||");
    let (text, _) = translated(&parts("GET", "/", &[("host", "b"), ("host", "b")]), &HERE).unwrap();
    assert_eq!(text, "GET / HTTP/2.0|host: b||");
    refused(&parts("GET", "http://a/", &[("host", "b")]), "Hosts differ: host");
    refused(&parts("GET", "/", &[("host", "a"), ("host", "b")]), "Hosts differ: host");
}

#[test]
fn a_host_is_a_host_with_an_optional_port() {
    for authority in ["user@example.com", "user:secret@example.com", "example.com:99999", "[::zz]"] {
        let Ok(uri) = format!("http://{authority}/").parse::<http::Uri>() else { continue };
        let mut request = parts("GET", "/", &[]);
        request.uri = uri;
        refused(&request, "Illegal host: :authority");
    }
    for host in ["a b", "a/b", "a@b", "a:b"] {
        refused(&parts("GET", "/", &[("host", host)]), "Illegal host: :authority");
    }
}

#[test]
fn a_path_begins_with_a_slash() {
    refused(&parts("GET", "*", &[]), "Illegal path: :path");
    let (text, _) = translated(&parts("OPTIONS", "*", &[]), &HERE).unwrap();
    assert_eq!(text, "OPTIONS * HTTP/2.0||");
    let mut request = parts("GET", "/", &[]);
    request.uri = http::uri::Builder::new().authority("a").build().unwrap();
    refused(&request, "Illegal path: :path");
    refused(&parts("CONNECT", "a:443", &[]), "CONNECT: :method");
}

#[test]
fn cookies_are_joined_where_the_first_was() {
    let parts = parts("GET", "/", &[("a", "1"), ("cookie", "b=2"), ("c", "3"), ("cookie", "d=4"), ("cookie", "e")]);
    assert_eq!(translated(&parts, &HERE).unwrap().0, "GET / HTTP/2.0|a: 1|cookie: b=2; d=4; e|c: 3||");
}

#[test]
fn headers_about_a_connection_are_refused() {
    for name in ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"] {
        refused(&parts("GET", "/", &[(name, "x")]), &format!("Illegal header in a request: {name}"));
    }
    refused(&parts("GET", "/", &[("te", "gzip")]), "Illegal header in a request: te");
    let (text, _) = translated(&parts("GET", "/", &[("te", "trailers"), ("http2-settings", "AA")]), &HERE).unwrap();
    assert_eq!(text, "GET / HTTP/2.0|te: trailers||");
}

#[test]
fn a_length_is_one_number() {
    let open = Circumstances { is_last: false, ..HERE };
    let announced = |headers: &[(&str, &str)]| {
        let translated = translated(&parts("POST", "/", headers), &open);
        translated.map(|(_, translated)| translated.announced).map_err(|refused| refused.malformed.bogo_header.unwrap())
    };
    assert_eq!(announced(&[]), Ok(BodyAnnounced::Unknown));
    assert_eq!(announced(&[("content-length", "5")]), Ok(BodyAnnounced::Length(5)));
    assert_eq!(announced(&[("content-length", "5"), ("content-length", "5")]), Ok(BodyAnnounced::Length(5)));
    assert_eq!(announced(&[("content-length", "0")]), Ok(BodyAnnounced::None));
    assert_eq!(announced(&[("content-length", "9223372036854775807")]), Ok(BodyAnnounced::Length(i64::MAX as u64)));
    let too_large = "9223372036854775808";
    for (bad, why) in
        [("", "Illegal"), ("+5", "Illegal"), ("5, 5", "Illegal"), ("0x5", "Illegal"), (too_large, "Illegal")]
    {
        assert_eq!(
            announced(&[("content-length", bad)]),
            Err(format!("{why} Content-Length: content-length")),
            "{bad}"
        );
    }
    let two = announced(&[("content-length", "5"), ("content-length", "6")]);
    assert_eq!(two, Err("Content-Lengths differ: content-length".to_owned()));
    refused(&parts("POST", "/", &[("content-length", "5")]), "Body shorter than its Content-Length: content-length");
    let (text, _) =
        translated(&parts("POST", "/", &[("content-length", "5"), ("content-length", "5")]), &open).unwrap();
    assert_eq!(text, "POST / HTTP/2.0|content-length: 5||");
}

#[test]
fn blanks_around_a_value_are_trimmed() {
    let (text, _) = translated(&parts("GET", "/", &[("a", " 1\t")]), &HERE).unwrap();
    assert_eq!(text, "GET / HTTP/2.0|a: 1||");
}

#[test]
fn a_head_that_is_too_large_is_refused_with_the_limit() {
    let long = "x".repeat(299);
    let limit = |headers: &[(&str, &str)]| {
        let refused = translated(&parts("GET", "/", headers), &HERE).unwrap_err();
        assert!(refused.malformed.is_oversize);
        refused.malformed.limit.unwrap()
    };
    assert_eq!(limit(&[("a", &long)]), "limit=http_req_hdr_len max=300");
    let shorter = &long[..290];
    assert_eq!(
        limit(&[("a", shorter), ("b", shorter), ("c", shorter), ("d", shorter)]),
        "limit=http_req_size max=1000"
    );
    let names: Vec<String> = (0..20).map(|number| format!("x{number}")).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
    assert_eq!(limit(&many), "limit=http_max_hdr max=20");
}
