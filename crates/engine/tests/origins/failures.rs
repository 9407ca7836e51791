//! Every fault in every state of an exchange: no broken response is taken for complete or stored,
//! each kind has its reason, its counter and its phrase, and a request is sent again only if its
//! connection may have been dead before.

use super::{backend, reasons, vbe};
use crate::support::{OriginRequest, OriginStream, World, always, run_with};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use surface::counter::{MAIN, Main, Vbe};
use surface::failure::CountedBy;
use surface::reason::Reason;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

/// The origin's action after its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    /// Closes the connection normally.
    Fin,
    /// Resets it.
    Reset,
    /// Sends nothing more.
    Stall,
    /// Continues a byte at a time, always just in time.
    Trickle(u8),
}

/// A fault: the origin's answer to the request, and its next action.
#[derive(Clone, Copy, Debug)]
struct Fault {
    says: &'static str,
    then: Then,
    reason: Reason,
}

const fn fault(says: &'static str, then: Then, reason: Reason) -> Fault {
    Fault { says, then, reason }
}

/// The faults, by the state in which they occur.
const FAULTS: &[Fault] = &[
    // Before the answer.
    fault("", Then::Fin, Reason::OriginClosed),
    fault("", Then::Reset, Reason::OriginReset),
    fault("", Then::Stall, Reason::FirstByteTimeout),
    fault("\u{16}\u{3}\u{1} this is not HTTP\r\n\r\n", Then::Stall, Reason::ResponseGarbled),
    fault("HTTP/1.1 100 Continue\r\n\r\n", Then::Fin, Reason::OriginClosed),
    fault("HTTP/1.1 100 Continue\r\n\r\n", Then::Stall, Reason::FirstByteTimeout),
    // Within its head.
    fault("HTTP/1.1 200 OK\r\nX-Half: ", Then::Fin, Reason::OriginClosed),
    fault("HTTP/1.1 200 OK\r\nX-Half: ", Then::Reset, Reason::OriginReset),
    fault("HTTP/1.1 200 OK\r\nX-Half: ", Then::Stall, Reason::BetweenBytesTimeout),
    fault("HTTP/1.1 200 OK\r\nX-Half: ", Then::Trickle(b'x'), Reason::LastByteTimeout),
    fault("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", Then::Fin, Reason::ResponseGarbled),
    fault("HTTP/1.1 200 OK\r\nX\u{1}Y: z\r\n\r\n", Then::Fin, Reason::ResponseGarbled),
    // Within a body of known length.
    fault("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", Then::Fin, Reason::BodyCutShort),
    fault("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", Then::Reset, Reason::OriginReset),
    fault("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n", Then::Stall, Reason::BetweenBytesTimeout),
    fault("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello", Then::Trickle(b'o'), Reason::LastByteTimeout),
    // Within one in chunks.
    fault("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", Then::Fin, Reason::BodyCutShort),
    fault("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", Then::Fin, Reason::BodyCutShort),
    fault("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", Then::Fin, Reason::BodyCutShort),
    fault("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", Then::Reset, Reason::OriginReset),
    fault(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        Then::Stall,
        Reason::BetweenBytesTimeout,
    ),
    fault(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\nhel",
        Then::Trickle(b'l'),
        Reason::LastByteTimeout,
    ),
    fault("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX", Then::Stall, Reason::BodyBroken),
    fault("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nbody\r\n", Then::Stall, Reason::BodyBroken),
    // Within one that ends with the connection.
    fault("HTTP/1.1 200 OK\r\n\r\nhello", Then::Reset, Reason::OriginReset),
    fault("HTTP/1.1 200 OK\r\n\r\nhello", Then::Stall, Reason::BetweenBytesTimeout),
    fault("HTTP/1.1 200 OK\r\n\r\nhello", Then::Trickle(b'o'), Reason::LastByteTimeout),
];

/// Plays one fault to the end.
async fn play(world: Rc<World>, mut stream: OriginStream, says: &str, then: Then) {
    let _ = stream.write_all(says.as_bytes()).await;
    match then {
        Then::Fin => {}
        Then::Reset => world.ends_are_resets(true),
        Then::Stall => sleep(Duration::from_secs(100_000)).await,
        Then::Trickle(byte) => {
            while stream.write_all(&[byte]).await.is_ok() {
                sleep(Duration::from_secs(4)).await;
            }
        }
    }
}

/// An origin that answers one request on each connection, if it is to begin well, and the next one
/// with the fault.
fn faulty(world: &Rc<World>, fault: Fault, begins_well: bool) -> Rc<Cell<usize>> {
    let asked = Rc::new(Cell::new(0));
    let (own, counted) = (Rc::clone(world), Rc::clone(&asked));
    world.origin(move |mut stream| {
        let (world, asked) = (Rc::clone(&own), Rc::clone(&counted));
        async move {
            let is_first = asked.get() == 0;
            if begins_well && is_first {
                OriginRequest::read(&mut stream).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
            }
            if OriginRequest::read(&mut stream).await.is_some() {
                asked.set(asked.get() + 1);
                play(world, stream, fault.says, fault.then).await;
            }
        }
    });
    asked
}

const VCL: &str = "sub vcl_recv { if (req.url ~ \"pass\") { return (pass); } }
    sub vcl_backend_response { if (bereq.url ~ \"whole\") { set beresp.do_stream = false; } }
    sub vcl_backend_error { set beresp.http.said = beresp.reason; return (deliver); }";

/// Plays one fault to a client that requests `target`.
fn expect(fault: Fault, target: &'static str, on_reused: bool) {
    let what = format!("{fault:?} {target} reused: {on_reused}");
    run_with(
        |parameters| {
            parameters.first_byte_timeout = 30.0;
            parameters.between_bytes_timeout = 5.0;
            parameters.last_byte_timeout = 120.0;
            parameters.backend_error_reasons = true;
        },
        VCL,
        async move |world| {
            let asked = faulty(&world, fault, on_reused);
            if on_reused {
                assert_eq!(world.client().get("/well", "").await.text(), "ok", "{what}");
            }
            let stored = world.engine.cache.object_count();
            let response = world.client().get(target, "").await;
            let row = fault.reason.failure().unwrap();
            let is_silent = fault.says.is_empty() && matches!(fault.then, Then::Fin | Then::Reset);
            let is_repeated = on_reused && is_silent;
            assert!(response.status() == 503 || !response.is_whole, "{what}\n{}", world.story());
            // If a streamed body breaks, VCL cannot send the client a message.
            let is_in_body =
                row.phrase.contains("body") || fault.says.contains("200 OK") && fault.says.contains("\r\n\r\n");
            if !is_in_body || target.contains("whole") || response.header("said").is_some() {
                assert_eq!(response.header("said"), Some(row.phrase), "{what}\n{}", world.story());
            }
            assert_eq!(asked.get(), if is_repeated { 2 } else { 1 }, "{what}\n{}", world.story());
            assert_eq!(world.count(Main::BackendRetry), u64::from(is_repeated), "{what}");
            assert!(reasons(&world).contains(&fault.reason.row().word.to_owned()), "{what}\n{}", world.story());
            let CountedBy::Fetch(counter) = row.counted_by else { panic!("{what}") };
            assert_eq!(world.count(counter), 1, "{what} {}\n{}", MAIN.counters[counter as usize].name, world.story());
            assert_eq!(world.count(Main::FetchFailed), 1, "{what}\n{}", world.story());
            assert_eq!(world.engine.cache.object_count(), stored, "{what}");
            sleep(Duration::from_secs(1)).await;
            assert_eq!(world.context.in_flight(), 0, "{what}");
            assert_eq!(backend(&world, "default").connections(), 0, "{what}");

            world.ends_are_resets(false);
            world.origin(always("", "sound"));
            assert_eq!(world.client().get(target, "").await.text(), "sound", "{what}\n{}", world.story());
        },
    );
}

#[test]
fn every_fault_in_every_state_is_reported_counted_and_never_taken_for_an_answer() {
    for fault in FAULTS {
        for target in ["/a", "/pass", "/whole", "/pass-whole"] {
            expect(*fault, target, false);
        }
    }
}

#[test]
fn a_reused_connection_that_was_dead_is_replaced_once_and_other_faults_are_not_repeated() {
    for fault in FAULTS {
        expect(*fault, "/whole", true);
    }
}

/// An answer aborted after each of its bytes in turn. Only the complete one is accepted as
/// complete.
fn broken_off_everywhere(answer: &'static str, then: Then, body: &'static str) {
    for end in 0..=answer.len() {
        run_with(
            |_| {},
            "",
            async move |world| {
                let own = Rc::clone(&world);
                world.origin(move |mut stream| {
                    let world = Rc::clone(&own);
                    async move {
                        if OriginRequest::read(&mut stream).await.is_some() {
                            play(world, stream, &answer[..end], then).await;
                        }
                    }
                });
                let response = world.client().get("/a", "").await;
                let is_whole = end == answer.len();
                assert_eq!((response.status() == 200 && response.is_whole), is_whole, "{end}\n{}", world.story());
                assert!(!is_whole || response.text() == body, "{end}");
                assert_eq!(world.engine.cache.object_count(), usize::from(is_whole), "{end}\n{}", world.story());
            },
        );
    }
}

#[test]
fn an_answer_that_breaks_off_after_any_byte_is_not_whole() {
    let length = "HTTP/1.1 200 OK\r\nCache-Control: max-age=9\r\nContent-Length: 5\r\n\r\nhello";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n";
    for then in [Then::Fin, Then::Reset] {
        broken_off_everywhere(length, then, "hello");
        broken_off_everywhere(chunked, then, "hello");
    }
}

#[test]
fn reset_after_the_end_of_an_answer_is_harmless() {
    run_with(
        |_| {},
        "sub vcl_recv { return (pass); }",
        async |world| {
            let own = Rc::clone(&world);
            world.origin(move |mut stream| {
                let world = Rc::clone(&own);
                async move {
                    while OriginRequest::read(&mut stream).await.is_some() {
                        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
                        if world.dialled() == 1 {
                            world.ends_are_resets(true);
                            return;
                        }
                    }
                }
            });
            for target in ["/1", "/2", "/3"] {
                let response = world.client().get(target, "").await;
                assert_eq!((response.status(), response.text().as_str()), (200, "ok"), "{}", world.story());
            }
            assert_eq!((world.dialled(), world.count(Main::FetchFailed)), (2, 0), "{}", world.story());
        },
    );
}

/// One request to a backend that cannot be reached: its status, the error that VCL read, and the
/// reasons.
fn unreached(vcl: &str, prepare: impl FnOnce(&World), status: u16) -> (Option<String>, Vec<String>, Vec<u64>) {
    let mut found = None;
    run_with(
        |parameters| parameters.backend_error_reasons = true,
        &format!("vcl 4.1; {vcl} {VCL}"),
        async |world| {
            prepare(&world);
            let response = world.client().get("/a", "").await;
            assert_eq!(response.status(), status, "{}", world.story());
            let counters = [Vbe::Fail, Vbe::FailEconnrefused, Vbe::FailEtimedout, Vbe::Unhealthy];
            let counted = counters.map(|counter| vbe(&world, "default", counter)).to_vec();
            found = Some((response.header("said").map(str::to_owned), reasons(&world), counted));
        },
    );
    found.unwrap()
}

#[test]
fn connect_failures_are_distinguished_by_cause() {
    let backend = "backend default { .host = \"10.0.0.1\"; .connect_timeout = 2s; }";
    let (said, why, counted) = unreached(backend, |_| {}, 503);
    assert_eq!((said.as_deref(), counted), (Some("Backend connection refused"), vec![1, 1, 0, 0]));
    assert!(why.contains(&"connect-refused".to_owned()), "{why:?}");

    let (said, why, counted) = unreached(backend, |world| world.silence("10.0.0.1:80"), 503);
    assert_eq!((said.as_deref(), counted), (Some("Backend connection timeout"), vec![1, 0, 1, 0]));
    assert!(why.contains(&"connect-timeout".to_owned()), "{why:?}");

    let sick =
        |world: &World| super::backend(world, "default").health().set_admin(backend::health::AdminHealth::Sick, 0.0);
    let (said, why, counted) = unreached(backend, sick, 503);
    assert_eq!((said.as_deref(), counted), (Some("Backend sick"), vec![0, 0, 0, 1]));
    assert!(why.contains(&"backend-sick".to_owned()), "{why:?}");
}

#[test]
fn timeouts_of_vcl_go_before_those_of_the_backend_and_these_before_the_parameters() {
    let waited = |of_backend: &str, of_vcl: &str| {
        let vcl = format!(
            "vcl 4.1; backend default {{ .host = \"10.0.0.1\"; {of_backend} }}
             sub vcl_recv {{ return (pass); }} sub vcl_backend_fetch {{ {of_vcl} }}"
        );
        let mut seconds = 0;
        run_with(
            |parameters| {
                parameters.first_byte_timeout = 40.0;
                parameters.between_bytes_timeout = 20.0;
                parameters.last_byte_timeout = 90.0;
                parameters.connect_timeout = 15.0;
            },
            &vcl,
            async |world| {
                let own = Rc::clone(&world);
                world.origin(move |mut stream| {
                    let world = Rc::clone(&own);
                    async move {
                        let Some(request) = OriginRequest::read(&mut stream).await else { return };
                        match request.target() {
                            "/first" => play(world, stream, "", Then::Stall).await,
                            "/between" => play(world, stream, "HTTP/1.1 200 OK\r\n", Then::Stall).await,
                            _ => play(world, stream, "HTTP/1.1 200 OK\r\nX: ", Then::Trickle(b'x')).await,
                        }
                    }
                });
                for target in ["/first", "/between", "/last"] {
                    let began = world.context.clock.now();
                    assert_eq!(world.client().get(target, "").await.status(), 503, "{}", world.story());
                    seconds = seconds * 100 + (world.context.clock.now() - began).round() as u64;
                }
                world.silence("10.0.0.1:80");
                let began = world.context.clock.now();
                assert_eq!(world.client().get("/connect", "").await.status(), 503);
                seconds = seconds * 100 + (world.context.clock.now() - began).round() as u64;
            },
        );
        seconds
    };
    let of_backend =
        ".first_byte_timeout = 30s; .between_bytes_timeout = 10s; .last_byte_timeout = 80s; .connect_timeout = 5s;";
    let of_vcl = "set bereq.first_byte_timeout = 25s; set bereq.between_bytes_timeout = 6s;
        set bereq.last_byte_timeout = 70s; set bereq.connect_timeout = 3s;";
    assert_eq!(waited("", ""), 40_20_90_15);
    assert_eq!(waited(of_backend, ""), 30_10_80_05);
    assert_eq!(waited(of_backend, of_vcl), 25_06_70_03);
    assert_eq!(waited(of_backend, &format!("{of_vcl} unset bereq.last_byte_timeout;")), 25_06_80_03);
}

#[test]
fn an_upload_takes_as_long_as_its_client_needs_whatever_the_origin_may_take() {
    run_with(
        |parameters| parameters.last_byte_timeout = 20.0,
        "sub vcl_recv { return (pass); }",
        async |world| {
            world.origin(always("", "ok"));
            let mut client = world.client();
            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n").await;
            for _ in 0..7 {
                sleep(Duration::from_secs(4)).await;
                client.send("x").await;
            }
            assert_eq!(client.response().await.text(), "ok", "{}", world.story());
        },
    );
}

#[test]
fn zero_disables_the_last_byte_timeout() {
    for (of_backend, of_vcl, ends_well) in [
        ("", "", false),
        (".last_byte_timeout = 0s;", "", true),
        ("", "set bereq.last_byte_timeout = 0s;", true),
        (".last_byte_timeout = 0s;", "set bereq.last_byte_timeout = 30s;", false),
        (".last_byte_timeout = 0s;", "set bereq.last_byte_timeout = 30s; unset bereq.last_byte_timeout;", true),
    ] {
        let vcl = format!(
            "vcl 4.1; backend default {{ .host = \"10.0.0.1\"; {of_backend} }}
             sub vcl_recv {{ return (pass); }} sub vcl_backend_fetch {{ {of_vcl} }}"
        );
        run_with(
            |parameters| parameters.last_byte_timeout = 20.0,
            &vcl,
            async |world| {
                world.origin(|mut stream| async move {
                    OriginRequest::read(&mut stream).await;
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").await;
                    for _ in 0..5 {
                        sleep(Duration::from_secs(10)).await;
                        let _ = stream.write_all(b"x").await;
                    }
                });
                assert_eq!(world.client().get("/", "").await.is_whole, ends_well, "{of_backend} {of_vcl}");
            },
        );
    }
}
