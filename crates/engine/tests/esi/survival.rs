//! A page and its plan survive the worker, and a 304.

use super::site::{PARSE_ALL, Site, gunzip, gzipped, page};
use crate::support::{START, World, run_with};
use cache::Cache;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;
use store::{Journal, Store};
use surface::counter::Main;
use surface::parameter::Parameters;
use tokio::task::LocalSet;
use tokio::time::sleep;

#[test]
fn a_304_keeps_the_plan() {
    run_with(
        |_| {},
        "sub vcl_backend_response { set beresp.do_esi = true; set beresp.ttl = 1s; set beresp.grace = 0s;
            set beresp.keep = 1h; }",
        async |world| {
            let site = Site::serve(
                &world,
                [("/", page("<p><esi:include src=\"/a\"/></p>").with("ETag: \"1\"")), ("/a", page("A"))],
            );
            let mut client = world.client();
            assert_eq!(client.get("/", "").await.text(), "<p>A</p>");
            site.set("/", page("").status("304 Not Modified").with("ETag: \"1\""));
            sleep(Duration::from_secs(5)).await;
            assert_eq!(client.get("/", "").await.text(), "<p>A</p>");
            assert_eq!(site.last("/").header("if-none-match"), Some("\"1\""));
            assert_eq!(client.get("/", "").await.text(), "<p>A</p>");
        },
    );
}

/// A file without a name, as the manager holds it open for one worker after the other.
fn file(name: &str) -> File {
    let path = std::env::temp_dir().join(format!("{name}-of-a-page-{}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file
}

#[test]
fn the_plan_survives_the_worker_with_its_page() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let files = [file("arena"), file("journal")];
    let cache = || {
        let [arena, journal] = [&files[0], &files[1]].map(|file| OwnedFd::from(file.try_clone().unwrap()));
        let (store, recovered) = Store::open(arena, "s0", 16 << 20).unwrap();
        let cache = Cache::new(vec![store], Journal::open(journal).unwrap(), START).unwrap();
        cache.adopt(recovered.objects, START, 1);
        cache
    };
    LocalSet::new().block_on(&runtime, async {
        let world = Rc::new(World::over(Parameters::default(), cache()));
        world.load("boot", PARSE_ALL);
        Site::serve(
            &world,
            [
                ("/", page("<p><esi:include src=\"/a\"/></p>")),
                ("/z", gzipped("<z><esi:include src=\"/a\"/></z>")),
                ("/a", page("A")),
            ],
        );
        let mut client = world.client();
        assert_eq!(client.get("/", "").await.text(), "<p>A</p>");
        assert_eq!(client.get("/z", "").await.text(), "<z>A</z>");
    });
    LocalSet::new().block_on(&runtime, async {
        let world = Rc::new(World::over(Parameters::default(), cache()));
        world.load("boot", PARSE_ALL);
        let mut client = world.client();
        assert_eq!(client.get("/", "").await.text(), "<p>A</p>");
        assert_eq!(gunzip(&client.get("/z", "Accept-Encoding: gzip\r\n").await.body), "<z>A</z>");
        assert_eq!((world.count(Main::CacheMiss), world.count(Main::CacheHit)), (0, 4));
    });
}
