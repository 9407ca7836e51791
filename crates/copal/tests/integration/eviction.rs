//! Eviction policies in a running server, and `copal policy` over its own access log.

use crate::daemon::{Daemon, Origin, copal, eventually, ok};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::process::Command;

/// Number of pages that are requested in every round.
const HOT: usize = 100;
/// Number of pages in each round that are requested once.
const ONCE: usize = 400;

fn page(_: &str) -> Vec<u8> {
    ok("Cache-Control: max-age=3600\r\n", &"x".repeat(4000))
}

/// A round of hot pages among others, beginning with that number; returns the number of hits among
/// the hot ones.
fn round(daemon: &Daemon, number: usize) -> usize {
    (0..HOT)
        .filter(|hot| {
            let is_hit = daemon.get(&format!("/hot/{hot}")).is_hit();
            for once in 0..ONCE / HOT {
                assert_eq!(daemon.get(&format!("/once/{number}/{hot}/{once}")).status, 200);
            }
            is_hit
        })
        .count()
}

#[test]
fn copal_daemon_keeps_what_is_hot_through_a_traversal_and_a_killed_worker() {
    let origin = Origin::start(page);
    let mut command = Command::new(copal());
    command.arg("daemon");
    let backend = format!("127.0.0.1:{}", origin.port);
    let daemon = Daemon::start_by(command, &["-b", &backend, "-s", "malloc,3m"]);
    let shown = daemon.cli(&["param.show", "eviction_policy"]);
    assert!(shown.0 && shown.1.contains("Value is: s3fifo (default)\n"), "{}", shown.1);
    let hits: Vec<usize> = (0..6).map(|number| round(&daemon, number)).collect();
    daemon.counter_reaching("MAIN.n_lru_nuked", 1000);
    assert!(hits[5] >= 90, "{hits:?}");

    let worker = daemon.worker();
    kill(Pid::from_raw(worker), Signal::SIGKILL).unwrap();
    let after: Vec<usize> = (6..8).map(|number| round(&daemon, number)).collect();
    assert_ne!(daemon.worker(), worker);
    assert!(after.iter().all(|hits| *hits >= 85), "{after:?}");

    // The log of all requests, as any server would have written it.
    let replayed = eventually("all requests are in the log", || {
        let log = daemon.folder.path().join("access.log");
        std::fs::write(&log, daemon.applet("ncsa", &["-d"]).stdout).unwrap();
        let said = Command::new(copal()).args(["policy", "--json", "-s", "3m,1g"]).arg(&log).output().unwrap();
        let found: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
        // The log began anew with the second worker.
        (found["requests"].as_u64() == Some(2 * (HOT + ONCE) as u64)).then_some(found)
    });
    assert_eq!((replayed["bad_lines"].as_u64(), replayed["urls"].as_u64()), (Some(0), Some((HOT + 2 * ONCE) as u64)));
    // If everything fits, the second request for each hot page is a hit.
    for policy in ["lru", "s3fifo", "sieve", "tinylfu"] {
        let ratio = replayed["sizes"][1]["policies"][policy]["hit_ratio"].as_f64().unwrap();
        assert!((ratio - HOT as f64 / (2 * (HOT + ONCE)) as f64).abs() < 1e-9, "{policy} {replayed}");
    }
}

#[test]
fn a_policy_is_chosen_by_storage_and_by_parameter() {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &["-s", "malloc,3m,policy=s3fifo"]);
    let shown = daemon.cli(&["param.show", "eviction_policy"]).1;
    assert!(shown.contains("Value is: lru (default)"), "{shown}");
    // The storage has a policy of its own.
    let hits: Vec<usize> = (0..5).map(|number| round(&daemon, number)).collect();
    assert!(hits[4] >= 90, "{hits:?}");
    for policy in ["sieve", "tinylfu", "s3fifo", "lru"] {
        assert!(daemon.cli(&["param.set", "eviction_policy", policy]).0);
    }
    let (is_set, text) = daemon.cli(&["param.set", "eviction_policy", "fifo"]);
    assert!(!is_set && text.contains("use one of: lru, s3fifo, sieve, tinylfu"), "{text}");
    assert!(round(&daemon, 5) >= 90, "a storage with a policy of its own does not follow the parameter");
}

#[test]
fn a_flood_of_uncacheable_urls_evicts_no_page() {
    let origin = Origin::start(|head| match head.contains("/private/") {
        true => ok("Set-Cookie: a=b\r\n", "hello"),
        false => page(head),
    });
    for transient in [&[][..], &["-s", "Transient=malloc,1m"]] {
        let arguments = [&["-s", "malloc,3m"], transient].concat();
        let daemon = Daemon::in_front_of(origin.port, &arguments);
        (0..900).for_each(|number| _ = daemon.get(&format!("/page/{number}")));
        daemon.counter_reaching("MAIN.n_lru_nuked", 100);
        let stored: Vec<_> = (800..900).filter(|number| daemon.get(&format!("/page/{number}")).is_hit()).collect();
        assert!(stored.len() > 90, "{stored:?}");
        for number in 0..3000 {
            assert_eq!(daemon.get(&format!("/private/{number}")).status, 200);
        }
        let lost: Vec<_> = stored.iter().filter(|number| !daemon.get(&format!("/page/{number}")).is_hit()).collect();
        assert!(lost.is_empty(), "{transient:?}: {lost:?}");
    }
}
