//! Reasons: each decision records its reason, with the position in the VCL where there is one.

use crate::support::{World, always, run, run_with, serve_each};
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use surface::parameter::{Parameters, debug};
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

/// The reasons recorded so far, in the order of the transactions' ends.
fn reasons(world: &World) -> Vec<String> {
    let lines = world.log();
    lines.iter().filter_map(|line| line.split_once(" Witness why ")).map(|(_, reason)| reason.to_owned()).collect()
}

#[track_caller]
fn expect(world: &World, expected: &[&str]) {
    assert_eq!(reasons(world), expected, "{}", world.story());
}

#[test]
fn first_request_misses_since_nothing_is_stored_and_the_response_is() {
    run(async |world| {
        world.origin(always("Cache-Control: max-age=60\r\n", "hello"));
        world.client().get("/", "").await;
        world.client().get("/", "").await;
        // The first transaction to end depends on the progress of the readers.
        let mut all = reasons(&world);
        all.sort();
        assert_eq!(all, ["miss-absent gone=never seconds=0.000", "stored seconds=60.000"]);
    });
}

#[test]
fn cookie_passes_and_the_builtin_subroutine_is_named() {
    run(async |world| {
        world.origin(always("Cache-Control: max-age=60\r\n", "hello"));
        world.client().get("/", "Cookie: a=b\r\n").await;
        let all = reasons(&world);
        let pass = all.iter().find(|reason| reason.starts_with("pass ")).expect("a pass");
        assert!(pass.starts_with("pass at=<builtin>:"), "{pass}");
        assert!(pass.ends_with("in=vcl_recv>vcl_builtin_recv>vcl_req_cookie"), "{pass}");
        assert!(all.contains(&"not-stored-pass".to_owned()), "{all:?}");
    });
}

#[test]
fn pass_by_the_users_vcl_is_named_by_file_and_line() {
    run_with(
        |_| {},
        "sub vcl_recv {\n  if (req.url ~ \"^/admin\") {\n    return (pass);\n  }\n}\n",
        async |world| {
            world.origin(always("Cache-Control: max-age=60\r\n", "hello"));
            world.client().get("/admin/x", "").await;
            let all = reasons(&world);
            let pass = all.iter().find(|reason| reason.starts_with("pass ")).expect("a pass");
            assert!(pass.ends_with(" in=vcl_recv"), "{pass}");
            assert!(pass.contains(":3 ") || pass.contains(":4 ") || pass.contains(":5 "), "{pass}");
        },
    );
}

#[test]
fn uncacheable_response_reports_its_check_and_later_requests_a_hit_for_miss() {
    run(async |world| {
        world.origin(always("Set-Cookie: a=b\r\nCache-Control: max-age=60\r\n", "hello"));
        world.client().get("/", "").await;
        world.client().get("/", "").await;
        let all = reasons(&world);
        let stored = all.iter().find(|reason| reason.starts_with("not-stored-vcl")).expect("not stored");
        assert!(stored.contains("vcl_beresp_cookie"), "{stored}");
        assert!(all.contains(&"hit-for-miss".to_owned()), "{all:?}");
    });
}

/// The record for one request's response under a VCL whose first line is line 1.
fn stored_under(vcl: &str, headers: &'static str) -> String {
    let mut found = String::new();
    run_with(
        |_| {},
        vcl,
        async |world| {
            world.origin(always(headers, "hello"));
            world.client().get("/", "").await;
            found = reasons(&world).into_iter().find(|reason| reason.contains("stored")).expect("a reason");
        },
    );
    found
}

#[test]
fn uncacheable_response_is_reported_with_its_line() {
    let vcl = "vcl 4.1;
backend default { .host = \"10.0.0.1\"; }
sub private {
    set beresp.uncacheable = true;
}
sub vcl_backend_response {
    if (beresp.http.Private) {
        call private;
    }
    set beresp.ttl = 10s;
    return (deliver);
}";
    let private = stored_under(vcl, "Private: 1\r\n");
    assert!(private.starts_with("not-stored-vcl at="), "{private}");
    assert!(private.ends_with(":4 in=vcl_backend_response>private"), "{private}");
    assert_eq!(stored_under(vcl, ""), "stored seconds=10.000");
}

#[test]
fn ttl_that_prevented_storing_is_reported_with_its_line() {
    let vcl = "vcl 4.1;
backend default { .host = \"10.0.0.1\"; }
sub vcl_backend_response {
    set beresp.ttl = 0s;
    set beresp.grace = 0s;
    if (beresp.http.Dead) { return (deliver); }
}";
    let by_builtin = stored_under(vcl, "");
    assert!(by_builtin.contains(">vcl_beresp_stale>vcl_beresp_hitmiss ttl-at="), "{by_builtin}");
    assert!(by_builtin.ends_with(":4"), "{by_builtin}");
    let dead = stored_under(vcl, "Dead: 1\r\n");
    assert!(dead.starts_with("not-stored-ttl ttl-at=") && dead.ends_with(":4"), "{dead}");
    // If the origin set the ttl, no line of the VCL is named.
    let none = "vcl 4.1;\nbackend default { .host = \"10.0.0.1\"; }";
    let by_origin = stored_under(none, "Cache-Control: max-age=0\r\n");
    assert!(by_origin.ends_with(">vcl_beresp_stale>vcl_beresp_hitmiss"), "{by_origin}");
}

#[test]
fn uncacheable_response_of_an_old_dialect_is_reported_with_its_line() {
    let vcl = "backend default { .host = \"10.0.0.1\"; }
sub vcl_fetch {
    set beresp.cacheable = false;
    return (deliver);
}";
    let stored = stored_under(vcl, "");
    assert!(stored.starts_with("not-stored-vcl at=") && stored.contains(":3 in="), "{stored}");
}

#[test]
fn restart_in_vcl_recv_is_named_by_its_own_line_though_vcl_hash_runs_after_it() {
    let vcl = "sub vcl_recv {\n  if (req.restarts == 0) {\n    return (restart);\n  }\n}\n";
    run_with(
        |_| {},
        vcl,
        async |world| {
            world.origin(always("Cache-Control: max-age=60\r\n", "hello"));
            world.client().get("/", "").await;
            let all = reasons(&world);
            let told: Vec<&String> = all.iter().filter(|reason| reason.starts_with("restart")).collect();
            assert_eq!(told.len(), 1, "{all:?}");
            assert!(told[0].ends_with(" in=vcl_recv"), "{all:?}");
        },
    );
}

#[test]
fn fetch_ended_by_vcl_is_logged_once_with_its_line() {
    let vcl = "sub vcl_backend_fetch { if (bereq.url == \"/fail\") { return (fail); } }\n\
               sub vcl_backend_response {\n  if (bereq.url == \"/abandon\") { return (abandon); }\n  \
               if (bereq.url == \"/late\") { return (fail); }\n}\n";
    run_with(
        |_| {},
        vcl,
        async |world| {
            world.origin(always("Cache-Control: max-age=60\r\n", "hello"));
            for (url, reason, sub) in [
                ("/abandon", "error-by-vcl ", " in=vcl_backend_response"),
                ("/late", "vcl-failed ", " in=vcl_backend_response"),
                ("/fail", "vcl-failed ", " in=vcl_backend_fetch"),
            ] {
                let before = reasons(&world).len();
                assert_eq!(world.client().get(url, "").await.status(), 503);
                let all = reasons(&world).split_off(before);
                let told: Vec<&String> = all.iter().filter(|told| !told.starts_with("miss-")).collect();
                assert_eq!(told.len(), 1, "{url}: {all:?}");
                assert!(told[0].starts_with(reason) && told[0].ends_with(sub), "{url}: {all:?}");
            }
        },
    );
}

#[test]
fn pipe_without_a_connection_reports_its_reason() {
    run_with(
        |_| {},
        "sub vcl_recv { return (pipe); }\n",
        async |world| {
            let mut client = world.client();
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            client.rest().await;
            let all = reasons(&world);
            assert!(all.iter().any(|reason| reason.starts_with("connect-refused text=")), "{all:?}");
        },
    );
}

#[test]
fn malformed_request_is_distinguished_from_a_failed_expectation() {
    run(async |world| {
        for (head, reason) in [
            ("nonsense\r\n\r\n", "bad-request"),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "bad-request"),
            ("GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", "expectation-unknown"),
        ] {
            let before = reasons(&world).len();
            let mut client = world.client();
            client.send(head).await;
            client.rest().await;
            assert_eq!(reasons(&world).split_off(before), [reason], "{head:?}");
        }
    });
}

#[test]
fn causes_of_misses_are_distinguished() {
    let vcl = "sub vcl_recv { if (req.http.Force) { set req.hash_always_miss = true; } }";
    run_with(
        |_| {},
        vcl,
        async |world| {
            world.origin(always("Cache-Control: max-age=10\r\nVary: X-Device\r\n", "hello"));
            let get = async |world: &Rc<World>, headers: &str| {
                world.client().get("/", headers).await;
                sleep(Duration::from_millis(1)).await;
            };
            get(&world, "X-Device: phone\r\n").await;
            get(&world, "X-Device: desk\r\n").await;
            assert!(reasons(&world).contains(&"miss-vary headers=X-Device".to_owned()), "{}", world.story());
            assert!(reasons(&world).contains(&"more differs=X-Device".to_owned()), "{}", world.story());
            get(&world, "X-Device: desk\r\nForce: 1\r\n").await;
            let all = reasons(&world);
            let forced = all.iter().find(|reason| reason.starts_with("miss-forced at=")).expect("a forced miss");
            assert!(forced.ends_with(" in=vcl_recv"), "{forced}");
            sleep(Duration::from_secs(12)).await;
            get(&world, "X-Device: desk\r\n").await;
            let grace = reasons(&world).into_iter().find(|reason| reason.starts_with("hit-grace seconds=2."));
            assert!(grace.is_some(), "{}", world.story());
        },
    );
}

#[test]
fn reasons_have_a_tag_outside_the_usual_queries() {
    run(async |world| {
        world.origin(always("Cache-Control: max-age=60\r\n", "hello"));
        world.client().get("/", "Cookie: a=b\r\n").await;
        world.client().get("/", "").await;
        assert!(reasons(&world).len() >= 3, "{}", world.story());
        let notices: Vec<String> = world.log().into_iter().filter(|line| line.contains(" Notice ")).collect();
        assert!(notices.is_empty(), "{notices:?}");
    });
}

#[test]
fn miss_reports_the_last_removal_of_its_key() {
    let vcl = "import std;
sub vcl_recv { if (req.method == \"PURGE\") { return (purge); } if (req.method == \"BAN\") {
    std.ban(\"obj.http.Which == \" + req.http.Which); return (synth(200)); } }
sub vcl_backend_response { set beresp.grace = 0s; set beresp.keep = 0s; set beresp.http.Which = bereq.url; }";
    run_with(
        |parameters| parameters.ban_lurker_age = 1.0,
        vcl,
        async |world| {
            world.origin(always("Cache-Control: max-age=100\r\n", "hello"));
            let told = async |url: &str| {
                let before = reasons(&world).len();
                world.client().get(url, "").await;
                sleep(Duration::from_millis(1)).await;
                let told = reasons(&world).split_off(before);
                told.into_iter().filter(|reason| !reason.starts_with("stored")).collect::<Vec<_>>().join(" | ")
            };
            let ask = async |head: &str| {
                let mut client = world.client();
                client
                    .send(&format!(
                        "{head} HTTP/1.1\r\nHost: example.com\r\nWhich: /banned\r\nConnection: close\r\n\r\n"
                    ))
                    .await;
                client.rest().await;
            };
            for url in ["/purged", "/banned", "/expired"] {
                assert!(told(url).await.starts_with("miss-absent gone=never seconds="), "{url}");
            }
            ask("PURGE /purged").await;
            sleep(Duration::from_secs(2)).await;
            let purged = told("/purged").await;
            assert!(purged.starts_with("miss-absent gone=purged seconds=2.0"), "{purged}");
            // The ban by a lookup that finds its object, and by the lurker before one does.
            ask("BAN /").await;
            let banned = told("/banned").await;
            assert!(banned.starts_with("miss-banned bans=1 ban-time="), "{banned}");
            assert!(banned.ends_with(" | more ban=obj.http.Which == /banned"), "{banned}");
            ask("BAN /").await;
            let pass = async |seconds: u64| {
                for _ in 0..seconds {
                    sleep(Duration::from_secs(1)).await;
                    world.engine.cache.tick(world.context.clock.now());
                }
            };
            pass(10).await;
            let lurked = told("/banned").await;
            assert!(lurked.starts_with("miss-absent gone=banned seconds="), "{lurked}");
            assert!(
                lurked.contains(" ban-time=") && lurked.ends_with(" | more ban=obj.http.Which == /banned"),
                "{lurked}"
            );
            pass(120).await;
            let expired = told("/expired").await;
            assert!(expired.starts_with("miss-absent gone=expired seconds="), "{expired}");
        },
    );
}

#[test]
fn cookies_of_a_passed_request_are_named_and_their_values_are_not() {
    run(async |world| {
        world.origin(always("Cache-Control: max-age=60\r\n", "hello"));
        world.client().get("/", "Cookie: session=hidden at=hidden; _ga=GA1.hidden\r\n").await;
        let all = reasons(&world);
        assert!(all.contains(&"more dialect=4 cookies=session; _ga".to_owned()), "{all:?}");
        assert!(!all.iter().any(|reason| reason.contains("hidden")), "{all:?}");
    });
}

#[test]
fn parameter_that_a_request_broke_is_named() {
    let small = |parameters: &mut Parameters| {
        parameters.http_req_hdr_len = 100;
        parameters.http_req_size = 2000;
        parameters.http_max_hdr = 32;
    };
    run_with(small, "", async |world| {
        let long = format!("X: {}\r\n", "x".repeat(200));
        let many = "X: 1\r\n".repeat(40);
        let large = format!("X: {}\r\n", "x".repeat(90)).repeat(30);
        for (headers, told) in [
            (&long, "request-head-too-large limit=http_req_hdr_len max=100"),
            (&many, "request-head-too-large limit=http_max_hdr max=32"),
            (&large, "request-head-too-large limit=http_req_size max=2000 text=GET /large HTTP/1.1"),
        ] {
            let before = reasons(&world).len();
            let mut client = world.client();
            client.send(&format!("GET /large HTTP/1.1\r\nHost: a\r\n{headers}\r\n")).await;
            assert_eq!(client.rest().await, "HTTP/1.1 431 Request Header Fields Too Large\r\n\r\n", "{told}");
            world.expect_log("SessClose RX_OVERFLOW");
            assert_eq!(reasons(&world).split_off(before), [told]);
        }
    });
}

#[test]
fn parameter_that_a_response_broke_is_named() {
    run_with(
        |_| {},
        "",
        async |world| {
            world.origin(serve_each(|request| {
                let headers = match request.target() {
                    "/many" => "X: 1\r\n".repeat(100),
                    "/long" => format!("X: {}\r\n", "x".repeat(9000)),
                    _ => format!("X: {}\r\n", "x".repeat(8000)).repeat(5),
                };
                format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 0\r\n\r\n").into_bytes()
            }));
            for (path, parameter, max, text) in [
                ("/many", "http_max_hdr", 64, "http format error"),
                ("/long", "http_resp_hdr_len", 8192, "http format error"),
                ("/large", "http_resp_size", 32768, "overflow"),
            ] {
                assert_eq!(world.client().get(path, "").await.status(), 503);
                let told = format!("response-head-too-large limit={parameter} max={max} text={text}");
                assert!(reasons(&world).contains(&told), "{:?}", reasons(&world));
                world.expect_log(&format!(
                    "Error The head of the response is larger than allowed: parameter {parameter} is {max}"
                ));
            }
            assert_eq!(world.count(Main::FailHeadTooLarge), 3);
            assert_eq!(world.count(Main::FailGarbled), 0);
        },
    );
}

#[test]
fn failing_origin_is_reported_with_the_cause() {
    let silent = |parameters: &mut Parameters| parameters.first_byte_timeout = 1.0;
    run_with(silent, "", async |world| {
        world.origin(|stream| async move {
            sleep(Duration::from_secs(100)).await;
            drop(stream);
        });
        assert_eq!(world.client().get("/", "").await.status(), 503);
        let all = reasons(&world);
        assert!(all.contains(&"first-byte-timeout text=first byte timeout".to_owned()), "{all:?}");
    });
    run(async |world| {
        world.origin(|mut stream| async move {
            let _ = stream.write_all(b"not HTTP at all\r\n\r\n").await;
        });
        assert_eq!(world.client().get("/", "").await.status(), 503);
        let all = reasons(&world);
        assert!(all.iter().any(|reason| reason.starts_with("response-garbled ")), "{all:?}");
    });
}

#[test]
fn scripts_that_count_records_see_none_of_it_and_operators_can_turn_it_off() {
    let quiet: [fn(&mut Parameters); 2] =
        [|parameters| parameters.debug |= debug::VTC_MODE, |parameters| parameters.vsl_reasons = false];
    for change in quiet {
        run_with(change, "", async |world| {
            world.origin(always("Cache-Control: max-age=60\r\n", "hello"));
            world.client().get("/", "Cookie: a=b\r\n").await;
            expect(&world, &[]);
        });
    }
}

#[test]
fn cache_status_carries_the_short_form_when_wanted() {
    let wanted = |parameters: &mut Parameters| parameters.cache_status = true;
    run_with(wanted, "", async |world| {
        world.origin(always("Cache-Control: max-age=60\r\n", "hello"));
        let miss = world.client().get("/", "").await;
        assert_eq!(
            miss.header("cache-status"),
            Some("copal; fwd=uri-miss; fwd-status=200; stored; detail=miss-absent"),
            "{}",
            miss.head
        );
        sleep(Duration::from_secs(10)).await;
        let hit = world.client().get("/", "").await;
        assert_eq!(hit.header("cache-status"), Some("copal; hit; ttl=50"), "{}", hit.head);
        let pass = world.client().get("/", "Cookie: a=b\r\n").await;
        assert_eq!(
            pass.header("cache-status"),
            Some("copal; fwd=bypass; fwd-status=200; detail=pass"),
            "{}",
            pass.head
        );
    });
}

#[test]
fn node_out_of_step_with_its_fleet_passes_and_says_so() {
    use engine::fleet::Conditions;
    run(async |world| {
        world.origin(always("Cache-Control: max-age=600\r\nAge: 90\r\n", "hello"));
        world.client().get("/", "").await;
        world.engine.fleet.set(Conditions::Pass);
        world.client().get("/", "").await;
        assert!(reasons(&world).contains(&"pass-fleet".to_owned()), "{}", world.story());
        let passes = |world: &World| reasons(world).iter().filter(|reason| *reason == "pass-fleet").count();
        world.engine.fleet.set(Conditions::Cache);
        world.client().get("/", "").await;
        assert_eq!(passes(&world), 1);
        // The response is older than the limit.
        world.engine.fleet.set(Conditions::StaleLimit);
        world.client().get("/", "").await;
        let stored = reasons(&world).iter().filter(|reason| reason.starts_with("stored")).count();
        assert_eq!(stored, 2, "{}", world.story());
    });
}
