//! vcl_fetch: it works on the client's request, and decides about it.

use super::{Asked, BACKEND, noting, page, run_old, run_old_with};
use crate::support::OriginRequest;
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

#[test]
fn request_changes_in_vcl_fetch_are_visible_in_vcl_deliver() {
    let vcl = r#"
sub vcl_fetch {
  set req.http.X-Seen = beresp.status;
  set req.url = req.url + "?changed";
}
sub vcl_deliver {
  set resp.http.X-Seen = req.http.X-Seen;
  set resp.http.X-Url = req.url;
}"#;
    run_old(vcl, |world| async move {
        world.origin(noting(&Asked::default(), |_| page("200 OK", "", "x")));
        let mut client = world.client();
        let miss = client.get("/a", "").await;
        assert_eq!(
            (miss.header("x-seen"), miss.header("x-url")),
            (Some("200"), Some("/a?changed")),
            "{}",
            world.story()
        );
        let hit = client.get("/a", "").await;
        assert_eq!((hit.header("x-seen"), hit.header("x-url")), (Some(""), Some("/a")), "vcl_fetch did not run");
        let passed = client.get("/b", "Cookie: c\r\n").await;
        assert_eq!((passed.header("x-seen"), passed.header("x-url")), (Some("200"), Some("/b?changed")));
    });
}

#[test]
fn vcl_fetch_reads_all_of_the_client() {
    let vcl = r#"
sub vcl_recv { set client.identity = "me"; set req.grace = 7s; }
sub vcl_fetch {
  set beresp.http.X-Client = "" + client.ip + " " + client.identity + " " + req.request + " " + req.proto + " " + req.restarts
    + " " + req.backend + " " + req.grace;
}"#;
    run_old(vcl, |world| async move {
        world.origin(noting(&Asked::default(), |_| page("200 OK", "", "x")));
        let response = world.client().get("/", "").await;
        let expected = "192.0.2.7 me GET HTTP/1.1 0 default 7.000";
        assert_eq!(response.header("x-client"), Some(expected), "{}", world.story());
    });
}

#[test]
fn restart_in_vcl_fetch_begins_the_clients_request_anew_and_stores_nothing() {
    let vcl = r#"
sub vcl_recv { if (req.restarts == 1) { set req.url = "/fallback"; } }
sub vcl_fetch { if (beresp.status == 404 && req.restarts == 0) { set req.http.X-Was = req.url; return (restart); } }
sub vcl_deliver { set resp.http.X-Was = req.http.X-Was; set resp.http.X-Restarts = req.restarts; }"#;
    run_old(vcl, |world| async move {
        let asked = Asked::default();
        world.origin(noting(&asked, |request| match request.target() {
            "/fallback" => page("200 OK", "", "fallback"),
            _ => page("404 Not Found", "", "nothing"),
        }));
        let mut client = world.client();
        let response = client.get("/gone", "").await;
        assert_eq!((response.status(), response.text().as_str()), (200, "fallback"), "{}", world.story());
        assert_eq!((response.header("x-was"), response.header("x-restarts")), (Some("/gone"), Some("1")));
        world.expect_log(" restart");
        client.get("/gone", "").await;
        let targets: Vec<_> = asked.borrow().iter().map(|request| request.target().to_owned()).collect();
        assert_eq!(targets, ["/gone", "/fallback", "/gone"], "the 404 was not stored, the fallback was");
    });
}

#[test]
fn restarts_without_end_end_in_vcl_error_and_vcl_recv_has_run_once_more() {
    let vcl = r#"
sub vcl_recv { set req.http.X-Runs = req.http.X-Runs + "r"; }
sub vcl_fetch { return (restart); }
sub vcl_error { set obj.http.X-Runs = req.http.X-Runs; synthetic "sorry " + obj.status; return (deliver); }"#;
    run_old(vcl, |world| async move {
        let asked = Asked::default();
        world.origin(noting(&asked, |_| page("503 Busy", "", "")));
        let response = world.client().get("/", "").await;
        assert_eq!((response.status(), response.text().as_str()), (503, "sorry 503"), "{}", world.story());
        assert_eq!(asked.borrow().len(), 4, "the first time and three restarts: max_restarts is 4");
        assert_eq!(response.header("x-runs"), Some("rrrrr"));
    });
}

#[test]
fn error_in_vcl_fetch_goes_to_the_clients_vcl_error() {
    let vcl = r#"
sub vcl_fetch { if (beresp.status >= 500) { error 700 "Sorry, " + req.url; } }
sub vcl_error {
  if (obj.status == 700) { set obj.status = 302; set obj.http.Location = "/away"; synthetic obj.response; return (deliver); }
}"#;
    run_old(vcl, |world| async move {
        let asked = Asked::default();
        world.origin(noting(&asked, |_| page("500 Oops", "Cache-Control: max-age=100\r\n", "details")));
        let mut client = world.client();
        let response = client.get("/x", "").await;
        assert_eq!((response.status(), response.header("location")), (302, Some("/away")), "{}", world.story());
        assert!(response.head.starts_with("HTTP/1.1 302 Sorry, /x\r\n"), "the reason stays: {}", response.head);
        assert_eq!(response.text(), "Sorry, /x");
        client.get("/x", "").await;
        assert_eq!(asked.borrow().len(), 2, "nothing was stored");
        assert_eq!(world.engine.cache.object_count(), 0);
    });
}

#[test]
fn a_fetch_that_fails_is_an_error_503_of_the_client() {
    let vcl = r#"sub vcl_error { set obj.http.X-Error = obj.status + " " + obj.response; }"#;
    run_old(vcl, |world| async move {
        let response = world.client().get("/", "").await;
        assert_eq!(response.status(), 503, "{}", world.story());
        assert_eq!(response.header("x-error"), Some("503 Service Unavailable"));
        assert!(response.text().contains("Guru Meditation"), "the built-in page: {}", response.text());
        assert_eq!(world.count(Main::FetchFailed), 1);
    });
}

#[test]
fn waiters_of_a_failed_fetch_start_anew() {
    run_old("", |world| async move {
        let asked = Asked::default();
        let count = Rc::clone(&asked);
        world.origin(move |mut stream| {
            let count = Rc::clone(&count);
            async move {
                while let Some(request) = OriginRequest::read(&mut stream).await {
                    count.borrow_mut().push(request);
                    sleep(Duration::from_secs(1)).await;
                    if count.borrow().len() == 1 {
                        return;
                    }
                    let _ = stream.write_all(&page("200 OK", "", "good")).await;
                }
            }
        });
        let mut first = world.client();
        let first = tokio::task::spawn_local(async move { first.get("/", "").await.status() });
        sleep(Duration::from_millis(100)).await;
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let mut client = world.client();
                tokio::task::spawn_local(async move { client.get("/", "").await.text() })
            })
            .collect();
        assert_eq!(first.await.unwrap(), 503);
        for client in waiting {
            assert_eq!(client.await.unwrap(), "good", "{}", world.story());
        }
        assert_eq!(asked.borrow().len(), 2, "one of them fetched for all");
    });
}

#[test]
fn response_is_complete_before_any_client_gets_it() {
    for (vcl, is_streamed) in [("", false), ("sub vcl_fetch { set beresp.do_stream = true; }", true)] {
        run_old(vcl, |world| async move {
            world.origin(|mut stream| async move {
                OriginRequest::read(&mut stream).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").await;
                // A response aborted before any of it was read is an error in any case.
                sleep(Duration::from_secs(1)).await;
            });
            for headers in ["", "Cookie: c\r\n"] {
                let response = world.client().get("/", headers).await;
                let expected = if is_streamed { (200, false) } else { (503, true) };
                assert_eq!((response.status(), response.is_whole), expected, "{}", world.story());
            }
        });
    }
}

#[test]
fn hit_for_pass_is_remembered_for_the_ttl_and_not_without_one() {
    let vcl = r#"
sub vcl_fetch {
  if (req.url == "/long") { set beresp.ttl = 20s; return (hit_for_pass); }
  if (req.url == "/none") { set beresp.ttl = 0s; return (hit_for_pass); }
}"#;
    run_old(vcl, |world| async move {
        let asked = Asked::default();
        world.origin(noting(&asked, |_| page("200 OK", "", "x")));
        let mut client = world.client();
        for _ in 0..3 {
            client.get("/long", "").await;
        }
        assert_eq!((asked.borrow().len(), world.count(Main::CacheHitpass)), (3, 2), "{}", world.story());
        sleep(Duration::from_secs(21)).await;
        let mut client = world.client();
        client.get("/long", "").await;
        assert_eq!(world.count(Main::CacheHitpass), 2, "forgotten");
        for _ in 0..3 {
            client.get("/none", "").await;
        }
        assert_eq!((asked.borrow().len(), world.count(Main::CacheHitpass)), (7, 2));
        assert_eq!(world.count(Main::CacheMiss), 5);
    });
}

#[test]
fn the_default_of_3_0_passes_what_cannot_be_cached_for_two_minutes() {
    run_old("sub vcl_deliver { set resp.http.X-Hits = obj.hits; }", |world| async move {
        let asked = Asked::default();
        world.origin(noting(&asked, |_| page("500 Oops", "", "x")));
        let mut client = world.client();
        for _ in 0..2 {
            client.get("/", "").await;
        }
        sleep(Duration::from_secs(119)).await;
        let mut client = world.client();
        client.get("/", "").await;
        assert_eq!((asked.borrow().len(), world.count(Main::CacheHitpass)), (3, 2), "{}", world.story());
    });
}

#[test]
fn in_2_1_pass_is_remembered_for_default_ttl_at_least_and_what_is_not_cacheable_not_at_all() {
    let vcl = r#"
sub vcl_fetch {
  if (beresp.cacheable) { set beresp.http.X-Cacheable = "yes"; } else { set beresp.http.X-Cacheable = "no"; }
  if (req.url == "/forced") { set beresp.cacheable = true; set beresp.ttl = 30s; return (deliver); }
}"#;
    run_old(vcl, |world| async move {
        let asked = Asked::default();
        world.origin(noting(&asked, |request| match request.target() {
            "/cookie" => page("200 OK", "Set-Cookie: a\r\nCache-Control: max-age=5\r\n", "x"),
            _ => page("500 Oops", "", "x"),
        }));
        let mut client = world.client();
        assert_eq!(client.get("/cookie", "").await.header("x-cacheable"), Some("yes"), "{}", world.story());
        sleep(Duration::from_secs(60)).await;
        let mut client = world.client();
        client.get("/cookie", "").await;
        assert_eq!(world.count(Main::CacheHitpass), 1, "for longer than max-age");
        assert_eq!(client.get("/error", "").await.header("x-cacheable"), Some("no"));
        client.get("/error", "").await;
        assert_eq!((world.count(Main::CacheHitpass), world.count(Main::CacheMiss)), (1, 3), "it is fetched anew");
        client.get("/forced", "").await;
        client.get("/forced", "").await;
        assert_eq!(world.count(Main::CacheHit), 1);
    });
}

#[test]
fn in_2_0_deliver_caches_whatever_the_status() {
    let vcl = r#"
sub vcl_fetch {
  if (!obj.cacheable) { set obj.http.X-Cacheable = "no"; }
  set obj.ttl = 50s;
  deliver;
}"#;
    run_old(vcl, |world| async move {
        world.origin(noting(&Asked::default(), |_| page("500 Oops", "", "x")));
        let mut client = world.client();
        for _ in 0..2 {
            let response = client.get("/", "").await;
            assert_eq!((response.status(), response.header("x-cacheable")), (500, Some("no")), "{}", world.story());
        }
        assert_eq!(world.count(Main::CacheHit), 1);
    });
}

#[test]
fn a_302_lives_for_default_ttl() {
    run_old_with(
        |parameters| parameters.default_ttl = 33.0,
        "sub vcl_fetch { set beresp.http.X-Ttl = beresp.ttl; }",
        |world| async move {
            world.origin(noting(&Asked::default(), |_| page("302 Found", "Location: /x\r\n", "")));
            let mut client = world.client();
            assert_eq!(client.get("/", "").await.header("x-ttl"), Some("33.000"), "{}", world.story());
            client.get("/", "").await;
            assert_eq!(world.count(Main::CacheHit), 1);
        },
    );
}

#[test]
fn client_that_leaves_during_its_fetch_does_not_cost_the_object() {
    let vcl = "sub vcl_fetch { set req.http.X-Seen = \"1\"; }";
    run_old(vcl, |world| async move {
        let asked = Asked::default();
        let count = Rc::clone(&asked);
        world.origin(move |mut stream| {
            let count = Rc::clone(&count);
            async move {
                while let Some(request) = OriginRequest::read(&mut stream).await {
                    count.borrow_mut().push(request);
                    sleep(Duration::from_secs(1)).await;
                    let _ = stream.write_all(&page("200 OK", "", "good")).await;
                }
            }
        });
        let mut gone = world.client();
        gone.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
        sleep(Duration::from_millis(100)).await;
        drop(gone);
        assert_eq!(world.client().get("/", "").await.text(), "good", "{}", world.story());
        assert_eq!(asked.borrow().len(), 1);
        assert_eq!(world.context.in_flight(), 0);
    });
}

#[test]
fn a_program_that_calls_itself_vcl_4_may_not_restart_clients() {
    let text = format!("{BACKEND}sub vcl_fetch {{ return (restart); }}");
    let source = vcl::SourceText { name: "<test>", text: text.as_bytes() };
    let mut program = vcl::compile(&source, &vcl::CompileOptions::default()).unwrap().program;
    assert!(vcl_run::link::LinkedProgram::link(program.clone()).is_ok());
    program.syntax = 41;
    let error = vcl_run::link::LinkedProgram::link(program).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("return(restart) in vcl_backend_response"), "{error}");
}

#[test]
fn setting_a_header_to_nothing_removes_it_until_2_1() {
    for (cacheable, expected) in [("beresp.ttl > 0s", Some("")), ("beresp.cacheable", None)] {
        let vcl = format!(
            "sub vcl_fetch {{ if ({cacheable}) {{ set beresp.http.X-A = req.http.X-None; }} }}
             sub vcl_deliver {{ set resp.http.X-B = req.http.X-None; }}"
        );
        run_old(&vcl, |world| async move {
            world.origin(noting(&Asked::default(), |_| page("200 OK", "X-A: a\r\nX-B: b\r\n", "x")));
            let response = world.client().get("/", "").await;
            assert_eq!((response.header("x-a"), response.header("x-b")), (expected, expected), "{}", world.story());
        });
    }
}
