//! Requests: VCL's decisions, and their execution.

use crate::support::{OriginRequest, always, run, run_with, serve_each};
use engine::peer::Peer;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep};

#[test]
fn second_request_is_a_hit_and_the_origin_is_asked_once() {
    run(async |world| {
        world.origin(always("Cache-Control: max-age=60\r\n", "hello"));
        let mut client = world.client();
        assert_eq!(client.get("/", "").await.header("x-varnish"), Some("2"));
        sleep(Duration::from_secs(10)).await;
        let mut client = world.client();
        let hit = client.get("/", "").await;
        assert_eq!(hit.header("x-varnish").unwrap().split(' ').count(), 2, "{}", hit.head);
        assert_eq!((hit.header("age"), hit.text().as_str()), (Some("10"), "hello"));
        assert_eq!((world.count(Main::CacheMiss), world.count(Main::CacheHit)), (1, 1));
        world.expect_log("Hit 3 50.000000 10.000000 0.000000");
        assert_eq!(world.dialled(), 1);
    });
}

#[test]
fn a_thousand_clients_wait_for_one_fetch() {
    run(async |world| {
        let asked = Rc::new(Cell::new(0));
        let count = Rc::clone(&asked);
        world.origin(move |mut stream| {
            let count = Rc::clone(&count);
            async move {
                while OriginRequest::read(&mut stream).await.is_some() {
                    count.set(count.get() + 1);
                    sleep(Duration::from_secs(1)).await;
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
                }
            }
        });
        let mut clients = Vec::new();
        for _ in 0..1000 {
            let mut client = world.client();
            clients.push(tokio::task::spawn_local(async move { client.get("/", "").await.text() }));
        }
        for client in clients {
            assert_eq!(client.await.unwrap(), "ok");
        }
        assert_eq!(asked.get(), 1);
        assert_eq!((world.count(Main::CacheMiss), world.count(Main::CacheHit)), (1, 999));
        assert_eq!(world.count(Main::BusySleep), 999);
        world.expect_log("Timestamp Waitinglist: ");
    });
}

#[test]
fn a_thousand_abandoned_waiters_are_harmless_and_dropped_with_the_fetch() {
    run(async |world| {
        world.origin(|mut stream| async move {
            while let Some(request) = OriginRequest::read(&mut stream).await {
                if request.target() == "/slow" {
                    sleep(Duration::from_secs(30)).await;
                }
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
            }
        });
        let mut first = world.client();
        first.send("GET /slow HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
        sleep(Duration::from_secs(1)).await;
        let mut leaving = Vec::new();
        for _ in 0..1000 {
            let mut client = world.client();
            client.send("GET /slow HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
            leaving.push(client);
        }
        let mut staying = world.client();
        // Pipelined: bytes received while the request waits are not lost.
        staying.send("GET /slow HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
        sleep(Duration::from_secs(1)).await;
        staying.send("GET /quick HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
        assert_eq!(world.count(Main::BusySleep), 1001);
        drop(leaving);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(world.client().get("/quick", "").await.text(), "ok");
        assert_eq!(world.count(Main::CacheMiss), 2, "nobody who left fetches");

        assert_eq!(first.response().await.text(), "ok");
        assert_eq!(staying.response().await.text(), "ok");
        assert_eq!(staying.response().await.text(), "ok");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(world.count(Main::SessClosed), 1000, "all that left are over");
    });
}

#[test]
fn stale_object_is_served_while_one_fetch_refreshes() {
    run(async |world| {
        let version = Rc::new(Cell::new(0));
        let count = Rc::clone(&version);
        world.origin(serve_each(move |_| {
            count.set(count.get() + 1);
            format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=5\r\nContent-Length: 1\r\n\r\n{}", count.get())
                .into_bytes()
        }));
        let mut client = world.client();
        assert_eq!(client.get("/", "").await.text(), "1");
        sleep(Duration::from_secs(7)).await;
        let mut client = world.client();
        assert_eq!(client.get("/", "").await.text(), "1");
        sleep(Duration::from_millis(10)).await;
        assert_eq!(client.get("/", "").await.text(), "2");
        assert_eq!(version.get(), 2);
        assert_eq!((world.count(Main::CacheHitGrace), world.count(Main::SBgfetch)), (1, 1));
        assert_eq!(world.count(Main::SFetch), 2);
    });
}

#[test]
fn restart_goes_on_under_a_new_transaction_and_ends_at_its_limit() {
    let vcl = r#"sub vcl_recv { if (req.restarts == 0) { set req.http.x = "y"; } return (restart); }"#;
    run_with(
        |parameters| parameters.max_restarts = 2,
        vcl,
        async |world| {
            let mut client = world.client();
            let response = client.get("/", "").await;
            assert_eq!(response.status(), 503);
            let first = world.transaction(2);
            assert_eq!(first[first.len() - 3..], ["Timestamp Restart", "Link req 3 restart", "End"]);
            let second = world.transaction(3);
            assert_eq!(second[..3], ["Begin req 2 restart", "Timestamp Start", "ReqStart 192.0.2.7 4711 a0"]);
            assert!(second.contains(&"ReqHeader x: y".to_owned()));
            assert!(world.transaction(4).contains(&"VCL_Error Too many restarts".to_owned()));
        },
    );
}

#[test]
fn synthetic_response_is_what_vcl_makes_it() {
    let vcl = r#"
        sub vcl_recv { return (synth(10404, "Nowhere")); }
        sub vcl_synth { set resp.http.x = resp.status; synthetic("gone " + resp.reason); return (deliver); }
    "#;
    run_with(
        |_| {},
        vcl,
        async |world| {
            let mut client = world.client();
            let response = client.get("/", "").await;
            assert!(response.head.starts_with("HTTP/1.1 404 Nowhere\r\n"), "{}", response.head);
            assert_eq!(response.header("x"), Some("10404"));
            assert_eq!(response.header("server"), Some("Varnish"));
            assert_eq!((response.text().as_str(), response.header("content-length")), ("gone Nowhere", Some("12")));
            assert_eq!(world.count(Main::SSynth), 1);
        },
    );
}

#[test]
fn vcl_failure_is_a_503_that_ends_the_session() {
    let vcl = r#"sub vcl_recv { set req.url = "/changed"; return (fail("for this reason")); }"#;
    run_with(
        |_| {},
        vcl,
        async |world| {
            let mut client = world.client();
            let response = client.get("/", "").await;
            assert!(response.head.starts_with("HTTP/1.1 503 VCL failed\r\n"), "{}", response.head);
            assert_eq!(client.rest().await, "");
            world.expect_log("VCL_Error for this reason");
            world.expect_log("VCL_return fail");
            world.expect_log("SessClose VCL_FAILURE");
            assert_eq!(world.count(Main::VclFail), 1);
        },
    );
}

#[test]
fn failure_inside_vcl_synth_leaves_a_bare_500() {
    run_with(
        |_| {},
        "sub vcl_recv { return (synth(200)); } sub vcl_synth { return (fail); }",
        async |world| {
            let mut client = world.client();
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            assert_eq!(client.rest().await, "HTTP/1.1 500 Internal Server Error\r\n\r\n");
            world.expect_log("SessClose VCL_FAILURE");
        },
    );
}

#[test]
fn purge_empties_the_key_and_answers() {
    let vcl = r#"sub vcl_recv { if (req.method == "PURGE") { return (purge); } }"#;
    run_with(
        |_| {},
        vcl,
        async |world| {
            world.origin(always("", "x"));
            let mut client = world.client();
            client.get("/", "").await;
            client.send("PURGE / HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
            let purged = client.response().await;
            assert!(purged.head.starts_with("HTTP/1.1 200 Purged\r\n"), "{}", purged.head);
            client.get("/", "").await;
            assert_eq!((world.count(Main::CacheMiss), world.count(Main::CacheHit)), (2, 0));
            assert_eq!((world.count(Main::NPurges), world.count(Main::NObjPurged)), (1, 1));
        },
    );
}

#[test]
fn digest_is_that_of_each_text_and_a_zero_byte() {
    run_with(
        |_| {},
        r#"sub vcl_deliver { set resp.http.hash = req.hash; }"#,
        async |world| {
            world.origin(always("", "x"));
            let mut client = world.client();
            client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
            let response = client.response().await;
            assert_eq!(response.header("hash"), Some(":3k0f0yRKtKt7akzkyNsTGSDOJAZOQowTwKWhu5+kIu0=:"));
        },
    );
}

#[test]
fn passed_body_reaches_the_origin_and_100_continue_is_sent_first() {
    run(async |world| {
        world.origin(serve_each(|request| {
            let text = format!("{} {}", request.line(), String::from_utf8_lossy(&request.body));
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()).into_bytes()
        }));
        let mut client = world.client();
        client.send("POST /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n").await;
        assert_eq!(client.response().await.head, "HTTP/1.1 100 Continue\r\n\r\n");
        client.send("hello").await;
        assert_eq!(client.response().await.text(), "POST /a hello");
        client.send("POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n").await;
        sleep(Duration::from_secs(1)).await;
        client.send("2\r\nde\r\n0\r\n\r\nGET /c HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(client.response().await.text(), "POST /b abcde");
        assert_eq!(client.response().await.text(), "GET /c ");
        assert_eq!((world.count(Main::SPass), world.count(Main::SReqBodybytes)), (2, 10));
        world.expect_log("Timestamp ReqBody");
    });
}

#[test]
fn unread_body_does_not_become_the_next_request() {
    run_with(
        |_| {},
        r#"sub vcl_recv { if (req.url == "/s") { return (synth(200)); } return (hash); }"#,
        async |world| {
            world.origin(always("", "x"));
            let mut client = world.client();
            for target in ["/", "/", "/s"] {
                client.send(format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 18\r\n\r\n")).await;
                client.send("GET /x HTTP/1.1\r\n\n").await;
                assert_eq!(client.response().await.status(), 200);
            }
            assert_eq!((world.count(Main::ClientReq), world.count(Main::SReqBodybytes)), (3, 54));
            assert_eq!(world.count(Main::ClientReq400), 0);
        },
    );
}

#[test]
fn client_that_breaks_off_its_body_ends_the_session() {
    run(async |world| {
        world.origin(|mut stream| async move {
            let _ = OriginRequest::read(&mut stream).await;
        });
        let mut client = world.client();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe").await;
        client.end().await;
        let response = client.response().await;
        assert_eq!(response.status(), 503);
        client.rest().await;
        world.expect_log("FetchError straight insufficient bytes");
        world.expect_log("SessClose RX_BODY");
    });
}

#[test]
fn cached_body_can_be_sent_again_after_a_restart() {
    let vcl = r#"
        import std;
        sub vcl_recv { std.cache_req_body(1KB); return (pass); }
        sub vcl_deliver { if (req.restarts == 0) { return (restart); } }
    "#;
    run_with(
        |_| {},
        vcl,
        async |world| {
            world.origin(serve_each(|request| {
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}",
                    request.body.len(),
                    String::from_utf8_lossy(&request.body)
                )
                .into_bytes()
            }));
            let mut client = world.client();
            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").await;
            assert_eq!(client.response().await.text(), "hello");
            assert_eq!(world.count(Main::SPass), 2);
        },
    );
}

#[test]
fn late_continue_is_not_sent_when_the_body_is_not_wanted() {
    let vcl = r#"import std; sub vcl_recv { std.late_100_continue(true); return (synth(200)); }"#;
    run_with(
        |_| {},
        vcl,
        async |world| {
            let mut client = world.client();
            client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n").await;
            let response = client.response().await;
            assert_eq!((response.status(), response.header("connection")), (200, Some("close")));
            client.rest().await;
            world.expect_log("SessClose RESP_CLOSE");
        },
    );
}

#[test]
fn pipe_copies_both_ways_until_both_ends_close() {
    run_with(
        |_| {},
        r#"
        sub vcl_recv { return (pipe); }
        sub vcl_pipe { set bereq.http.upgrade = req.http.upgrade; set bereq.http.connection = req.http.connection; }
        "#,
        async |world| {
            world.origin(|mut stream| async move {
                let request = OriginRequest::read(&mut stream).await.unwrap();
                assert_eq!(request.header("connection"), Some("upgrade"));
                stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\n\r\n").await.unwrap();
                let (mut read, mut write) = tokio::io::split(stream);
                tokio::io::copy(&mut read, &mut write).await.unwrap();
            });
            let mut client = world.client();
            client.send("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nearly").await;
            assert_eq!(client.receive(36).await, "HTTP/1.1 101 Switching Protocols\r\n\r\n");
            assert_eq!(client.receive(5).await, "early");
            client.send("frame").await;
            assert_eq!(client.receive(5).await, "frame");
            assert_eq!(world.count(Main::NPipe), 1);
            client.end().await;
            assert_eq!(client.rest().await, "");
            world.expect_log("SessClose TX_PIPE");
            world.expect_log("PipeAcct 70 112 10 46");
            world.expect_log("BackendClose -1 default close Piped transaction");
            assert_eq!((world.count(Main::NPipe), world.count(Main::SPipe)), (0, 1));
            assert_eq!((world.count(Main::SPipeIn), world.count(Main::SPipeOut)), (10, 46));
        },
    );
}

#[test]
fn pipe_in_which_nothing_moves_is_ended() {
    run_with(
        |parameters| parameters.pipe_timeout = 30.0,
        "sub vcl_recv { return (pipe); }",
        async |world| {
            world.origin(|mut stream| async move {
                OriginRequest::read(&mut stream).await;
                sleep(Duration::from_secs(20)).await;
                let _ = stream.write_all(b"x").await;
                sleep(Duration::from_secs(3600)).await;
            });
            let start = Instant::now();
            let mut client = world.client();
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            assert_eq!(client.rest().await, "x");
            assert_eq!(start.elapsed().as_secs(), 50);
        },
    );
}

#[test]
fn pipes_beyond_their_limit_are_refused() {
    run_with(
        |parameters| parameters.pipe_sess_max = 1,
        "sub vcl_recv { return (pipe); }",
        async |world| {
            world.origin(|mut stream| async move {
                OriginRequest::read(&mut stream).await;
                sleep(Duration::from_secs(3600)).await;
            });
            let mut first = world.client();
            first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            sleep(Duration::from_secs(1)).await;
            let mut second = world.client();
            assert_eq!(second.get("/", "").await.status(), 503);
            assert_eq!((world.count(Main::PipeLimited), world.count(Main::NPipe)), (1, 1));
        },
    );
}

#[test]
fn pipe_without_an_origin_ends_without_an_answer() {
    run_with(
        |_| {},
        "sub vcl_recv { return (pipe); }",
        async |world| {
            let mut client = world.client();
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            assert_eq!(client.rest().await, "");
            world.expect_log("FetchError backend default: fail errno 111 (Connection refused)");
            world.expect_log("SessClose TX_ERROR");
        },
    );
}

#[test]
fn request_under_a_label_runs_the_other_vcl() {
    run(async |world| {
        world.origin(always("", "x"));
        world.load_under_label("other", "lab", r#"sub vcl_recv { return (synth(299, req.http.x)); }"#);
        world.load("top", r#"sub vcl_recv { set req.http.x = "changed"; return (vcl(lab)); }"#);
        let mut client = world.client();
        let response = client.get("/", "X: kept\r\n").await;
        assert!(response.head.starts_with("HTTP/1.1 299 kept\r\n"), "{}", response.head);
        world.expect_log("VCL_use other via lab");
    });
}

#[test]
fn request_that_needs_too_much_memory_fails_alone() {
    let vcl = r#"
        sub vcl_recv {
            if (req.url == "/big") {
                set req.http.a = req.http.a + req.http.a + req.http.a + req.http.a;
                set req.http.a = req.http.a + req.http.a + req.http.a + req.http.a;
                set req.http.a = req.http.a + req.http.a + req.http.a + req.http.a;
            }
        }
    "#;
    run_with(
        |parameters| parameters.request_memory_max = 64 << 10,
        vcl,
        async |world| {
            world.origin(always("", "x"));
            let mut client = world.client();
            let long = "x".repeat(4000);
            assert_eq!(client.get("/", &format!("A: {long}\r\n")).await.status(), 200);
            assert_eq!(client.get("/big", &format!("A: {long}\r\n")).await.status(), 503);
            world.expect_log("request_memory_max");
            assert_eq!(world.client().get("/", "").await.status(), 200);
        },
    );
}

#[test]
fn panic_costs_one_request_and_nothing_else() {
    run_with(
        |_| {},
        r#"sub vcl_recv { if (req.url == "/panic") { return (pipe); } return (synth(200)); }"#,
        async |world| {
            let told = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
            let heard = std::sync::Arc::clone(&told);
            world.engine.panics.set(Box::new(move |text| heard.lock().unwrap().push_str(text)));
            world.origin(|_| -> std::future::Ready<()> { panic!("an origin that nobody expected") });
            let mut other = world.client();
            assert_eq!(other.get("/", "").await.status(), 200);
            let mut client = world.client();
            client.send("GET /panic HTTP/1.1\r\nHost: a\r\n\r\n").await;
            assert_eq!(client.rest().await, "HTTP/1.1 500 Internal Server Error\r\n\r\n");
            assert_eq!(other.get("/", "").await.status(), 200);
            world.expect_log("Error Panic: an origin that nobody expected");
            assert_eq!(*told.lock().unwrap(), "an origin that nobody expected");
            assert_eq!((world.count(Main::ClientResp500), world.count(Main::NPipe)), (1, 0));
            assert_eq!(world.context.in_flight(), 0);
        },
    );
}

#[test]
fn headers_that_connection_names_stay_here_but_what_vcl_sets_goes_on() {
    run_with(
        |_| {},
        r#"sub vcl_recv { set req.http.x-real-ip = client.ip; return (pass); }"#,
        async |world| {
            world.origin(serve_each(|request| {
                let seen = format!("{:?} {:?}", request.header("x-real-ip"), request.header("x-hop"));
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{seen}", seen.len()).into_bytes()
            }));
            let mut client = world.client();
            let headers = "Connection: x-hop, x-real-ip\r\nX-Hop: 1\r\nX-Real-IP: 6.6.6.6\r\n";
            assert_eq!(client.get("/", headers).await.text(), r#"Some("192.0.2.7") None"#);
        },
    );
}

#[test]
fn the_challenge_of_a_certificate_authority_is_answered_before_vcl() {
    run(async |world| {
        world.load("refusing", "sub vcl_recv { return (synth(403)); }");
        world.origin(always("", "origin"));
        let mut client = world.client();
        assert_eq!(client.get("/.well-known/acme-challenge/token", "").await.status(), 403);
        world.context.engine.challenges.set([("token", "token.thumbprint")].into_iter());
        for (url, status) in [("token", 200), ("other", 403), ("token?x", 403), ("token/", 403)] {
            let answer = client.get(&format!("/.well-known/acme-challenge/{url}"), "").await;
            assert_eq!(answer.status(), status, "{url}");
        }
        let answer = client.get("/.well-known/acme-challenge/token", "").await;
        assert_eq!((answer.text().as_str(), answer.header("cache-control")), ("token.thumbprint", Some("no-store")));
        assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
        world.expect_log("ReqURL /.well-known/acme-challenge/token");
        world.expect_log("Witness why certificate-challenge");
        assert_eq!(world.dialled(), 0);
        let mut over_tls = world.client_from(Peer { tls: Some(Rc::default()), ..world.peer() });
        assert_eq!(over_tls.get("/.well-known/acme-challenge/token", "").await.status(), 403, "asked in clear only");
        world.context.engine.challenges.set(std::iter::empty());
        assert_eq!(client.get("/.well-known/acme-challenge/token", "").await.status(), 403);
    });
}
