//! VCL's decisions about a fetch: retry, abandon, error, fail, and the response it makes itself.

use crate::support::{OriginRequest, World, always, run_with, serve_each};
use std::cell::Cell;
use std::rc::Rc;
use surface::counter::Main;
use tokio::io::AsyncWriteExt;

fn counting() -> (Rc<Cell<u32>>, impl Fn(&OriginRequest) -> Vec<u8> + Clone + 'static) {
    let count = Rc::new(Cell::new(0));
    let counted = Rc::clone(&count);
    let answer = move |_: &OriginRequest| {
        counted.set(counted.get() + 1);
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()
    };
    (count, answer)
}

#[test]
fn a_retry_has_a_transaction_of_its_own() {
    let vcl = "sub vcl_backend_response { if (bereq.retries < 2) { return (retry); } }";
    run_with(
        |_| {},
        vcl,
        |world| async move {
            let (count, answer) = counting();
            world.origin(serve_each(answer));
            assert_eq!(world.client().get("/a", "").await.text(), "ok", "{}", world.story());
            assert_eq!(count.get(), 3);
            let first = world.transaction(3);
            let end = [
                "VCL_return retry",
                "BackendClose -1 default close Backend/VCL requested close",
                "Timestamp Retry",
                "Link bereq 4 retry",
                "End",
            ];
            assert_eq!(first[first.len() - end.len()..], end, "{}", world.story());
            let second = world.transaction(4);
            let start = ["Begin bereq 3 retry", "Timestamp Start", "BereqMethod GET", "BereqURL /a"];
            assert_eq!(second[..start.len()], start);
            assert!(second.contains(&"BereqUnset X-Varnish: 3".to_owned()));
            assert!(second.contains(&"BereqHeader X-Varnish: 4".to_owned()));
        },
    );
}

#[test]
fn retries_have_an_end() {
    run_with(
        |parameters| parameters.max_retries = 2,
        "sub vcl_backend_response { return (retry); }",
        |world| async move {
            let (count, answer) = counting();
            world.origin(serve_each(answer));
            assert_eq!(world.client().get("/a", "").await.status(), 503);
            assert_eq!(count.get(), 3);
            world.expect_log("VCL_Error Too many retries, delivering 503");
        },
    );
    run_with(
        |parameters| parameters.max_retries = 2,
        "sub vcl_backend_error { return (retry); }",
        |world| async move {
            let response = world.client().get("/a", "").await;
            assert!(response.head.starts_with("HTTP/1.1 503 Service Unavailable"), "{}", response.head);
            world.expect_log("VCL_Error Too many retries, failing");
        },
    );
}

#[test]
fn a_body_that_is_gone_cannot_be_sent_again() {
    run_with(
        |_| {},
        "sub vcl_backend_response { return (retry); }",
        |world| async move {
            let (count, answer) = counting();
            world.origin(serve_each(answer));
            let mut client = world.client();
            client.send("POST /a HTTP/1.1\r\nHost: example.com\r\nContent-Length: 3\r\n\r\nabc").await;
            assert_eq!(client.response().await.status(), 503);
            assert_eq!(count.get(), 1);
            world.expect_log("Error Retry not possible, req.body not cached");
        },
    );
}

#[test]
fn a_cached_body_is_sent_again() {
    let vcl = "import std; sub vcl_recv { std.cache_req_body(1KB); return (pass); }
        sub vcl_backend_response { if (bereq.retries == 0) { return (retry); } }";
    run_with(
        |_| {},
        vcl,
        |world| async move {
            world.origin(serve_each(|request| {
                let length = request.body.len();
                format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{length}").into_bytes()
            }));
            let mut client = world.client();
            client.send("POST /a HTTP/1.1\r\nHost: example.com\r\nContent-Length: 3\r\n\r\nabc").await;
            assert_eq!(client.response().await.text(), "3", "{}", world.story());
        },
    );
}

#[test]
fn abandon_and_fail_give_the_client_a_503_of_its_own() {
    for (vcl, record) in [
        ("sub vcl_backend_fetch { return (abandon); }", "VCL_return abandon"),
        ("sub vcl_backend_fetch { return (fail(\"no way\")); }", "VCL_Error no way"),
        ("sub vcl_backend_response { return (abandon); }", "close Backend/VCL requested close"),
        ("sub vcl_backend_response { return (fail(\"because\")); }", "VCL_Error because"),
    ] {
        run_with(
            |_| {},
            vcl,
            |world| async move {
                world.origin(always("", "hello"));
                let response = world.client().get("/a", "").await;
                assert!(response.head.starts_with("HTTP/1.1 503 Service Unavailable"), "{vcl}: {}", response.head);
                world.expect_log(record);
                assert_eq!(world.engine.cache.object_count(), 0);
                assert_eq!(world.context.in_flight(), 0);
            },
        );
    }
}

#[test]
fn error_makes_the_response_that_vcl_asked_for() {
    for (vcl, start) in [
        ("sub vcl_backend_fetch { return (error(419, \"tea\")); }", "HTTP/1.1 419 tea"),
        ("sub vcl_backend_response { return (error(404)); }", "HTTP/1.1 404 Not Found"),
        ("sub vcl_backend_response { return (error); }", "HTTP/1.1 503 Backend fetch failed"),
        ("sub vcl_backend_fetch { return (error); }", "HTTP/1.1 503 Backend fetch failed"),
    ] {
        run_with(
            |_| {},
            vcl,
            |world| async move {
                world.origin(always("", "hello"));
                let response = world.client().get("/a", "").await;
                assert!(response.head.starts_with(start), "{vcl}: {}", response.head);
                assert_eq!(world.count(Main::FetchFailed), 0, "VCL wanted it");
            },
        );
    }
}

#[test]
fn vcl_backend_error_can_make_an_answer_that_is_cached() {
    let vcl = "sub vcl_backend_error {
            set beresp.status = 200; set beresp.ttl = 60s; set beresp.http.X-By = \"vcl\";
            set beresp.body = \"sorry, \"; set beresp.body += bereq.url; return (deliver); }";
    run_with(
        |_| {},
        vcl,
        |world| async move {
            let mut client = world.client();
            for _ in 0..2 {
                let response = client.get("/a", "").await;
                assert_eq!((response.status(), response.text().as_str()), (200, "sorry, /a"), "{}", world.story());
                assert_eq!(response.header("x-by"), Some("vcl"));
            }
            assert_eq!(world.count(Main::CacheHit), 1);
            assert_eq!(world.dialled(), 1);
            world.expect_log("Storage malloc s0");
        },
    );
}

#[test]
fn a_large_synthetic_body_that_is_not_kept_arrives_whole() {
    let big = "0123456789".repeat(50_000);
    let vcl = format!(
        "sub vcl_backend_error {{ set beresp.body = \"{big}\"; set beresp.body += \"{big}\"; return (deliver); }}"
    );
    run_with(
        |_| {},
        &vcl,
        |world| async move {
            let response = world.client().get("/a", "").await;
            assert_eq!(response.body.len(), 1_000_000, "{}", world.story());
        },
    );
}

#[test]
fn an_error_is_kept_only_while_others_wait_for_it() {
    run_with(
        |_| {},
        "",
        |world| async move {
            assert_eq!(world.client().get("/a", "").await.status(), 503);
            assert_eq!(world.client().get("/a", "").await.status(), 503);
            assert_eq!(world.count(Main::CacheMiss), 2);
        },
    );
}

#[test]
fn uncacheable_cannot_be_taken_back() {
    let vcl = "sub vcl_backend_response { set beresp.uncacheable = true; set beresp.uncacheable = false;
            set beresp.http.X-It-Is = beresp.uncacheable; }";
    run_with(
        |_| {},
        vcl,
        |world| async move {
            world.origin(always("", "hello"));
            assert_eq!(world.client().get("/a", "").await.header("x-it-is"), Some("true"));
            world.expect_log("VCL_Error Ignoring attempt to reset beresp.uncacheable");
        },
    );
}

#[test]
fn invalid_assignments_in_vcl_fail_the_fetch_with_a_reason() {
    for (vcl, reason) in [
        ("sub vcl_backend_fetch { set bereq.url = bereq.http.none; }", "VCL_Error Setting bereq.url to empty string"),
        ("sub vcl_backend_response { set beresp.reason = \"\"; }", "VCL_Error Setting beresp.reason to empty string"),
        (
            "sub vcl_backend_response { return (error(70000)); }",
            "VCL_Error return(error()) status code (70000) > 65535",
        ),
        ("sub vcl_backend_response { set beresp.status = 99; }", "VCL_Error illegal beresp.status (99) (..0##)"),
        ("sub vcl_backend_response { set beresp.status = 70000; }", "VCL_Error beresp.status (70000) > 65535"),
    ] {
        run_with(
            |_| {},
            vcl,
            |world| async move {
                world.origin(always("", "hello"));
                assert_eq!(world.client().get("/a", "").await.status(), 503);
                world.expect_log(reason);
            },
        );
    }
}

#[test]
fn rollback_gives_the_request_back_as_it_was() {
    let vcl = "import std; sub vcl_backend_fetch { set bereq.url = \"/other\"; set bereq.http.X = \"y\"; std.rollback(bereq); }";
    run_with(
        |_| {},
        vcl,
        |world| async move {
            world.origin(serve_each(|request| {
                let seen = format!("{} {:?} {:?}", request.target(), request.header("x"), request.header("x-varnish"));
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{seen}", seen.len()).into_bytes()
            }));
            assert_eq!(world.client().get("/a", "").await.text(), "/a None None");
        },
    );
}

/// An origin that sends a head and then nothing the first time, and a whole response later.
fn stalling_once(world: &World, head: &'static str) -> Rc<Cell<u32>> {
    let asked = Rc::new(Cell::new(0));
    let count = Rc::clone(&asked);
    world.origin(move |mut stream| {
        let count = Rc::clone(&count);
        async move {
            while OriginRequest::read(&mut stream).await.is_some() {
                count.set(count.get() + 1);
                let answer = if count.get() == 1 { head } else { "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nnew" };
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        }
    });
    asked
}

const STALLS: &str = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
const EMPTY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

#[test]
fn a_rollback_after_the_response_head_gives_the_connection_up_at_once() {
    for (action, status) in [("deliver", 503), ("pass(1s)", 503), ("error(555)", 555)] {
        run_with(
            |_| {},
            &format!("import std; sub vcl_backend_response {{ std.rollback(bereq); return ({action}); }}"),
            async |world| {
                let asked = stalling_once(&world, STALLS);
                let before = world.context.clock.now();
                assert_eq!(world.client().get("/", "").await.status(), status, "{}", world.story());
                assert!(world.context.clock.now() - before < 0.1, "{}", world.story());
                assert_eq!(asked.get(), 1);
                let log = world.transaction(3);
                let from = log.iter().position(|line| line == "VCL_call BACKEND_RESPONSE").unwrap();
                assert_eq!(log[from + 1], "BackendClose -1 default close Backend/VCL requested close");
                let is_missed = log.contains(&"FetchError No backend connection (rollback?)".to_owned());
                assert_eq!(is_missed, status == 503, "{}", world.story());
                assert!(log.contains(&"VCL_call BACKEND_ERROR".to_owned()));
            },
        );
    }
}

#[test]
fn a_retry_works_after_a_rollback_in_vcl_backend_response_and_after_the_error() {
    let vcls = [
        "sub vcl_backend_response { if (bereq.retries == 0) { std.rollback(bereq); return (retry); } }",
        "sub vcl_backend_response { if (bereq.retries == 0) { std.rollback(bereq); return (deliver); } }
         sub vcl_backend_error { return (retry); }",
    ];
    for (vcl, (head, connections)) in vcls.iter().flat_map(|vcl| [(STALLS, 2), (EMPTY, 1)].map(|case| (*vcl, case))) {
        run_with(
            |_| {},
            &format!("import std; {vcl}"),
            async |world| {
                let asked = stalling_once(&world, head);
                assert_eq!(world.client().get("/", "").await.text(), "new", "{vcl}\n{}", world.story());
                assert_eq!((asked.get(), world.dialled()), (2, connections), "{vcl}\n{}", world.story());
            },
        );
    }
}

#[test]
fn a_rollback_does_not_hinder_a_304() {
    let vcl = "import std;
        sub vcl_backend_response {
            set beresp.ttl = 1s; set beresp.grace = 0s; set beresp.keep = 100s;
            if (beresp.was_304) { std.rollback(bereq); }
            return (deliver);
        }";
    run_with(
        |_| {},
        vcl,
        async |world| {
            world.origin(serve_each(|request| match request.header("if-none-match") {
                Some(_) => b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n".to_vec(),
                None => b"HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: 3\r\n\r\nabc".to_vec(),
            }));
            let mut client = world.client();
            for _ in 0..2 {
                assert_eq!(client.get("/", "").await.text(), "abc", "{}", world.story());
                tokio::time::sleep(tokio::time::Duration::from_secs(3)).await;
            }
            assert_eq!((world.count(Main::Fetch304), world.dialled()), (1, 1));
        },
    );
}

/// Number of connections that two requests need, under that VCL, of an origin that answers with
/// those headers.
fn connections(headers: &str, vcl: &str) -> usize {
    connections_for("ok", headers, vcl)
}

fn connections_for(body: &'static str, headers: &str, vcl: &str) -> usize {
    let needed = Rc::new(Cell::new(0));
    let into = Rc::clone(&needed);
    run_with(
        |_| {},
        &format!("sub vcl_recv {{ return (pass); }} {vcl}"),
        async move |world| {
            world.origin(always(headers, body));
            let mut client = world.client();
            for _ in 0..2 {
                assert_eq!(client.get("/", "").await.text(), body, "{}", world.story());
            }
            into.set(world.dialled());
        },
    );
    needed.get()
}

#[test]
fn a_connection_that_vcl_or_the_origin_closes_is_not_used_again() {
    let response = |line: &str| format!("sub vcl_backend_response {{ {line} }}");
    let request = |line: &str| format!("sub vcl_backend_fetch {{ {line} }}");
    for value in ["close", "Close", "keep-alive, CLOSE", "close, keep-alive", "x,close,"] {
        assert_eq!(connections("", &response(&format!("set beresp.http.connection = \"{value}\";"))), 2, "{value}");
        assert_eq!(connections("", &request(&format!("set bereq.http.connection = \"{value}\";"))), 2, "{value}");
        // A header that VCL removes does not keep the origin from closing.
        let header = format!("Connection: {value}\r\n");
        for line in ["", "unset beresp.http.connection;", "set beresp.http.connection = \"keep-alive\";"] {
            assert_eq!(connections(&header, &response(line)), 2, "{value} {line}");
        }
    }
    assert_eq!(connections("Connection: x\r\nConnection: close\r\nConnection: keep-alive\r\n", ""), 2);
    for value in ["keep-alive", "closed"] {
        assert_eq!(connections("", &response(&format!("set beresp.http.connection = \"{value}\";"))), 1, "{value}");
    }
    let retried = response("if (bereq.retries == 0) { set beresp.http.connection = \"close\"; return (retry); }");
    assert_eq!(connections_for("", "", &retried), 3, "the second request begins on the connection of the first retry");
}

#[test]
fn response_without_lifetime_is_not_called_uncacheable() {
    let vcl = "sub vcl_recv { if (req.url ~ \"pass\") { return (pass); } }
        sub vcl_backend_response {
            if (bereq.url == \"/dead\") {
                set beresp.ttl = 0s; set beresp.grace = 0s; set beresp.keep = 0s;
                return (deliver);
            }
            if (bereq.url == \"/marked\") { set beresp.uncacheable = true; }
            if (bereq.url == \"/passed-for\") { return (pass(10s)); }
        }
        sub vcl_deliver { set resp.http.x-is = obj.uncacheable + \" \" + obj.storage; }";
    // The texts of varnishd 7.1.
    let cases = [
        ("/stored", "false storage.s0"),
        ("/dead", "false storage.Transient"),
        ("/fails", "false storage.Transient"),
        ("/fails-pass", "true storage.Transient"),
        ("/pass", "true storage.Transient"),
        ("/marked", "true storage.Transient"),
        ("/passed-for", "true storage.Transient"),
    ];
    for policy in ["varnish", "rfc"] {
        let change = |parameters: &mut surface::parameter::Parameters| parameters.http_policy = policy.to_owned();
        run_with(change, vcl, async |world| {
            world.origin(serve_each(|request| match request.target().starts_with("/fails") {
                true => b"garbage\r\n\r\n".to_vec(),
                false => b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nhi".to_vec(),
            }));
            for (target, expect) in cases.iter().chain(&cases) {
                let response = world.client().get(target, "").await;
                assert_eq!(response.header("x-is"), Some(*expect), "{policy} {target}");
            }
        });
    }
}
