//! `director … dns`: the requested host is looked up, and the backend at its address used.

use super::{Asked, noting, page};
use crate::support::{Table, World, look_up, run_with};
use std::rc::Rc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A network of two backends that answer, with names under `.internal`.
const BY_NAME: &str = r#"
director by_name dns {
    .list = {
        .port = "8080";
        .host_header = "unnamed.example.com";
        "10.0.0.0"/30;
    }
    .ttl = 5m;
    .suffix = ".internal";
}
sub vcl_recv { set req.backend = by_name; return (pass); }
sub vcl_fetch { set beresp.http.X-Backend = beresp.backend.name; return (hit_for_pass); }"#;

/// A test of a VCL with the origins one and two at port 8080, and names that are looked up.
fn run_names<F: Future<Output = ()>>(vcl: &str, story: impl FnOnce(Rc<World>, Rc<Table>) -> F) {
    run_with(
        |_| {},
        vcl,
        |world| async move {
            for (address, name) in [("10.0.0.1:8080", "one"), ("10.0.0.2:8080", "two"), ("10.0.0.9:8080", "nine")] {
                world.origin_at(address, noting(&Asked::default(), move |_| page("200 OK", "", name)));
            }
            let table = look_up(&world);
            story(world, table).await;
        },
    );
}

async fn ask(world: &World, host: &str) -> (u16, String) {
    let mut client = world.client();
    client.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
    let response = client.response().await;
    (response.status(), response.text())
}

#[test]
fn a_host_leads_to_the_backend_at_its_address() {
    run_names(BY_NAME, |world, table| async move {
        table.set("www.example.com.internal", &["10.0.0.1"]);
        table.set("img.example.com.internal", &["10.0.0.2"]);
        assert_eq!(ask(&world, "www.example.com").await, (200, "one".to_owned()), "{}", world.story());
        assert_eq!(ask(&world, "img.example.com").await.1, "two");
        assert_eq!(ask(&world, "WWW.example.com:8080").await.1, "one", "neither port nor case matter");
        assert_eq!(table.asked.get(), 2, "an answer is remembered");
        world.expect_log("BerespHeader X-Backend: by_name(10.0.0.2:8080)");
    });
}

#[test]
fn the_first_lookup_is_waited_for_and_no_other() {
    run_names(BY_NAME, |world, table| async move {
        table.set("www.internal", &["10.0.0.1"]);
        let start = Instant::now();
        ask(&world, "www").await;
        assert_eq!(start.elapsed().as_secs(), 1);
        table.set("www.internal", &["10.0.0.2"]);
        sleep(Duration::from_secs(290)).await;
        let start = Instant::now();
        assert_eq!(ask(&world, "www").await.1, "one", "an answer holds for its ttl");
        sleep(Duration::from_secs(15)).await;
        assert_eq!(ask(&world, "www").await.1, "two");
        assert_eq!(start.elapsed().as_secs(), 15, "nobody waited");
    });
}

#[test]
fn addresses_of_one_host_are_used_in_turn() {
    run_names(BY_NAME, |world, table| async move {
        table.set("www.internal", &["10.0.0.1", "10.0.0.2"]);
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push(ask(&world, "www").await.1);
        }
        assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "{seen:?}");
    });
}

#[test]
fn addresses_outside_the_list_are_not_used_as_backends() {
    run_names(BY_NAME, |world, table| async move {
        table.set("far.internal", &["10.0.0.9"]);
        table.set("mixed.internal", &["10.0.0.9", "10.0.0.1"]);
        assert_eq!(ask(&world, "far").await.0, 503);
        assert_eq!(ask(&world, "unknown").await.0, 503);
        for _ in 0..3 {
            assert_eq!(ask(&world, "mixed").await.1, "one");
        }
        world.expect_log("FetchError Director by_name returned no backend");
        world.expect_log("Error dns-director: boot by_name far.internal:8080 whitelist mismatch 10.0.0.9:8080");
    });
}

#[test]
fn a_request_without_host_has_no_backend() {
    run_names(BY_NAME, |world, _| async move {
        let mut client = world.client();
        client.send("GET / HTTP/1.0\r\n\r\n").await;
        assert_eq!(client.response().await.status(), 503);
    });
}

#[test]
fn the_host_that_vcl_asks_the_backend_for_is_what_counts() {
    let vcl = r#"
director by_name dns { .list = { .port = "8080"; "10.0.0.0"/24; } }
sub vcl_recv { set req.backend = by_name; return (lookup); }
sub vcl_miss { set bereq.http.Host = "other"; }
sub vcl_fetch { return (hit_for_pass); }"#;
    run_names(vcl, |world, table| async move {
        table.set("other", &["10.0.0.2"]);
        assert_eq!(ask(&world, "www").await.1, "two", "{}", world.story());
    });
}

#[test]
fn members_are_used_at_their_addresses_with_what_their_definitions_say() {
    let vcl = r#"
backend one { .host = "10.0.0.1"; .port = "8080"; }
director by_name dns {
    { .backend = one; }
    { .backend = { .host = "10.0.0.2"; .port = "8080"; } }
}
sub vcl_recv {
    set req.backend = by_name;
    if (!req.backend.healthy) { error 500; }
    return (pass);
}
sub vcl_fetch { set beresp.http.X-Backend = beresp.backend.name; return (hit_for_pass); }"#;
    run_names(vcl, |world, table| async move {
        table.set("www", &["10.0.0.1"]);
        table.set("img", &["10.0.0.2"]);
        table.set("far", &["10.0.0.9"]);
        assert_eq!(ask(&world, "www").await.1, "one", "{}", world.story());
        assert_eq!(ask(&world, "img").await.1, "two");
        assert_eq!(ask(&world, "far").await.0, 503);
        world.expect_log("BerespHeader X-Backend: one");
        world.expect_log("BerespHeader X-Backend: by_name[1]");
    });
}

#[test]
fn it_may_be_a_member_and_another_backend_is_used_where_it_has_none() {
    let vcl = r#"
backend nine { .host = "10.0.0.9"; .port = "8080"; }
director by_name dns { .list = { .port = "8080"; "10.0.0.0"/30; } }
director all fallback { { .backend = by_name; } { .backend = nine; } }
sub vcl_recv { set req.backend = all; return (pass); }
sub vcl_fetch { return (hit_for_pass); }"#;
    run_names(vcl, |world, table| async move {
        table.set("www", &["10.0.0.1"]);
        assert_eq!(ask(&world, "www").await.1, "one", "{}", world.story());
        assert_eq!(ask(&world, "unknown").await.1, "nine");
    });
}

#[test]
fn a_pipe_goes_there_too() {
    let vcl = r#"
director by_name dns { .list = { .port = "8080"; "10.0.0.0"/30; } }
sub vcl_recv { set req.backend = by_name; return (pipe); }
sub vcl_fetch { return (hit_for_pass); }"#;
    run_names(vcl, |world, table| async move {
        table.set("www", &["10.0.0.1"]);
        assert_eq!(ask(&world, "www").await.1, "one", "{}", world.story());
    });
}
