//! Bodies in a file, delivered to real clients over HTTP/1, HTTP/2 and HTTP/3: ranges, conditions,
//! slow readers, bodies that are damaged or truncated on the disk, and bodies that are still being
//! received.

use crate::daemon::{Daemon, HANG, Origin, eventually, exchange, needs};
use crate::file_storage::{Disk, length_of, origin, text_of};
use crate::http3::{Site, run};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

/// Received bytes, and true if the body is complete.
#[derive(Debug, PartialEq)]
struct Received {
    status: u16,
    body: Vec<u8>,
    is_whole: bool,
}

/// A client.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// HTTP/1 without TLS.
    Plain,
    /// curl with this option over TLS.
    Curl(&'static str),
    /// nghttp over TLS.
    Nghttp,
    /// h3 on quinn.
    Http3,
}

const WAYS: [Way; 5] = [Way::Plain, Way::Curl("--http1.1"), Way::Curl("--http2"), Way::Nghttp, Way::Http3];

/// `None` if the client is not installed.
fn fetch(site: &Site, way: Way, path: &str, fields: &[(&str, &str)]) -> Option<Received> {
    let url = format!("https://localhost:{}{path}", site.address.port());
    match way {
        Way::Plain => {
            let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n");
            let bytes = exchange(site.daemon.port, request.as_bytes());
            let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let body = bytes[end + 4..].to_vec();
            let announced = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse::<usize>().ok());
            let is_whole = announced.is_none_or(|length| length == body.len());
            Some(Received { status: head[9..12].parse().unwrap(), body, is_whole })
        }
        Way::Curl(version) => {
            let folder = tempfile::tempdir().unwrap();
            let body = folder.path().join("body");
            let mut command = Command::new(needs("curl")?);
            command.args([version, "-s", "-k", "--max-time", "60", "-w", "%{http_code}", "-o"]).arg(&body);
            fields.iter().for_each(|(name, value)| _ = command.args(["-H", &format!("{name}: {value}")]));
            let output = command.arg(url).output().unwrap();
            let status = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
            let body = std::fs::read(body).unwrap_or_default();
            Some(Received { status, body, is_whole: output.status.success() })
        }
        Way::Nghttp => {
            let mut command = Command::new(needs("nghttp")?);
            command.args(["-y", "-t", "60"]);
            fields.iter().for_each(|(name, value)| _ = command.args(["-H", &format!("{name}: {value}")]));
            let body = command.arg(&url).output().unwrap().stdout;
            // It prints bodies alone; the frames show the result.
            let frames = command.args(["-n", "-v"]).output().unwrap().stdout;
            let frames = String::from_utf8_lossy(&frames).into_owned();
            let status = frames.split(":status: ").nth(1).and_then(|rest| rest.get(..3)?.parse().ok()).unwrap_or(0);
            let is_whole = !frames.contains("recv RST_STREAM");
            Some(Received { status, body, is_whole })
        }
        Way::Http3 => {
            let mut received = None;
            run(async {
                let (status, body, is_whole) = site.client().await.get_with(path, fields).await;
                received = Some(Received { status, body, is_whole });
            });
            received
        }
    }
}

fn start(origin: &Origin, disk: &Disk) -> Site {
    let site = Site::start(origin, &["-s", &disk.argument(), "-p", "feature=+http2"]);
    // Each client has another name for it.
    let vcl = format!(
        "vcl 4.1; backend default {{ .host = \"127.0.0.1\"; .port = \"{}\"; }} sub vcl_recv {{ set req.http.Host = \"one\"; }}",
        origin.port
    );
    let path = disk.path().with_file_name("one.vcl");
    std::fs::write(&path, vcl).unwrap();
    for words in [&["vcl.load", "one", path.to_str().unwrap()][..], &["vcl.use", "one"]] {
        let (is_done, text) = site.daemon.cli(words);
        assert!(is_done, "{text}");
    }
    site
}

/// Stores a body in the file.
fn file(site: &Site, path: &str) {
    let before = site.daemon.counter("SMF.s0.stored_bytes");
    assert_eq!(site.daemon.get(path).text(), text_of(path, length_of(path)));
    site.daemon.counter_reaching("SMF.s0.stored_bytes", before + length_of(path) as u64);
}

#[test]
fn ranges_and_conditions_are_served_from_a_file_to_every_client() {
    let (origin, disk) = (origin(), Disk::new());
    let site = start(&origin, &disk);
    let path = "/whole/700000";
    file(&site, path);
    let whole = text_of(path, 700_000).into_bytes();
    for way in WAYS {
        let ask = |fields: &[(&str, &str)], status: u16, body: &[u8]| {
            let Some(received) = fetch(&site, way, path, fields) else { return };
            let is_right = received.body == body && received.is_whole && received.status == status;
            assert!(is_right, "{way:?} {fields:?}: {} {} bytes", received.status, received.body.len());
        };
        ask(&[], 200, &whole);
        ask(&[("Range", "bytes=65530-131080")], 206, &whole[65_530..=131_080]);
        ask(&[("Range", "bytes=-5")], 206, &whole[699_995..]);
        ask(&[("Range", "bytes=1-1"), ("If-Range", "\"tag\"")], 206, &whole[1..2]);
        ask(&[("Range", "bytes=1-1"), ("If-Range", "\"other\"")], 200, &whole);
        ask(&[("If-None-Match", "\"tag\"")], 304, b"");
        ask(&[("If-None-Match", "\"other\"")], 200, &whole);
    }
    assert_eq!(origin.count(), 1);
    assert_eq!(site.daemon.counter("SMF.s0.read_errors"), 0);
}

/// Checks that a damaged body is never delivered wrong, and is fetched anew.
fn harmed(harm: impl Fn(&Disk, &str)) {
    let (origin, disk) = (origin(), Disk::new());
    let site = start(&origin, &disk);
    for (number, way) in WAYS.into_iter().enumerate() {
        for fields in [&[][..], &[("Range", "bytes=1000-250000")]] {
            let path = format!("/harmed-{number}-{}/300000", fields.len());
            file(&site, &path);
            let whole = text_of(&path, 300_000).into_bytes();
            let wanted = if fields.is_empty() { &whole[..] } else { &whole[1000..=250_000] };
            harm(&disk, &path);
            let (asked, errors) = (origin.count(), site.daemon.counter("SMF.s0.read_errors"));
            let Some(received) = fetch(&site, way, &path, fields) else { continue };
            let is_prefix = wanted.starts_with(&received.body);
            assert!(is_prefix, "{way:?} {fields:?}: {} bytes, some wrong", received.body.len());
            // nghttp requests it twice: the second time it is fetched anew.
            let is_short = received.body.len() < wanted.len();
            assert!(
                is_short && (!received.is_whole || matches!(way, Way::Nghttp)) || origin.count() > asked,
                "{way:?}"
            );
            let again = site.daemon.get(&path);
            assert!(again.text().as_bytes() == whole, "{way:?} {fields:?}: fetched anew");
            assert_eq!(origin.count(), asked + 1, "{way:?} {fields:?}");
            assert!(site.daemon.get(&path).is_hit());
            site.daemon.counter_reaching("SMF.s0.read_errors", errors + 1);
        }
    }
}

/// Offset of a line of a body in the file.
fn find(disk: &Disk, path: &str, line: usize) -> u64 {
    let text = format!("line {line} of {path}\n");
    let bytes = std::fs::read(disk.path()).unwrap();
    let found = bytes.windows(text.len()).position(|window| window == text.as_bytes());
    found.expect("the body is in the file") as u64
}

#[test]
fn a_body_that_was_damaged_breaks_off_for_every_client() {
    harmed(|disk, path| {
        let at = find(disk, path, 6_000);
        std::fs::OpenOptions::new().write(true).open(disk.path()).unwrap().write_all_at(b"L", at).unwrap();
    });
}

#[test]
fn a_file_that_was_cut_short_breaks_off_for_every_client() {
    harmed(|disk, path| {
        let at = find(disk, path, 6_000);
        let file = std::fs::OpenOptions::new().write(true).open(disk.path()).unwrap();
        file.set_len(at).unwrap();
    });
}

#[test]
fn a_slow_reader_gets_right_bytes_until_there_are_none() {
    const LENGTH: usize = 24 << 20;
    let (origin, disk) = (origin(), Disk::new());
    let daemon = disk.start(&origin);
    let path = format!("/slow/{LENGTH}");
    let whole = text_of(&path, LENGTH).into_bytes();
    assert!(daemon.get(&path).body == whole);
    daemon.counter_reaching("SMF.s0.stored_bytes", LENGTH as u64);
    for is_damaged in [false, true] {
        let mut stream = TcpStream::connect(("127.0.0.1", daemon.port)).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n").unwrap();
        let mut received = vec![0; 100_000];
        stream.read_exact(&mut received).unwrap();
        if is_damaged {
            // More than all buffers on the way is still to come.
            let bytes = std::fs::read(disk.path()).unwrap();
            let last = &whole[LENGTH - 100..];
            let at = bytes.windows(100).position(|window| window == last).unwrap();
            let file = std::fs::OpenOptions::new().write(true).open(disk.path()).unwrap();
            file.write_all_at(b"!", at as u64).unwrap();
        }
        let _ = stream.read_to_end(&mut received);
        let body = &received[received.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4..];
        assert!(whole.starts_with(body) && (body.len() < LENGTH) == is_damaged, "{} bytes", body.len());
    }
    let answer = daemon.get(&path);
    assert!(!answer.is_hit() && answer.body == whole);
}

/// An origin that sends a half, and the rest on request.
fn halting(path: &'static str) -> (u16, Arc<AtomicBool>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (go_on, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (told, count) = (Arc::clone(&go_on), Arc::clone(&asked));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            count.fetch_add(1, SeqCst);
            let told = Arc::clone(&told);
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                let text = text_of(path, length_of(path));
                let (first, second) = text.split_at(text.len() / 2);
                let fields = "Cache-Control: max-age=6000\r\nETag: \"tag\"\r\nConnection: close\r\n";
                let _ = write!(stream, "HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n{first}", text.len());
                eventually("the rest is wanted", || told.load(SeqCst).then_some(()));
                let _ = stream.write_all(second.as_bytes());
            });
        }
    });
    (port, go_on, asked)
}

#[test]
fn a_body_that_is_still_coming_is_fetched_once_whatever_is_asked_of_it() {
    let path = "/coming/900000";
    let whole = text_of(path, 900_000).into_bytes();
    for is_file in [false, true] {
        let disk = Disk::new();
        let storage = if is_file { disk.argument() } else { "malloc,64m".to_owned() };
        let (port, go_on, asked) = halting(path);
        let daemon = Daemon::in_front_of(port, &["-s", &storage]);
        let ask = |fields: &str| {
            let mut stream = TcpStream::connect(("127.0.0.1", daemon.port)).unwrap();
            stream.set_read_timeout(Some(HANG)).unwrap();
            write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n").unwrap();
            stream
        };
        let first = ask("");
        eventually("it is asked for", || (asked.load(SeqCst) == 1).then_some(()));
        // The stored part is served before the rest has arrived.
        for (fields, status, body) in [
            ("Range: bytes=10-99\r\n", "206", &whole[10..100]),
            ("Range: bytes=200000-299999\r\n", "206", &whole[200_000..300_000]),
            ("If-None-Match: \"tag\"\r\n", "304", b""),
        ] {
            let mut received = Vec::new();
            ask(fields).read_to_end(&mut received).unwrap();
            let end = received.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
            assert_eq!(String::from_utf8_lossy(&received[9..12]), status, "{is_file} {fields}");
            assert!(&received[end + 4..] == body, "{is_file} {fields}: {} bytes", received.len());
        }
        // A request for the missing part waits for it.
        let waiting = [ask("Range: bytes=-1000\r\n"), ask("Range: bytes=400000-500000\r\n"), ask("")];
        go_on.store(true, SeqCst);
        let parts = [&whole[899_000..], &whole[400_000..=500_000], &whole[..]];
        for (mut stream, part) in waiting.into_iter().chain([first]).zip(parts.into_iter().chain([&whole[..]])) {
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            assert!(received.ends_with(part), "{is_file}: {} bytes of {}", received.len(), part.len());
        }
        assert_eq!(asked.load(SeqCst), 1, "{is_file}");
    }
}
