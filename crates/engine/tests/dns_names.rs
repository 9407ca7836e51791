//! Backends by name (dynamic), through VCL: requests that wait for a lookup, requests that do not,
//! and the effect of a change of addresses.

use crate::support::{always, look_up, run, run_with};
use std::time::Duration;
use surface::counter::Main;
use tokio::time::{Instant, sleep};

const BY_HOST: &str = "vcl 4.1; import dynamic; backend nobody none;
    sub vcl_init { new d = dynamic.director(ttl = 10s, keep = 0); }
    sub vcl_recv { set req.backend_hint = d.backend(req.http.name); }
    sub vcl_backend_response { set beresp.http.from = beresp.backend; set beresp.http.name = bereq.backend; }";

#[test]
fn a_fetch_waits_for_the_first_lookup_and_a_hit_for_none() {
    run(async |world| {
        world.load("names", BY_HOST);
        let table = look_up(&world);
        table.set("www", &["10.0.0.1"]);
        world.origin(always("Cache-Control: max-age=60\r\n", "text"));
        let mut client = world.client();
        let start = Instant::now();
        let answer = client.get("/", "name: www\r\n").await;
        assert_eq!((answer.status(), start.elapsed().as_secs()), (200, 1), "{}", world.story());
        assert_eq!(answer.header("from"), Some("d(10.0.0.1:http)"));
        assert_eq!(answer.header("name"), Some("d(www:http)"));
        let start = Instant::now();
        client.get("/", "name: other\r\n").await;
        assert_eq!((world.count(Main::CacheHit), start.elapsed().as_millis()), (1, 0), "a hit needs no origin");
        let answer = client.get("/new", "name: www\r\n").await;
        assert_eq!((answer.status(), start.elapsed().as_millis()), (200, 0));
    });
}

#[test]
fn new_addresses_serve_what_is_fetched_after_the_next_lookup() {
    run(async |world| {
        world.load("names", BY_HOST);
        let table = look_up(&world);
        table.set("www", &["10.0.0.1"]);
        world.origin_at("10.0.0.1:80", always("", "one"));
        world.origin_at("10.0.0.2:80", always("", "two"));
        assert_eq!(world.client().get("/1", "name: www\r\n").await.text(), "one");
        table.set("www", &["10.0.0.2"]);
        sleep(Duration::from_secs(9)).await;
        assert_eq!(world.client().get("/2", "name: www\r\n").await.text(), "one", "the answer holds for ten seconds");
        sleep(Duration::from_secs(3)).await;
        assert_eq!(world.client().get("/3", "name: www\r\n").await.text(), "two");
        assert!(table.asked.get() >= 2);
    });
}

#[test]
fn a_name_without_addresses_is_a_503_with_its_reason() {
    run(async |world| {
        world.load("names", BY_HOST);
        look_up(&world);
        let answer = world.client().get("/", "name: nowhere\r\n").await;
        assert_eq!(answer.status(), 503);
        world.expect_log("FetchError Director d(nowhere:http) returned no backend");
        world.expect_log("Error vmod-dynamic: names d nowhere:http getaddrinfo -2 (Name or service not known)");
    });
}

#[test]
fn vcl_on_the_backend_side_waits_by_itself() {
    run(async |world| {
        world.load(
            "names",
            "vcl 4.1; import dynamic; import std; backend nobody none;
             sub vcl_init { new d = dynamic.director(port = \"80\"); }
             sub vcl_backend_fetch {
                set bereq.backend = d.backend();
                std.log(\"healthy \" + std.healthy(bereq.backend) + \" at \" + bereq.backend.resolve());
             }",
        );
        let table = look_up(&world);
        table.set("example.com", &["10.0.0.1"]);
        world.origin(always("", "text"));
        assert_eq!(world.client().get("/", "").await.text(), "text");
        world.expect_log("VCL_Log healthy true at d(10.0.0.1:80)");
    });
}

#[test]
fn a_pipe_waits_too() {
    run(async |world| {
        world.load(
            "names",
            "vcl 4.1; import dynamic; backend nobody none;
             sub vcl_init { new d = dynamic.director(port = \"80\"); }
             sub vcl_recv { set req.backend_hint = d.backend(\"www\"); return (pipe); }",
        );
        let table = look_up(&world);
        table.set("www", &["10.0.0.1"]);
        world.origin(always("Connection: close\r\n", "through"));
        let answer = world.client().get("/", "Connection: close\r\n").await;
        assert_eq!(answer.text(), "through", "{}", world.story());
    });
}

/// VCL with a name of which some addresses are unreachable. `more` is added to `vcl_recv`.
fn half_dead(more: &str) -> String {
    format!(
        "vcl 4.1; import dynamic; backend nobody none;
         sub vcl_init {{ new d = dynamic.director(port = \"80\"); }}
         sub vcl_recv {{ set req.backend_hint = d.backend(\"www\"); {more} }}
         sub vcl_backend_response {{ set beresp.http.name = beresp.backend; }}"
    )
}

#[test]
fn unreachable_address_of_a_name_costs_an_attempt_and_not_the_request() {
    for policy in ["varnish", "rfc"] {
        run_with(
            |parameters| parameters.http_policy = policy.to_owned(),
            &half_dead("return (pass);"),
            async |world| {
                let table = look_up(&world);
                table.set("www", &["2001:db8::1", "10.0.0.2"]);
                world.origin_at("10.0.0.2:80", always("Connection: close\r\n", "text"));
                let mut client = world.client();
                for number in 0..6 {
                    let answer = client.get(&format!("/{number}"), "").await;
                    assert_eq!(answer.status(), 200, "{number} {}", world.story());
                    assert_eq!(answer.header("name"), Some("d(10.0.0.2:80)"));
                }
                assert_eq!(world.dialled(), 7, "the unreachable one was tried once");
                world.expect_log("fail errno 111");
                assert_eq!(world.count(Main::FetchFailed), 0);
                sleep(Duration::from_secs(10)).await;
                // The idle connection of the first client was closed meanwhile.
                let mut client = world.client();
                for number in 6..8 {
                    let head = format!("POST /{number} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody");
                    client.send(&head).await;
                    assert_eq!(client.response().await.status(), 200, "nothing was sent to the unreachable one");
                }
                assert_eq!(world.dialled(), 10, "it is tried again after a while");
            },
        );
    }
}

#[test]
fn silent_address_leaves_time_for_the_next() {
    run_with(
        |parameters| parameters.connect_timeout = 4.0,
        &half_dead("return (pass);"),
        async |world| {
            let table = look_up(&world);
            table.set("www", &["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
            world.silence("10.0.0.1:80");
            world.silence("10.0.0.3:80");
            world.origin_at("10.0.0.2:80", always("Connection: close\r\n", "text"));
            let mut client = world.client();
            client.get("/first", "").await;
            let start = Instant::now();
            for number in 0..8 {
                assert_eq!(client.get(&format!("/{number}"), "").await.status(), 200, "{}", world.story());
            }
            // Each of the two costs at most half of the time once.
            assert!(start.elapsed() <= Duration::from_millis(4_010), "{:?}", start.elapsed());
            // With all unreachable, the error comes no later than that of a single connect.
            world.silence("10.0.0.2:80");
            sleep(Duration::from_secs(11)).await;
            let start = Instant::now();
            assert_eq!(world.client().get("/none", "").await.status(), 503);
            assert!(start.elapsed() <= Duration::from_millis(4_010), "{:?}", start.elapsed());
        },
    );
}

#[test]
fn pipe_tries_the_next_address_too() {
    run_with(
        |_| {},
        &half_dead("return (pipe);"),
        async |world| {
            let table = look_up(&world);
            table.set("www", &["10.0.0.1", "10.0.0.2"]);
            world.origin_at("10.0.0.2:80", always("Connection: close\r\n", "through"));
            for _ in 0..2 {
                let answer = world.client().get("/", "Connection: close\r\n").await;
                assert_eq!(answer.text(), "through", "{}", world.story());
            }
        },
    );
}
