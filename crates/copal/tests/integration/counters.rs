//! Counters are exact to the last request, under load and across the death of a worker.

use crate::daemon::{Daemon, Origin, eventually, ok};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use surface::counter::LockClass;

const CLIENTS: usize = 6;
const REQUESTS_OF_EACH: usize = 400;
/// Cached responses, each fetched once.
const OBJECTS: usize = 50;

const POLICY: &str = r#"vcl 4.1;
backend origin { .host = "127.0.0.1"; .port = "@PORT@"; }
sub vcl_recv {
    if (req.url ~ "^/pass") { return (pass); }
    if (req.url ~ "^/synth") { return (synth(700, "Made up")); }
}"#;

/// Bytes that all clients together have sent and received.
#[derive(Default)]
struct Traffic {
    sent_bytes: u64,
    head_bytes: u64,
    body_bytes: u64,
}

/// The paths of one client in order: half of them cached, the others passed or synthetic.
fn paths(client: usize) -> impl Iterator<Item = String> {
    (0..REQUESTS_OF_EACH).map(move |number| match number % 4 {
        0 | 1 => format!("/object/{}", (number + 7 * client) % OBJECTS),
        2 => format!("/pass/{client}/{number}"),
        _ => "/synth".to_owned(),
    })
}

/// A body whose length depends on the path.
fn body(path: &str) -> String {
    "x".repeat(path.bytes().map(usize::from).sum::<usize>() * 7 % 5000 + 1)
}

/// Requests paths one after the other on one connection, and counts all bytes.
fn converse(port: u16, paths: impl Iterator<Item = String>) -> Traffic {
    let mut traffic = Traffic::default();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut received = Vec::new();
    for path in paths {
        let request = format!("GET {path} HTTP/1.1\r\nHost: example.com\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        traffic.sent_bytes += request.len() as u64;
        let mut buffer = [0; 16384];
        let head_bytes = loop {
            if let Some(at) = received.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "closed before the answer to {path}");
            received.extend_from_slice(&buffer[..count]);
        };
        let head = String::from_utf8_lossy(&received[..head_bytes]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
        let body_bytes: usize = length.parse().unwrap();
        while received.len() < head_bytes + body_bytes {
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "closed within the answer to {path}");
            received.extend_from_slice(&buffer[..count]);
        }
        received.drain(..head_bytes + body_bytes);
        traffic.head_bytes += head_bytes as u64;
        traffic.body_bytes += body_bytes as u64;
    }
    traffic
}

fn counters(daemon: &Daemon) -> BTreeMap<String, u64> {
    let output = daemon.applet("stat", &["-1"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let pair = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

/// The counters once `client_req` has reached `requests` and all loops have been summed up since.
fn settled(daemon: &Daemon, requests: u64) -> BTreeMap<String, u64> {
    let at_least = |name: &str, value: u64| {
        eventually(name, || {
            let counters = counters(daemon);
            let is = *counters.get(name)?;
            (is >= value).then_some((is, counters))
        })
    };
    at_least("MAIN.client_req", requests);
    // Some events precede the client's response, others follow: connections are closed, fetches
    // end.
    eventually("all sessions are closed", || {
        let counters = counters(daemon);
        let live =
            |pool: &str| counters.iter().filter(|(name, _)| is_of_pool(name, pool, "live")).map(|(_, n)| n).sum();
        let live: [u64; 3] = ["sess", "req", "busyobj"].map(live);
        (live == [0; 3]).then_some(())
    });
    let (sums_made, _) = at_least("MAIN.summs", 0);
    at_least("MAIN.summs", sums_made + 2).1
}

fn is_of_pool(name: &str, pool: &str, counter: &str) -> bool {
    let rest = name.strip_prefix("MEMPOOL.").and_then(|rest| rest.strip_prefix(pool));
    let number = rest.and_then(|rest| rest.strip_suffix(counter)).and_then(|rest| rest.strip_suffix('.'));
    number.is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
}

fn sum_of_pools(counters: &BTreeMap<String, u64>, pool: &str, counter: &str) -> u64 {
    counters.iter().filter(|(name, _)| is_of_pool(name, pool, counter)).map(|(_, value)| value).sum()
}

fn assert_counters(counters: &BTreeMap<String, u64>, expected: &[(&str, u64)]) {
    let is: Vec<_> =
        expected.iter().map(|(name, _)| (*name, counters.get(*name).copied().unwrap_or(u64::MAX))).collect();
    assert_eq!(is, expected);
}

#[test]
fn counters_are_right_to_the_last_request_under_load_and_begin_anew_with_the_next_worker() {
    let origin = Origin::start(|head| {
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        ok("Cache-Control: max-age=600\r\n", &body(&path))
    });
    let daemon = Daemon::with_vcl(POLICY, origin.port, &["-p", "event_loops=2"]);
    let port = daemon.port;
    let clients: Vec<_> =
        (0..CLIENTS).map(|client| std::thread::spawn(move || converse(port, paths(client)))).collect();
    let mut all = Traffic::default();
    for client in clients {
        let one = client.join().unwrap();
        all.sent_bytes += one.sent_bytes;
        all.head_bytes += one.head_bytes;
        all.body_bytes += one.body_bytes;
    }
    let total = (CLIENTS * REQUESTS_OF_EACH) as u64;
    let (lookups, objects) = (total / 2, OBJECTS as u64);
    let counted = settled(&daemon, total);
    let heads = origin.requests.lock().unwrap().clone();
    let asked_bytes: usize = heads.iter().map(|head| head.len() + 4).sum();
    let sent_bodies: usize = heads.iter().map(|head| body(head.split(' ').nth(1).unwrap_or_default()).len()).sum();
    let fetches = total / 4 + objects;
    assert_eq!(heads.len() as u64, fetches);
    assert_counters(
        &counted,
        &[
            ("MAIN.client_req", total),
            ("MAIN.cache_hit", lookups - objects),
            ("MAIN.cache_miss", objects),
            ("MAIN.s_pass", total / 4),
            ("MAIN.s_synth", total / 4),
            ("MAIN.s_fetch", fetches),
            ("MAIN.fetch_length", fetches),
            ("MAIN.backend_req", fetches),
            ("MAIN.n_object", objects),
            ("MAIN.s_req_hdrbytes", all.sent_bytes),
            ("MAIN.s_resp_hdrbytes", all.head_bytes),
            ("MAIN.s_resp_bodybytes", all.body_bytes),
            ("MAIN.sess_conn", CLIENTS as u64),
            ("MAIN.sc_rem_close", CLIENTS as u64),
            ("MGT.child_start", 1),
            ("MGT.child_died", 0),
            ("VBE.boot.origin.req", fetches),
            ("VBE.boot.origin.conn", 0),
            ("VBE.boot.origin.bereq_hdrbytes", asked_bytes as u64),
            ("VBE.boot.origin.beresp_bodybytes", sent_bodies as u64),
            ("MEMPOOL.busyobj.allocs", fetches),
            ("MEMPOOL.busyobj.frees", fetches),
        ],
    );
    let is = |name: &str| counted.get(name).copied().unwrap_or_default();
    assert_eq!(is("MAIN.backend_conn") + is("MAIN.backend_reuse"), fetches);
    assert_eq!(sum_of_pools(&counted, "sess", "allocs"), CLIENTS as u64);
    assert_eq!(sum_of_pools(&counted, "req", "allocs"), sum_of_pools(&counted, "req", "frees"));
    assert!(is("LCK.hcb.locks") >= lookups);

    let first = daemon.worker();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(first), nix::sys::signal::Signal::SIGKILL).unwrap();
    eventually("another worker runs", || (daemon.worker() != first).then_some(()));
    let all = converse(port, (0..10).map(|number| format!("/object/{number}")));
    let counted = settled(&daemon, 10);
    assert_counters(
        &counted,
        &[
            ("MAIN.client_req", 10),
            ("MAIN.cache_hit", 10),
            ("MAIN.cache_miss", 0),
            ("MAIN.s_fetch", 0),
            ("MAIN.n_object", objects),
            ("MAIN.s_req_hdrbytes", all.sent_bytes),
            ("MAIN.s_resp_hdrbytes", all.head_bytes),
            ("MAIN.s_resp_bodybytes", all.body_bytes),
            ("VBE.boot.origin.req", 0),
            ("MEMPOOL.busyobj.allocs", 0),
            ("MGT.child_start", 2),
            ("MGT.child_died", 1),
        ],
    );
}

#[test]
fn every_class_of_locks_and_every_pool_has_its_section() {
    let origin = Origin::start(|_| ok("", "x"));
    let daemon = Daemon::in_front_of(origin.port, &["-p", "event_loops=1"]);
    assert_eq!(daemon.get("/").status, 200);
    let counted = settled(&daemon, 1);
    for class in LockClass::ALL {
        for counter in ["creat", "destroy", "locks", "dbg_busy", "dbg_try_fail"] {
            assert!(counted.contains_key(&format!("LCK.{}.{counter}", class.word())), "{class:?} {counter}");
        }
    }
    for (name, least) in
        [("hcb.creat", 1), ("ban.creat", 1), ("vcl.creat", 1), ("conn_pool.creat", 1), ("sma.locks", 1)]
    {
        assert!(counted[&format!("LCK.{name}")] >= least, "{name}");
    }
    for pool in ["req0", "sess0", "busyobj"] {
        assert!(counted[&format!("MEMPOOL.{pool}.sz_wanted")] > 0, "{pool}");
    }
}
