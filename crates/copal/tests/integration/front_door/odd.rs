//! The odd requests that matter most, through the whole program and over TLS and QUIC. All others
//! are tested in memory (`crates/engine/tests/odd_requests.rs`).

use super::*;
use protocols::{Request, send};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Expected results of a request over HTTP/1, HTTP/2 and HTTP/3.
type Ends = [End; 3];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// The origin answers, and has received this line and host.
    Served(&'static str),
    /// Copal answers, with this status.
    Answered(u64),
    /// The stream is reset for being malformed.
    Reset,
    /// The connection ends.
    Gone,
    /// The protocol cannot express it.
    Unsaid,
}

use End::{Answered, Gone, Reset, Served, Unsaid};

/// The code of a malformed request, as the client prints it.
const RESETS: [&str; 3] = ["", "reset 1", "reset 270"];

fn rows() -> Vec<(&'static str, Request, Ends)> {
    let get = |path: &str| Request::get(path);
    let post = |body: &str| Request { body: Some(body.to_owned()), ..Request::new("POST", "/odd") };
    let odd = Served("GET /odd a.example");
    let posted = Served("POST /odd a.example");
    let without = |name: &str| {
        let mut request = get("/odd");
        request.headers.retain(|(one, _)| one != name);
        request
    };
    vec![
        ("a request", get("/odd"), [odd, odd, odd]),
        ("an empty path", get(""), [Answered(400), Reset, Reset]),
        ("a second request line", get("/a HTTP/1.1\r\n\r\nGET /b"), [Unsaid, Reset, Reset]),
        ("a line end in a value", get("/odd").with("x-a", "1\r\nx-b: 2"), [Unsaid, Reset, Reset]),
        ("NUL in a value", get("/odd").with("x-a", "1\0"), [Answered(400), Reset, Reset]),
        ("a user in the host", without(":authority").with("host", "u@a.example"), [Answered(400); 3]),
        ("hosts that differ", get("/odd").with("host", "b.example"), [Answered(400); 3]),
        ("connection", get("/odd").with("connection", "x-a"), [Unsaid, Reset, Answered(400)]),
        ("chunks in a stream", post("abc").with("transfer-encoding", "chunked"), [Unsaid, Reset, Answered(400)]),
        ("a length with a sign", post("abc").with("content-length", "+3"), [Answered(400), Reset, Answered(400)]),
        ("a body too long", post("abc").with("content-length", "2"), [Unsaid, Reset, Reset]),
        ("a body too short", post("abc").with("content-length", "4"), [Unsaid, Reset, Reset]),
        (
            "a body of HEAD",
            Request { body: Some("abc".to_owned()), ..Request::new("HEAD", "/odd").with("content-length", "3") },
            [Answered(400); 3],
        ),
        ("an expectation", post("abc").with("content-length", "3").with("expect", "100-continue"), [posted; 3]),
        (
            "framing in trailers",
            Request { trailers: vec![("content-length".to_owned(), "9".to_owned())], ..post("abc") },
            [posted; 3],
        ),
        ("a large field", get("/odd").with("x-a", &"y".repeat(9 << 10)), [Answered(431); 3]),
    ]
}

#[test]
fn odd_requests_end_alike_through_the_whole_program() {
    let heard = Heard::default();
    let origin = listen(&heard);
    let vcl = "vcl 4.1; backend default { .host = \"127.0.0.1\"; .port = \"@PORT@\"; }
               sub vcl_recv { return (pass); }";
    let door = Door::open_with(vcl, origin, &[]);
    let worker = door.daemon.worker();
    for (place, protocol) in ["h1", "h2", "h3"].into_iter().enumerate() {
        let rows: Vec<_> = rows().into_iter().filter(|(_, _, ends)| ends[place] != Unsaid).collect();
        let requests: Vec<Request> = rows.iter().map(|(_, request, _)| request.clone()).collect();
        heard.lock().unwrap().clear();
        let Some(answers) = send(&door, protocol, &requests) else { return };
        let mut expected_heard = Vec::new();
        for ((what, _, ends), answer) in rows.iter().zip(&answers) {
            let came = match (&answer.error, answer.status) {
                (None, 200) => match ends[place] {
                    Served(text) => Served(text),
                    _ => Answered(200),
                },
                (None, status) => Answered(status),
                (Some(error), _) if error == RESETS[place] => Reset,
                (Some(_), _) => Gone,
            };
            assert_eq!(came, ends[place], "{protocol}, {what}: {answer:?}");
            if let Served(text) = came {
                expected_heard.push(text.to_owned());
            }
        }
        assert_eq!(*heard.lock().unwrap(), expected_heard, "{protocol}");
    }
    assert_eq!(door.daemon.worker(), worker, "{}", door.daemon.said());
}

/// Requests that the origin has received, one by one.
type Heard = Arc<Mutex<Vec<String>>>;

/// An origin that also reads bodies, so that no part of them is mistaken for a request. Returns its
/// port.
fn listen(heard: &Heard) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = Arc::clone(heard);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let heard = Arc::clone(&heard);
            std::thread::spawn(move || serve(stream, &heard));
        }
    });
    port
}

fn serve(mut stream: TcpStream, heard: &Mutex<Vec<String>>) {
    let (mut received, mut byte) = (Vec::new(), [0]);
    while stream.read_exact(&mut byte).is_ok() {
        received.push(byte[0]);
        let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let (head, body) = (String::from_utf8_lossy(&received[..end]).to_ascii_lowercase(), &received[end + 4..]);
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
        let is_whole =
            if head.contains("transfer-encoding") { body.ends_with(b"0\r\n\r\n") } else { body.len() == length };
        if is_whole {
            heard.lock().unwrap().push(summary(&String::from_utf8_lossy(&received[..end])));
            received.clear();
            if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                return;
            }
        }
    }
}

/// The request line without its protocol, and the host.
fn summary(head: &str) -> String {
    let host = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("host: ").map(str::to_owned));
    format!("{} {}", head.lines().next().unwrap().trim_end_matches(" HTTP/1.1"), host.unwrap_or_default())
}
