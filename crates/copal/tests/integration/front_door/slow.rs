//! Slow peers at the front door: a slow request delays no other one of its connection, clients that
//! do not read cost a named amount, and handshakes that never end do not occupy descriptors for
//! long.

use super::*;
use crate::daemon::{Origin, copal, eventually, ok};
use crate::memory::resident_bytes;
use ::http2::frame::{FrameHead, PREFACE, flag, kind};
use nix::sys::socket::{setsockopt, sockopt::RcvBuf};
use secured::Secured;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::sync::{Arc, Condvar, Mutex};
use surface::limits::{H2_QUEUED_BYTES_MAX, REQUEST_BASE_BYTES, TLS_SEND_AHEAD_BYTES};
use tokio::net::TcpStream as AsyncTcpStream;

/// A gate that a test opens.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn pass(&self) {
        drop(self.opened.wait_while(self.is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
    }
}

#[test]
fn of_a_hundred_streams_those_that_need_not_wait_do_not() {
    let gate = Arc::new(Gate::default());
    let waiting = Arc::clone(&gate);
    let origin = Origin::start(move |head| {
        if head.starts_with("GET /slow ") {
            waiting.pass();
        }
        ok("", &"x".repeat(30_000))
    });
    let door = Door::open(origin.port, &[]);
    let config = door.client_config("h2");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = AsyncTcpStream::connect(("127.0.0.1", door.port)).await.unwrap();
        let name = rustls::pki_types::ServerName::try_from(NAMES[0]).unwrap();
        let stream = tokio_rustls::TlsConnector::from(config).connect(name, stream).await.unwrap();
        let (sender, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let ask = |path: String| {
            let sender = sender.clone();
            tokio::spawn(async move {
                let request = http::Request::get(format!("https://{}{path}", NAMES[0])).body(()).unwrap();
                let mut stream = sender.ready().await.unwrap().send_request(request, true).unwrap().0.await.unwrap();
                let mut bytes = 0;
                while let Some(piece) = stream.body_mut().data().await {
                    let count = piece.unwrap().len();
                    stream.body_mut().flow_control().release_capacity(count).unwrap();
                    bytes += count;
                }
                bytes
            })
        };
        let slow = ask("/slow".to_owned());
        let others: Vec<_> = (0..99).map(|number| ask(format!("/{number}"))).collect();
        for other in others {
            let bytes = tokio::time::timeout(crate::daemon::HANG, other).await.expect("none waits").unwrap();
            assert_eq!(bytes, 30_000);
        }
        assert!(!slow.is_finished(), "nobody has let it through");
        gate.open();
        assert_eq!(slow.await.unwrap(), 30_000);
    });
    assert_eq!((origin.count(), door.daemon.counter_reaching("MAIN.sess_conn", 1)), (100, 1));
}

/// Length of the body that is not read.
const BODY_BYTES: usize = 50 << 20;
/// Number of clients that do not read.
const CLIENTS: usize = 40;
/// Number of streams of each, with HTTP/2.
const STREAMS: usize = 5;
/// Additional memory that the process may use, for threads, heaps and reserves.
const SLACK_BYTES: usize = 12 << 20;
const _: () = assert!(CLIENTS * BODY_BYTES > 20 * SLACK_BYTES, "it would show");
/// Memory of a TLS connection: the session of rustls, and a record on its way in and out.
const SESSION_BYTES: usize = 64 << 10;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let head = FrameHead { payload_bytes: payload.len() as u32, kind, flags, stream };
    [&head.to_bytes()[..], payload].concat()
}

/// Bytes of a client whose windows are fully open, and which requests `GET https://h/` [`STREAMS`]
/// times.
fn all_windows_open() -> Vec<u8> {
    let most = i32::MAX as u32;
    let settings = [&[0, 4][..], &most.to_be_bytes()].concat();
    let window = (most - 65_535).to_be_bytes();
    let mut said = PREFACE.to_vec();
    said.extend(frame(kind::SETTINGS, 0, 0, &settings));
    said.extend(frame(kind::WINDOW_UPDATE, 0, 0, &window));
    for number in 0..STREAMS as u32 {
        let get = [0x82, 0x84, 0x87, 0x41, 1, b'h'];
        said.extend(frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 2 * number + 1, &get));
    }
    said
}

/// A client that reads the beginning of the response, and no more.
fn slow_client(door: &Door, protocol: &str, said: &[u8]) -> Secured {
    let mut client = door.secured(&door.client_config(protocol)).unwrap();
    // So that the system buffers little; its buffers are not the worker's memory.
    setsockopt(&client.sock, RcvBuf, &(32 << 10)).unwrap();
    client.write_all(said).unwrap();
    client.read_exact(&mut [0; 4096]).unwrap();
    client
}

#[test]
fn clients_that_do_not_read_over_tls_and_http2_take_a_named_amount_each() {
    let body = "x".repeat(BODY_BYTES);
    let origin = Origin::start(move |_| ok("Cache-Control: max-age=600\r\n", &body));
    let door = Door::open(origin.port, &["-s", "malloc,96m"]);
    assert_eq!(door.daemon.get("/").body.len(), BODY_BYTES);
    let worker = door.daemon.worker();
    let http1 = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".to_vec();
    let windows = all_windows_open();
    let secured = SESSION_BYTES + TLS_SEND_AHEAD_BYTES;
    for (protocol, said, each) in [
        ("http/1.1", http1, REQUEST_BASE_BYTES + secured),
        ("h2", windows, STREAMS * REQUEST_BASE_BYTES + H2_QUEUED_BYTES_MAX + secured),
    ] {
        let before = resident_bytes(worker);
        let clients: Vec<_> = (0..CLIENTS).map(|_| slow_client(&door, protocol, &said)).collect();
        eventually("they are as far as they get", || {
            let moved = resident_bytes(worker);
            std::thread::park_timeout(std::time::Duration::from_millis(200));
            (resident_bytes(worker) == moved).then_some(())
        });
        let taken = resident_bytes(worker).saturating_sub(before);
        println!("{protocol}: {taken} bytes for {CLIENTS} clients, {} each; allowed {each}", taken / CLIENTS);
        assert!(taken <= CLIENTS * each + SLACK_BYTES, "{protocol}: {taken} bytes for {CLIENTS} clients at {each}");
        drop(clients);
        eventually("nothing is held", || (door.daemon.counter("MAIN.req_bytes") == 0).then_some(()));
    }
    assert_eq!((door.daemon.worker(), origin.count()), (worker, 1));
}

#[test]
fn handshakes_that_take_all_descriptors_leave_others_their_connections_and_end() {
    let origin = Origin::start(|_| ok("Cache-Control: max-age=600\r\n", "x"));
    let backend = format!("127.0.0.1:{}", origin.port);
    let door = Door::start("https", |_, listener| {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n 64 && exec \"$@\"", "sh"]).arg(copal()).arg("daemon").arg0("sh");
        let more = ["-p", "event_loops=1", "-p", "timeout_idle=600", "-p", "tls_handshake_timeout=5"];
        Daemon::start_by(command, &[&["-b", &backend, "-a", listener], &more[..]].concat())
    });
    let config = door.client_config("http/1.1");
    let mut early = door.secured(&config).unwrap();
    let mut ask = move || {
        early.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut received = Vec::new();
        while !received.ends_with(b"\r\n\r\nx") {
            let mut byte = [0];
            early.read_exact(&mut byte).unwrap();
            received.push(byte[0]);
        }
        assert!(received.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&received));
    };
    ask();
    let mut halves: Vec<TcpStream> = Vec::new();
    // An incomplete ClientHello, which keeps the daemon waiting.
    halves.extend((0..100).map(|_| {
        let mut half = TcpStream::connect(("127.0.0.1", door.port)).unwrap();
        half.write_all(&[22, 3, 1, 1, 0, 1]).unwrap();
        half
    }));
    eventually("it is said", || {
        ask();
        door.daemon.said().contains("Out of file descriptors").then_some(())
    });
    // Waiting handshakes take turns, and each is given up; then a real client gets through.
    let answer = eventually("a handshake has its turn", || {
        let mut late = door.secured(&config).ok()?;
        late.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        late.read_to_string(&mut answer).ok()?;
        Some(answer)
    });
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    ask();
    door.daemon.counter_reaching("MAIN.sess_fail_emfile", 1);
    eventually("they are given up", || (door.daemon.counter("MAIN.tls_failed") >= 100).then_some(()));
    drop(halves);
    assert_eq!(door.daemon.said().matches("Out of file descriptors").count(), 1, "{}", door.daemon.said());
}
