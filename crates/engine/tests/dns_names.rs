//! Backends by name (dynamic), through VCL: who waits for a lookup, who does not, and what a change of addresses does.

use crate::support::{always, look_up, run};
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
