//! Loads against small servers that answer, stall, abort or send invalid data: the resulting
//! counts, and their names.

use load::choice::Choice;
use load::drive::{Event, run};
use load::failure::Kind;
use load::plan::{Pace, Plan, Protocol, Target};
use load::results::Outcome;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use surface::limits::TEST_HANG_SECONDS;

/// Time limit of every wait.
const HANG: Duration = Duration::from_secs(TEST_HANG_SECONDS);

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Varnish: 2 1\r\n\r\nhello";

/// Serves each connection on a thread; `serve` gets the stream, the head of each request, and its
/// number.
fn server(serve: impl Fn(&mut TcpStream, &str, u64) -> bool + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (serve, count) = (Arc::new(serve), Arc::new(AtomicU64::new(0)));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (serve, count) = (Arc::clone(&serve), Arc::clone(&count));
            std::thread::spawn(move || {
                let _ = stream.set_nodelay(true);
                let (mut received, mut buffer) = (Vec::new(), [0; 4096]);
                loop {
                    let end = received.windows(4).position(|four| four == b"\r\n\r\n");
                    if let Some(end) = end {
                        let head = String::from_utf8_lossy(&received[..end]).into_owned();
                        received.drain(..end + 4);
                        if !serve(&mut stream, &head, count.fetch_add(1, Ordering::SeqCst)) {
                            return;
                        }
                        continue;
                    }
                    match stream.read(&mut buffer) {
                        Ok(count @ 1..) => received.extend_from_slice(&buffer[..count]),
                        _ => return,
                    }
                }
            });
        }
    });
    port
}

/// A server that always answers with these bytes.
fn says(answer: &'static [u8]) -> u16 {
    server(move |stream, _, _| stream.write_all(answer).is_ok())
}

fn plan(port: u16) -> Plan {
    Plan {
        connections: 2,
        requests_max: Some(20),
        duration: 2 * HANG,
        timeout: HANG,
        ..Plan::new(Target::local(port, false))
    }
}

fn outcome(plan: &Plan) -> Outcome {
    run(plan, &mut |_| true).unwrap()
}

/// All of twenty requests fail in this way.
fn fails(plan: &Plan, kind: Kind) -> String {
    let results = outcome(plan).results;
    assert_eq!((results.answers, results.of(kind).count), (0, 20), "{kind:?}: {:?}", results.failures);
    results.of(kind).said.clone()
}

#[test]
fn a_limit_of_requests_ends_the_load_and_every_answer_is_counted() {
    let plan = plan(says(ANSWER));
    let outcome = outcome(&plan);
    let results = &outcome.results;
    assert_eq!((results.answers, results.failed(), results.body_bytes, results.hits), (20, 0, 100, (20, 20)));
    assert_eq!((results.latency.count(), results.connections, results.reopened), (20, 2, 0));
    assert!(outcome.seconds < plan.duration.as_secs_f64(), "it does not wait for the time to pass");
    assert!(outcome.per_second() > 0.0);
}

#[test]
fn bodies_are_read_in_every_framing() {
    let chunked: &[u8] =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n4\r\ndefg\r\n0\r\nA: b\r\n\r\n";
    assert_eq!(outcome(&plan(says(chunked))).results.body_bytes, 140);
    let until_close = server(|stream, _, _| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabcdefgh").unwrap();
        stream.shutdown(Shutdown::Both).unwrap();
        false
    });
    let results = outcome(&plan(until_close)).results;
    assert_eq!((results.answers, results.body_bytes, results.connections), (20, 160, 20));
    let large = server(|stream, _, _| {
        let mut bytes =
            b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n"
                .to_vec();
        bytes.resize(bytes.len() + 3_000_000, b'x');
        stream.write_all(&bytes).is_ok()
    });
    let results = outcome(&plan(large)).results;
    assert_eq!(
        (results.answers, results.body_bytes, results.connections),
        (20, 60_000_000, 2),
        "{:?}",
        results.failures
    );
    let head = Plan { method: "HEAD".to_owned(), ..plan(says(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n")) };
    assert_eq!(outcome(&head).results.body_bytes, 0);
}

#[test]
fn failures_have_the_name_of_their_kind() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    fails(&plan(closed), Kind::Refused);
    assert_eq!(fails(&plan(says(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")), Kind::Status), "503");
    let wanted = Plan { expect_status: Some(404), ..plan(says(ANSWER)) };
    assert_eq!(fails(&wanted, Kind::Status), "200");
    let length = Plan { expect_bytes: Some(6), ..plan(says(ANSWER)) };
    assert!(fails(&length, Kind::Length).contains("6 expected"));
    let short = server(|stream, _, _| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello").unwrap();
        false
    });
    assert!(fails(&plan(short), Kind::Length).contains("4 bytes short"));
    assert!(
        fails(&plan(says(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello")), Kind::Length)
            .contains("behind the end")
    );
    assert!(fails(&plan(says(b"SSH-2.0-OpenSSH\r\n\r\n")), Kind::Protocol).len() > 2);
    let half = server(|stream, _, _| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le").unwrap();
        false
    });
    assert!(fails(&plan(half), Kind::Closed).contains("in a head"));
    let reset = server(|stream, _, _| {
        // Unread data of a closed socket causes a reset; linger sends it immediately.
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        reset_when_closed(stream);
        false
    });
    fails(&plan(reset), Kind::Reset);
    let silent = server(|_, _, _| true);
    let impatient = Plan { timeout: Duration::from_millis(30), ..plan(silent) };
    fails(&impatient, Kind::Timeout);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"HTTP/1.1 400 This is HTTP\r\n\r\n");
            // Reads to the end, so that unread data does not cause a reset.
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });
    fails(&Plan { target: Target::local(port, true), ..plan(0) }, Kind::Tls);
}

/// Closing this stream resets the connection.
fn reset_when_closed(stream: &TcpStream) {
    let none = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    nix::sys::socket::setsockopt(stream, nix::sys::socket::sockopt::Linger, &none).unwrap();
}

#[test]
fn connections_are_replaced_at_the_planned_rate() {
    let plan = |per_connection| Plan { per_connection: Some(per_connection), connections: 1, ..plan(says(ANSWER)) };
    assert_eq!(outcome(&plan(5)).results.connections, 4);
    assert_eq!(outcome(&plan(1)).results.connections, 20);
    let only = outcome(&plan(0)).results;
    assert_eq!((only.answers, only.connections, only.body_bytes), (20, 20, 0));
    let told = Arc::new(AtomicU64::new(0));
    let counts = Arc::clone(&told);
    let port = server(move |stream, head, _| {
        let is_last = head.contains("Connection: close");
        counts.fetch_add(u64::from(is_last), Ordering::SeqCst);
        stream.write_all(ANSWER).is_ok() && !is_last
    });
    let asked = Plan { per_connection: Some(4), connections: 1, ..self::plan(port) };
    assert_eq!((outcome(&asked).results.answers, told.load(Ordering::SeqCst)), (20, 5), "the last one is announced");
}

#[test]
fn closed_idle_connection_is_replaced_and_counted() {
    let port = server(|stream, _, number| {
        stream.write_all(ANSWER).unwrap();
        number % 3 != 2
    });
    let plan = Plan { connections: 1, ..plan(port) };
    let results = outcome(&plan).results;
    assert_eq!((results.answers, results.failed()), (20, 0), "{:?}", results.failures);
    assert_eq!(results.reopened, 6, "after every third answer");
}

/// Answers at once except for one request, which is answered after a delay.
fn stalling(at: u64, time: Duration) -> u16 {
    let lock = std::sync::Mutex::new(());
    server(move |stream, _, number| {
        // All wait while one blocks the server.
        let _guard = lock.lock().unwrap();
        if number == at {
            std::thread::sleep(time);
        }
        stream.write_all(ANSWER).is_ok()
    })
}

#[test]
fn a_stall_is_in_the_percentiles_of_an_open_loop() {
    let plan = Plan {
        pace: Pace::Open { per_second: 500.0, burst: 1 },
        requests_max: None,
        duration: Duration::from_secs(2),
        connections: 4,
        ..plan(stalling(300, Duration::from_millis(800)))
    };
    let outcome = outcome(&plan);
    let results = &outcome.results;
    assert_eq!(results.failed(), 0, "{:?}", results.failures);
    // On a busy machine some are not sent in time, and have waited too.
    let due = results.answers + results.unsent;
    assert!((990..=1001).contains(&due), "all that were due: {due}");
    // 400 of 1,000 were due while the server stalled, and waited 400 ms in the mean. Four had been
    // sent.
    let (latency, service) = (outcome.latency.at(0.9), results.service.at(0.9));
    assert!(latency > 400_000.0, "{latency} µs");
    assert!(service < latency / 2.0, "from sending it looks well: {service} of {latency} µs");
}

#[test]
fn a_stall_is_in_the_corrected_percentiles_of_a_closed_loop() {
    // However fast the machine is, the stall takes twice the time of all answers before it.
    let began = std::sync::OnceLock::new();
    let port = server(move |stream, _, number| {
        let began = began.get_or_init(Instant::now);
        if number == 200 {
            std::thread::sleep(2 * began.elapsed());
        }
        stream.write_all(ANSWER).is_ok()
    });
    let outcome = outcome(&Plan { requests_max: Some(400), connections: 1, ..plan(port) });
    let (measured, corrected) = (outcome.results.latency.at(0.9), outcome.latency.at(0.9));
    assert!(corrected > 2.0 * measured, "measured: {measured} µs, corrected: {corrected} µs");
}

#[test]
fn unsent_due_requests_are_reported_and_count_as_waiting() {
    let plan = Plan {
        pace: Pace::Open { per_second: 100.0, burst: 10 },
        requests_max: None,
        duration: Duration::from_secs(1),
        timeout: Duration::from_secs(2),
        connections: 1,
        ..plan(server(|_, _, _| true))
    };
    let outcome = outcome(&plan);
    let results = &outcome.results;
    assert_eq!((results.answers, results.of(Kind::Timeout).count), (0, 1));
    assert!((90..=100).contains(&results.unsent), "{}", results.unsent);
    // From their due time until the end of the measured time, which does not depend on the machine.
    assert!((300_000.0..700_000.0).contains(&outcome.latency.at(0.5)), "{}", outcome.latency.at(0.5));
}

#[test]
fn observer_is_notified_of_begin_and_end_and_may_cancel() {
    let mut events = Vec::new();
    let plan = Plan { warm_up: Duration::from_millis(100), ..plan(says(ANSWER)) };
    let plan = Plan { requests_max: None, duration: Duration::from_millis(200), ..plan };
    run(&plan, &mut |event| {
        events.push(event);
        true
    })
    .unwrap();
    let position = |wanted: Event| events.iter().position(|event| *event == wanted).unwrap();
    assert!(0 < position(Event::Begin) && position(Event::Begin) < position(Event::End), "{events:?}");
    assert_eq!(position(Event::End), events.len() - 1);

    let endless = Plan { duration: Duration::from_secs(600), ..plan };
    let (mut answered, mut at_begin) = (0, None);
    let outcome = run(&endless, &mut |event| {
        match event {
            Event::Begin => at_begin = Some(answered),
            Event::Tick { answers, .. } => answered = answers,
            _ => {}
        }
        at_begin.is_none_or(|before| answered < before + 100)
    });
    let results = outcome.unwrap().results;
    assert!(results.answers > 0 && results.unfinished > 0, "{} {}", results.answers, results.unfinished);
}

#[test]
fn idle_connections_are_held_during_the_load() {
    let open = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&open);
    let port = server(move |stream, head, _| {
        counted.fetch_add(u64::from(head.contains("GET /")), Ordering::SeqCst);
        stream.write_all(ANSWER).is_ok()
    });
    let plan = Plan { idle: 150, requests_max: Some(10), ..plan(port) };
    let results = outcome(&plan).results;
    assert_eq!((results.answers, results.connections), (10, 2), "the idle ones are not in the account");
    assert_eq!(open.load(Ordering::SeqCst), 160, "each has asked once");
}

#[test]
fn idle_connections_that_are_not_answered_hold_nothing_up() {
    let plan = Plan { idle: 200, requests_max: Some(10), connections: 1, ..plan(server(|_, _, _| true)) };
    let hasty = Plan { timeout: Duration::from_millis(30), ..plan.clone() };
    let results = outcome(&hasty).results;
    assert_eq!((results.answers, results.of(Kind::Timeout).count), (0, 64 + 10), "the other idle ones are not tried");

    let patient = Plan { timeout: 2 * HANG, ..plan };
    let started = Instant::now();
    run(&patient, &mut |_| false).unwrap();
    assert!(started.elapsed() < HANG, "it can be broken off");
}

#[test]
fn paths_are_asked_for_in_turn_and_headers_are_sent() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heads = Arc::clone(&seen);
    let port = server(move |stream, head, _| {
        heads.lock().unwrap().push(head.to_owned());
        stream.write_all(ANSWER).is_ok()
    });
    let paths: Vec<String> = ["/a", "/b", "/c"].map(str::to_owned).into();
    let plan = Plan {
        choice: Choice::InTurn(paths.into()),
        headers: vec![("Host".into(), "site.example".into()), ("Cookie".into(), "x=y".into())],
        connections: 1,
        requests_max: Some(4),
        ..plan(port)
    };
    assert_eq!(outcome(&plan).results.answers, 4);
    let seen = seen.lock().unwrap();
    let lines: Vec<&str> = seen.iter().map(|head| head.lines().next().unwrap()).collect();
    assert_eq!(lines, ["GET /a HTTP/1.1", "GET /b HTTP/1.1", "GET /c HTTP/1.1", "GET /a HTTP/1.1"]);
    assert!(seen[0].contains("Host: site.example\r\nCookie: x=y") && !seen[0].contains("localhost"), "{}", seen[0]);
}

#[test]
fn http2_without_an_answer_is_a_failure_not_a_hang() {
    let plan = Plan { protocol: Protocol::Http2, streams: 3, requests_max: Some(6), ..plan(says(ANSWER)) };
    let results = outcome(&plan).results;
    assert_eq!((results.answers, results.failed()), (0, 6), "{:?}", results.failures);
}
