//! Tests: requests over a Unix-domain socket, and the limits.

use super::*;
use crate::collector::Collector;
use crate::connection::Shared;
use shm::vsc::Publisher;
use shm::vsm::{VsmWriter, WORKER_DIRECTORY};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Instant;
use surface::counter::MEMPOOL;
use surface::limits::{OBSERVE_CONNECTIONS_MAX, OBSERVE_HEAD_BYTES_MAX, OBSERVE_SCRAPES_MAX, TEST_HANG_SECONDS};
use surface::metric::Abort;

const HANG: Duration = Duration::from_secs(TEST_HANG_SECONDS);
const SCRAPE: &str = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

/// A server for a test, which ends with it.
struct Running {
    folder: tempfile::TempDir,
    shared: Arc<Shared>,
    parent: Option<UnixStream>,
    thread: Option<thread::JoinHandle<io::Result<()>>>,
}

impl Running {
    /// A server with this time limit for a connection.
    fn new(limit: Duration) -> Running {
        let folder = tempfile::tempdir().unwrap();
        let listeners = Listener::bind(&format!("unix:{}", folder.path().join("socket").display())).unwrap();
        let shared = Arc::new(Shared::new(Collector::new(folder.path()), limit));
        let (parent, child) = UnixStream::pair().unwrap();
        let of_thread = Arc::clone(&shared);
        let thread = thread::spawn(move || serve(&listeners, &of_thread, &[child.as_fd()]));
        Running { folder, shared, parent: Some(parent), thread: Some(thread) }
    }

    /// The same with counters whose text fits in no socket's buffer.
    fn with_many_series(limit: Duration) -> Running {
        let running = Running::new(limit);
        let publisher = Publisher::new(&VsmWriter::create(&running.folder.path().join(WORKER_DIRECTORY)).unwrap(), 1);
        // Long names, so that few are enough.
        let name = |number: usize| format!("MEMPOOL.{number}{}", "x".repeat(200));
        let blocks: Vec<_> = (0..400).map(|number| publisher.publish(&MEMPOOL, &name(number)).unwrap()).collect();
        blocks.iter().for_each(|block| block.set_all(&[0; MEMPOOL.counters.len()]));
        running
    }

    fn connect(&self, request: &str) -> UnixStream {
        let mut stream = UnixStream::connect(self.folder.path().join("socket")).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn answer(&self, request: &str) -> String {
        read(self.connect(request))
    }

    fn eventually(&self, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + HANG;
        while !condition() {
            assert!(Instant::now() < deadline, "did not come about");
            thread::yield_now();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The server ends with its parent.
        drop(self.parent.take());
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

fn read(mut stream: UnixStream) -> String {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn length(answer: &str) -> usize {
    let line = answer.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    line.unwrap_or_else(|| panic!("{answer}")).parse().unwrap()
}

#[test]
fn each_path_has_its_answer() {
    let server = Running::new(HANG);
    for (request, status, text) in [
        (SCRAPE, "200 OK", "copal_worker_up 0\n"),
        ("GET /metrics?scope=cache HTTP/1.0\n\n", "200 OK", "Content-Length: 0\r\n"),
        ("GET /metrics?scope=x HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request", "there are process, listener"),
        ("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK", "ok\n"),
        ("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n", "503 Service Unavailable", "no worker serves\n"),
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "404 Not Found", "/metrics"),
        ("PUT /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx", "404 Not Found", "/metrics"),
        ("GET /metrics\r\n\r\n", "400 Bad Request", ""),
        ("\u{1}\r\n\r\n", "400 Bad Request", ""),
    ] {
        let answer = server.answer(request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{request}: {answer}");
        assert!(answer.contains(text), "{request}: {answer}");
    }
    // Counted after the client has seen the end.
    server.eventually(|| server.shared.totals.aborts(Abort::Request) == 2);
    assert_eq!(server.shared.totals.aborts(Abort::Busy), 0);
}

#[test]
fn head_has_the_length_of_the_body_and_no_body() {
    let server = Running::new(HANG);
    let whole = server.answer(SCRAPE);
    let head = server.answer(&SCRAPE.replace("GET", "HEAD"));
    let (fields, body) = whole.split_once("\r\n\r\n").unwrap();
    assert_eq!(length(fields), body.len());
    assert_eq!(head.split_once("\r\n\r\n").unwrap().1, "");
    assert!(length(&head) > 0, "{head}");
}

#[test]
fn format_and_coding_follow_the_request() {
    let server = Running::new(HANG);
    let open = server.answer(&SCRAPE.replace("Host: x", "Host: x\r\nAccept: application/openmetrics-text"));
    assert!(open.contains("Content-Type: application/openmetrics-text; version=1.0.0"), "{open}");
    assert!(open.ends_with("# EOF\n"), "{open}");
    let mut stream = server.connect(&SCRAPE.replace("Host: x", "Host: x\r\nAccept-Encoding: gzip"));
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    assert!(String::from_utf8_lossy(&answer[..end]).contains("\r\nContent-Encoding: gzip\r\n"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(&answer[end..]).read_to_string(&mut text).unwrap();
    assert!(text.starts_with("# TYPE copal_build_info gauge\n"), "{text}");
}

#[test]
fn head_that_arrives_byte_by_byte_is_read_and_one_without_end_is_refused() {
    let server = Running::new(HANG);
    let mut stream = server.connect("");
    for byte in SCRAPE.bytes() {
        stream.write_all(&[byte]).unwrap();
    }
    assert!(read(stream).starts_with("HTTP/1.1 200 "));
    let mut stream = server.connect("GET /metrics HTTP/1.1\r\nX: ");
    // The server may close before it has read everything.
    let _ = stream.write_all(&vec![b'a'; OBSERVE_HEAD_BYTES_MAX]);
    let answer = read(stream);
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[test]
fn client_that_does_not_read_is_cut() {
    let server = Running::with_many_series(Duration::from_millis(200));
    let stream = server.connect(SCRAPE);
    server.eventually(|| server.shared.totals.aborts(Abort::Timeout) == 1);
    let answer = read(stream);
    let (fields, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(body.len() < length(fields), "{} of {}", body.len(), length(fields));
}

#[test]
fn client_that_sends_nothing_is_cut() {
    let server = Running::new(Duration::from_millis(200));
    assert_eq!(read(server.connect("GET /met")), "");
    server.eventually(|| server.shared.totals.aborts(Abort::Timeout) == 1);
}

#[test]
fn scrapes_and_connections_are_limited() {
    let server = Running::with_many_series(HANG);
    let scrapes: Vec<_> = (0..OBSERVE_SCRAPES_MAX).map(|_| server.connect(SCRAPE)).collect();
    server.eventually(|| server.shared.totals.scrapes() == OBSERVE_SCRAPES_MAX as u64);
    let refused = server.answer(SCRAPE);
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("\r\nRetry-After: 1\r\n"), "{refused}");
    assert!(server.answer("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 200 "));
    // The rest of the connections, which send nothing, and one more.
    let _silent: Vec<_> = (OBSERVE_SCRAPES_MAX..OBSERVE_CONNECTIONS_MAX).map(|_| server.connect("")).collect();
    server.eventually(|| server.answer("").starts_with("HTTP/1.1 503 "));
    // A place is free again after the end of a scrape.
    scrapes.into_iter().for_each(|stream| drop(read(stream)));
    server.eventually(|| server.answer(SCRAPE).starts_with("HTTP/1.1 200 "));
    assert!(server.shared.totals.aborts(Abort::Busy) >= 2);
}
