//! Requests to an origin, and their log.

use crate::support::{OriginRequest, always, run, run_with, serve_each};
use std::cell::RefCell;
use std::rc::Rc;
use surface::counter::Main;

/// Requests that an origin has received.
type Seen = Rc<RefCell<Vec<OriginRequest>>>;

fn noting(seen: &Seen, answer: &'static str) -> impl Fn(&OriginRequest) -> Vec<u8> + Clone + 'static {
    let seen = Rc::clone(seen);
    move |request| {
        seen.borrow_mut().push(request.clone());
        answer.as_bytes().to_vec()
    }
}

const HELLO: &str = "HTTP/1.1 200 OK\r\nDate: Fri, 20 Nov 2026 19:20:00 GMT\r\nContent-Length: 5\r\n\r\nhello";

#[test]
fn a_miss_leaves_the_records_that_operators_know() {
    run(|world| async move {
        world.origin(serve_each(|_| HELLO.into()));
        let response = world.client().get("/a", "").await;
        assert_eq!((response.status(), response.text().as_str()), (200, "hello"));
        let expected = "Begin bereq 2 fetch
            VCL_use boot
            Timestamp Start
            BereqMethod GET
            BereqURL /a
            BereqProtocol HTTP/1.1
            BereqHeader Host: example.com
            BereqHeader X-Forwarded-For: 192.0.2.7
            BereqHeader Accept-Encoding: gzip
            BereqHeader X-Varnish: 3
            VCL_call BACKEND_FETCH
            VCL_return fetch
            Timestamp Fetch
            Timestamp Connected
            BackendOpen -1 default 10.0.0.1 80 10.0.0.9 40000 connect
            Timestamp Bereq
            Timestamp Beresp
            BerespProtocol HTTP/1.1
            BerespStatus 200
            BerespReason OK
            BerespHeader Date: Fri, 20 Nov 2026 19:20:00 GMT
            BerespHeader Content-Length: 5
            TTL RFC 120 10 0 1795202400 1795202400 1795202400 0 0 cacheable
            VCL_call BACKEND_RESPONSE
            VCL_return deliver
            Timestamp Process
            Filters
            Storage malloc s0
            Fetch_Body 3 length stream
            BackendClose -1 default recycle
            Timestamp BerespBody
            Length 5
            BereqAcct 103 0 103 75 5 80
            End";
        let log = world.transaction(3);
        assert_eq!(log, expected.lines().map(str::trim).collect::<Vec<_>>(), "{}", world.story());
        assert_eq!(world.count(Main::FetchLength), 1);
        assert_eq!(world.count(Main::BackendConn), 1);
        assert_eq!(world.count(Main::BackendRecycle), 1);
    });
}

#[test]
fn miss_fetches_with_get_without_client_specific_fields() {
    run(|world| async move {
        let seen = Seen::default();
        world.origin(serve_each(noting(&seen, HELLO)));
        let mut client = world.client();
        client
            .send(
                "HEAD /a HTTP/1.1\r\nHost: example.com\r\nIf-None-Match: \"x\"\r\nRange: bytes=0-1\r\nCache-Control: no-cache\r\n\
                 Accept-Encoding: br\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-End: 2\r\n\r\n",
            )
            .await;
        assert_eq!(client.response_to_head().await.status(), 200);
        let seen = seen.borrow();
        let request = seen.first().unwrap();
        assert_eq!(request.line(), "GET /a");
        assert_eq!(request.header("accept-encoding"), Some("gzip"));
        assert_eq!(request.header("x-end"), Some("2"));
        for gone in ["if-none-match", "range", "cache-control", "connection", "x-hop"] {
            assert_eq!(request.header(gone), None, "{gone}");
        }
    });
}

#[test]
fn a_pass_asks_as_the_client_did() {
    run_with(
        |_| {},
        "sub vcl_recv { return (pass); }",
        |world| async move {
            let seen = Seen::default();
            world.origin(serve_each(noting(&seen, "HTTP/1.1 304 Not Modified\r\n\r\n")));
            let response = world
                .client()
                .get("/a", "If-None-Match: \"x\"\r\nCache-Control: no-cache\r\nAccept-Encoding: br\r\n")
                .await;
            assert_eq!(response.status(), 304, "{}", world.story());
            let seen = seen.borrow();
            let request = seen.first().unwrap();
            assert_eq!(request.header("if-none-match"), Some("\"x\""));
            assert_eq!(request.header("cache-control"), Some("no-cache"));
            assert_eq!(request.header("accept-encoding"), Some("br"));
            world.expect_log("Fetch_Body 0 none -");
            world.expect_log("Storage malloc Transient");
        },
    );
}

#[test]
fn a_passed_body_goes_out_with_its_length() {
    run(|world| async move {
        let seen = Seen::default();
        world.origin(serve_each(noting(&seen, HELLO)));
        let mut client = world.client();
        client.send("POST /a HTTP/1.1\r\nHost: example.com\r\nContent-Length: 11\r\n\r\nfirst ").await;
        client.send("after").await;
        assert_eq!(client.response().await.status(), 200, "{}", world.story());
        let seen = seen.borrow();
        assert_eq!(seen[0].line(), "POST /a");
        assert_eq!(seen[0].header("content-length"), Some("11"));
        assert_eq!(seen[0].body, b"first after");
        world.expect_log("BereqAcct");
    });
}

#[test]
fn a_chunked_body_goes_out_chunked() {
    run(|world| async move {
        let seen = Seen::default();
        world.origin(serve_each(noting(&seen, HELLO)));
        let mut client = world.client();
        client.send("POST /a HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n").await;
        client.send("2\r\nde\r\n0\r\n\r\n").await;
        assert_eq!(client.response().await.status(), 200, "{}", world.story());
        let seen = seen.borrow();
        assert_eq!(seen[0].header("transfer-encoding"), Some("chunked"));
        assert_eq!(seen[0].header("content-length"), None);
        assert_eq!(seen[0].body, b"abcde");
    });
}

#[test]
fn framing_headers_set_by_vcl_do_not_change_the_framing() {
    run_with(
        |_| {},
        "sub vcl_backend_fetch { set bereq.http.Content-Length = \"3\"; set bereq.http.Transfer-Encoding = \"chunked\"; return (fetch); }",
        |world| async move {
            let seen = Seen::default();
            world.origin(serve_each(noting(&seen, HELLO)));
            assert_eq!(world.client().get("/a", "").await.status(), 200);
            let mut client = world.client();
            client.send("POST /b HTTP/1.1\r\nHost: example.com\r\nContent-Length: 5\r\n\r\nabcde").await;
            assert_eq!(client.response().await.status(), 200, "{}", world.story());
            let seen = seen.borrow();
            assert_eq!(seen[0].header("content-length"), None);
            assert_eq!(seen[0].header("transfer-encoding"), None);
            assert_eq!(seen[1].header("content-length"), Some("5"));
            assert_eq!(seen[1].body, b"abcde");
        },
    );
}

#[test]
fn a_request_without_host_gets_that_of_the_backend() {
    run_with(
        |_| {},
        "sub vcl_backend_fetch { unset bereq.http.Host; }",
        |world| async move {
            let seen = Seen::default();
            world.origin(serve_each(noting(&seen, HELLO)));
            world.client().get("/a", "").await;
            assert_eq!(seen.borrow()[0].header("host"), Some("10.0.0.1"));
        },
    );
}

#[test]
fn connection_is_reused_unless_either_side_closes() {
    run(|world| async move {
        world.origin(serve_each(|request| {
            let close = if request.target() == "/2" { "Connection: close\r\n" } else { "" };
            format!("HTTP/1.1 200 OK\r\n{close}Content-Length: 2\r\n\r\nok").into_bytes()
        }));
        let mut client = world.client();
        for target in ["/1", "/2", "/3"] {
            assert_eq!(client.get(target, "").await.text(), "ok");
        }
        assert_eq!(world.dialled(), 2);
        world.expect_log("default 10.0.0.1 80 10.0.0.9 40000 reuse");
        world.expect_log("close Backend/VCL requested close");
        assert_eq!(world.count(Main::BackendReuse), 1);
    });
}

#[test]
fn interim_responses_are_passed_over() {
    run(|world| async move {
        world.origin(serve_each(|_| {
            let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </s>\r\n\r\n";
            format!("{interim}{HELLO}").into_bytes()
        }));
        let response = world.client().get("/a", "").await;
        assert_eq!((response.status(), response.text().as_str()), (200, "hello"));
        assert_eq!(world.count(Main::Fetch1xx), 2);
    });
}

#[test]
fn vcl_reads_and_changes_the_request_and_the_response() {
    let vcl = "import std;
        sub vcl_backend_fetch {
            set bereq.url = bereq.url + \"?\" + bereq.method + bereq.xid + bereq.retries;
            set bereq.http.X-Time = bereq.first_byte_timeout + \",\" + bereq.is_bgfetch + \",\" + client.ip;
        }
        sub vcl_backend_response {
            set beresp.http.X-Seen = beresp.ttl + \",\" + beresp.grace + \",\" + beresp.backend + \",\" + beresp.status
                + \",\" + beresp.backend.name + \",\" + beresp.uncacheable + \",\" + beresp.storage + \",\" + beresp.filters;
            set beresp.ttl = 7s;
            set beresp.status = 1404;
            unset beresp.http.Gone;
        }";
    run_with(
        |_| {},
        vcl,
        |world| async move {
            let seen = Seen::default();
            world.origin(serve_each(noting(&seen, "HTTP/1.1 200 OK\r\nGone: 1\r\nContent-Length: 2\r\n\r\nhi")));
            let response = world.client().get("/a", "").await;
            assert_eq!(seen.borrow()[0].target(), "/a?GET30");
            assert_eq!(seen.borrow()[0].header("x-time"), Some("60.000,false,192.0.2.7"));
            assert_eq!(response.status(), 404, "{}", world.story());
            assert_eq!(response.header("x-seen"), Some("120.000,10.000,default,200,default,false,storage.s0,"));
            assert_eq!(response.header("gone"), None);
            world.expect_log("TTL VCL 7 10 0 1795202400 cacheable");
            world.expect_log("BerespReason Not Found");
        },
    );
}

#[test]
fn a_body_arrives_whole_however_it_is_cut() {
    run(|world| async move {
        world.engine.fragment_fetch_bytes.store(3, std::sync::atomic::Ordering::Relaxed);
        let body: String = (0..5_000).map(|number| format!("{number},")).collect();
        world.origin(always("", &body));
        let response = world.client().get("/a", "").await;
        assert!(response.is_whole);
        assert_eq!(response.text(), body);
    });
}
