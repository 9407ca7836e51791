//! Request bodies: every request derived from the client's carries the complete body, or is not
//! sent.

use crate::support::{OriginRequest, World, run_with, serve_each};
use flate2::{Compression, write::GzEncoder};
use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

/// The requests that an origin received.
type Asked = Rc<RefCell<Vec<OriginRequest>>>;

/// An origin that returns the body it received.
fn echo(world: &World) -> Asked {
    let asked = Asked::default();
    let into = Rc::clone(&asked);
    world.origin(serve_each(move |request| {
        into.borrow_mut().push(request.clone());
        let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", request.body.len()).into_bytes();
        answer.extend_from_slice(&request.body);
        answer
    }));
    asked
}

/// Makes responses to requests with a body cacheable, with the method that the client used.
const CACHED: &str = r#"
    import std;
    sub vcl_recv { if (req.http.keep-body) { std.cache_req_body(1KB); } set req.http.as = req.method; return (hash); }
    sub vcl_backend_fetch { set bereq.method = bereq.http.as; return (fetch); }
    sub vcl_backend_response { set beresp.ttl = 1s; set beresp.grace = 100s; return (deliver); }
"#;

/// The headers of a body of three bytes, and its bytes on the wire.
const SENT: [(&str, &str); 4] = [
    ("Content-Length: 3\r\n", "abc"),
    ("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"),
    ("Keep-Body: 1\r\nContent-Length: 3\r\n", "abc"),
    ("Keep-Body: 1\r\nTransfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"),
];

#[test]
fn a_refresh_in_the_background_carries_the_body_of_its_request() {
    for (method, (headers, body)) in ["GET", "POST"].iter().flat_map(|method| SENT.map(|sent| (*method, sent))) {
        run_with(
            |_| {},
            CACHED,
            async |world| {
                let asked = echo(&world);
                let mut client = world.client();
                for _ in 0..3 {
                    client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\n{headers}\r\n{body}")).await;
                    let response = client.response().await;
                    let got = (response.status(), response.text());
                    assert_eq!(got, (200, "abc".to_owned()), "{method} {headers}\n{}", world.story());
                    sleep(Duration::from_secs(3)).await;
                }
                assert_eq!((world.count(Main::SBgfetch), world.count(Main::CacheMiss)), (2, 1));
                let asked = asked.borrow();
                assert_eq!(asked.len(), 3, "{}", world.story());
                let is_chunked = headers.starts_with("Transfer-Encoding");
                for request in asked.iter() {
                    assert_eq!(
                        (request.line(), request.body.as_slice()),
                        (format!("{method} /").as_str(), &b"abc"[..])
                    );
                    assert_eq!(request.header("content-length"), (!is_chunked).then_some("3"), "{}", request.head);
                    assert_eq!(request.header("transfer-encoding"), is_chunked.then_some("chunked"));
                }
            },
        );
    }
}

#[test]
fn refresh_with_a_broken_off_body_keeps_the_stale_object() {
    run_with(
        |_| {},
        CACHED,
        async |world| {
            let asked = echo(&world);
            let whole = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
            let mut client = world.client();
            client.send(whole).await;
            assert_eq!(client.response().await.text(), "abc");
            sleep(Duration::from_secs(3)).await;
            let mut broken = world.client();
            broken.send(&whole[..whole.len() - 1]).await;
            drop(broken);
            sleep(Duration::from_secs(1)).await;
            world.expect_log("FetchError req.body read error: straight insufficient bytes");
            assert_eq!(asked.borrow().len(), 1, "nothing whole came\n{}", world.story());
            client.send(whole).await;
            assert_eq!(client.response().await.text(), "abc");
            assert_eq!(world.count(Main::CacheHitGrace), 2);
        },
    );
}

#[test]
fn a_refresh_that_does_not_want_the_body_leaves_the_next_request_in_place() {
    let vcl = "sub vcl_recv { return (hash); }
        sub vcl_backend_response { set beresp.ttl = 1s; set beresp.grace = 100s; return (deliver); }";
    run_with(
        |_| {},
        vcl,
        async |world| {
            let asked = echo(&world);
            let mut client = world.client();
            client.get("/", "").await;
            sleep(Duration::from_secs(3)).await;
            let asks = "GET / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 3\r\n\r\nabc";
            client.send(format!("{asks}{asks}")).await;
            for _ in 0..2 {
                assert_eq!(client.response().await.status(), 200, "{}", world.story());
            }
            assert!(asked.borrow().iter().all(|request| request.body.is_empty()));
        },
    );
}

/// Posts once; `sent` is headers and body.
async fn post(world: &World, (headers, body): (&str, &str)) -> u16 {
    let mut client = world.client();
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{headers}\r\n{body}")).await;
    client.response().await.status()
}

#[test]
fn a_body_that_was_taken_before_a_restart_is_not_left_out() {
    let vcls = [
        "sub vcl_recv { return (pass); } sub vcl_deliver { if (req.restarts == 0) { return (restart); } }",
        "sub vcl_recv { if (req.restarts == 0) { return (pass); } return (hash); }
         sub vcl_deliver { if (req.restarts == 0) { return (restart); } }
         sub vcl_backend_fetch { return (fetch); }",
        "sub vcl_recv { if (req.restarts == 0) { set req.filters = \"gzip\"; } return (pass); }
         sub vcl_deliver { if (req.restarts == 0) { return (restart); } }",
    ];
    for (vcl, sent) in vcls.iter().flat_map(|vcl| [SENT[0], SENT[1]].map(|sent| (*vcl, sent))) {
        run_with(
            |_| {},
            vcl,
            async |world| {
                let asked = echo(&world);
                assert_eq!(post(&world, sent).await, 503, "{}", world.story());
                assert_eq!(asked.borrow().len(), 1, "{}", world.story());
                world.expect_log("VCL_Error Uncached req.body can only be consumed once");
                assert_eq!(world.engine.cache.object_count(), 0);
            },
        );
    }
}

#[test]
fn vcl_may_ask_for_something_without_the_body_that_is_gone() {
    let restart = "sub vcl_deliver { if (req.restarts == 0) { return (restart); } }";
    let vcls = [
        "sub vcl_recv { if (req.restarts > 0) { unset req.http.content-length; } return (pass); }",
        "sub vcl_recv { if (req.restarts > 0) { set req.http.again = 1; } return (pass); }
         sub vcl_backend_fetch { if (bereq.http.again) { unset bereq.body; } }",
        "sub vcl_recv { if (req.restarts > 0) { set req.method = \"GET\"; return (hash); } return (pass); }",
    ];
    for vcl in vcls {
        run_with(
            |_| {},
            &format!("{vcl}\n{restart}"),
            async |world| {
                let asked = echo(&world);
                assert_eq!(post(&world, SENT[0]).await, 200, "{vcl}\n{}", world.story());
                let asked = asked.borrow();
                assert_eq!(asked.len(), 2);
                assert!(asked[1].header("content-length").is_none_or(|length| length == "0"), "{}", asked[1].head);
            },
        );
    }
}

#[test]
fn remainder_of_a_body_is_not_sent_as_the_whole() {
    let vcl = "sub vcl_recv { return (pass); }
        sub vcl_backend_response { set beresp.http.connection = \"close\"; }
        sub vcl_deliver { if (req.restarts == 0) { return (restart); } }";
    run_with(
        |_| {},
        vcl,
        async |world| {
            let bodies = Rc::new(RefCell::new(Vec::new()));
            let into = Rc::clone(&bodies);
            world.origin(move |mut stream| {
                let into = Rc::clone(&into);
                async move {
                    // The origin receives the beginning of the body, and needs no more.
                    let mut heard = Vec::new();
                    while !heard.ends_with(b"abc\r\n") {
                        let Ok(byte) = stream.read_u8().await else { break };
                        heard.push(byte);
                    }
                    into.borrow_mut().push(String::from_utf8(heard).unwrap());
                    let answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                    let _ = stream.write_all(answer).await;
                }
            });
            let mut client = world.client();
            let head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
            client.send(format!("{head}3\r\nabc\r\n")).await;
            sleep(Duration::from_secs(1)).await;
            client.send("3\r\ndef\r\n0\r\n\r\n").await;
            assert_eq!(client.response().await.status(), 503, "{}", world.story());
            assert_eq!(bodies.borrow().len(), 1, "{:?}\n{}", bodies.borrow(), world.story());
        },
    );
}

fn gzipped(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_body_that_was_unpacked_to_be_kept_is_described_as_such_after_a_rollback() {
    let vcl = "import std;
        sub vcl_recv { set req.filters = \"gunzip\"; std.cache_req_body(1KB); std.rollback(req); return (pass); }";
    run_with(
        |_| {},
        vcl,
        async |world| {
            let asked = echo(&world);
            let body = gzipped(b"plain text");
            let head = format!(
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            assert_eq!(world.client().post(head, body).await.text(), "plain text", "{}", world.story());
            assert_eq!(asked.borrow()[0].header("content-encoding"), None);
            assert_eq!(asked.borrow()[0].header("content-length"), Some("10"));
        },
    );
}

/// The piped request as the origin receives it, without `X-Varnish` and `X-Forwarded-For`; `None`
/// if nothing arrives.
async fn piped(world: &World, request: &[u8]) -> Option<String> {
    let got: Rc<RefCell<Option<Vec<u8>>>> = Rc::default();
    let into = Rc::clone(&got);
    world.origin(move |mut stream| {
        let into = Rc::clone(&into);
        async move {
            let mut bytes = Vec::new();
            let _ = stream.read_to_end(&mut bytes).await;
            *into.borrow_mut() = Some(bytes);
        }
    });
    let mut client = world.client_with(4 << 20);
    client.send(request).await;
    client.end().await;
    assert_eq!(client.rest().await, "");
    sleep(Duration::from_secs(1)).await;
    let got = got.borrow_mut().take()?;
    let got = String::from_utf8_lossy(&got).into_owned();
    let is_ours = |line: &&str| !line.starts_with("X-Varnish") && !line.starts_with("X-Forwarded-For");
    Some(got.split("\r\n").filter(is_ours).collect::<Vec<_>>().join("\r\n"))
}

#[test]
fn a_body_that_is_kept_goes_through_the_pipe_before_what_follows_it() {
    let keep = "import std; sub vcl_recv { std.cache_req_body(10KB); return (pipe); }";
    let gunzip = "import std; sub vcl_recv { set req.filters = \"gunzip\"; std.cache_req_body(10KB); return (pipe); }";
    let meddle = "import std; sub vcl_recv { std.cache_req_body(10KB); return (pipe); }
        sub vcl_pipe { unset bereq.http.content-length; set bereq.http.transfer-encoding = \"chunked\"; }";
    let restarted = "import std;
        sub vcl_recv { std.cache_req_body(10KB); if (req.restarts == 0) { return (pass); } return (pipe); }
        sub vcl_backend_fetch { return (error(503)); }
        sub vcl_deliver { return (restart); }";
    let packed = gzipped(b"abc");
    let mut gzip_request =
        format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", packed.len())
            .into_bytes();
    gzip_request.extend_from_slice(&packed);
    gzip_request.extend_from_slice(b"NEXT");
    let length = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcNEXT".to_vec();
    let chunked = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nNEXT".to_vec();
    for (vcl, request) in [
        (keep, &length),
        (keep, &chunked),
        (gunzip, &gzip_request),
        (meddle, &length),
        (meddle, &chunked),
        (restarted, &length),
        (restarted, &chunked),
    ] {
        run_with(
            |_| {},
            vcl,
            async |world| {
                let got = piped(&world, request).await.unwrap_or_default();
                let (head, rest) = got.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{got}\n{}", world.story()));
                let mut lines: Vec<_> = head.lines().collect();
                lines.sort_unstable();
                let expected = ["Connection: close", "Content-Length: 3", "Host: a", "POST / HTTP/1.1"];
                assert_eq!((lines.as_slice(), rest), (&expected[..], "abcNEXT"), "{vcl}\n{}", world.story());
            },
        );
    }
}

#[test]
fn pipe_announces_its_own_body_framing() {
    let vcl = "sub vcl_recv { return (pipe); } sub vcl_pipe { set bereq.http.content-length = req.http.claim; }";
    for (request, framing) in [
        ("Connection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "chunked"),
        ("Claim: 4\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "chunked"),
        ("Claim: 4\r\nContent-Length: 3\r\n\r\nabc", "3"),
        ("Claim: 4\r\n\r\n", ""),
    ] {
        run_with(
            |_| {},
            vcl,
            async |world| {
                let got = piped(&world, format!("POST / HTTP/1.1\r\nHost: a\r\n{request}").as_bytes()).await.unwrap();
                let head = got.split("\r\n\r\n").next().unwrap().to_ascii_lowercase();
                let announced: Vec<_> = { head.lines() }
                    .filter(|line| line.starts_with("content-length:") || line.starts_with("transfer-encoding:"))
                    .map(|line| line.split_once(": ").unwrap().1)
                    .collect();
                let expected: Vec<_> = (!framing.is_empty()).then_some(framing).into_iter().collect();
                assert_eq!(announced, expected, "{request}\n{}", world.story());
            },
        );
    }
}

#[test]
fn a_body_that_is_gone_is_not_waited_for_in_a_pipe() {
    let vcl = "sub vcl_recv { if (req.restarts == 0) { return (pass); } return (pipe); }
        sub vcl_deliver { if (req.restarts == 0) { return (restart); } }";
    for sent in [SENT[0], SENT[1]] {
        run_with(
            |_| {},
            vcl,
            async |world| {
                let asked = echo(&world);
                let mut client = world.client();
                client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{}\r\n{}", sent.0, sent.1)).await;
                assert_eq!(client.rest().await, "", "{}", world.story());
                assert_eq!(asked.borrow().len(), 1);
                world.expect_log("FetchError req.body read error: it was sent before and not kept");
                world.expect_log("SessClose TX_ERROR");
            },
        );
    }
}

#[test]
fn a_long_body_that_is_kept_does_not_stop_an_origin_that_talks_meanwhile() {
    const BYTES: usize = 1 << 20;
    run_with(
        |_| {},
        "import std; sub vcl_recv { std.cache_req_body(10MB); return (pipe); }",
        async |world| {
            world.origin(|mut stream| async move {
                // It sends a lot before it reads a byte.
                stream.write_all(&vec![b'o'; BYTES]).await.unwrap();
                let mut heard = Vec::new();
                let _ = stream.read_to_end(&mut heard).await;
                assert!(heard.ends_with(&[b'c'; BYTES]));
                stream.write_all(b"all heard").await.unwrap();
            });
            let mut client = world.client_with(4 << 20);
            client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {BYTES}\r\n\r\n")).await;
            client.send(vec![b'c'; BYTES]).await;
            client.end().await;
            let rest = client.rest().await;
            assert!(rest.ends_with("all heard") && rest.len() == BYTES + 9, "{} bytes\n{}", rest.len(), world.story());
        },
    );
}
