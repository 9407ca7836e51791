//! `cargo xtask attack`: latency of hits under attack: of a calm client, with and without each
//! attack.
//!
//! The server has one core, the clients another. The calm client requests one small object a
//! thousand times a second over one connection of HTTP/1.1; an attacker is a thread that opens
//! connections at a bounded rate, sends on each until the server closes it, and yields the core to
//! the calm client. Prints the 99th percentiles, the number of connections that the attacker lost,
//! and the memory of the server, in which the log's ring fills up (80 MiB).

use crate::frontdoor::servers::{Certificates, Door, Peer, origin};
use crate::measure::{hits, lasting, measure};
use crate::place;
use load::plan::{Pace, Plan};
use std::io::Write as _;
use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The pause between two connections of an attacker.
const PAUSE: Duration = Duration::from_millis(5);
/// Most bytes that an attacker sends on a connection.
const BYTES_MAX: usize = 4 << 20;
/// Half-open connections held at a time.
const HELD: usize = 500;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// `:method GET`, `:scheme http`, `:path /`, `:authority a`.
const FIELDS: &[u8] = b"\x82\x86\x84\x41\x01a";

/// An attack.
struct Attack {
    name: &'static str,
    over: Over,
}

/// Transport of an attack.
#[derive(Clone, Copy)]
enum Over {
    /// A connection of HTTP/2: the bytes after the preface, piece by piece; the argument counts the
    /// pieces.
    Http2(fn(u32) -> Vec<u8>),
    /// Connections that begin a handshake and close.
    HalfHandshakes,
    /// Connections that begin a handshake and stay open.
    SlowHandshakes,
    /// Datagrams of noise.
    Datagrams,
}

const ATTACKS: [Attack; 8] = [
    Attack { name: "rapid reset", over: Over::Http2(rapid_reset) },
    Attack { name: "resets provoked", over: Over::Http2(provoked_reset) },
    Attack { name: "CONTINUATION without end", over: Over::Http2(continuation) },
    Attack { name: "SETTINGS", over: Over::Http2(|_| frame(4, 0, 0, b"")) },
    Attack { name: "PING", over: Over::Http2(|_| frame(6, 0, 0, &[7; 8])) },
    Attack { name: "handshakes begun", over: Over::HalfHandshakes },
    Attack { name: "handshakes in slow motion", over: Over::SlowHandshakes },
    Attack { name: "datagrams from nowhere", over: Over::Datagrams },
];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

fn rapid_reset(number: u32) -> Vec<u8> {
    let stream = 2 * number + 1;
    [frame(1, 5, stream, FIELDS), frame(3, 0, stream, &[0, 0, 0, 8])].concat()
}

fn provoked_reset(number: u32) -> Vec<u8> {
    let stream = 2 * number + 1;
    [frame(1, 5, stream, FIELDS), frame(8, 0, stream, &[0; 4])].concat()
}

fn continuation(number: u32) -> Vec<u8> {
    if number == 0 { frame(1, 1, 1, FIELDS) } else { frame(9, 0, 1, b"") }
}

/// Runs the task.
pub fn main(arguments: &[String]) -> Result<(), String> {
    if !arguments.iter().any(|argument| argument == "--as-built") {
        place::build()?;
    }
    let seconds: f64 = crate::task::number(arguments, "--seconds", 3.0)?;
    let (server_core, load_core) = place::cores();
    let folder = place::folder()?;
    let certificates = Certificates::make(folder.path())?;
    let (_origin, origin_port) = origin(folder.path(), server_core)?;
    let door = Door::open(Peer::Copal, origin_port, folder.path(), &certificates, server_core)?;
    place::pin(load_core)?;
    println!(
        "| attack | p99 before, µs | p99 under it, µs | times | connections lost | resident before, MiB | after |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for attack in &ATTACKS {
        let mebibytes = || crate::process::memory_bytes(&door.pids()) as f64 / f64::from(1 << 20);
        let resident = mebibytes();
        let before = calm(door.clear, seconds)?;
        let (stop, lost) = (AtomicBool::new(false), AtomicU64::new(0));
        let during = std::thread::scope(|scope| {
            scope.spawn(|| {
                give_way();
                attack.run(&door, &stop, &lost);
            });
            std::thread::sleep(Duration::from_millis(200));
            let during = calm(door.clear, seconds);
            stop.store(true, Ordering::Relaxed);
            during
        })?;
        println!(
            "| {} | {before:.0} | {during:.0} | {:.2} | {} | {resident:.1} | {:.1} |",
            attack.name,
            during / before,
            lost.load(Ordering::Relaxed),
            mebibytes()
        );
    }
    Ok(())
}

/// Lets this thread run only while no other needs its core: the calm client must wait for the
/// server only, not for the attacker on its core. Without `chrt` the figures are too high.
fn give_way() {
    let thread = nix::unistd::gettid().to_string();
    let done = std::process::Command::new("chrt").args(["--idle", "-p", "0", &thread]).status();
    if !done.is_ok_and(|status| status.success()) {
        println!("(no chrt: the attacker takes time from the calm client)");
    }
}

/// A thousand hits a second over one connection. Returns the 99th percentile of their latency, in
/// microseconds.
fn calm(port: u16, seconds: f64) -> Result<f64, String> {
    let pace = Pace::Open { per_second: 1_000.0, burst: 1 };
    let plan = lasting(Plan { pace, ..hits("/b0", 1) }, seconds);
    let measured = measure(&plan, port, &[])?;
    if measured.errors > 0 { Err(format!("the calm client: {:?}", measured.notes)) } else { Ok(measured.p99) }
}

impl Attack {
    fn run(&self, door: &Door, stop: &AtomicBool, lost: &AtomicU64) {
        let mut held = Vec::new();
        let noise: Vec<u8> = (0..1200u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8 | 0xc0).collect();
        let socket = UdpSocket::bind("127.0.0.1:0");
        while !stop.load(Ordering::Relaxed) {
            match self.over {
                Over::Http2(piece) => flood(piece, door.clear, stop, lost),
                Over::HalfHandshakes => drop(begin_handshake(door.ecdsa)),
                Over::SlowHandshakes => {
                    held.extend(begin_handshake(door.ecdsa));
                    if held.len() > HELD {
                        held.remove(0);
                    }
                }
                Over::Datagrams => {
                    let Ok(socket) = &socket else { return };
                    for _ in 0..100 {
                        let _ = socket.send_to(&noise, ("127.0.0.1", door.ecdsa));
                    }
                }
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Sends on one connection of HTTP/2 until the server closes it.
fn flood(piece: fn(u32) -> Vec<u8>, port: u16, stop: &AtomicBool, lost: &AtomicU64) {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return };
    let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
    let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
    let mut sent = 0;
    let mut number = 0;
    let mut bytes = PREFACE.to_vec();
    while sent < BYTES_MAX && !stop.load(Ordering::Relaxed) {
        while bytes.len() < 8 << 10 {
            bytes.extend(piece(number));
            number += 1;
        }
        if stream.write_all(&bytes).is_err() {
            break;
        }
        sent += bytes.len();
        bytes.clear();
    }
    let _ = stream.shutdown(std::net::Shutdown::Write);
    if sent < BYTES_MAX {
        lost.fetch_add(1, Ordering::Relaxed);
    }
}

/// The beginning of a ClientHello whose rest is never sent.
fn begin_handshake(port: u16) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(&[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, 9, 9]).ok()?;
    Some(stream)
}
