//! The unmodified tools of Debian's `varnish` packages, 7.1 and 7.7, read our output.

#[path = "support/varnish_7_7.rs"]
mod varnish_7_7;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use shm::layout::Layout;
use shm::log::{LogBuffer, LogConfiguration, LogId, LogRing};
use shm::vsc::Publisher;
use shm::vsm::{MANAGER_DIRECTORY, VsmWriter, WORKER_DIRECTORY, recreate_directory};
use surface::counter::{LCK, MAIN, MGT, Main, Mgt, SMA, VBE};
use surface::limits::TEST_HANG_SECONDS;
use surface::tag::{LAST_OF_VARNISH, TAGS, Tag, TagRow};
use varnish_7_7::program_of_7_7;

/// Path of a stock program; prints a note if it is not installed.
fn stock(program: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).map(|directory| directory.join(program)).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("skipped: needs {program}");
    }
    found
}

/// Layouts of the log, each with the path of a stock program that reads it; prints a note for each
/// that is not installed.
fn stock_of_each(program: &str) -> Vec<(Layout, PathBuf)> {
    Layout::ALL.into_iter().filter_map(|layout| Some((layout, stock_of(layout, program)?))).collect()
}

/// Path of the stock program of 7.1, or of the 7.7 that `.ci/varnish-7.7` fetches.
fn stock_of(layout: Layout, program: &str) -> Option<PathBuf> {
    match layout {
        Layout::V71 => stock(program),
        Layout::V73 => program_of_7_7(program),
    }
}

struct Server {
    directory: tempfile::TempDir,
    _manager: VsmWriter,
}

impl Server {
    fn new() -> Server {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(MANAGER_DIRECTORY);
        recreate_directory(&path, 0o755).unwrap();
        let manager = VsmWriter::create(&path).unwrap();
        manager.add_text("Arg", "-i", "test").unwrap();
        let publisher = Publisher::new(&manager, 1 << 32);
        let block = publisher.publish(&MGT, "MGT").unwrap();
        block.set(Mgt::Uptime as usize, 77);
        manager.add_text("Arg", "-T", "127.0.0.1 1\n").unwrap();
        Server { directory, _manager: manager }
    }

    fn start_worker(&self) -> VsmWriter {
        let path = self.directory.path().join(WORKER_DIRECTORY);
        recreate_directory(&path, 0o755).unwrap();
        VsmWriter::create(&path).unwrap()
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn run(&self, program: &Path, args: &[&str]) -> String {
        let output = Command::new(program).arg("-n").arg(self.path()).args(args).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program:?} {args:?}: {errors}");
        assert_eq!(errors, "", "{program:?} {args:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// A request that misses, with its fetch, as an engine logs it.
fn log_a_miss(ring: &LogRing, session: u64) {
    let (request, fetch) = (session + 1, session + 2);
    ring.write(Tag::Begin, LogId::client(session), b"sess 0 HTTP/1");
    ring.write_fmt(Tag::Link, LogId::client(session), format_args!("req {request} rxreq"));
    let mut client = LogBuffer::new(ring);
    client.start(LogId::client(request), 1_700_000_000.0);
    client.record_fmt(Tag::Begin, format_args!("req {session} rxreq"));
    client.timestamp("Start", 1_700_000_000.0);
    client.record(Tag::ReqStart, b"192.0.2.1 4711 a0");
    client.record(Tag::ReqMethod, b"GET");
    client.record_fmt(Tag::ReqURL, format_args!("/page/{session}"));
    client.record(Tag::ReqProtocol, b"HTTP/1.1");
    client.record(Tag::ReqHeader, b"Host: example.com");
    client.record(Tag::VCLCall, b"MISS");
    client.record_fmt(Tag::Link, format_args!("bereq {fetch} fetch"));
    let mut backend = LogBuffer::new(ring);
    backend.start(LogId::backend(fetch), 1_700_000_000.1);
    backend.record_fmt(Tag::Begin, format_args!("bereq {request} fetch"));
    backend.record(Tag::BerespStatus, b"200");
    backend.end();
    client.record(Tag::RespStatus, b"200");
    client.timestamp("Resp", 1_700_000_000.25);
    client.record(Tag::ReqAcct, b"80 0 80 200 1234 1434");
    client.end();
    ring.write(Tag::SessClose, LogId::client(session), b"REM_CLOSE 0.250");
    ring.write(Tag::End, LogId::client(session), b"");
}

#[test]
fn varnishlog_groups_our_batches_and_direct_records() {
    for (layout, varnishlog) in stock_of_each("varnishlog") {
        let server = Server::new();
        let ring = LogRing::publish(&server.start_worker(), 1 << 20, layout).unwrap();
        ring.write(Tag::CLI, LogId::NONE, b"Rd ping");
        log_a_miss(&ring, 1000);
        let request = server.run(&varnishlog, &["-d", "-g", "request", "-i", "Begin,ReqURL,BerespStatus,End"]);
        assert_eq!(
            request,
            "*   << Request  >> 1001      \n-   Begin          req 1000 rxreq\n-   ReqURL         /page/1000\n\
         -   End            \n**  << BeReq    >> 1002      \n--  Begin          bereq 1001 fetch\n\
             --  BerespStatus   200\n--  End            \n\n"
        );
        let vxid = server.run(&varnishlog, &["-d", "-g", "vxid"]);
        assert_eq!(vxid.matches("<<").count(), 3);
        assert!(!vxid.contains("VSL"), "{vxid}");
        let session = server.run(&varnishlog, &["-d", "-g", "session"]);
        assert_eq!(session.matches("<<").count(), 3);
        let raw = server.run(&varnishlog, &["-d", "-g", "raw"]);
        assert_eq!(raw.lines().count(), 21, "{raw}");
        assert!(raw.starts_with("         0 CLI            - Rd ping\n"));
        assert!(raw.contains("      1001 Timestamp      c Resp: 1700000000.250000 0.250000 0.250000\n"));
    }
}

#[test]
fn varnishlog_accepts_every_tag_and_the_mask_hides_the_masked_ones() {
    for (layout, varnishlog) in stock_of_each("varnishlog") {
        let server = Server::new();
        let ring = LogRing::publish(&server.start_worker(), 1 << 20, layout).unwrap();
        for mask in [[0; 32], LogConfiguration::default().mask] {
            ring.configure(&LogConfiguration { mask, ..LogConfiguration::default() });
            for row in &TAGS {
                ring.write(row.tag, LogId::client(row.tag as u64), b"x");
            }
        }
        let raw = server.run(&varnishlog, &["-d", "-g", "raw"]);
        let mut names: Vec<_> = raw.lines().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
        let known = || TAGS.iter().filter(|row| layout.has(row.tag));
        let masked = names.split_off(known().count());
        let printed = |row: &TagRow| if row.tag <= LAST_OF_VARNISH { row.name } else { "(null)" };
        assert_eq!(names, known().map(printed).collect::<Vec<_>>());
        let unmasked: Vec<_> = known().filter(|row| !row.masked_by_default).map(printed).collect();
        assert_eq!(masked, unmasked);
    }
}

#[test]
fn varnishlog_reads_a_ring_that_has_wrapped() {
    for (layout, varnishlog) in stock_of_each("varnishlog") {
        let server = Server::new();
        let ring = LogRing::publish(&server.start_worker(), 1 << 18, layout).unwrap();
        for number in 0..2000 {
            log_a_miss(&ring, 10 * number + 10);
        }
        assert!(ring.totals().shm_cycles > 2);
        let urls = server.run(&varnishlog, &["-d", "-g", "request", "-q", "BerespStatus == 200", "-i", "ReqURL"]);
        let seen: Vec<u32> = urls
            .lines()
            .filter_map(|line| line.split_once("/page/"))
            .map(|(_, number)| number.trim().parse().unwrap())
            .collect();
        assert_eq!(seen.last(), Some(&20_000));
        assert!(seen.windows(2).all(|pair| pair[0] + 10 == pair[1]), "{seen:?}");
        // Half of the ring at least is readable.
        assert!(seen.len() > 150, "{}", seen.len());
    }
}

#[test]
fn varnishncsa_prints_our_requests() {
    for (layout, varnishncsa) in stock_of_each("varnishncsa") {
        let server = Server::new();
        let ring = LogRing::publish(&server.start_worker(), 1 << 20, layout).unwrap();
        log_a_miss(&ring, 7);
        let line = server.run(&varnishncsa, &["-d", "-F", "%h %r %s %b %D %{Varnish:handling}x"]);
        assert_eq!(line, "192.0.2.1 GET http://example.com/page/7 HTTP/1.1 200 1234 250000 miss\n");
    }
}

#[test]
fn varnishstat_shows_published_counters_only() {
    for (_, varnishstat) in stock_of_each("varnishstat") {
        let server = Server::new();
        let publisher = Publisher::new(&server.start_worker(), 1);
        let main = publisher.publish(&MAIN, "MAIN").unwrap();
        main.set(Main::Uptime as usize, 10);
        main.set(Main::CacheHit as usize, 25);
        main.set(1000, 1);
        publisher.publish(&SMA, "SMA.s0").unwrap();
        let cold = publisher.publish(&VBE, "VBE.cold.default").unwrap();
        cold.hide(true);
        let gone = publisher.publish(&LCK, "LCK.gone").unwrap();
        publisher.withdraw(gone).unwrap();
        let text = server.run(&varnishstat, &["-1"]);
        // One line each, with the heads that stock varnishstat prints.
        assert_eq!(text.lines().count(), MAIN.counters.len() + SMA.counters.len() + 7);
        assert!(text.contains("\nMAIN.cache_hit"), "{text}");
        assert!(!text.contains("VBE.cold") && !text.contains("LCK.gone"));
        cold.hide(false);
        let json: serde_json::Value = serde_json::from_str(&server.run(&varnishstat, &["-j"])).unwrap();
        assert_eq!(json["counters"]["MAIN.cache_hit"]["value"], 25);
        assert_eq!(json["counters"]["MAIN.cache_hit"]["flag"], "c");
        assert_eq!(json["counters"]["MGT.uptime"]["value"], 77);
        assert_eq!(json["counters"]["VBE.cold.default.happy"]["format"], "b");
        publisher.withdraw(cold).unwrap();
        let again = publisher.publish(&VBE, "VBE.warm.default").unwrap();
        again.set(0, u64::MAX);
        let text = server.run(&varnishstat, &["-1", "-f", "VBE.*.happy"]);
        assert!(text.starts_with("VBE.warm.default.happy"), "{text}");
        assert!(text.contains(&u64::MAX.to_string()), "{text}");
    }
}

/// A stock tool that runs along, and the lines it prints.
struct Follower {
    process: Child,
    lines: Receiver<String>,
}

impl Follower {
    fn start(program: &Path, server: &Server, args: &[&str]) -> Follower {
        let mut process = Command::new(program)
            .arg("-n")
            .arg(server.path())
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Follower { process, lines }
    }

    /// Does `act` again and again until the tool has printed a line with `text` in it.
    fn wait_for(&self, text: &str, mut act: impl FnMut()) {
        let deadline = Instant::now() + Duration::from_secs(TEST_HANG_SECONDS);
        while Instant::now() < deadline {
            act();
            match self.lines.recv_timeout(Duration::from_millis(20)) {
                Ok(line) if line.contains(text) => return,
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("the tool ended before it printed {text:?}"),
            }
        }
        panic!("the tool never printed {text:?}");
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn varnishlog_follows_segments_that_come_and_go_and_a_worker_that_restarts() {
    for (layout, varnishlog) in stock_of_each("varnishlog") {
        let server = Server::new();
        let worker = server.start_worker();
        let ring = LogRing::publish(&worker, 1 << 20, layout).unwrap();
        let follower = Follower::start(&varnishlog, &server, &["-g", "raw"]);
        follower.wait_for("Rd first", || ring.write(Tag::CLI, LogId::NONE, b"Rd first"));
        let publisher = Publisher::new(&worker, 1);
        for round in 0..60 {
            let block = publisher.publish(&VBE, &format!("VBE.vcl{round}.default")).unwrap();
            follower.wait_for("Rd round", || ring.write(Tag::CLI, LogId::NONE, b"Rd round"));
            publisher.withdraw(block).unwrap();
        }
        follower.wait_for("Rd second", || ring.write(Tag::CLI, LogId::NONE, b"Rd second"));
        let next = server.start_worker();
        let ring = LogRing::publish(&next, 1 << 20, layout).unwrap();
        follower.wait_for("Rd third", || ring.write(Tag::CLI, LogId::NONE, b"Rd third"));
    }
}
