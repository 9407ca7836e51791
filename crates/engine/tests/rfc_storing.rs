//! Storing under `http_policy=rfc`: the stored responses, and their lifetimes.

use crate::support::{OriginRequest, World, always, run_with, serve_each};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use surface::parameter::Parameters;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

fn rfc(parameters: &mut Parameters) {
    parameters.http_policy = "rfc".to_owned();
}

/// Each response contains the number of requests that the origin has received.
fn counting(headers: &'static str) -> impl Fn(&OriginRequest) -> Vec<u8> + Clone {
    let count = Rc::new(Cell::new(0));
    move |_| {
        count.set(count.get() + 1);
        let number = count.get();
        format!("HTTP/1.1 200 OK\r\nX-Number: {number}\r\n{headers}Content-Length: 2\r\n\r\nhi").into_bytes()
    }
}

fn reasons(world: &World) -> Vec<String> {
    let lines = world.log();
    let why = lines.iter().filter_map(|line| line.split_once(" Witness why "));
    why.map(|(_, reason)| reason.split(' ').next().unwrap().to_owned()).filter(|word| word.contains("stored")).collect()
}

#[test]
fn nothing_is_fresh_by_default_and_the_response_says_why_it_is_not_stored() {
    let cases = [
        ("", "not-stored-stale"),
        ("Cache-Control: no-store, max-age=60\r\n", "not-stored-no-store"),
        ("Cache-Control: private, max-age=60\r\n", "not-stored-private"),
        ("Cache-Control: max-age=0\r\n", "not-stored-stale"),
        ("CDN-Cache-Control: no-store\r\nCache-Control: max-age=60\r\n", "not-stored-no-store"),
        ("Cache-Control: max-age=60\r\n", "stored"),
        ("Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n", "stored"),
        ("Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n", "not-stored-cookie"),
    ];
    for (headers, reason) in cases {
        run_with(rfc, "", async |world| {
            world.origin(always(headers, "hello"));
            world.client().get("/", "Cookie: a=b\r\n").await;
            sleep(Duration::from_secs(1)).await;
            world.client().get("/", "").await;
            assert_eq!(reasons(&world)[0], reason, "{headers}");
            let is_hit = world.count(Main::CacheHit) == 1;
            assert_eq!(is_hit, reason == "stored", "{headers}");
            assert_eq!(world.count(Main::CacheHitmiss) == 1, reason != "stored", "{headers}: nobody waits for another");
        });
    }
}

#[test]
fn vcl_sees_and_overrides_the_decision_of_the_policy() {
    let vcl = "sub vcl_backend_response {
        set beresp.http.x-saw = beresp.ttl + \" \" + beresp.grace + \" \" + beresp.uncacheable;
        if (bereq.url == \"/mine\") {
            set beresp.uncacheable = false;
            set beresp.ttl = 60s;
        }
    }";
    run_with(rfc, vcl, async |world| {
        world.origin(always("Cache-Control: no-store, max-age=30, stale-while-revalidate=5\r\n", "hello"));
        let theirs = world.client().get("/theirs", "").await;
        assert_eq!(theirs.header("x-saw"), Some("30.000 5.000 true"));
        for _ in 0..2 {
            world.client().get("/theirs", "").await;
            world.client().get("/mine", "").await;
        }
        assert_eq!((world.count(Main::CacheHit), world.count(Main::CacheHitmiss)), (1, 2), "{}", world.story());
    });
}

#[test]
fn a_refused_response_is_forgotten_when_vcl_asks_again() {
    let vcl = "sub vcl_backend_response {
        if (beresp.uncacheable && bereq.retries == 0) { return (retry); }
    }";
    run_with(rfc, vcl, async |world| {
        let count = Rc::new(Cell::new(0));
        world.origin(serve_each(move |_| {
            count.set(count.get() + 1);
            let control = if count.get() == 1 { "no-store" } else { "max-age=60" };
            format!("HTTP/1.1 200 OK\r\nCache-Control: {control}\r\nContent-Length: 2\r\n\r\nhi").into_bytes()
        }));
        world.client().get("/", "").await;
        world.client().get("/", "").await;
        assert_eq!(world.count(Main::CacheHit), 1, "{}", world.story());
    });
}

#[test]
fn fields_for_one_client_reach_that_client_only() {
    run_with(rfc, "", async |world| {
        world.origin(always("Cache-Control: max-age=60, private=\"set-cookie\"\r\nSet-Cookie: a=b\r\n", "hello"));
        let first = world.client().get("/", "").await;
        assert_eq!(first.header("set-cookie"), Some("a=b"), "{}", first.head);
        let second = world.client().get("/", "").await;
        assert_eq!(second.header("set-cookie"), None, "{}", second.head);
        assert_eq!((second.status(), world.count(Main::CacheHit)), (200, 1));
    });
}

#[test]
fn a_cookie_is_stored_unless_the_operator_is_timid() {
    let timid = |parameters: &mut Parameters| {
        rfc(parameters);
        parameters.store_set_cookie = false;
    };
    run_with(timid, "", async |world| {
        world.origin(always("Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n", "hello"));
        world.client().get("/", "").await;
        assert_eq!(reasons(&world), ["not-stored-set-cookie"]);
    });
    run_with(rfc, "", async |world| {
        world.origin(always("Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n", "hello"));
        world.client().get("/", "").await;
        let second = world.client().get("/", "").await;
        assert_eq!((second.header("set-cookie"), world.count(Main::CacheHit)), (Some("a=b"), 1));
    });
}

#[test]
fn login_response_is_shared_only_with_permission() {
    for (control, is_shared) in [("max-age=60", false), ("max-age=60, public", true), ("s-maxage=60", true)] {
        run_with(rfc, "", async |world| {
            let headers = Box::leak(format!("Cache-Control: {control}\r\n").into_boxed_str());
            world.origin(serve_each(counting(headers)));
            world.client().get("/", "Authorization: Basic YQ==\r\n").await;
            let other = world.client().get("/", "").await;
            assert_eq!(other.header("x-number"), Some(if is_shared { "1" } else { "2" }), "{control}");
        });
    }
}

#[test]
fn unknown_methods_are_passed_and_not_piped() {
    run_with(rfc, "", async |world| {
        world.origin(always("Cache-Control: max-age=60\r\n", "hello"));
        let mut client = world.client();
        client.send("M-SEARCH / HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert_eq!(client.response().await.status(), 200);
        assert_eq!((world.count(Main::SPass), world.count(Main::SPipe)), (1, 0));
    });
}

#[test]
fn age_counts_the_time_that_the_origin_took() {
    run_with(rfc, "", async |world| {
        world.origin(always("Cache-Control: max-age=60\r\nAge: 30\r\n", "hello"));
        world.client().get("/", "").await;
        sleep(Duration::from_millis(3000)).await;
        let hit = world.client().get("/", "").await;
        assert_eq!(hit.header("age"), Some("33"), "{}", hit.head);
        sleep(Duration::from_millis(27_100)).await;
        world.client().get("/", "").await;
        assert_eq!(world.count(Main::CacheHit), 1, "it is stale after 30 seconds here");
    });
}

#[test]
fn content_range_of_a_whole_response_means_nothing_and_is_kept() {
    run_with(rfc, "", async |world| {
        world.origin(always("Cache-Control: max-age=60\r\nContent-Range: foo\r\nKeep-Alive: a\r\n", "hello"));
        world.client().get("/", "").await;
        let hit = world.client().get("/", "").await;
        assert_eq!((hit.header("content-range"), hit.header("keep-alive")), (Some("foo"), None), "{}", hit.head);
    });
}

#[test]
fn cache_status_is_there_under_the_rfc_and_bears_the_name_of_the_cache() {
    let named = |parameters: &mut Parameters| {
        rfc(parameters);
        parameters.cache_status_name = "edge 1".to_owned();
    };
    run_with(named, "", async |world| {
        world.origin(serve_each(|request| {
            let head = if request.header("if-none-match").is_some() { "304 Not Modified" } else { "200 OK" };
            let body = if head.starts_with("304") { "" } else { "Content-Length: 2\r\n\r\nhi" };
            let end = if body.is_empty() { "\r\n" } else { "" };
            format!(
                "HTTP/1.1 {head}\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\nCache-Status: up; hit\r\n{body}{end}"
            )
            .into_bytes()
        }));
        let status = |response: &crate::support::Response| {
            let lines = response.head.lines().filter_map(|line| line.strip_prefix("Cache-Status: "));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let miss = world.client().get("/", "").await;
        assert_eq!(
            status(&miss),
            ["up; hit", "\"edge 1\"; fwd=uri-miss; fwd-status=200; stored; detail=miss-absent"],
            "{}",
            miss.head
        );
        sleep(Duration::from_millis(10_500)).await;
        let hit = world.client().get("/", "").await;
        assert_eq!(status(&hit)[1], "\"edge 1\"; hit; ttl=49", "{}", hit.head);
        sleep(Duration::from_secs(51)).await;
        let validated = world.client().get("/", "").await;
        assert_eq!(
            status(&validated)[1],
            "\"edge 1\"; fwd=stale; fwd-status=304; stored; detail=miss-expired",
            "{}",
            validated.head
        );
    });
    let nameless = |parameters: &mut Parameters| {
        rfc(parameters);
        parameters.cache_status_name.clear();
    };
    run_with(nameless, "", async |world| {
        world.origin(always("Cache-Control: max-age=60\r\n", "hello"));
        let miss = world.client().get("/", "").await;
        assert_eq!(miss.header("cache-status"), None, "{}", miss.head);
    });
}

#[test]
fn the_answer_to_a_post_that_names_its_target_answers_a_get() {
    let cases = [
        ("Cache-Control: max-age=60\r\nContent-Location: /form\r\n", true),
        ("Cache-Control: max-age=60\r\nContent-Location: http://example.com/form\r\n", true),
        ("Cache-Control: max-age=60\r\nContent-Location: /other\r\n", false),
        ("Cache-Control: max-age=60\r\nContent-Location: /form?x\r\n", false),
        ("Cache-Control: max-age=60\r\nContent-Location: http://example.org/form\r\n", false),
        ("Cache-Control: max-age=60\r\nContent-Location: //example.com:8080/form\r\n", false),
        ("Cache-Control: max-age=60\r\nContent-Location: http://x@example.com/form\r\n", false),
        ("Cache-Control: private, max-age=60\r\nContent-Location: /form\r\n", false),
        ("Cache-Control: max-age=60\r\n", false),
        ("Cache-Control: no-store, max-age=60\r\nContent-Location: /form\r\n", false),
        ("Cache-Control: max-age=60\r\nContent-Location: /form\r\nContent-Encoding: br\r\n", false),
    ];
    for (headers, is_stored) in cases {
        run_with(rfc, "", async |world| {
            world.origin(serve_each(counting(headers)));
            let head = "POST /form HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1\r\n\r\n";
            let posted = world.client().post(head.to_owned(), b"x".to_vec()).await;
            assert_eq!((posted.status(), posted.text()), (200, "hi".to_owned()));
            let mut client = world.client();
            client.send("GET /form HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
            let got = client.response().await;
            assert_eq!(got.header("x-number"), Some(if is_stored { "1" } else { "2" }), "{headers}");
            assert_eq!(world.count(Main::CacheHitmiss), 0, "{headers}: a POST says nothing about a GET");
        });
    }
}

#[test]
fn the_answer_to_a_post_is_not_stored_if_vcl_asks_again_and_the_origin_fails() {
    let vcl = "sub vcl_backend_response { if (bereq.retries == 0) { return (retry); } }
        sub vcl_backend_error { set beresp.ttl = 60s; }";
    run_with(rfc, vcl, async |world| {
        let count = Rc::new(Cell::new(0));
        world.origin(serve_each(move |_| {
            count.set(count.get() + 1);
            let good =
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Location: /\r\nContent-Length: 0\r\n\r\n";
            if count.get() == 1 { good.into() } else { b"garbage\r\n\r\n".to_vec() }
        }));
        let post = || "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".to_owned();
        assert_eq!(world.client().post(post(), Vec::new()).await.status(), 503);
        world.client().get("/", "").await;
        assert_eq!((world.count(Main::CacheHit), world.count(Main::CacheMiss)), (0, 1), "{}", world.story());
    });
}

#[test]
fn a_response_without_a_length_ends_with_its_connection_whatever_it_says_about_it() {
    for (policy, body) in [("rfc", "all of it"), ("varnish", "")] {
        let change = |parameters: &mut Parameters| parameters.http_policy = policy.to_owned();
        run_with(change, "", async |world| {
            world.origin(async |mut stream: tokio::io::DuplexStream| {
                let mut request = [0; 1000];
                let _ = stream.read(&mut request).await;
                let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nConnection: keep-alive\r\n\r\n";
                let _ = stream.write_all(format!("{head}all of").as_bytes()).await;
                sleep(Duration::from_millis(100)).await;
                let _ = stream.write_all(b" it").await;
            });
            for _ in 0..2 {
                assert_eq!(world.client().get("/", "").await.text(), body, "{policy}");
            }
            assert_eq!(world.client().get("/head", "").await.status(), 200);
        });
    }
}
