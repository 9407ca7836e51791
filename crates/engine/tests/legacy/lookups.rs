//! Lookups in the cache: grace without background fetches, saint mode, and objects changed or
//! purged in vcl_hit.

use super::{Asked, noting, page, run_old};
use crate::support::{OriginRequest, World};
use backend::health::AdminHealth;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

/// An origin whose pages are fresh for five seconds, are numbered, and take a second.
fn slow_and_numbered(world: &World) {
    let version = Rc::new(Cell::new(0));
    world.origin(move |mut stream| {
        let version = Rc::clone(&version);
        async move {
            while OriginRequest::read(&mut stream).await.is_some() {
                version.set(version.get() + 1);
                let body = version.get().to_string();
                sleep(Duration::from_secs(1)).await;
                let _ = stream.write_all(&page("200 OK", "Cache-Control: max-age=5\r\n", &body)).await;
            }
        }
    });
}

fn set_health(world: &World, admin: AdminHealth) {
    let vcl = world.engine.vcl.load().active.clone().unwrap();
    vcl.directors.backends()[0].health().set_admin(admin, world.context.clock.now());
}

#[test]
fn a_stale_object_is_refreshed_by_the_one_who_asks_and_served_to_those_who_come_meanwhile() {
    run_old("sub vcl_fetch { set beresp.grace = 1h; }", |world| async move {
        slow_and_numbered(&world);
        let mut client = world.client();
        assert_eq!(client.get("/", "").await.text(), "1");
        sleep(Duration::from_secs(7)).await;
        let mut client = world.client();
        let refreshing = tokio::task::spawn_local(async move { client.get("/", "").await.text() });
        sleep(Duration::from_millis(100)).await;
        assert_eq!(world.client().get("/", "").await.text(), "1", "stale, without waiting: {}", world.story());
        assert_eq!(refreshing.await.unwrap(), "2", "who asked first waited");
        assert_eq!(world.client().get("/", "").await.text(), "2");
        assert_eq!((world.count(Main::CacheHitGrace), world.count(Main::SBgfetch)), (1, 0));
        assert_eq!(world.engine.cache.object_count(), 1, "the old one is gone");
    });
}

#[test]
fn a_sick_backend_makes_grace_last_and_then_an_error() {
    let vcl = r#"
sub vcl_recv { if (req.backend.healthy) { set req.grace = 30s; } else { set req.grace = 1h; } }
sub vcl_fetch { set beresp.grace = 1h; }"#;
    run_old(vcl, |world| async move {
        slow_and_numbered(&world);
        let mut client = world.client();
        assert_eq!(client.get("/", "").await.text(), "1");
        set_health(&world, AdminHealth::Sick);
        sleep(Duration::from_secs(1800)).await;
        let mut client = world.client();
        assert_eq!(client.get("/", "").await.text(), "1", "{}", world.story());
        assert_eq!(world.client().get("/other", "").await.status(), 503);
        sleep(Duration::from_secs(1900)).await;
        let mut client = world.client();
        assert_eq!(client.get("/", "").await.status(), 503, "grace is over");
        set_health(&world, AdminHealth::Healthy);
        assert_eq!(world.client().get("/", "").await.text(), "2");
    });
}

#[test]
fn the_requests_grace_caps_that_of_the_object() {
    let vcl = "sub vcl_recv { set req.grace = 10s; } sub vcl_fetch { set beresp.grace = 1h; }";
    run_old(vcl, |world| async move {
        slow_and_numbered(&world);
        world.client().get("/", "").await;
        set_health(&world, AdminHealth::Sick);
        sleep(Duration::from_secs(10)).await;
        assert_eq!(world.client().get("/", "").await.text(), "1", "{}", world.story());
        sleep(Duration::from_secs(10)).await;
        assert_eq!(world.client().get("/", "").await.status(), 503);
    });
}

#[test]
fn saint_mode_leaves_a_backend_alone_for_one_page_and_serves_what_is_stale() {
    let vcl = r#"
sub vcl_fetch {
  if (beresp.status == 500) { set beresp.saintmode = 20s; return (restart); }
  set beresp.grace = 1h;
}"#;
    run_old(vcl, |world| async move {
        let asked = Asked::default();
        let is_broken = Rc::new(Cell::new(false));
        let broken = Rc::clone(&is_broken);
        world.origin(noting(&asked, move |request| {
            if broken.get() && request.target() == "/page" {
                page("500 Oops", "", "")
            } else {
                page("200 OK", "Cache-Control: max-age=5\r\n", "good")
            }
        }));
        let mut client = world.client();
        assert_eq!(client.get("/page", "").await.text(), "good");
        is_broken.set(true);
        sleep(Duration::from_secs(6)).await;
        let mut client = world.client();
        for _ in 0..3 {
            assert_eq!(client.get("/page", "").await.text(), "good", "{}", world.story());
        }
        assert_eq!(asked.borrow().len(), 2, "asked once in vain, then left alone");
        assert_eq!(client.get("/other", "").await.text(), "good", "other pages are fetched");
        sleep(Duration::from_secs(21)).await;
        let mut client = world.client();
        assert_eq!(client.get("/page", "").await.text(), "good");
        assert_eq!(asked.borrow().len(), 4, "tried again");
        assert_eq!(client.get("/new", "").await.status(), 200);
    });
}

#[test]
fn saint_mode_without_anything_stale_is_an_error() {
    let vcl = "sub vcl_fetch { if (beresp.status == 500) { set beresp.saintmode = 20s; return (restart); } }";
    run_old(vcl, |world| async move {
        let asked = Asked::default();
        world.origin(noting(&asked, |_| page("500 Oops", "", "")));
        assert_eq!(world.client().get("/", "").await.status(), 503, "{}", world.story());
        assert_eq!(asked.borrow().len(), 1);
    });
}

#[test]
fn an_objects_ttl_set_to_0_in_vcl_hit_ends_it_for_all() {
    let of_3 = r#"
sub vcl_hit { if (req.request == "PURGE") { set obj.ttl = 0s; error 200 "Purged."; } }
sub vcl_miss { if (req.request == "PURGE") { error 404 "Not in cache."; } }
sub vcl_recv { if (req.request == "PURGE") { return (lookup); } }
sub vcl_fetch { set beresp.grace = 1h; }"#;
    let of_2 = of_3.replace("set beresp.grace = 1h;", "if (beresp.cacheable) { set beresp.grace = 1h; }");
    for vcl in [of_3, &of_2] {
        run_old(vcl, |world| async move {
            slow_and_numbered(&world);
            let mut client = world.client();
            assert_eq!(client.get("/", "").await.text(), "1");
            client.send("PURGE / HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
            let purged = client.response().await;
            assert_eq!(purged.status(), 200, "{}", world.story());
            assert!(purged.head.starts_with("HTTP/1.1 200 Purged."), "{}", purged.head);
            assert_eq!(world.client().get("/", "").await.text(), "2", "{}", world.story());
            client.send("PURGE /nothing HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
            assert_eq!(client.response().await.status(), 404);
        });
    }
}

#[test]
fn an_objects_ttl_can_be_lengthened_in_vcl_hit() {
    run_old("sub vcl_hit { set obj.ttl = 1h; }", |world| async move {
        slow_and_numbered(&world);
        let mut client = world.client();
        client.get("/", "").await;
        client.get("/", "").await;
        sleep(Duration::from_secs(3500)).await;
        let mut client = world.client();
        assert_eq!(client.get("/", "").await.text(), "1", "{}", world.story());
        world.expect_log("TTL VCL 3600 10 0");
    });
}

#[test]
fn purge_removes_every_variant_in_vcl_hit_and_vcl_miss() {
    let vcl = r#"
sub vcl_recv { if (req.request == "PURGE") { return (lookup); } }
sub vcl_hit { if (req.request == "PURGE") { purge; error 200 "Purged"; } }
sub vcl_miss { if (req.request == "PURGE") { purge; error 200 "Purged"; } }"#;
    run_old(vcl, |world| async move {
        let asked = Asked::default();
        world.origin(noting(&asked, |_| page("200 OK", "Vary: X-Kind\r\n", "x")));
        let mut client = world.client();
        for kind in ["a", "b"] {
            client.get("/", &format!("X-Kind: {kind}\r\n")).await;
        }
        assert_eq!(world.engine.cache.object_count(), 2);
        for kind in ["a", "c"] {
            client.send(format!("PURGE / HTTP/1.1\r\nHost: example.com\r\nX-Kind: {kind}\r\n\r\n")).await;
            assert_eq!(client.response().await.status(), 200, "{}", world.story());
            assert_eq!(world.engine.cache.object_count(), 0);
            client.get("/", "X-Kind: b\r\n").await;
        }
        assert_eq!(asked.borrow().len(), 4);
    });
}

#[test]
fn headers_of_an_object_can_be_changed_in_vcl_hit_of_2_0() {
    let vcl =
        "sub vcl_hit { set obj.http.X-Hits = obj.hits; deliver; } sub vcl_fetch { if (!obj.cacheable) { pass; } }";
    run_old(vcl, |world| async move {
        world.origin(noting(&Asked::default(), |_| page("200 OK", "", "x")));
        let mut client = world.client();
        assert_eq!(client.get("/", "").await.header("x-hits"), None);
        assert_eq!(client.get("/", "").await.header("x-hits"), Some("1"), "{}", world.story());
        assert_eq!(client.get("/", "").await.header("x-hits"), Some("2"));
    });
}

#[test]
fn a_hit_can_be_passed_restarted_and_refused() {
    let vcl = r#"
sub vcl_hit {
  if (req.http.X-Do == "pass") { return (pass); }
  if (req.http.X-Do == "restart" && req.restarts == 0) { return (restart); }
  if (req.http.X-Do == "error") { error 403 "No"; }
}
sub vcl_deliver { set resp.http.X-Restarts = req.restarts; set resp.http.X-Hits = obj.hits; }"#;
    run_old(vcl, |world| async move {
        let asked = Asked::default();
        world.origin(noting(&asked, |_| page("200 OK", "", "x")));
        let mut client = world.client();
        client.get("/", "").await;
        assert_eq!(client.get("/", "X-Do: pass\r\n").await.status(), 200);
        assert_eq!(asked.borrow().len(), 2, "{}", world.story());
        assert_eq!(client.get("/", "X-Do: restart\r\n").await.header("x-restarts"), Some("1"));
        assert_eq!(client.get("/", "X-Do: error\r\n").await.status(), 403);
        assert_eq!(asked.borrow().len(), 2);
    });
}

#[test]
fn zero_ttl_is_not_served_in_grace() {
    run_old("sub vcl_fetch { set beresp.ttl = 0s; set beresp.grace = 1h; return (deliver); }", |world| async move {
        slow_and_numbered(&world);
        assert_eq!(world.client().get("/", "").await.text(), "1");
        set_health(&world, AdminHealth::Sick);
        assert_eq!(world.client().get("/", "").await.status(), 503, "{}", world.story());
        assert_eq!(world.engine.cache.object_count(), 0);
    });
}

#[test]
fn obj_lastuse_is_the_time_since_the_object_was_delivered() {
    let vcl = "
sub vcl_hit { set req.http.X-Unused = obj.lastuse; }
sub vcl_fetch { set beresp.ttl = 1h; return (deliver); }
sub vcl_deliver { set resp.http.X-Unused = req.http.X-Unused; set resp.http.X-Now = obj.lastuse; }";
    run_old(vcl, |world| async move {
        world.origin(noting(&Asked::default(), |_| page("200 OK", "", "page")));
        world.client().get("/", "").await;
        for (seconds, expected) in [(10, "10"), (3, "3"), (1, "1"), (0, "0")] {
            sleep(Duration::from_secs(seconds)).await;
            let response = world.client().get("/", "").await;
            let unused: f64 = response.header("x-unused").unwrap().parse().unwrap();
            assert_eq!(unused.round().to_string(), expected, "{}", world.story());
            assert_eq!(response.header("x-now"), Some("0.000"), "it is used now");
        }
    });
}
