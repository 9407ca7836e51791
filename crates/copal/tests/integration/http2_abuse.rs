//! Attacks over HTTP/2 on a real daemon: each connection ends with the right error and is counted,
//! the worker does not grow, and others are served meanwhile. The cost of each in detail is tested
//! in memory (`crates/engine/tests/http2_abuse.rs`).

use crate::daemon::{Daemon, HANG, Origin, eventually, ok};
use http2::frame::{ErrorCode, FrameHead, HEAD_BYTES, PREFACE, flag, kind};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

/// `GET http://h/`.
const GET: &[u8] = &[0x82, 0x84, 0x86, 0x41, 1, b'h'];
/// Connections of each attack at a time.
const ATTACKERS: usize = 4;
/// Additional memory that the worker may use, for all attackers together.
const GROWTH_BYTES: u64 = 32 << 20;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let head = FrameHead { payload_bytes: payload.len() as u32, kind, flags, stream };
    [&head.to_bytes()[..], payload].concat()
}

/// Makes the next piece of an attack from its number.
type Attack = fn(u32) -> Vec<u8>;

fn rapid_reset(number: u32) -> Vec<u8> {
    let stream = 2 * number + 1;
    let cancel = frame(kind::RST_STREAM, 0, stream, &(ErrorCode::Cancel as u32).to_be_bytes());
    [frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, GET), cancel].concat()
}

fn provoked_reset(number: u32) -> Vec<u8> {
    let stream = 2 * number + 1;
    let overflow = frame(kind::WINDOW_UPDATE, 0, stream, &0x7fff_ffff_u32.to_be_bytes());
    [frame(kind::HEADERS, flag::END_HEADERS, stream, GET), overflow].concat()
}

fn continuation(number: u32) -> Vec<u8> {
    match number {
        0 => frame(kind::HEADERS, flag::END_STREAM, 1, GET),
        _ => frame(kind::CONTINUATION, 0, 1, &[]),
    }
}

/// A field of 3,900 bytes, repeated 12,000 times by one byte each.
fn bomb(number: u32) -> Vec<u8> {
    let length = [0x7f, 0xbd, 0x1d];
    let block = [GET, &[0x40, 1, b'x'], &length, &[b'a'; 3_900], &[0xbe; 12_000]].concat();
    frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 2 * number + 1, &block)
}

fn ping(_: u32) -> Vec<u8> {
    frame(kind::PING, 0, 0, &[0; 8]).repeat(10)
}

fn settings(_: u32) -> Vec<u8> {
    frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0xff, 0xff])
}

/// Attacks until the daemon closes; returns the code of its GOAWAY.
fn attack(port: u16, piece: Attack) -> Option<ErrorCode> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut reader = stream.try_clone().unwrap();
    reader.set_read_timeout(Some(HANG)).unwrap();
    let goaway_code = std::thread::spawn(move || {
        let mut goaway_code = None;
        let mut head = [0; HEAD_BYTES];
        while reader.read_exact(&mut head).is_ok() {
            let head = FrameHead::parse(&head);
            let mut payload = vec![0; head.payload_bytes as usize];
            if reader.read_exact(&mut payload).is_err() {
                break;
            }
            if let (kind::GOAWAY, Some(code)) = (head.kind, payload.get(4..8)) {
                goaway_code = ErrorCode::of(u32::from_be_bytes(code.try_into().unwrap()));
            }
        }
        // The writing side need not continue.
        let _ = reader.shutdown(Shutdown::Both);
        goaway_code
    });
    let start = [PREFACE.to_vec(), frame(kind::SETTINGS, 0, 0, &[])].concat();
    let mut written = stream.write_all(&start);
    for number in 0..1_000_000 {
        if written.is_err() {
            break;
        }
        written = stream.write_all(&piece(number));
    }
    assert!(written.is_err(), "it is not ended");
    goaway_code.join().unwrap()
}

/// Resident memory of the worker, in bytes.
fn resident(worker: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{worker}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    1024 * line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
}

#[test]
fn sessions_streams_refusals_and_resets_are_counted() {
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let origin = Origin::start(move |_| {
        let _ = gate.lock().unwrap().recv();
        ok("", "hello")
    });
    let daemon = Daemon::in_front_of(origin.port, &["-p", "feature=+http2", "-p", "h2_max_concurrent_streams=1"]);
    let get = |stream: u32| frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, GET);
    let mut stream = TcpStream::connect(("127.0.0.1", daemon.port)).unwrap();
    let start = [PREFACE.to_vec(), frame(kind::SETTINGS, 0, 0, &[]), get(1), get(3), get(5)].concat();
    stream.write_all(&start).unwrap();
    let counted = |name: &str, count: &str| {
        eventually(name, || {
            let output = daemon.applet("varnishstat", &["-1", "-f", name]);
            let text = String::from_utf8(output.stdout).unwrap();
            (text.split_whitespace().nth(1) == Some(count)).then_some(())
        });
    };
    counted("MAIN.req_dropped", "2");
    counted("MAIN.h2_streams", "1");
    stream.write_all(&frame(kind::RST_STREAM, 0, 1, &(ErrorCode::Cancel as u32).to_be_bytes())).unwrap();
    // A reply shows that the reset was read.
    stream.write_all(&frame(kind::PING, 0, 0, &[7; 8])).unwrap();
    stream.set_read_timeout(Some(HANG)).unwrap();
    loop {
        let mut head = [0; HEAD_BYTES];
        stream.read_exact(&mut head).unwrap();
        let head = FrameHead::parse(&head);
        stream.read_exact(&mut vec![0; head.payload_bytes as usize]).unwrap();
        if head.kind == kind::PING {
            break;
        }
    }
    open.send(()).unwrap();
    counted("MAIN.req_reset", "1");
    counted("MAIN.h2_sess", "1");
    counted("MAIN.h2_abuse_resets", "0");
}

#[test]
fn floods_end_with_the_right_error_while_others_are_served() {
    let origin = Origin::start(|_| ok("Cache-Control: max-age=1000\r\n", "hello"));
    let daemon = Daemon::in_front_of(origin.port, &["-p", "feature=+http2"]);
    let worker = daemon.worker();
    assert_eq!(daemon.get("/").text(), "hello");
    let attacks: [(&str, Attack, &str); 6] = [
        ("rapid reset", rapid_reset, "MAIN.h2_abuse_resets"),
        ("provoked resets", provoked_reset, "MAIN.h2_abuse_resets"),
        ("CONTINUATION", continuation, "MAIN.h2_abuse_headers"),
        ("a bomb of fields", bomb, "MAIN.h2_abuse_headers"),
        ("PING", ping, "MAIN.h2_abuse_frames"),
        ("SETTINGS", settings, "MAIN.h2_abuse_frames"),
    ];
    for (name, piece, counter) in attacks {
        let (before, counted) = (resident(worker), daemon.counter(counter));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let others = scope.spawn(|| {
                let mut longest = Duration::ZERO;
                while !is_over.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    assert_eq!(daemon.get("/").text(), "hello", "{name}");
                    longest = longest.max(began.elapsed());
                }
                longest
            });
            let attackers: Vec<_> = (0..ATTACKERS).map(|_| scope.spawn(|| attack(daemon.port, piece))).collect();
            for attacker in attackers {
                assert_eq!(attacker.join().unwrap(), Some(ErrorCode::EnhanceYourCalm), "{name}");
            }
            is_over.store(true, Ordering::Relaxed);
            let longest = others.join().unwrap();
            assert!(longest < HANG / 4, "{name}: another client waited {longest:?}");
        });
        eventually("the sessions end and are counted", || {
            (daemon.counter(counter) >= counted + ATTACKERS as u64).then_some(())
        });
        let grown = resident(worker).saturating_sub(before);
        assert!(grown < GROWTH_BYTES, "{name}: {grown} bytes more");
    }
    assert_eq!(daemon.worker(), worker, "{}", daemon.said());
    assert!(origin.count() < 3, "{} requests for one page", origin.count());
}
