//! `copal bench` against a running daemon, over all its protocols.

use crate::daemon::{Daemon, Origin, Process, copal, eventually, free_port, ok};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::Read as _;
use std::process::{Command, Stdio};

/// A daemon with plain and TLS ports (and QUIC) in front of an origin whose bodies contain their
/// path.
struct Site {
    daemon: Daemon,
    tls: u16,
    _folder: tempfile::TempDir,
    _origin: Origin,
}

impl Site {
    fn start() -> Site {
        let origin = Origin::start(|head| {
            let path = head.split(' ').nth(1).unwrap_or("/");
            ok("Cache-Control: max-age=3600\r\n", &format!("{path:>20}"))
        });
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (pem, file) = (folder.path().join("both.pem"), folder.path().join("tls.conf"));
        std::fs::write(&pem, made.cert.pem() + &made.signing_key.serialize_pem()).unwrap();
        let tls = free_port();
        let pem = pem.display();
        let frontend = format!("frontend = {{ host = \"127.0.0.1\" port = \"{tls}\" pem-file = \"{pem}\" h3 = on }}\n");
        std::fs::write(&file, frontend).unwrap();
        let daemon = Daemon::in_front_of(origin.port, &["-A", file.to_str().unwrap(), "-p", "feature=+http2"]);
        Site { daemon, tls, _folder: folder, _origin: origin }
    }

    fn clear(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.daemon.port)
    }

    fn secured(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.tls)
    }
}

fn bench(args: &[&str], url: &str) -> Value {
    let said = Command::new(copal()).args(["bench", "--json"]).args(args).arg(url).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    serde_json::from_slice(&said.stdout).unwrap()
}

#[test]
fn every_protocol_is_answered_and_its_bodies_are_whole() {
    let site = Site::start();
    let right = ["-n", "300", "-c", "3", "-m", "4", "--expect-bytes", "20", "--expect-status", "200"];
    for (more, url) in [
        (&["--http", "1"][..], site.clear("/page")),
        (&["--http", "1"], site.secured("/page")),
        (&["--http", "2"], site.clear("/page")),
        (&["--http", "2"], site.secured("/page")),
        (&["--http", "3"], site.secured("/page")),
    ] {
        let found = bench(&[&right[..], more].concat(), &url);
        assert_eq!(
            (found["answers"].as_u64(), found["failed"].as_u64()),
            (Some(300), Some(0)),
            "{more:?} {url}: {found}"
        );
        assert_eq!(found["opened"].as_u64(), Some(3), "{more:?} {url}");
        assert_eq!(
            (found["body_bytes"].as_u64(), found["hits_told"].as_u64()),
            (Some(6000), Some(300)),
            "{more:?} {url}"
        );
        assert!(found["hits"].as_u64() >= Some(299), "one fetch at most: {found}");
    }
}

#[test]
fn sessions_are_taken_up_and_ranks_become_pages() {
    let site = Site::start();
    let found = bench(&["-n", "40", "-c", "1", "-k", "1", "--resume"], &site.secured("/page"));
    assert_eq!((found["answers"].as_u64(), found["opened"].as_u64()), (Some(40), Some(40)), "{found}");
    assert!(found["resumed"].as_u64() >= Some(38), "{found}");
    let fresh = bench(&["-n", "10", "-c", "1", "-k", "0"], &site.secured("/page"));
    assert_eq!((fresh["opened"].as_u64(), fresh["resumed"].as_u64()), (Some(10), Some(0)));
    let found = bench(&["-n", "500", "-c", "4", "--zipf", "1.0,50"], &site.clear("/page/{}"));
    let misses = found["hits_told"].as_u64().unwrap() - found["hits"].as_u64().unwrap();
    assert!((10..=60).contains(&misses), "about as many misses as pages: {misses}");
}

#[test]
fn an_interrupted_load_prints_what_there_is() {
    let site = Site::start();
    let child = Command::new(copal())
        .args(["bench", "--json", "-t", "60", "-c", "2"])
        .arg(site.clear("/page"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut process = Process(child);
    let _ = site.daemon.worker();
    eventually("hits are counted", || {
        let shown = site.daemon.applet("stat", &["-1", "-f", "MAIN.cache_hit"]).stdout;
        let count = String::from_utf8_lossy(&shown).split_whitespace().nth(1)?.parse::<u64>().ok()?;
        (count >= 100).then_some(())
    });
    process.signal(Signal::SIGINT);
    let mut said = String::new();
    process.0.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(process.wait().success());
    let found: Value = serde_json::from_str(&said).unwrap();
    assert!(found["answers"].as_u64() >= Some(100) && found["seconds"].as_f64() < Some(50.0), "{found}");
}
