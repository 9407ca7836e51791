//! Memory of a worker for clients that do not read, and its return to the system: measured on the
//! process.

use crate::daemon::{Daemon, eventually};
use nix::sys::socket::{setsockopt, sockopt::RcvBuf};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use surface::limits::{FILTER_STEP_BYTES_MAX, GUNZIP_STATE_BYTES, PASS_IN_FLIGHT_BYTES_MAX, REQUEST_BASE_BYTES};

/// Length of every body: zeros, so that gzipped it is a bomb.
const BODY_BYTES: usize = 50 << 20;
/// Number of clients that do not read.
const CLIENTS: usize = 200;
/// Additional memory that the process may use, for threads, heaps and reserves.
const SLACK_BYTES: usize = 12 << 20;
/// Memory for an origin connection and its read buffer.
const FETCH_BYTES: usize = 64 << 10;

/// An origin that writes [`BODY_BYTES`] as fast as they are read.
fn origin() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    port
}

fn serve(mut stream: TcpStream) {
    let block = vec![0; 64 << 10];
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        received.extend_from_slice(&buffer[..count]);
        if !received.windows(4).any(|four| four == b"\r\n\r\n") {
            continue;
        }
        if received.starts_with(b"POST") {
            // Neither read nor closed: bytes beyond those in transit stay at the sender.
            std::mem::forget(stream);
            return;
        }
        received.clear();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
        let mut written = stream.write_all(head.as_bytes());
        for _ in 0..BODY_BYTES / block.len() {
            written = written.and_then(|()| stream.write_all(&block));
        }
        if written.is_err() {
            return;
        }
    }
}

const VCL: &str = "vcl 4.1; backend b { .host = \"127.0.0.1\"; .port = \"@PORT@\"; }
    sub vcl_recv {
        if (req.method == \"POST\") { set req.filters = \"gunzip\"; return (pass); }
        if (req.url == \"/pass\") { return (pass); }
    }
    sub vcl_backend_response { set beresp.ttl = 1h; set beresp.do_gzip = bereq.url == \"/bomb\"; }";

/// Private memory of the worker that is resident, in bytes.
pub fn resident_bytes(worker: i32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{worker}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

/// A client that reads the beginning of a response and no more.
fn slow_client(daemon: &Daemon, path: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", daemon.port)).unwrap();
    // So that the system buffers little; its buffers are not the worker's memory.
    setsockopt(&stream, RcvBuf, &(32 << 10)).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).unwrap();
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).unwrap();
    (stream, String::from_utf8_lossy(&begin).into_owned())
}

#[test]
fn clients_that_do_not_read_take_a_named_amount_each_and_it_is_given_back() {
    let daemon = Daemon::with_vcl(VCL, origin(), &["-s", "malloc,96m"]);
    let worker = daemon.worker();
    let gzipped = "GET /bomb HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n";
    assert!(daemon.request(gzipped).body.len() < BODY_BYTES / 500);
    assert_eq!(daemon.get("/stored").body.len(), BODY_BYTES);
    let delivery = GUNZIP_STATE_BYTES + FILTER_STEP_BYTES_MAX;
    let before = resident_bytes(worker);
    for (path, each) in [
        ("/stored", REQUEST_BASE_BYTES),
        ("/bomb", REQUEST_BASE_BYTES + delivery),
        ("/pass", 2 * REQUEST_BASE_BYTES + FETCH_BYTES + PASS_IN_FLIGHT_BYTES_MAX),
    ] {
        let clients: Vec<_> = (0..CLIENTS).map(|_| slow_client(&daemon, path)).collect();
        assert!(clients.iter().all(|(_, status)| status == "HTTP/1.1 200"));
        // All of them hold their maximum, or nearly.
        eventually("every client has its share", || {
            (daemon.counter("MAIN.req_bytes") as usize > CLIENTS * each * 9 / 10).then_some(())
        });
        if path != "/pass" {
            // Objects that the first of them had fetched anew take memory of their own, for a
            // while.
            eventually("no fetch is under way", || (daemon.counter("MEMPOOL.busyobj.live") == 0).then_some(()));
        }
        let held = daemon.counter("MAIN.req_bytes") as usize;
        assert!(held <= CLIENTS * each + REQUEST_BASE_BYTES, "{path}: {held} bytes for {CLIENTS} clients at {each}");
        let taken = resident_bytes(worker).saturating_sub(before);
        assert!(taken <= CLIENTS * each + SLACK_BYTES, "{path}: {taken} bytes for {CLIENTS} clients");
        drop(clients);
        eventually("nothing is held", || (daemon.counter("MAIN.req_bytes") == 0).then_some(()));
    }
    let of_passes = CLIENTS * PASS_IN_FLIGHT_BYTES_MAX;
    assert!(of_passes > 3 * SLACK_BYTES, "it shows whether memory comes back");
    eventually("memory comes back", || (resident_bytes(worker) < before + SLACK_BYTES).then_some(()));
    assert_eq!(daemon.counter("MAIN.req_refused"), 0);
}

#[test]
fn bodies_of_requests_that_inflate_wait_for_an_origin_that_does_not_read() {
    const POSTS: usize = 20;
    let daemon = Daemon::with_vcl(VCL, origin(), &["-s", "malloc,96m"]);
    let worker = daemon.worker();
    let gzipped = "GET /bomb HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n";
    let bomb = daemon.request(gzipped).body;
    let before = resident_bytes(worker);
    let head =
        format!("POST /post HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", bomb.len());
    let clients: Vec<_> = (0..POSTS)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", daemon.port)).unwrap();
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(&bomb).unwrap();
            stream
        })
        .collect();
    let filter = GUNZIP_STATE_BYTES + 2 * FILTER_STEP_BYTES_MAX;
    let each = 2 * REQUEST_BASE_BYTES + filter + FETCH_BYTES;
    eventually("every body is on its way", || {
        (daemon.counter("MAIN.req_bytes") as usize >= POSTS * (2 * REQUEST_BASE_BYTES + filter)).then_some(())
    });
    eventually("they are as far as they get", || {
        let moved = resident_bytes(worker);
        std::thread::park_timeout(std::time::Duration::from_millis(200));
        (resident_bytes(worker) == moved).then_some(())
    });
    let taken = resident_bytes(worker).saturating_sub(before);
    assert!(taken <= POSTS * each + SLACK_BYTES, "{taken} bytes for {POSTS} clients");
    drop(clients);
}

#[test]
fn clients_beyond_the_memory_limit_get_a_503_and_service_continues() {
    let daemon = Daemon::with_vcl(VCL, origin(), &["-s", "malloc,96m", "-p", "requests_memory_max=8M"]);
    let gzipped = "GET /bomb HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n";
    daemon.request(gzipped);
    let mut clients = Vec::new();
    while clients.len() < CLIENTS {
        let (stream, status) = slow_client(&daemon, "/bomb");
        if status == "HTTP/1.1 503" {
            break;
        }
        clients.push(stream);
    }
    let most = (8 << 20) / (REQUEST_BASE_BYTES + GUNZIP_STATE_BYTES + FILTER_STEP_BYTES_MAX);
    assert!(clients.len() > most / 2 && clients.len() <= most + 1, "{} of {most}", clients.len());
    eventually("it is counted", || (daemon.counter("MAIN.req_refused") >= 1).then_some(()));
    assert_eq!(daemon.request(gzipped).status, 200, "what needs no more than its base is served");
    let why = daemon.applet("why", &[]);
    let said = String::from_utf8_lossy(&why.stdout).into_owned() + &String::from_utf8_lossy(&why.stderr);
    assert!(said.contains("requests_memory_max"), "{said}");
    drop(clients);
    eventually("there is room again", || {
        let (_, status) = slow_client(&daemon, "/bomb");
        (status == "HTTP/1.1 200").then_some(())
    });
}
