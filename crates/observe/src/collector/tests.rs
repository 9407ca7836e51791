//! Tests: counters of a server made by the test, as metrics.

use super::*;
use crate::exposition::{Format, render};
use shm::vsc::{CounterBlock, Publisher};
use shm::vsm::{INDEX_NAME, MANAGER_DIRECTORY, VsmWriter, WORKER_DIRECTORY};
use surface::counter::{MAIN, MGT, Main, Mgt, SMA, SectionRow, Sma, VBE, Vbe};

/// Shared memory of a server that does not run.
struct Server {
    folder: tempfile::TempDir,
    worker: Publisher,
    main: CounterBlock,
    manager: CounterBlock,
}

impl Server {
    fn new() -> Server {
        let folder = tempfile::tempdir().unwrap();
        let manager = Publisher::new(&VsmWriter::create(&folder.path().join(MANAGER_DIRECTORY)).unwrap(), 1);
        let worker = Publisher::new(&VsmWriter::create(&folder.path().join(WORKER_DIRECTORY)).unwrap(), 1 << 32);
        let main = worker.publish(&MAIN, "MAIN").unwrap();
        let manager = manager.publish(&MGT, "MGT").unwrap();
        Server { folder, worker, main, manager }
    }

    fn publish(&self, section: &'static SectionRow, name: &str, values: &[(usize, u64)]) -> CounterBlock {
        let block = self.worker.publish(section, name).unwrap();
        set(&block, section, values);
        block
    }

    fn collector(&self) -> Collector {
        Collector::new(self.folder.path())
    }
}

fn set(block: &CounterBlock, section: &SectionRow, values: &[(usize, u64)]) {
    let mut all = vec![0; section.counters.len()];
    for (place, value) in values {
        all[*place] = *value;
    }
    block.set_all(&all);
}

fn text(collector: &mut Collector, scopes: &[Scope]) -> String {
    render(&collector.collect(&Selection::of(scopes), &Totals::default(), Instant::now()), Format::Text)
}

/// The value of a series.
fn value(text: &str, series: &str) -> Option<u64> {
    let found = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    found.map(|value| value.parse().unwrap())
}

#[test]
fn counters_become_metrics_with_labels() {
    let server = Server::new();
    let at = |counter: Main, value| (counter as usize, value);
    let values = [at(Main::CacheHit, 7), at(Main::CacheHitGrace, 2), at(Main::CacheMiss, 3), at(Main::NGzip, 5)];
    set(&server.main, &MAIN, &values);
    set(&server.manager, &MGT, &[(Mgt::ChildStart as usize, 3)]);
    let backend = [(Vbe::Req as usize, 9), (Vbe::Happy as usize, 0b1011), (Vbe::Healthy as usize, 1)];
    let _backend = server.publish(&VBE, "VBE.boot.a.b", &backend);
    let _storage = server.publish(&SMA, "SMA.s0", &[(Sma::GBytes as usize, 10), (Sma::GSpace as usize, 32)]);
    let text = text(&mut server.collector(), &Scope::ALL);
    for (series, expected) in [
        ("copal_cache_lookups_total{result=\"hit\"}", 7),
        ("copal_cache_lookups_total{result=\"miss\"}", 3),
        ("copal_cache_grace_hits_total", 2),
        ("copal_varnish_main_n_gzip_total", 5),
        ("copal_worker_restarts_total", 2),
        ("copal_backend_requests_total{vcl=\"boot\",backend=\"a.b\"}", 9),
        ("copal_backend_probe_successes{vcl=\"boot\",backend=\"a.b\"}", 3),
        ("copal_backend_up{vcl=\"boot\",backend=\"a.b\"}", 1),
        ("copal_cache_bytes{storage=\"s0\"}", 10),
        ("copal_cache_limit_bytes{storage=\"s0\"}", 42),
        ("copal_metrics_truncated", 0),
    ] {
        assert_eq!(value(&text, series), Some(expected), "{series}\n{text}");
    }
    // A counter with a row is not served again.
    assert!(!text.contains("cache_hit_total") && !text.contains("varnish_vbe_req_total"), "{text}");
}

#[test]
fn scope_selects_metrics() {
    let server = Server::new();
    let mut collector = server.collector();
    let cache = text(&mut collector, &[Scope::Cache]);
    assert!(cache.contains("copal_bans 0") && !cache.contains("copal_http_"), "{cache}");
    assert!(!cache.contains("copal_build_info") && !cache.contains("copal_varnish_"), "{cache}");
    let varnish = text(&mut collector, &[Scope::Varnish]);
    assert!(varnish.lines().all(|line| line.contains("copal_varnish_")), "{varnish}");
}

#[test]
fn every_counter_is_served_once() {
    let server = Server::new();
    // Different values, so that each is found by its value.
    let values: Vec<(usize, u64)> = (0..MAIN.counters.len()).map(|place| (place, 1000 + place as u64)).collect();
    set(&server.main, &MAIN, &values);
    let mut collector = server.collector();
    let families = collector.collect(&Selection::all(), &Totals::default(), Instant::now());
    for (place, value) in values {
        let found = families.iter().filter(|family| family.samples.values().any(|sample| *sample == value)).count();
        let name = MAIN.counters[place].name;
        let is_summed = name.starts_with("bans_") && name.contains("obj_killed");
        assert_eq!(found, usize::from(!is_summed), "{name}");
    }
}

#[test]
fn server_that_starts_later_ends_or_restarts_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let mut collector = Collector::new(folder.path());
    let before = text(&mut collector, &Scope::ALL);
    assert_eq!(value(&before, "copal_worker_up"), Some(0));
    assert!(!before.contains("copal_http_requests_total"));
    for requests in [5, 2] {
        let publisher = Publisher::new(&VsmWriter::create(&folder.path().join(WORKER_DIRECTORY)).unwrap(), 1);
        let main = publisher.publish(&MAIN, "MAIN").unwrap();
        set(&main, &MAIN, &[(Main::ClientReq as usize, requests)]);
        let during = text(&mut collector, &Scope::ALL);
        assert_eq!(value(&during, "copal_worker_up"), Some(1), "{during}");
        assert_eq!(value(&during, "copal_http_requests_total"), Some(requests));
        drop((main, publisher));
        std::fs::remove_dir_all(folder.path().join(WORKER_DIRECTORY)).unwrap();
        let after = text(&mut collector, &Scope::ALL);
        assert_eq!(value(&after, "copal_worker_up"), Some(0), "{after}");
    }
}

#[test]
fn too_many_series_are_added_up_and_their_sums_never_fall() {
    let server = Server::new();
    let requests = |count: u64| [(Vbe::Req as usize, count), (Vbe::Conn as usize, 1)];
    let mut backends: Vec<CounterBlock> =
        (0..400).map(|number| server.publish(&VBE, &format!("VBE.boot.b{number}"), &requests(10))).collect();
    let mut collector = server.collector();
    let families = collector.collect(&Selection::all(), &Totals::default(), Instant::now());
    let series: usize = families.iter().map(|family| family.samples.len()).sum();
    assert!(series <= OBSERVE_SERIES_MAX, "{series}");
    let (sum, connections) = (
        "copal_backend_requests_total{vcl=\"_other\",backend=\"_other\"}",
        "copal_backend_connections{vcl=\"_other\",backend=\"_other\"}",
    );
    let first = text(&mut collector, &Scope::ALL);
    assert_eq!(value(&first, sum), Some(4000));
    assert_eq!((value(&first, connections), value(&first, "copal_metrics_truncated")), (Some(400), Some(1)));
    // One is gone, one has more.
    server.worker.withdraw(backends.pop().unwrap()).unwrap();
    set(&backends[0], &VBE, &requests(13));
    let second = text(&mut collector, &Scope::ALL);
    assert_eq!((value(&second, sum), value(&second, connections)), (Some(4003), Some(399)));
    assert!(!second.contains("b0"), "{second}");
}

#[test]
fn names_of_vcls_and_backends_cannot_break_a_line() {
    let server = Server::new();
    let _backend = server.publish(&VBE, "VBE.boot.x", &[(Vbe::Req as usize, 9)]);
    // A worker that was taken over can write any index.
    let index = server.folder.path().join(WORKER_DIRECTORY).join(INDEX_NAME);
    let lines = std::fs::read_to_string(&index).unwrap();
    std::fs::write(&index, lines.replace("VBE.boot.x", "VBE.b\"o\\ot.x\"}\u{2028}1")).unwrap();
    let text = text(&mut server.collector(), &[Scope::Backend]);
    let expected = "copal_backend_requests_total{vcl=\"b\\\"o\\\\ot\",backend=\"x\\\"}\u{2028}1\"}";
    assert_eq!(value(&text, expected), Some(9), "{text}");
}
