//! Purges by tag (xkey) and request bodies (bodyaccess), through VCL.

use crate::support::{run_with, serve_each};
use std::time::Duration;
use surface::counter::Main;
use tokio::time::sleep;

const PURGE: &str = "import xkey; import std;
    sub vcl_recv {
        if (req.method == \"PURGE\") { return (synth(200, xkey.purge(req.http.tags))); }
        if (req.method == \"SOFT\") { return (synth(200, xkey.softpurge(req.http.tags))); }
    }
    sub vcl_backend_response {
        set beresp.http.xkey = bereq.http.tags;
        if (bereq.url ~ \"private\") { set beresp.uncacheable = true; set beresp.ttl = 60s; }
    } ";

fn fetched(request: &str) -> Vec<u8> {
    let name = request.split(' ').nth(1).unwrap_or("");
    format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {}\r\nETag: \"1\"\r\n\r\n{name}",
        name.len()
    )
    .into_bytes()
}

#[test]
fn objects_go_by_their_tags_whatever_their_urls() {
    run_with(
        |_| {},
        PURGE,
        async |world| {
            world.origin(serve_each(|request| fetched(&request.head)));
            let mut client = world.client();
            for (url, tags) in [("/1", "a b"), ("/2", "b"), ("/3", "c,a"), ("/private", "a")] {
                client.get(url, &format!("tags: {tags}\r\n")).await;
            }
            for (method, tags, count) in
                [("SOFT", "c", "1"), ("SOFT", "c", "0"), ("PURGE", "a", "3"), ("PURGE", "a", "0"), ("PURGE", "", "0")]
            {
                client.send(format!("{method} / HTTP/1.1\r\nHost: x\r\ntags: {tags}\r\n\r\n")).await;
                let answer = client.response().await;
                assert_eq!(answer.head.split(' ').nth(2).and_then(|rest| rest.lines().next()), Some(count), "{tags}");
            }
            client.get("/2", "").await;
            assert_eq!(world.count(Main::CacheHit), 1, "{}", world.story());
            client.get("/1", "").await;
            assert_eq!((world.count(Main::CacheHit), world.count(Main::CacheHitmiss)), (1, 0));
            client.get("/private", "").await;
            assert_eq!(world.count(Main::CacheHitmiss), 0, "that it is private was forgotten too");
        },
    );
}

#[test]
fn softly_purged_object_is_served_stale_during_its_refresh() {
    run_with(
        |_| {},
        PURGE,
        async |world| {
            world.origin(serve_each(|request| fetched(&request.head)));
            let mut client = world.client();
            client.get("/1", "tags: a\r\n").await;
            sleep(Duration::from_secs(1)).await;
            client.send("SOFT / HTTP/1.1\r\nHost: x\r\ntags: a\r\n\r\n").await;
            client.response().await;
            client.get("/1", "tags: a\r\n").await;
            sleep(Duration::from_secs(1)).await;
            client.get("/1", "").await;
            assert_eq!((world.count(Main::CacheHitGrace), world.count(Main::SBgfetch)), (1, 1));
            assert_eq!((world.count(Main::CacheHit), world.count(Main::CacheMiss)), (2, 1));
            client.send("PURGE / HTTP/1.1\r\nHost: x\r\ntags: a\r\n\r\n").await;
            let answer = client.response().await;
            assert!(answer.head.starts_with("HTTP/1.1 200 1"), "the new one has the tag: {}", answer.head);
        },
    );
}

#[test]
fn a_purge_of_very_many_objects_lets_others_have_their_turn() {
    run_with(
        |_| {},
        PURGE,
        async |world| {
            world.origin(serve_each(|request| fetched(&request.head)));
            let mut client = world.client();
            for number in 0..2500 {
                client.get(&format!("/{number}"), "tags: all\r\n").await;
            }
            client.send("PURGE / HTTP/1.1\r\nHost: x\r\ntags: all\r\n\r\n").await;
            let answer = client.response().await;
            assert!(answer.head.starts_with("HTTP/1.1 200 2500"), "{}", answer.head);
            assert_eq!(world.engine.cache.object_count(), 0);
        },
    );
}

#[test]
fn requests_with_different_bodies_are_different_objects() {
    let vcl = "import bodyaccess; import std;
        sub vcl_recv {
            if (std.cache_req_body(1KB)) {
                set req.http.length = bodyaccess.len_req_body();
                set req.http.matches = bodyaccess.rematch_req_body(\"o+\");
                bodyaccess.log_req_body(\"P:\", 2);
            }
            return (hash);
        }
        sub vcl_hash { bodyaccess.hash_req_body(); }
        sub vcl_backend_fetch { set bereq.method = \"GET\"; }
        sub vcl_deliver { set resp.http.length = req.http.length; set resp.http.matches = req.http.matches; } ";
    run_with(
        |parameters| parameters.vsl_mask = [0; 32],
        vcl,
        async |world| {
            world.origin(serve_each(|request| fetched(&request.head)));
            let mut client = world.client();
            for (body, matches) in [("foo", "1"), ("bar", "0"), ("foo", "1")] {
                let head = format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
                let answer = client.post(head, body.as_bytes().to_vec()).await;
                assert_eq!((answer.header("length"), answer.header("matches")), (Some("3"), Some(matches)));
            }
            assert_eq!((world.count(Main::CacheMiss), world.count(Main::CacheHit)), (2, 1), "{}", world.story());
            world.expect_log("Debug P:fo");
            world.expect_log("Debug P:o");
            client.get("/", "").await;
            world.expect_log("VCL_Error Unbuffered req.body");
        },
    );
}
