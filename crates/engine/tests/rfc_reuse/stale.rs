//! Stale responses: when they may be served, and when not.

use super::*;
use surface::counter::Main;
use tokio::io::AsyncWriteExt;

/// An origin that answers the first `good` requests with these headers and fails all later ones
/// with `failure`: these bytes, and then the end of the connection.
fn failing(world: &World, headers: &'static str, good: usize, failure: &'static str) -> Asked {
    let asked = Asked::default();
    let seen = Rc::clone(&asked);
    world.origin(move |mut stream| {
        let seen = Rc::clone(&seen);
        async move {
            while let Some(request) = OriginRequest::read(&mut stream).await {
                seen.borrow_mut().push(request);
                let number = seen.borrow().len();
                if number > good {
                    let _ = stream.write_all(failure.as_bytes()).await;
                    return;
                }
                let _ = stream.write_all(ok(headers, number).as_bytes()).await;
            }
        }
    });
    asked
}

const E503: &str = "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy";

/// Status and body of a second request after some seconds, when the origin fails.
fn after_failure(seconds: u64, headers: &'static str, failure: &'static str) -> (u16, String) {
    let mut answer = (0, String::new());
    run_rfc(async |world| {
        failing(&world, headers, 1, failure);
        let mut client = world.client();
        client.get("/", "").await;
        wait(seconds).await;
        let response = client.get("/", "").await;
        answer = (response.status(), response.text());
    });
    answer
}

#[test]
fn stale_object_answers_when_the_origin_does_not_unless_that_is_forbidden() {
    let cases = [
        ("Cache-Control: max-age=2\r\n", 200),
        ("Cache-Control: max-age=2, must-revalidate\r\n", 504),
        ("Cache-Control: max-age=2, proxy-revalidate\r\n", 504),
        ("Cache-Control: max-age=2, s-maxage=2\r\n", 504),
        ("Cache-Control: no-cache\r\nETag: \"a\"\r\n", 504),
    ];
    for (headers, expected) in cases {
        let (status, body) = after_failure(3, headers, "");
        assert_eq!(status, expected, "{headers}");
        assert_eq!(body == "1", expected == 200, "{headers}");
    }
}

#[test]
fn stale_object_replaces_an_error_within_stale_if_error() {
    let with = |seconds, headers| after_failure(seconds, headers, E503);
    assert_eq!(with(3, "Cache-Control: max-age=2, stale-if-error=60\r\n"), (200, "1".to_owned()));
    assert_eq!(with(63, "Cache-Control: max-age=2, stale-if-error=60\r\n"), (503, "busy".to_owned()));
    assert_eq!(with(3, "Cache-Control: max-age=2\r\n"), (503, "busy".to_owned()));
    assert_eq!(with(3, "Cache-Control: max-age=2, stale-if-error=60, must-revalidate\r\n"), (503, "busy".to_owned()));
    let not_found = "HTTP/1.1 404 Gone\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngone";
    let missing = after_failure(3, "Cache-Control: max-age=2, stale-if-error=60\r\n", not_found);
    assert_eq!(missing, (404, "gone".to_owned()));
}

#[test]
fn client_may_ask_for_a_stale_response_in_place_of_an_error() {
    run_rfc(async |world| {
        failing(&world, "Cache-Control: max-age=2\r\n", 1, E503);
        let mut client = world.client();
        client.get("/", "").await;
        wait(10).await;
        assert_eq!(client.get("/", "Cache-Control: stale-if-error=5\r\n").await.status(), 503);
        assert_eq!(client.get("/", "Cache-Control: stale-if-error=20\r\n").await.text(), "1", "{}", world.story());
    });
}

#[test]
fn failing_origin_is_reported_and_age_is_that_of_the_copy() {
    run_rfc(async |world| {
        failing(&world, "Cache-Control: max-age=2\r\n", 1, "");
        let mut client = world.client();
        client.get("/", "").await;
        wait(7).await;
        let response = client.get("/", "").await;
        assert_eq!((response.text().as_str(), response.header("age")), ("1", Some("7")));
        expect_reason(&world, "stale-on-error");
        expect_reason(&world, "origin-closed");
    });
}

#[test]
fn many_waiting_for_a_dead_origin_are_served_when_the_first_has_found_out() {
    run_rfc_with(
        |parameters| parameters.first_byte_timeout = 30.0,
        "",
        async |world| {
            let asked = Asked::default();
            let seen = Rc::clone(&asked);
            world.origin(move |mut stream| {
                let seen = Rc::clone(&seen);
                async move {
                    while let Some(request) = OriginRequest::read(&mut stream).await {
                        seen.borrow_mut().push(request);
                        if seen.borrow().len() > 1 {
                            wait(1000).await;
                        }
                        let _ = stream.write_all(ok("Cache-Control: max-age=2\r\n", "x").as_bytes()).await;
                    }
                }
            });
            world.client().get("/", "").await;
            wait(5).await;
            let before = world.context.clock.now();
            let crowd: Vec<_> = (0..50)
                .map(|_| {
                    let world = Rc::clone(&world);
                    tokio::task::spawn_local(async move { world.client().get("/", "").await })
                })
                .collect();
            for one in crowd {
                assert_eq!(one.await.unwrap().text(), "x", "{}", world.story());
            }
            let took = world.context.clock.now() - before;
            assert!((29.0..32.0).contains(&took), "one time limit for all: {took}");
            assert_eq!(asked.borrow().len(), 2);
            // From now on no client waits: one request validates in the background.
            let before = world.context.clock.now();
            for _ in 0..3 {
                assert_eq!(world.client().get("/", "").await.text(), "x");
            }
            assert!(world.context.clock.now() - before < 1.0);
            assert_eq!(asked.borrow().len(), 3);
            // Even after that one has failed, too.
            wait(40).await;
            let before = world.context.clock.now();
            assert_eq!(world.client().get("/", "").await.text(), "x");
            assert!(world.context.clock.now() - before < 1.0);
        },
    );
}

#[test]
fn stale_while_revalidate_ends_with_its_last_second() {
    run_rfc(async |world| {
        let asked = failing(&world, "Cache-Control: max-age=1, stale-while-revalidate=4\r\nETag: \"a\"\r\n", 9, "");
        let mut client = world.client();
        client.get("/", "").await;
        wait(3).await;
        assert_eq!(client.get("/", "").await.text(), "1", "at once");
        wait(1).await;
        assert_eq!(asked.borrow().len(), 2, "one refresh");
        wait(3).await;
        assert_eq!(client.get("/", "").await.text(), "2", "the refreshed one, stale as well");
        wait(20).await;
        assert_eq!(client.get("/", "").await.text(), "4", "too late");
        assert_eq!(world.count(Main::SBgfetch), 2);
    });
}

#[test]
fn refresh_that_meets_an_error_does_not_cost_the_copy() {
    run_rfc(async |world| {
        failing(&world, "Cache-Control: max-age=1, stale-while-revalidate=100\r\n", 1, E503);
        let mut client = world.client();
        client.get("/", "").await;
        for _ in 0..5 {
            wait(3).await;
            assert_eq!(client.get("/", "").await.text(), "1", "{}", world.story());
        }
    });
}

#[test]
fn vcl_can_still_turn_to_another_origin() {
    let vcl = "vcl 4.1;
        backend default { .host = \"10.0.0.1\"; }
        backend other { .host = \"10.0.0.2\"; }
        sub vcl_backend_fetch { if (bereq.retries > 0) { set bereq.backend = other; } }
        sub vcl_backend_error { if (bereq.retries == 0) { return (retry); } }";
    run_rfc_with(
        |_| {},
        vcl,
        async |world| {
            failing(&world, "Cache-Control: max-age=1\r\n", 1, "");
            world.origin_at("10.0.0.2:80", crate::support::always("", "other"));
            let mut client = world.client();
            client.get("/", "").await;
            wait(3).await;
            assert_eq!(client.get("/", "").await.text(), "other", "{}", world.story());
        },
    );
}

#[test]
fn under_varnish_a_failed_origin_is_an_error() {
    let vcl = "sub vcl_backend_response { set beresp.grace = 0s; set beresp.keep = 100s; }";
    run_with(
        |_| {},
        vcl,
        async |world| {
            failing(&world, "Cache-Control: max-age=1, stale-if-error=100\r\n", 1, "");
            let mut client = world.client();
            client.get("/", "").await;
            wait(3).await;
            assert_eq!(client.get("/", "").await.status(), 503);
        },
    );
}
