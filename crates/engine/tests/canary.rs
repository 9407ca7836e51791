//! Canaries: which VCL serves a client, what the groups share, and how a canary ends.

use crate::support::{OriginRequest, World, run_with, serve_each};
use engine::canary::Canary;
use engine::loaded_vcl::{Trial, VclTable};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use surface::canary::{SHARE_MAX, Stick};
use surface::counter::Main;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

/// VCL whose responses, and requests to the origin, have its name.
fn named(name: &str) -> String {
    format!(
        "sub vcl_recv {{
             if (req.method == \"PURGE\") {{ return (purge); }}
             if (req.url == \"/again\" && req.restarts == 0) {{ return (restart); }}
         }}
         sub vcl_backend_fetch {{ set bereq.http.vcl = \"{name}\"; }}
         sub vcl_backend_response {{ set beresp.do_esi = true; set beresp.ttl = 1h; }}
         sub vcl_deliver {{ set resp.http.vcl = \"{name}\"; }}"
    )
}

/// Puts the VCL `new` on trial for half of the users, next to `boot` for the other half. A request
/// without a user is in no group.
fn try_out(world: &World, salts: Option<[[u8; 32]; 2]>) -> Arc<Canary> {
    world.load("new", &named("new"));
    let stick = Stick::Header("user".into());
    let canary = Arc::new(Canary { share: SHARE_MAX, stick, secret: [1, 2], salts, counts: Default::default() });
    change(world, |table| {
        table.active = table.loaded.get("boot").cloned();
        table.trial = Some(Trial { vcl: Arc::clone(&table.loaded["new"]), canary: Arc::clone(&canary) });
    });
    canary
}

fn change(world: &World, with: impl FnOnce(&mut VclTable)) {
    let mut table = VclTable::clone(&world.engine.vcl.load());
    with(&mut table);
    world.engine.vcl.store(Arc::new(table));
}

const SALTS: Option<[[u8; 32]; 2]> = Some([[1; 32], [2; 32]]);

/// Users that are served by `new` and by `boot`.
async fn users(world: &World) -> (String, String) {
    let (mut client, mut tried, mut kept) = (world.client(), None, None);
    for number in 0..64 {
        let user = format!("user: {number}\r\n");
        match client.get("/probe", &user).await.header("vcl") {
            Some("new") => tried.get_or_insert(user),
            _ => kept.get_or_insert(user),
        };
    }
    (tried.unwrap(), kept.unwrap())
}

/// An origin that answers with the target and the VCL; `/slow` takes five seconds.
fn echo(world: &World) {
    world.origin(|mut stream| async move {
        while let Some(request) = OriginRequest::read(&mut stream).await {
            if request.target() == "/slow" {
                sleep(Duration::from_secs(5)).await;
            }
            let body = format!("{} by {}", request.target(), request.header("vcl").unwrap_or("-"));
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
}

fn story(salts: Option<[[u8; 32]; 2]>, story: impl AsyncFnOnce(Rc<World>, Arc<Canary>)) {
    run_with(
        |_| {},
        &named("boot"),
        async move |world| {
            echo(&world);
            let canary = try_out(&world, salts);
            story(world, canary).await;
        },
    );
}

#[test]
fn groups_have_objects_of_their_own() {
    story(SALTS, async |world, canary| {
        let (tried, kept) = users(&world).await;
        let mut client = world.client();
        let misses = world.count(Main::CacheMiss);
        for (user, by) in [("", "boot"), (tried.as_str(), "new"), (kept.as_str(), "boot")] {
            for _ in 0..2 {
                let answer = client.get("/page", user).await;
                assert_eq!((answer.text(), answer.header("vcl")), (format!("/page by {by}"), Some(by)));
            }
        }
        assert_eq!(world.count(Main::CacheMiss), misses + 3);
        let [of_canary, of_control] = &canary.counts;
        assert_eq!(of_canary.requests.load(Relaxed) + of_control.requests.load(Relaxed), 64 + 4);
        assert!(of_canary.hits.load(Relaxed) > 0 && of_control.hits.load(Relaxed) > 0);
        assert_eq!(of_canary.errors.load(Relaxed), 0);
    });
}

#[test]
fn groups_share_the_cache_on_request() {
    story(None, async |world, _| {
        let (tried, kept) = users(&world).await;
        let mut client = world.client();
        let misses = world.count(Main::CacheMiss);
        for user in ["", &tried, &kept] {
            assert_eq!(client.get("/page", user).await.text(), "/page by boot");
        }
        assert_eq!(world.count(Main::CacheMiss), misses + 1);
    });
}

#[test]
fn a_purge_by_any_group_reaches_the_objects_of_all() {
    story(SALTS, async |world, _| {
        let (tried, kept) = users(&world).await;
        let mut client = world.client();
        for by in ["", &tried, &kept] {
            for user in ["", &tried, &kept] {
                client.get("/page", user).await;
            }
            let before = world.count(Main::NObjPurged);
            client.send(format!("PURGE /page HTTP/1.1\r\nHost: example.com\r\n{by}\r\n")).await;
            assert_eq!(client.response().await.status(), 200);
            assert_eq!(world.count(Main::NObjPurged), before + 3, "{by:?}\n{}", world.story());
        }
    });
}

#[test]
fn fragments_and_restarts_stay_with_their_request() {
    run_with(
        |_| {},
        &named("boot"),
        async |world| {
            world.origin(serve_each(|request| {
                let by = request.header("vcl").unwrap_or("-");
                let body = match request.target() {
                    "/again" => "<p><esi:include src=\"/a\"/><esi:include src=\"/b\"/></p>".to_owned(),
                    "/a" => "<i><esi:include src=\"/c\"/></i>".to_owned(),
                    target => format!("{target} by {by}"),
                };
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
            }));
            let canary = try_out(&world, SALTS);
            let (tried, kept) = users(&world).await;
            let mut client = world.client();
            let counted = || canary.counts.iter().map(|group| group.requests.load(Relaxed)).sum::<u64>();
            let before = counted();
            assert_eq!(client.get("/again", &tried).await.text(), "<p><i>/c by new</i>/b by new</p>");
            assert_eq!(client.get("/again", &kept).await.text(), "<p><i>/c by boot</i>/b by boot</p>");
            assert_eq!(counted(), before + 2, "a page is one request");
        },
    );
}

#[test]
fn requests_in_flight_end_on_their_vcl_and_the_objects_leave_first() {
    story(SALTS, async |world, canary| {
        let (tried, kept) = users(&world).await;
        let mut client = world.client();
        client.get("/page", "").await;
        client.get("/page", &tried).await;
        client.get("/page", &kept).await;
        let mut slow = world.client();
        slow.send(format!("GET /slow HTTP/1.1\r\nHost: example.com\r\n{tried}\r\n")).await;
        sleep(Duration::from_secs(1)).await;
        change(&world, |table| table.trial = None);
        let weak = Arc::downgrade(&canary);
        drop(canary);
        assert!(weak.upgrade().is_some(), "the request in flight belongs to it");
        assert_eq!(client.get("/page", &tried).await.header("vcl"), Some("boot"), "on the same connection");
        assert_eq!(slow.response().await.text(), "/slow by new");
        drop(slow);
        sleep(Duration::from_secs(1)).await;
        assert!(weak.upgrade().is_none());
        let mut purge = world.engine.cache.purge_salted(world.context.clock.now());
        while !purge.step(1) {}
        // Also what was fetched after the end.
        assert_eq!(world.engine.cache.object_count(), 1, "{}", world.story());
        assert_eq!(client.get("/page", &tried).await.text(), "/page by boot");
    });
}
