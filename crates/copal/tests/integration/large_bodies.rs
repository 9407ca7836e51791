//! A chunked body larger than the storage, through the real daemon: every client gets every byte,
//! and no other objects are lost.

use crate::daemon::{Answer, Daemon, HANG, eventually, exchange};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

const LARGE_BYTES: usize = 30 << 20;
const PAGES: usize = 50;

/// Bytes that differ at every place.
fn body() -> Vec<u8> {
    (0..LARGE_BYTES / 8).flat_map(|word| (word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect()
}

/// Responds to `/large` with that body, chunked, and to everything else with a page; one thread per
/// connection, until the test ends.
fn origin() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || serve(stream));
        }
    });
    port
}

fn serve(stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|count| count > 0) {
        let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
        while line.trim() != "" {
            line.clear();
            if reader.read_line(&mut line).is_err() {
                return;
            }
        }
        line.clear();
        let sent = if target == "/large" {
            send_large(&mut stream)
        } else {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        };
        if sent.is_err() {
            return;
        }
    }
}

fn send_large(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
    for piece in body().chunks(50_000) {
        stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes())?;
        stream.write_all(piece)?;
        stream.write_all(b"\r\n")?;
    }
    stream.write_all(b"0\r\n\r\n")
}

const REQUEST: &[u8] = b"GET /large HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n";

fn expect_pages(daemon: &Daemon) {
    for page in 0..PAGES {
        assert!(daemon.get(&format!("/page{page}")).is_hit(), "page {page} has gone");
    }
}

#[test]
fn chunked_body_larger_than_the_storage_reaches_every_client_and_evicts_nothing() {
    let daemon = Daemon::in_front_of(origin(), &["-s", "malloc,8m"]);
    for page in 0..PAGES {
        daemon.get(&format!("/page{page}"));
    }
    let wanted = body();
    // The slow client reads in small pieces; the fast ones run meanwhile.
    let mut slow = TcpStream::connect(("127.0.0.1", daemon.port)).unwrap();
    slow.set_read_timeout(Some(HANG)).unwrap();
    slow.write_all(REQUEST).unwrap();
    let mut received = vec![0; 100_000];
    slow.read_exact(&mut received).unwrap();
    let port = daemon.port;
    let fast: Vec<_> = (0..3).map(|_| std::thread::spawn(move || Answer::parse(&exchange(port, REQUEST)))).collect();
    let mut piece = vec![0; 64 << 10];
    loop {
        let count = slow.read(&mut piece).unwrap();
        received.extend_from_slice(&piece[..count]);
        if count == 0 {
            break;
        }
    }
    assert!(Answer::parse(&received).body == wanted, "the slow one");
    for fast in fast {
        let answer = fast.join().unwrap();
        assert!(answer.status == 200 && answer.body == wanted, "a fast one, {} bytes", answer.body.len());
    }
    let again = Answer::parse(&exchange(port, REQUEST));
    assert!(again.body == wanted && !again.is_hit());
    daemon.counter_reaching("MAIN.cache_hitmiss", 1);
    assert_eq!(daemon.counter("MAIN.n_lru_nuked"), 0);
    expect_pages(&daemon);
    let log = daemon.applet("log", &["-d", "-g", "raw", "-i", "Witness"]);
    assert!(String::from_utf8_lossy(&log.stdout).contains("why not-stored-too-large"));
}

#[test]
fn worker_killed_while_such_a_body_passes_leaves_nothing_of_it_and_all_the_rest() {
    let daemon = Daemon::in_front_of(origin(), &["-s", "malloc,8m"]);
    for page in 0..PAGES {
        daemon.get(&format!("/page{page}"));
    }
    let mut half = TcpStream::connect(("127.0.0.1", daemon.port)).unwrap();
    half.set_read_timeout(Some(HANG)).unwrap();
    half.write_all(REQUEST).unwrap();
    // Far more than the storage can hold.
    let mut received = vec![0; 10 << 20];
    half.read_exact(&mut received).unwrap();
    let worker = daemon.worker();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(worker), nix::sys::signal::Signal::SIGKILL).unwrap();
    eventually("the next worker serves", || {
        std::thread::park_timeout(Duration::from_millis(20));
        let mut stream = TcpStream::connect(("127.0.0.1", daemon.port)).ok()?;
        stream.set_read_timeout(Some(HANG)).ok()?;
        stream.write_all(b"GET /page0 HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n").ok()?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).ok()?;
        bytes.starts_with(b"HTTP/1.1 200").then_some(())
    });
    expect_pages(&daemon);
    let answer = Answer::parse(&exchange(daemon.port, REQUEST));
    assert!(answer.body == body());
    expect_pages(&daemon);
}
