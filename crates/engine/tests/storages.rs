//! Several storages: the placement of responses, and the limit of each.

use crate::support::{World, always};
use std::rc::Rc;
use surface::counter::Main;
use surface::parameter::Parameters;
use tokio::task::LocalSet;

/// Runs a test in a world with storages of these sizes.
fn run_with<F: Future<Output = ()>>(storages_bytes: &[u64], vcl: &str, story: impl FnOnce(Rc<World>) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let world = Rc::new(World::with_storages(Parameters::default(), storages_bytes));
        world.load("boot", vcl);
        story(Rc::clone(&world)).await;
    });
}

/// Number of objects in each storage.
fn objects(world: &World) -> Vec<u64> {
    world.engine.cache.stores().iter().map(|store| store.usage().g_alloc).collect()
}

const TELLING: &str = "sub vcl_deliver { set resp.http.Where = obj.storage; }";

#[test]
fn responses_go_to_the_storages_in_turn_unless_vcl_chooses() {
    let vcl = r#"
        sub vcl_backend_response {
            set beresp.http.Was = beresp.storage;
            if (bereq.url == "/chosen") { set beresp.storage = storage.s1; }
            if (bereq.url == "/transient") { set beresp.storage = storage.Transient; }
            if (bereq.url == "/short") { set beresp.ttl = 1s; set beresp.grace = 0s; set beresp.storage = storage.s1; }
            if (bereq.url == "/again" && bereq.retries == 0) { return (retry); }
        }"#;
    run_with(&[1 << 20; 3], &format!("{vcl}{TELLING}"), |world| async move {
        world.origin(always("", "hello"));
        let mut client = world.client();
        let expected = [
            ("/a", "s0", "s0"),
            ("/b", "s1", "s1"),
            ("/chosen", "s2", "s1"),
            ("/c", "s0", "s0"),
            ("/transient", "s1", "Transient"),
            ("/short", "s2", "Transient"),
            // Each attempt has its turn.
            ("/again", "s1", "s1"),
            ("/d", "s2", "s2"),
        ];
        for (url, was, is) in expected {
            let response = client.get(url, "").await;
            assert_eq!(response.header("was"), Some(format!("storage.{was}").as_str()), "{url}");
            assert_eq!(response.header("where"), Some(format!("storage.{is}").as_str()), "{url}");
            world.expect_log(&format!("Storage malloc {is}"));
        }
        assert_eq!(client.get("/chosen", "").await.header("where"), Some("storage.s1"));
        assert_eq!(world.count(Main::CacheHit), 1);
        assert_eq!(objects(&world), [2, 3, 1]);
    });
}

#[test]
fn vcl_sees_how_much_each_storage_has_left() {
    let vcl = r#"
        sub vcl_recv {
            if (req.url == "/space") { return (synth(200)); }
        }
        sub vcl_backend_response { set beresp.storage = storage.s1; }
        sub vcl_synth {
            set resp.http.S0 = "" + storage.s0.used_space + " " + storage.s0.happy;
            set resp.http.S1 = "" + storage.s1.used_space + " " + storage.s1.free_space;
            set resp.http.Transient = "" + storage.Transient.free_space;
            return (deliver);
        }"#;
    run_with(&[1 << 20, 2 << 20], vcl, |world| async move {
        world.origin(always("", &"x".repeat(100_000)));
        let mut client = world.client();
        client.get("/a", "").await;
        let number = |text: &str| text.parse::<u64>().unwrap();
        let response = client.get("/space", "").await;
        assert_eq!(response.header("s0"), Some("0 true"));
        let (used, free) = response.header("s1").unwrap().split_once(' ').unwrap();
        assert!((100_000..101_000).contains(&number(used)), "{used}");
        assert!((1_990_000..2_000_000).contains(&number(free)), "{free}");
        // A storage without a limit has room for anything, in the number that scripts expect.
        assert_eq!(response.header("transient"), Some("999999999999999"));
        world.engine.cache.stores()[1].show_unlimited(true);
        let free = client.get("/space", "").await.header("s1").unwrap().split_once(' ').unwrap().1.to_owned();
        assert_eq!(free, "999999999999999");
        world.engine.cache.store().set_transient_limit(Some(5000));
        assert_eq!(client.get("/space", "").await.header("transient"), Some("5000"));
    });
}

#[test]
fn a_storage_is_chosen_by_name_in_vcl_of_old() {
    let vcl = r#"
        backend default { .host = "10.0.0.1"; .port = "80"; }
        sub vcl_fetch {
            set beresp.http.Before = beresp.storage;
            if (req.url ~ "^/chosen") { set beresp.storage = "s1"; } else { set beresp.storage = "s9"; }
            set beresp.http.After = beresp.storage;
            if (storage.s1.free_space > 1MB) { set beresp.http.Room = "yes"; }
        }"#;
    run_with(&[1 << 20, 2 << 20], vcl, |world| async move {
        world.origin(always("", "hello"));
        let mut client = world.client();
        for url in ["/chosen/1", "/chosen/2"] {
            let response = client.get(url, "").await;
            assert_eq!((response.header("after"), response.header("room")), (Some("s1"), Some("yes")));
            assert!(matches!(response.header("before"), None | Some("")));
        }
        // An unknown name is ignored, and the storages take turns: the third is the first one's.
        client.get("/a", "").await;
        assert_eq!(objects(&world), [1, 2]);
    });
}

#[test]
fn without_a_storage_the_fetch_fails_and_its_error_goes_to_the_next() {
    let vcl = r#"
        import vtc;
        sub vcl_backend_response {
            set beresp.storage = vtc.no_stevedore();
            set beresp.http.Was = beresp.storage;
            if (bereq.url == "/private") { set beresp.uncacheable = true; }
        }
        sub vcl_backend_error {
            set beresp.http.Was = beresp.storage;
            set beresp.ttl = 100s;
            if (bereq.url == "/never") { set beresp.storage = vtc.no_stevedore(); }
        }"#;
    run_with(&[1 << 20; 3], &format!("{vcl}{TELLING}"), |world| async move {
        world.origin(always("", "hello"));
        let mut client = world.client();
        let response = client.get("/a", "").await;
        assert_eq!((response.status(), response.header("was")), (503, Some("storage.s1")), "{}", world.story());
        assert_eq!(response.header("where"), Some("storage.s1"));
        world.expect_log("FetchError Could not get storage");
        // A response that is not kept needs no storage.
        let response = client.get("/private", "").await;
        assert_eq!((response.status(), response.header("where")), (200, Some("storage.Transient")));
        let response = client.get("/never", "").await;
        assert_eq!((response.status(), response.header("where")), (503, None));
    });
}

#[test]
fn a_full_storage_takes_nothing_from_the_others() {
    let vcl = r#"
        sub vcl_backend_response {
            if (bereq.url ~ "^/s0/") { set beresp.storage = storage.s0; }
            else { set beresp.storage = storage.s1; }
        }"#;
    run_with(&[256 << 10, 256 << 10], vcl, |world| async move {
        world.origin(always("", &"x".repeat(10_000)));
        let mut client = world.client();
        for number in 0..20 {
            client.get(&format!("/s0/{number}"), "").await;
        }
        for number in 0..200 {
            client.get(&format!("/s1/{number}"), "").await;
        }
        for number in 0..20 {
            client.get(&format!("/s0/{number}"), "").await;
        }
        assert_eq!(world.count(Main::CacheHit), 20);
        let mut evicted = 0;
        world.engine.cache.counters(&mut |counter, amount| {
            evicted += if matches!(counter, Main::NLruNuked) { amount } else { 0 };
        });
        assert!(evicted > 150, "{evicted}");
        for store in world.engine.cache.stores() {
            assert!(store.held_bytes() <= store.limit_bytes());
        }
    });
}

#[test]
fn bodies_that_clients_are_slow_to_send_do_not_empty_the_cache() {
    const PAGES: usize = 100;
    let vcl = "import std; sub vcl_recv { if (req.method == \"POST\") { std.cache_req_body(1MB); } }";
    run_with(&[1 << 20], vcl, |world| async move {
        let page: &'static str = "x".repeat(9000).leak();
        world.origin(always("Cache-Control: max-age=600\r\n", page));
        let mut reader = world.client();
        for number in 0..PAGES {
            reader.get(&format!("/{number}"), "").await;
        }
        let mut slow = Vec::new();
        for _ in 0..100 {
            let mut client = world.client();
            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n").await;
            client.send(vec![b'x'; 10_000]).await;
            slow.push(client);
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        world.expect_log("FetchError Could not get storage");
        assert!(objects(&world)[0] >= PAGES as u64 * 7 / 10, "{:?}", objects(&world));
        assert!(world.engine.cache.store().transient_usage().g_bytes > 200_000, "bodies are kept all the same");
        drop(slow);
    });
}

#[test]
fn a_kept_request_body_counts_against_req_storage() {
    let vcl = r#"
        import std;
        sub vcl_recv {
            if (req.url == "/s1") { set req.storage = storage.s1; }
            std.cache_req_body(100KB);
            set req.http.Left = req.storage;
        }
        sub vcl_backend_fetch { return (fetch); }
        sub vcl_deliver { set resp.http.Left = req.http.Left; }"#;
    run_with(&[64 << 10, 128 << 10], vcl, |world| async move {
        world.origin(always("Cache-Control: no-store\r\n", "hello"));
        let mut client = world.client();
        let head =
            |url: &str, length: usize| format!("POST {url} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
        assert_eq!(client.post(head("/s1", 90_000), vec![b'x'; 90_000]).await.header("left"), Some(""));
        world.expect_log("Storage malloc s1");
        let usage = world.engine.cache.stores()[1].usage();
        assert_eq!((usage.c_bytes, usage.g_bytes, usage.g_alloc), (90_000, 0, 0));
        client.post(head("/transient", 1000), vec![b'x'; 1000]).await;
        assert_eq!(world.engine.cache.store().transient_usage().c_bytes, 1000);
        // Transient is a part of the first storage, which has no room for that.
        client.post(head("/transient", 90_000), vec![b'x'; 90_000]).await;
        world.expect_log("FetchError Could not get storage");
        for storage in world.engine.storages.all() {
            assert_eq!(world.engine.storages.usage(storage).unwrap().g_bytes, 0);
        }
    });
}
