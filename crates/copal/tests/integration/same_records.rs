//! Identical requests to the stock daemon and to ours: log records and counters must be the same.
//!
//! The tags and payloads of each transaction are compared, without numbers in the payloads, and all
//! counters. Intentional differences are not in the table: they are listed in
//! `docs/migrate/records.md`.

use crate::daemon::{Daemon, Origin, eventually, exchange, needs, ok};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// VCL for the requests of the table, by their paths.
const POLICY: &str = r#"vcl 4.1;
import std;
backend origin { .host = "127.0.0.1"; .port = "@PORT@"; }
backend closed { .host = "127.0.0.1"; .port = "@CLOSED@"; }
acl local +log { "127.0.0.1"; }
sub vcl_recv {
    if (req.url ~ "^/synth") { return (synth(700, "Made up")); }
    if (req.url ~ "^/fail") { return (fail); }
    if (req.url ~ "^/pipe") { return (pipe); }
    if (req.url ~ "^/hash") { return (hash); }
    if (req.url ~ "^/pass") { return (pass); }
    if (req.method == "PURGE") { return (purge); }
    if (req.method == "BAN") { std.ban("req.url == " + req.url); return (synth(200, "Banned")); }
    if (req.url ~ "restart" && req.restarts == 0) { return (restart); }
    if (req.url ~ "loop") { return (restart); }
    if (req.url ~ "closed") { set req.backend_hint = closed; }
    if (req.url ~ "always") { set req.hash_always_miss = true; }
    if (req.url ~ "acl" && client.ip ~ local) { set req.http.local = "yes"; }
    if (req.url ~ "log") { std.log("said"); std.timestamp("mine"); unset req.http.User-Agent; }
    if (req.url ~ "held") { std.cache_req_body(1KB); return (pass); }
}
sub vcl_backend_fetch {
    if (bereq.url ~ "abandoned") { return (abandon); }
    if (bereq.url ~ "asked-error") { return (error(555, "Asked")); }
    if (bereq.url ~ "asked-fail") { return (fail); }
}
sub vcl_backend_response {
    if (bereq.url ~ "hfp") { return (pass(10s)); }
    if (bereq.url ~ "hfm") { set beresp.uncacheable = true; }
    if (bereq.url ~ "got-retry" && bereq.retries == 0) { return (retry); }
    if (bereq.url ~ "tries") { return (retry); }
    if (bereq.url ~ "short") { set beresp.ttl = 5s; set beresp.grace = 0s; }
    if (bereq.url ~ "grace") { set beresp.ttl = 0.001s; set beresp.grace = 60s; }
    if (bereq.url ~ "whole|old") { set beresp.do_stream = false; }
    unset beresp.http.Server;
}
sub vcl_hit {
    if (req.url ~ "hit-synth") { return (synth(801)); }
    if (req.url ~ "hit-restart" && req.restarts == 0) { return (restart); }
}
sub vcl_backend_error {
    if (bereq.url ~ "closed-retry" && bereq.retries == 0) { return (retry); }
}
sub vcl_deliver {
    if (req.url ~ "late-synth") { return (synth(802)); }
    if (req.url ~ "late-restart" && req.restarts == 0) { return (restart); }
    if (req.url ~ "late-fail") { return (fail); }
    set resp.http.Hits = obj.hits;
}
"#;

/// Requests, one conversation each: method, path, additional headers, body. A repeated path may be
/// a hit.
const REQUESTS: &[(&str, &str, &str, &str)] = &[
    ("GET", "/grace", "", ""),
    ("GET", "/plain", "", ""),
    ("GET", "/plain", "", ""),
    ("HEAD", "/plain", "", ""),
    ("GET", "/plain", "Range: bytes=2-4\r\n", ""),
    ("GET", "/plain", "Range: bytes=900-\r\n", ""),
    ("GET", "/plain", "Range: junk\r\n", ""),
    ("PURGE", "/plain", "", ""),
    ("GET", "/plain", "User-Agent: a\r\nAccept-Encoding: gzip, br\r\nX-Forwarded-For: 192.0.2.1\r\n", ""),
    ("BAN", "/plain", "", ""),
    ("GET", "/plain", "", ""),
    ("GET", "/old", "", ""),
    ("GET", "/old", "", ""),
    ("GET", "/tagged", "", ""),
    ("GET", "/tagged", "If-None-Match: \"a\"\r\n", ""),
    ("GET", "/vary", "X-Kind: 1\r\n", ""),
    ("GET", "/vary", "X-Kind: 2\r\n", ""),
    ("GET", "/vary", "X-Kind: 1\r\n", ""),
    ("GET", "/private", "", ""),
    ("GET", "/private", "", ""),
    ("GET", "/cookie", "Cookie: a=b\r\n", ""),
    ("GET", "/hfp", "", ""),
    ("GET", "/hfp", "", ""),
    ("GET", "/hfm", "", ""),
    ("GET", "/hfm", "", ""),
    ("GET", "/pass", "", ""),
    ("HEAD", "/pass-head", "", ""),
    ("POST", "/posted", "Content-Length: 5\r\n", "hello"),
    ("POST", "/held", "Content-Length: 5\r\n", "hello"),
    ("POST", "/expecting", "Expect: 100-continue\r\nContent-Length: 5\r\n", "hello"),
    ("POST", "/expecting-more", "Expect: magic\r\nContent-Length: 5\r\n", "hello"),
    ("PUT", "/put", "Content-Length: 0\r\n", ""),
    ("GET", "/pipe", "", ""),
    ("ODD", "/odd", "", ""),
    ("GET", "/synth", "", ""),
    ("HEAD", "/synth-head", "", ""),
    ("GET", "/fail", "", ""),
    ("GET", "/restarted", "", ""),
    ("GET", "/loop", "", ""),
    ("GET", "/closed", "", ""),
    ("GET", "/closed-retry", "", ""),
    ("GET", "/always", "", ""),
    ("GET", "/always", "", ""),
    ("GET", "/acl", "", ""),
    ("GET", "/log", "User-Agent: a\r\n", ""),
    ("GET", "/abandoned", "", ""),
    ("GET", "/asked-error", "", ""),
    ("GET", "/asked-fail", "", ""),
    ("GET", "/got-retry", "", ""),
    ("GET", "/tries", "", ""),
    ("GET", "/short", "", ""),
    ("GET", "/whole", "", ""),
    ("GET", "/grace", "", ""),
    ("GET", "/hit-synth", "", ""),
    ("GET", "/hit-synth", "", ""),
    ("GET", "/hit-restart", "", ""),
    ("GET", "/hit-restart", "", ""),
    ("GET", "/late-synth", "", ""),
    ("GET", "/late-restart", "", ""),
    ("GET", "/late-fail", "", ""),
    ("GET", "/missing", "", ""),
    ("GET", "/missing", "", ""),
    ("GET", "/broken", "", ""),
    ("GET", "/moved", "", ""),
    ("GET", "http://elsewhere/plain", "", ""),
    ("POST", "/twice", "Content-Length: 5\r\nContent-Length: 6\r\n", "hello"),
];

/// Counters that must be the same; a name that ends with `_` is a prefix. Bytes of bodies are
/// counted in `counters.rs`: error pages contain the vxid, whose number of digits depends on the
/// stock daemon's threads.
const COUNTERS: &[&str] = &[
    "MAIN.client_req",
    "MAIN.cache_",
    "MAIN.s_req",
    "MAIN.s_fetch",
    "MAIN.s_synth",
    "MAIN.s_pass",
    "MAIN.s_pipe_",
    "MAIN.fetch_",
    "MAIN.backend_req",
    "MAIN.backend_fail",
    "MAIN.beresp_",
    "MAIN.sess_closed",
    "MAIN.sess_closed_err",
    "MAIN.sess_dropped",
    "MAIN.sc_",
    "MAIN.bans_added",
    "MAIN.n_gzip",
    "MAIN.n_gunzip",
    "MAIN.n_object",
    "MAIN.n_purges",
    "MAIN.n_obj_purged",
    "MAIN.n_backend",
    "MAIN.n_vcl",
    "MAIN.vmods",
    "MAIN.losthdr",
    "VBE.boot.origin.req",
    "VBE.boot.origin.unhealthy",
    "VBE.boot.origin.busy",
    "VBE.boot.closed.fail_econnrefused",
];

fn answer(head: &str) -> Vec<u8> {
    let path = head.split(' ').nth(1).unwrap_or("/");
    let body = "x".repeat(64);
    let other = |line: &str| {
        let text = String::from_utf8(ok("", &body)).unwrap_or_default();
        text.replacen("200 OK", line, 1).into_bytes()
    };
    match path {
        "/old" => b"HTTP/1.0 200 OK\r\n\r\nuntil the end".to_vec(),
        "/tagged" => ok("ETag: \"a\"\r\n", &body),
        "/vary" => ok("Vary: X-Kind\r\n", &body),
        "/private" => ok("Cache-Control: private, max-age=0\r\n", &body),
        "/missing" => other("404 Not Found"),
        "/broken" => other("500 Broken"),
        "/moved" => other("301 Moved"),
        _ if head.starts_with("HEAD") => b"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n".to_vec(),
        _ if head.contains("Connection: close") => ok("Connection: close\r\n", &body),
        _ => ok("", &body),
    }
}

/// The payload without the parts that must differ: numbers and dates.
fn shape(payload: &str) -> String {
    let payload = if payload.contains("Date: ") || payload.contains(" GMT") {
        payload.split(", ").next().unwrap_or_default()
    } else {
        payload
    };
    let mut out = String::new();
    let mut in_number = false;
    for character in payload.chars() {
        let goes_on = character.is_ascii_digit() || (in_number && character == '.');
        if goes_on && !in_number {
            out.push('N');
        } else if !goes_on {
            out.push(character);
        }
        in_number = goes_on;
    }
    out.split("Date:").next().map_or_else(String::new, str::to_owned)
}

/// The tags and payloads of a transaction's records.
type Records = Vec<(String, String)>;

/// Transactions with their vxids, in the order in which they began. Vxids are assigned in chunks,
/// and a transaction is logged after its end, when its thread runs, so neither reveals the order.
type Transactions = Vec<(u64, Records)>;

fn transactions(text: &str) -> Transactions {
    let mut transactions = Transactions::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(vxid), Some(tag), Some(side)) = (words.next(), words.next(), words.next()) else { continue };
        let Ok(vxid) = vxid.parse::<u64>() else { continue };
        let after_side = line.split_once(tag).and_then(|(_, rest)| rest.split_once(side)).map_or("", |(_, rest)| rest);
        if vxid > 0 && tag != "VSL" {
            let place = transactions.iter().position(|(known, _)| *known == vxid).unwrap_or_else(|| {
                transactions.push((vxid, Records::new()));
                transactions.len() - 1
            });
            transactions[place].1.push((tag.to_owned(), after_side.trim_start().to_owned()));
        }
    }
    transactions.sort_by(|(_, one), (_, other)| began(one).total_cmp(&began(other)));
    transactions
}

/// Time when a transaction began, seconds since 1970; 0 for a session, which does not record it.
fn began(records: &Records) -> f64 {
    let start = records.iter().find_map(|(_, payload)| payload.strip_prefix("Start: "));
    start.and_then(|times| times.split(' ').next()).and_then(|time| time.parse().ok()).unwrap_or(0.0)
}

/// True if that many sessions have ended with all their transactions: every request, every fetch.
fn are_whole(transactions: &Transactions, sessions: usize) -> bool {
    let has_ended = |records: &Records| records.last().is_some_and(|(tag, _)| tag == "End");
    // A session that only checked that the daemon is running has no transactions.
    let is_session = |records: &Records| {
        let begins = records.first().is_some_and(|(tag, payload)| tag == "Begin" && payload.starts_with("sess"));
        begins && records.iter().any(|(tag, _)| tag == "Link")
    };
    let mut links = transactions.iter().flat_map(|(_, records)| records).filter(|(tag, _)| tag == "Link");
    transactions.iter().filter(|(_, records)| is_session(records)).count() >= sessions
        && transactions.iter().all(|(_, records)| has_ended(records))
        && links.all(|(_, payload)| {
            let target = payload.split(' ').nth(1).and_then(|vxid| vxid.parse::<u64>().ok());
            transactions.iter().any(|(vxid, _)| Some(*vxid) == target)
        })
}

/// Records of the transactions for each side of each path, in the order in which they began.
type Story = BTreeMap<String, Vec<Vec<String>>>;

fn story(transactions: &Transactions) -> Story {
    let mut told = Story::new();
    for (_, records) in transactions {
        let url = records.iter().find(|(tag, _)| tag == "ReqURL" || tag == "BereqURL");
        let key = url.map_or_else(|| "session".to_owned(), |(tag, url)| format!("{url} {tag}"));
        // A session has no path; the ends of its requests are counted in its entry.
        if key != "session" {
            let lines = records.iter().map(|(tag, payload)| {
                // The complete end of a fetch, with its connection free again, depends on timing.
                let kept = match tag.as_str() {
                    "Hit" => 4,
                    "BackendOpen" => 2,
                    _ => usize::MAX,
                };
                format!("{tag} {}", shape(payload).split(' ').take(kept).collect::<Vec<_>>().join(" "))
            });
            told.entry(key).or_default().push(lines.collect());
        }
    }
    told
}

/// Runs all conversations with a daemon and returns its log.
fn converse(daemon: &Daemon, varnishlog: &Path, varnishadm: &Path) -> Story {
    let run = daemon.run();
    let output = Command::new(varnishadm).args(["-t", "300", "-n", &run, "debug.xid", "99999"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    for (method, path, headers, body) in REQUESTS {
        let text = format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{headers}Connection: close\r\n\r\n{body}");
        exchange(daemon.port, text.as_bytes());
    }
    eventually("all is in the log", || {
        let output = Command::new(varnishlog).args(["-n", &run, "-d", "-g", "raw"]).output().unwrap();
        let transactions = transactions(&String::from_utf8_lossy(&output.stdout));
        are_whole(&transactions, REQUESTS.len()).then(|| story(&transactions))
    })
}

fn counters(daemon: &Daemon, varnishstat: &Path) -> BTreeMap<String, u64> {
    let output = Command::new(varnishstat).args(["-n", &daemon.run(), "-1"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let wanted =
        |name: &str| COUNTERS.iter().any(|known| name == *known || (known.ends_with('_') && name.starts_with(known)));
    let pairs = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    });
    pairs.filter(|(name, _)| wanted(name)).collect()
}

#[test]
fn records_and_counters_are_those_of_the_stock_daemon() {
    let (Some(varnishd), Some(varnishlog), Some(varnishstat), Some(varnishadm)) =
        (needs("varnishd"), needs("varnishlog"), needs("varnishstat"), needs("varnishadm"))
    else {
        return;
    };
    let origin = Origin::start(answer);
    let folder = tempfile::tempdir().unwrap();
    let vcl = folder.path().join("policy.vcl");
    let closed = crate::daemon::CLOSED_PORT.to_string();
    std::fs::write(&vcl, POLICY.replace("@PORT@", &origin.port.to_string()).replace("@CLOSED@", &closed)).unwrap();
    let vcl = vcl.to_str().unwrap();
    let mask = "vsl_mask=+Hash,+ObjProtocol,+ObjStatus,+ObjReason,+ObjHeader,+Debug,-VfpAcct,-VdpAcct";
    let arguments = [
        "-f",
        vcl,
        "-s",
        "malloc,50m",
        "-p",
        mask,
        "-p",
        "debug=+vtc_mode",
        "-p",
        "ban_lurker_sleep=0",
        "-p",
        "pipe_timeout=0.2",
        // The second attempt must find the backend held down at any speed of the machine.
        "-p",
        "backend_remote_error_holddown=60",
    ];
    let stock = Daemon::start_stock(&varnishd, &arguments);
    let ours = Daemon::start(&arguments);
    let (of_stock, of_ours) = (converse(&stock, &varnishlog, &varnishadm), converse(&ours, &varnishlog, &varnishadm));
    for (key, theirs) in &of_stock {
        let none = Vec::new();
        let own = of_ours.get(key).unwrap_or(&none);
        for (number, records) in theirs.iter().enumerate() {
            assert_eq!(own.get(number), Some(records), "{key}, transaction {number}: ours left, stock right");
        }
        assert_eq!(own.len(), theirs.len(), "{key}: transactions");
    }
    assert_eq!(of_ours.keys().collect::<Vec<_>>(), of_stock.keys().collect::<Vec<_>>());
    let mut last = String::new();
    eventually("the counters are the same", || {
        let (theirs, own) = (counters(&stock, &varnishstat), counters(&ours, &varnishstat));
        let differ: Vec<_> = theirs
            .iter()
            .filter(|(name, value)| own.get(*name) != Some(value))
            .map(|(name, value)| format!("{name}: stock {value}, ours {:?}", own.get(name)))
            .collect();
        let now = differ.join("\n");
        if now != last {
            println!("{now}\n");
            last = now;
        }
        (!theirs.is_empty() && differ.is_empty()).then_some(())
    });
}
