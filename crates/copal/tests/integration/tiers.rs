//! Two caches in a chain: Copal before Copal, and Copal before and after the stock varnishd, which
//! is also chained to itself for comparison. A client must get the same in all orders. The advice
//! of docs/guide/origins.md on tiers is tested here.

use crate::daemon::{Answer, Daemon, Origin, eventually, needs, ok};
use std::path::{Path, PathBuf};

/// The front tier, to which clients connect. `PURGE` goes to the back tier first, so that purged
/// objects do not return from there.
const FRONT: &str = "\
vcl 4.1;
backend default { .host = \"127.0.0.1\"; .port = \"@PORT@\"; }
sub vcl_recv {
    if (req.method == \"PURGE\") {
        if (req.restarts == 0) { return (pass); }
        return (purge);
    }
}
sub vcl_backend_response {
    if (bereq.url ~ \"^/short\") {
        set beresp.ttl = 1ms;
        set beresp.grace = 0s;
        set beresp.keep = 1m;
    }
}
sub vcl_deliver {
    if (req.method == \"PURGE\" && req.restarts == 0 && resp.status == 200) { return (restart); }
}
";

/// The back tier, before the origin. It compresses bodies that the origin does not.
const BACK: &str = "\
vcl 4.1;
backend default { .host = \"127.0.0.1\"; .port = \"@PORT@\"; }
sub vcl_recv {
    if (req.method == \"PURGE\") { return (purge); }
}
sub vcl_backend_response {
    if (bereq.url ~ \"^/a\") { set beresp.do_gzip = true; }
}
";

/// Cache program of a tier.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cache {
    Copal,
    Stock,
}

struct Tiers {
    front: Daemon,
    back: Daemon,
    origin: Origin,
    _folder: tempfile::TempDir,
}

fn start(cache: Cache, varnishd: &Path, vcl: &str, port: u16, folder: &Path) -> Daemon {
    let file = folder.join(format!("{port}.vcl"));
    std::fs::write(&file, vcl.replace("@PORT@", &port.to_string())).unwrap();
    let arguments = ["-f", file.to_str().unwrap(), "-s", "malloc,20m"];
    match cache {
        Cache::Copal => Daemon::start(&arguments),
        Cache::Stock => Daemon::start_stock(varnishd, &arguments),
    }
}

impl Tiers {
    fn start(front: Cache, back: Cache, varnishd: &Path) -> Tiers {
        let folder = tempfile::tempdir().unwrap();
        let origin = Origin::start(page);
        let back = start(back, varnishd, BACK, origin.port, folder.path());
        let front = start(front, varnishd, FRONT, back.port, folder.path());
        Tiers { front, back, origin, _folder: folder }
    }

    fn get(&self, path: &str, headers: &str) -> Answer {
        request(&self.front, "GET", path, headers)
    }
}

fn request(daemon: &Daemon, method: &str, path: &str, headers: &str) -> Answer {
    daemon.request(&format!("{method} {path} HTTP/1.1\r\nHost: tiers\r\n{headers}Connection: close\r\n\r\n"))
}

/// All values of a header, in order, from one or several lines.
fn values(answer: &Answer, name: &str) -> Vec<String> {
    let lines = answer.head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let these = lines.filter(|(given, _)| given.eq_ignore_ascii_case(name));
    these.flat_map(|(_, value)| value.split(',').map(|part| part.trim().to_owned()).collect::<Vec<_>>()).collect()
}

/// Served by the front tier: the last ids are its own.
fn is_hit(answer: &Answer) -> bool {
    values(answer, "x-varnish").last().is_some_and(|ids| ids.contains(' '))
}

fn text() -> String {
    "all that glitters is not gold\n".repeat(100)
}

fn page(_: &str) -> Vec<u8> {
    ok("Cache-Control: max-age=600\r\nAge: 100\r\nETag: \"one\"\r\nContent-Type: text/plain\r\n", &text())
}

/// Every pair, with its name; only that of two Copals without a stock varnishd.
fn pairs() -> Vec<(Cache, Cache, PathBuf)> {
    let pairs = [
        (Cache::Stock, Cache::Stock),
        (Cache::Copal, Cache::Copal),
        (Cache::Copal, Cache::Stock),
        (Cache::Stock, Cache::Copal),
    ];
    let varnishd = needs("varnishd");
    let has = |(front, back): &(Cache, Cache)| varnishd.is_some() || (*front, *back) == (Cache::Copal, Cache::Copal);
    let path = varnishd.clone().unwrap_or_default();
    pairs.into_iter().filter(has).map(|(front, back)| (front, back, path.clone())).collect()
}

#[test]
fn bodies_compressed_by_one_tier_pass_the_other_unchanged() {
    for (front, back, varnishd) in pairs() {
        let tiers = Tiers::start(front, back, &varnishd);
        let gzip = "Accept-Encoding: gzip\r\n";
        let (missed, hit) = (tiers.get("/a", gzip), tiers.get("/a", gzip));
        let behind = request(&tiers.back, "GET", "/a", gzip);
        assert!(!is_hit(&missed) && is_hit(&hit), "{front:?} {back:?}: {} {}", missed.head, hit.head);
        for answer in [&missed, &hit] {
            assert_eq!(answer.header("content-encoding"), Some("gzip"), "{front:?} {back:?}: {}", answer.head);
            assert_eq!(answer.body, behind.body, "{front:?} {back:?}: the very bytes of the tier behind");
        }
        assert!(behind.body.len() < text().len() / 5);
        let plain = tiers.get("/a", "");
        assert_eq!((plain.text(), plain.header("content-encoding")), (text(), None), "{front:?} {back:?}");
        assert_eq!(tiers.origin.count(), 1, "{front:?} {back:?}");
    }
}

#[test]
fn age_via_and_ids_add_up() {
    for (front, back, varnishd) in pairs() {
        let tiers = Tiers::start(front, back, &varnishd);
        let behind = request(&tiers.back, "GET", "/a", "");
        let missed = tiers.get("/a", "");
        let hit = tiers.get("/a", "");
        for answer in [&missed, &hit] {
            let age = values(answer, "age");
            let seconds: u64 = age[0].parse().unwrap();
            assert!(age.len() == 1 && (100..130).contains(&seconds), "{front:?} {back:?}: {age:?}");
            let via = values(answer, "via");
            assert_eq!(via.len(), 2, "{front:?} {back:?}: {via:?}");
            assert_eq!(via[0], values(&behind, "via")[0], "the tier behind comes first");
        }
        // Each tier has its own: its request and, on a hit, the one that fetched the object.
        let (one, two) = (values(&missed, "x-varnish"), values(&hit, "x-varnish"));
        let last = |ids: &[String]| ids.last().unwrap().split(' ').count();
        assert_eq!((last(&one), last(&two)), (1, 2), "{front:?} {back:?}: {one:?} {two:?}");
        assert_eq!(one.len(), two.len(), "{front:?} {back:?}: {one:?} {two:?}");
    }
}

#[test]
fn a_validation_is_answered_by_the_tier_behind_without_the_origin() {
    for (front, back, varnishd) in pairs() {
        let tiers = Tiers::start(front, back, &varnishd);
        let first = tiers.get("/short", "");
        // The front tier's copy is expired at once, and validated.
        let second = tiers.get("/short", "");
        assert_eq!((first.text(), second.text()), (text(), text()), "{front:?} {back:?}");
        assert_eq!((first.status, second.status), (200, 200));
        // A copy whose fetch has not ended yet is not validated, so it may take one more. Read from
        // the log: the stock daemon's counters may take long to be summed.
        eventually("a response of 304 from the tier behind", || {
            assert_eq!(tiers.get("/short", "").text(), text());
            let log = tiers.front.applet("log", &["-d", "-g", "raw", "-i", "BerespStatus"]).stdout;
            String::from_utf8_lossy(&log).lines().any(|line| line.contains(" 304")).then_some(())
        });
        assert_eq!(tiers.origin.count(), 1, "{front:?} {back:?}");
        // The client's is validated too, by the tier that has the object.
        let etag = first.header("etag").unwrap().to_owned();
        for path in ["/short", "/a", "/a"] {
            tiers.get(path, "");
            let answer = tiers.get(path, &format!("If-None-Match: {etag}\r\n"));
            assert_eq!((answer.status, answer.body.len()), (304, 0), "{front:?} {back:?} {path}: {}", answer.head);
        }
    }
}

#[test]
fn ranges_are_served_through_both_tiers() {
    for (front, back, varnishd) in pairs() {
        let tiers = Tiers::start(front, back, &varnishd);
        let whole = text().len();
        // A compressed body must be complete: until then its uncompressed length is unknown, and a
        // range of it is answered with 200.
        tiers.get("/a", "");
        for (path, how) in
            [("/b", "miss"), ("/b", "hit"), ("/short", "miss"), ("/short", "validated"), ("/a", "unpacked")]
        {
            let answer = tiers.get(path, "Range: bytes=9-17\r\n");
            assert_eq!(answer.status, 206, "{front:?} {back:?} {how}: {}", answer.head);
            assert_eq!(answer.text(), text()[9..=17], "{front:?} {back:?} {how}");
            assert_eq!(answer.header("content-range"), Some(format!("bytes 9-17/{whole}").as_str()));
        }
        let beyond = tiers.get("/b", &format!("Range: bytes={whole}-\r\n"));
        assert_eq!(beyond.status, 416, "{front:?} {back:?}");
        assert_eq!(tiers.get("/b", "").text(), text(), "what is stored is whole");
        assert_eq!(tiers.origin.count(), 3, "{front:?} {back:?}");
    }
}

#[test]
fn a_purge_goes_through_both_tiers() {
    for (front, back, varnishd) in pairs() {
        let tiers = Tiers::start(front, back, &varnishd);
        tiers.get("/a", "");
        tiers.get("/b", "");
        assert!(is_hit(&tiers.get("/a", "")), "{front:?} {back:?}");
        let purged = request(&tiers.front, "PURGE", "/a", "");
        assert_eq!(purged.status, 200, "{front:?} {back:?}: {}", purged.head);
        assert_eq!(tiers.origin.count(), 2);
        assert_eq!(tiers.get("/a", "").status, 200);
        assert_eq!(tiers.origin.count(), 3, "{front:?} {back:?}: neither tier had it");
        tiers.get("/b", "");
        assert_eq!(tiers.origin.count(), 3, "{front:?} {back:?}: the other one stayed");
        // No purge reaches the origin.
        let requests = tiers.origin.requests.lock().unwrap();
        assert!(requests.iter().all(|head| head.starts_with("GET ")), "{requests:?}");
    }
}
