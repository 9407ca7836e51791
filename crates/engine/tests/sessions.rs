//! Connections: their beginning and end, framing errors, keep-alive and pipelining, from the view
//! of clients and the log.

use crate::support::{World, always, run, run_with, serve_each};
use engine::peer::Listener;
use engine::transport::{FirstProtocol, OpeningSession, ProxyFacts};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use surface::close_reason::CloseReason;
use surface::counter::Main;
use tokio::time::{Instant, sleep};
use vcl_run::tls::TlsFacts;

#[test]
fn session_and_request_are_logged_in_the_order_that_operators_know() {
    run(async |world| {
        world.origin(always("ETag: \"a\"\r\n", "hello"));
        let mut client = world.client();
        let response = client.get("/", "Accept-Encoding: gzip, br\r\n").await;
        assert_eq!((response.status(), response.text().as_str()), (200, "hello"));
        client.end().await;
        client.rest().await;
        assert_eq!(
            world.transaction(1),
            [
                "Begin sess 0 HTTP/1",
                "SessOpen 192.0.2.7 4711 a0 192.0.2.1 80 1795202400.000000 -1",
                "Link req 2 rxreq",
                "SessClose REM_CLOSE 0.000",
                "End",
            ]
        );
        let request = world.transaction(2);
        let without_date: Vec<&str> =
            request.iter().map(String::as_str).filter(|line| !line.starts_with("RespHeader Date")).collect();
        assert_eq!(
            without_date,
            [
                "Begin req 1 rxreq",
                "Timestamp Start",
                "Timestamp Req",
                "VCL_use boot",
                "ReqStart 192.0.2.7 4711 a0",
                "ReqMethod GET",
                "ReqURL /",
                "ReqProtocol HTTP/1.1",
                "ReqHeader Host: example.com",
                "ReqHeader Accept-Encoding: gzip, br",
                "ReqHeader X-Forwarded-For: 192.0.2.7",
                "VCL_call RECV",
                "VCL_return hash",
                "ReqUnset Accept-Encoding: gzip, br",
                "ReqHeader Accept-Encoding: gzip",
                "VCL_call HASH",
                "VCL_return lookup",
                "VCL_call MISS",
                "VCL_return fetch",
                "Link bereq 3 fetch",
                "Timestamp Fetch",
                "RespProtocol HTTP/1.1",
                "RespStatus 200",
                "RespReason OK",
                "RespHeader ETag: \"a\"",
                "RespHeader Content-Length: 5",
                "RespHeader X-Varnish: 2",
                "RespHeader Age: 0",
                "RespHeader Via: 1.1 varnish (Varnish/7.1)",
                "RespHeader Accept-Ranges: bytes",
                "VCL_call DELIVER",
                "VCL_return deliver",
                "Timestamp Process",
                "Filters",
                "RespHeader Connection: keep-alive",
                "Timestamp Resp",
                "ReqAcct 64 0 64 186 5 191",
                "End",
            ],
            "{}",
            world.story()
        );
    });
}

#[test]
fn silent_client_is_let_go_after_timeout_idle_and_a_slow_one_too() {
    run(async |world| {
        let start = Instant::now();
        let mut silent = world.client();
        assert_eq!(silent.rest().await, "");
        assert_eq!(start.elapsed(), Duration::from_secs(5));
        let mut slow = world.client();
        slow.send("GET / HTTP/1.1\r\nHo").await;
        sleep(Duration::from_secs(3)).await;
        slow.send("st: a\r\n").await;
        assert_eq!(slow.rest().await, "");
        assert_eq!(start.elapsed(), Duration::from_secs(10));
        world.expect_log("SessClose RX_CLOSE_IDLE 5.000");
        world.expect_log("SessClose RX_TIMEOUT 5.000");
        assert_eq!(world.count(Main::ScRxCloseIdle), 1);
        assert_eq!(world.count(Main::ScRxTimeout), 1);
        assert_eq!(world.count(Main::SessClosedErr), 1);
        assert_eq!(world.count(Main::ClientReq), 0);
    });
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    run(async |world| {
        world.origin(crate::support::serve_each(|request| {
            let body = request.target().to_owned();
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
        }));
        let mut client = world.client();
        client.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n\r\nGET /22 HTTP/1.1\r\nHost: a\r\n\r\nGET /333 HT").await;
        assert_eq!(client.response().await.text(), "/1");
        assert_eq!(client.response().await.text(), "/22");
        client.send("TP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
        let last = client.response().await;
        assert_eq!((last.text().as_str(), last.header("connection")), ("/333", Some("close")));
        assert_eq!(client.rest().await, "");
        assert_eq!(world.count(Main::SessReadahead), 2);
        assert_eq!(world.count(Main::ScReqClose), 1);
        assert_eq!(world.count(Main::SessClosed), 1);
    });
}

#[test]
fn invalid_requests_get_a_bare_400_and_end_the_connection() {
    let cases = [
        ("GET / HTTP/1.1\r\nFoo : bar\r\n\r\n", "BogoHeader Illegal char 0x20 in header name"),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: foo\r\n\r\n", "HttpGarbage"),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", "HttpGarbage"),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3x\r\n\r\n", "HttpGarbage"),
        ("nonsense\r\n\r\n", "HttpGarbage"),
    ];
    for (bytes, record) in cases {
        run(async move |world| {
            let mut client = world.client();
            client.send(bytes).await;
            assert_eq!(client.rest().await, "HTTP/1.1 400 Bad Request\r\n\r\n", "{bytes}");
            world.expect_log(record);
            world.expect_log("SessClose RX_JUNK");
            world.expect_log(&format!("ReqAcct {0} 0 {0} 28 0 28", bytes.len()));
            assert_eq!(world.count(Main::ClientReq400), 1);
            assert_eq!(world.count(Main::ClientReq), 0);
        });
    }
}

#[test]
fn two_hosts_are_refused_after_they_are_logged() {
    run(async |world| {
        let mut client = world.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").await;
        assert_eq!(client.rest().await, "HTTP/1.1 400 Bad Request\r\n\r\n");
        world.expect_log("ReqHeader Host: b");
        world.expect_log("BogoHeader Multiple Host: headers");
        world.expect_log("SessClose RX_BAD");
    });
}

#[test]
fn two_lengths_are_refused_after_they_are_logged() {
    run(async |world| {
        let mut client = world.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc").await;
        assert_eq!(client.rest().await, "HTTP/1.1 400 Bad Request\r\n\r\n");
        world.expect_log("BogoHeader Multiple Content-Length: headers");
        world.expect_log("SessClose RX_BAD");
    });
}

#[test]
fn preface_of_http_2_ends_the_session_without_a_request() {
    run(async |world| {
        let mut client = world.client();
        client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        assert_eq!(client.rest().await, "");
        world.expect_log("SessClose REQ_HTTP20");
        assert_eq!((world.count(Main::ClientReq400), world.count(Main::ScReqHttp20)), (0, 1));
    });
}

#[test]
fn connection_that_names_a_header_of_others_is_refused() {
    run(async |world| {
        let mut client = world.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Content-Type\r\n\r\n").await;
        assert_eq!(client.rest().await, "HTTP/1.1 400 Bad Request\r\n\r\n");
        world.expect_log("SessClose RX_BAD");
        assert_eq!(world.count(Main::ClientReq400), 1);
    });
}

#[test]
fn unknown_expectation_gets_a_bare_417() {
    run(async |world| {
        let mut client = world.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\nExpect: 200-maybe\r\n\r\n").await;
        assert_eq!(client.rest().await, "HTTP/1.1 417 Expectation Failed\r\n\r\n");
        world.expect_log("SessClose RX_JUNK");
        assert_eq!(world.count(Main::ClientReq417), 1);
    });
}

#[test]
fn request_head_beyond_its_limit_gets_431_and_ends_the_session() {
    run_with(
        |parameters| parameters.http_req_size = 1024,
        "",
        async |world| {
            let mut client = world.client();
            client.send(format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(2000))).await;
            assert_eq!(client.rest().await, "HTTP/1.1 431 Request Header Fields Too Large\r\n\r\n");
            world.expect_log("Error The head of a request is too large, answered with 431");
            world.expect_log("SessClose RX_OVERFLOW");
            assert_eq!(world.count(Main::ClientReq400), 1);
            // Far beyond, endless, and still being sent when it is refused.
            let mut client = world.client_with(512);
            client.send(format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(60_000))).await;
            assert_eq!(client.rest().await, "HTTP/1.1 431 Request Header Fields Too Large\r\n\r\n");
            assert_eq!(world.count(Main::ClientReq400), 2);
        },
    );
}

#[test]
fn http_1_0_closes_unless_it_asks_to_stay() {
    run(async |world| {
        world.origin(always("", "x"));
        let mut client = world.client();
        client.send("GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n").await;
        let first = client.response().await;
        assert_eq!(first.header("connection"), Some("keep-alive"));
        client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n").await;
        let second = client.response().await;
        assert_eq!(second.header("connection"), Some("close"));
        assert_eq!(client.rest().await, "");
        world.expect_log("SessClose REQ_HTTP10");
    });
}

#[test]
fn parameters_changed_while_a_client_is_idle_hold_for_its_next_request() {
    run(async |world| {
        world.origin(always("", "0123456789"));
        let mut client = world.client();
        assert_eq!(client.get("/", "Range: bytes=0-1\r\n").await.status(), 206);
        sleep(Duration::from_secs(1)).await;
        let mut parameters = surface::parameter::Parameters::clone(&world.engine.parameters.load());
        parameters.http_range_support = false;
        world.engine.parameters.store(std::sync::Arc::new(parameters));
        assert_eq!(client.get("/", "Range: bytes=0-1\r\n").await.status(), 200);
    });
}

/// The status for the client, and the first request line and Host that the origin receives; `None`
/// if it receives nothing.
async fn told(world: &Rc<World>, request: &str) -> (u16, Option<(String, String)>) {
    let heard = Rc::new(RefCell::new(None));
    let into = Rc::clone(&heard);
    world.origin(serve_each(move |request| {
        let host = request.header("host").unwrap_or("none").to_owned();
        *into.borrow_mut() = Some((request.line().to_owned(), host));
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_vec()
    }));
    let mut client = world.client();
    client.send(request).await;
    let status = client.response().await.status();
    (status, heard.borrow_mut().take())
}

#[test]
fn absolute_form_decides_the_host_in_vcl_and_at_the_origin() {
    for (method, target, url, host) in [
        ("GET", "http://other.example/a?b", "/a?b", "other.example"),
        ("GET", "http://other.example?x", "/?x", "other.example"),
        ("GET", "http://other.example", "/", "other.example"),
        ("GET", "https://other.example:8443/x", "/x", "other.example:8443"),
        ("GET", "HTTPS://u:p@other.example", "/", "other.example"),
        ("GET", "http://u@[::1]:80/x", "/x", "[::1]:80"),
        ("OPTIONS", "http://other.example", "*", "other.example"),
    ] {
        let vcl = "sub vcl_recv { set req.http.saw = req.method + req.url + req.http.host; return (pass); }";
        run_with(
            |_| {},
            vcl,
            async |world| {
                let request = format!("{method} {target} HTTP/1.1\r\nHost: a\r\n\r\n");
                let expected = Some((format!("{method} {url}"), host.to_owned()));
                assert_eq!(told(&world, &request).await, (200, expected), "{target}\n{}", world.story());
                world.expect_log(&format!("saw: {method}{url}{host}"));
            },
        );
    }
}

#[test]
fn invalid_hosts_and_methods_reach_no_origin() {
    run(async |world| {
        for host in ["a b", "a/b", "u@a", "a\\b", "a#b", "a:x", "a:65536", "a:99999999999999999999", "[::1", "::1"] {
            let answer = told(&world, &format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
            assert_eq!(answer, (400, None), "{host}");
            // A valid target does not make it valid.
            let answer = told(&world, &format!("GET http://b/ HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
            assert_eq!(answer, (400, None), "{host}");
        }
        for target in ["http:///x", "http://u@/x", "http://a:x/", "http://a\\b/", "http://a#f", "http:x"] {
            let answer = told(&world, &format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
            assert_eq!(answer, (400, None), "{target}");
        }
        for method in ["G@T", "GET:", "G(T", "G\u{e9}T"] {
            let answer = told(&world, &format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n")).await;
            assert_eq!(answer, (400, None), "{method}");
        }
        world.expect_log("BogoHeader Malformed Host: a b");
        world.expect_log("SessClose RX_JUNK");
        assert_eq!(world.count(Main::ClientReq400), 30);
    });
}

#[test]
fn valid_hosts_reach_the_origin_unchanged() {
    run(async |world| {
        for host in ["[::1]", "[2001:db8::1]:8080", "[fe80::1%25eth0]", "a:", "a:0", "a_b.example:80", "1.2.3.4"] {
            let answer = told(&world, &format!("POST / HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
            assert_eq!(answer, (200, Some(("POST /".to_owned(), host.to_owned()))), "{host}");
        }
        let (status, heard) = told(&world, "POST / HTTP/1.1\r\nHost:\r\n\r\n").await;
        assert_eq!((status, heard), (200, Some(("POST /".to_owned(), String::new()))), "{}", world.story());
    });
}

#[test]
fn host_set_by_vcl_is_sent_unchanged() {
    run_with(
        |_| {},
        r#"sub vcl_recv { set req.http.host = "a b/c"; return (pass); }"#,
        async |world| {
            let answer = told(&world, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            assert_eq!(answer, (200, Some(("GET /".to_owned(), "a b/c".to_owned()))));
        },
    );
}

#[test]
fn proxied_session_reports_the_client_address() {
    run(async |world| {
        world.origin(always("", "x"));
        let (near, far) = tokio::io::duplex(4096);
        let preread = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".to_vec();
        let addresses = Some(("1.2.3.4:5".parse().unwrap(), "6.7.8.9:80".parse().unwrap()));
        let facts = ProxyFacts { version: 1, addresses, ..Default::default() };
        let mut session = OpeningSession::open(&world.context, world.peer(), "PROXY");
        session.hear_proxy(&world.context, facts);
        tokio::task::spawn_local(session.serve(Rc::clone(&world.context), far, preread, FirstProtocol::Either));
        let mut near = near;
        let mut text = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut near, &mut text).await.unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        let session = world.transaction(1);
        assert_eq!((session[0].as_str(), session[2].as_str()), ("Begin sess 0 PROXY", "Proxy 1 1.2.3.4 5 6.7.8.9 80"));
        world.expect_log("ReqStart 1.2.3.4 5 a0");
        let session = OpeningSession::open(&world.context, world.peer(), "PROXY");
        session.name_ends(&world.context, 2, ("1.2.3.4:5".parse().unwrap(), "[::1]:80".parse().unwrap()));
        session.refuse(&world.context, CloseReason::RxJunk, "PROXY2: CRC error");
        world.expect_log("Proxy 2 1.2.3.4 5 ::1 80");
        world.expect_log("ProxyGarbage PROXY2: CRC error");
        world.expect_log("SessClose RX_JUNK 0.000");
    });
}

#[test]
fn session_waits_for_its_proxy_header_from_the_moment_it_opened() {
    run(async |world| {
        let session = OpeningSession::open(&world.context, world.peer(), "PROXY");
        let opened = Instant::now();
        assert_eq!(session.header_due(&world.context), opened + Duration::from_secs(5), "timeout_idle");
        world.expect_log("SessOpen 192.0.2.7 4711 a0 192.0.2.1 80 1795202400.000000 -1");
        sleep(Duration::from_secs(5)).await;
        session.refuse(&world.context, CloseReason::RxTimeout, "");
        world.expect_log("SessClose RX_TIMEOUT 5.000");
        assert_eq!((world.count(Main::ScRxTimeout), world.count(Main::SessClosedErr)), (1, 1));

        // The time of the header is not added to the time for a request.
        let (_near, far) = tokio::io::duplex(64);
        let mut session = OpeningSession::open(&world.context, world.peer(), "PROXY");
        sleep(Duration::from_secs(2)).await;
        let facts = ProxyFacts { version: 2, ignored: Some("PROXY2: nothing".into()), ..Default::default() };
        session.hear_proxy(&world.context, facts);
        session.serve(Rc::clone(&world.context), far, Vec::new(), FirstProtocol::Either).await;
        let told = world.transaction(2);
        assert_eq!(told[2..], ["ProxyGarbage PROXY2: nothing", "SessClose RX_CLOSE_IDLE 5.000", "End"]);
    });
}

#[test]
fn encrypted_session_reports_its_tls_facts_and_scheme() {
    run(async |world| {
        world.origin(always("", "x"));
        let (mut near, far) = tokio::io::duplex(4096);
        let preread = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".to_vec();
        let mut peer = world.peer();
        let listener = Listener { tls: true, names_scheme: true, ..(*peer.listener).clone() };
        peer.listener = Rc::new(listener);
        let mut session = OpeningSession::open(&world.context, peer.clone(), "HTTP/1");
        sleep(Duration::from_secs(3)).await;
        let facts = TlsFacts {
            version: "TLSv1.3",
            cipher: "TLS_AES_256_GCM_SHA384",
            server_name: Some("a.example".into()),
            is_resumed: true,
            ..TlsFacts::default()
        };
        session.hear_tls(&world.context, facts, None);
        tokio::task::spawn_local(session.serve(Rc::clone(&world.context), far, preread, FirstProtocol::Either));
        let mut text = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut near, &mut text).await.unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        let told = world.transaction(1);
        assert_eq!(told[0], "Begin sess 0 HTTP/1");
        assert_eq!(told[2], "TLS TLSv1.3 TLS_AES_256_GCM_SHA384 a.example - resumed");
        world.expect_log("ReqStart 192.0.2.7 4711 a0 https");
        assert_eq!((world.count(Main::TlsHandshakes), world.count(Main::TlsResumed)), (1, 1));

        let session = OpeningSession::open(&world.context, peer, "HTTP/1");
        session.fail_handshake(&world.context, CloseReason::RxJunk, "that is no TLS", false);
        world.expect_log("TLS failed: that is no TLS");
        world.expect_log("SessClose RX_JUNK 0.000");
        assert_eq!(world.count(Main::TlsFailed), 1);
    });
}

#[test]
fn session_that_waits_holds_little_and_gives_its_buffers_back() {
    run(async |world| {
        world.origin(always("", "x"));
        let (_near, far) = tokio::io::duplex(64);
        let future = engine::transport::serve(
            std::rc::Rc::clone(&world.context),
            far,
            world.peer(),
            Vec::new(),
            engine::transport::FirstProtocol::Either,
        );
        let size = size_of_val(&future);
        assert!(size <= 3 << 10, "a session's future takes {size} bytes");
        let mut clients: Vec<_> = (0..20).map(|_| world.client()).collect();
        for client in &mut clients {
            client.get("/", "").await;
        }
        sleep(Duration::from_millis(1)).await;
        assert!(world.context.requests.len() <= 2, "one request at a time, and one look for the next, need two");
        assert_eq!(world.context.in_flight(), 0);
    });
}

#[test]
fn the_rest_of_an_upload_that_is_refused_is_read_for_a_while() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let vcl = "sub vcl_recv { return (synth(413)); } sub vcl_synth { set resp.http.Connection = \"close\"; }";
    super::support::run_with(
        |_| {},
        vcl,
        async |world| {
            let mut wire = world.wire(4 << 10, engine::transport::FirstProtocol::Either);
            wire.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n").await.unwrap();
            let mut answer = Vec::new();
            wire.read_to_end(&mut answer).await.unwrap();
            assert!(answer.starts_with(b"HTTP/1.1 413 "));
            let mut sent = 0;
            while wire.write_all(&[7; 1 << 10]).await.is_ok() {
                sent += 1 << 10;
            }
            assert!((1 << 20..2 << 20).contains(&sent), "{sent}");
            assert_eq!((world.context.in_flight(), world.context.open_sessions()), (0, 0));
        },
    );
}
