//! HTTP/3 in memory: connections and their requests, under any client behaviour.

use crate::support::quic::{Outcome, QuicClient, headers};
use crate::support::{OriginRequest, World, always, run, run_with};
use bytes::Bytes;
use engine::peer::{Listener, Peer};
use http::Response;
use http3::frames::write_headers;
use http3::qpack::Encoder;
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use surface::parameter::Parameters;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep};

const NO_ERROR: u64 = 0x100;
const MESSAGE_ERROR: u64 = 0x10e;
const REJECTED: u64 = 0x10b;

/// The actions of a client on a connection.
type Saying<'a> = &'a dyn Fn(&QuicClient);

const GET: [(&str, &str); 4] = [(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/")];

fn peer(world: &World) -> Peer {
    let mut peer = world.peer();
    peer.listener = Rc::new(Listener { tls: true, names_scheme: true, ..(*peer.listener).clone() });
    peer
}

fn client(world: &World) -> QuicClient {
    QuicClient::connect(&world.context, peer(world), false)
}

#[test]
fn requests_are_served_and_logged_as_everywhere() {
    run(async |world| {
        world.origin(always("", "hello"));
        let client = client(&world);
        let answer = client.get("/").await;
        assert_eq!((answer.status(), answer.body()), (200, &b"hello"[..]));
        assert_eq!(answer.field("content-length"), Some("5"));
        assert_eq!(client.get("/").await.body(), b"hello");
        assert_eq!(world.count(Main::CacheHit), 1);
        world.expect_log("Begin sess 0 HTTP/3");
        world.expect_log("ReqStart 192.0.2.7 4711 a0 https");
        world.expect_log("ReqProtocol HTTP/3.0");
        let head = client.ask(&[(":method", "HEAD"), GET[1], GET[2], GET[3]]).await;
        assert_eq!((head.status(), head.field("content-length"), head.body()), (200, Some("5"), &b""[..]));
    });
}

#[test]
fn requests_of_a_connection_do_not_wait_for_one_another() {
    run(async |world| {
        world.origin(always("", &"x".repeat(100_000)));
        let client = client(&world);
        client.get("/").await;
        // The first response, which is larger than its window, is not read.
        let stalled = client.begin(&GET);
        client.finish(stalled);
        sleep(Duration::from_millis(10)).await;
        assert_eq!(client.get("/").await.body().len(), 100_000);
        assert_eq!(client.outcome(stalled).await.body().len(), 100_000);
    });
}

#[test]
fn malformed_requests_reach_no_origin_and_keep_the_connection() {
    run(async |world| {
        world.origin(always("", "x"));
        let client = client(&world);
        for fields in [
            vec![GET[0], GET[1], GET[2], GET[3], (":path", "/b")],
            vec![GET[0], GET[1], GET[2], ("a", "b"), GET[3]],
            vec![GET[0], GET[1], GET[2]],
            vec![GET[0], GET[1], GET[2], GET[3], ("A", "b")],
            vec![GET[0], GET[1], GET[2], GET[3], ("a", "b\r\nc: d")],
            vec![GET[0], GET[1], GET[2], GET[3], (":status", "200")],
        ] {
            assert_eq!(client.ask(&fields).await, Outcome::Reset(MESSAGE_ERROR), "{fields:?}");
        }
        for fields in [
            vec![GET[0], GET[1], GET[2], GET[3], ("connection", "close")],
            vec![GET[0], GET[1], GET[2], GET[3], ("transfer-encoding", "chunked")],
            vec![GET[0], GET[1], GET[2], GET[3], ("host", "b.example")],
            vec![GET[0], GET[1], (":authority", "u@a.example"), GET[3]],
            vec![(":method", "CONNECT"), GET[2]],
        ] {
            assert_eq!(client.ask(&fields).await.status(), 400, "{fields:?}");
        }
        assert_eq!(world.dialled(), 0);
        assert_eq!(client.get("/").await.status(), 200);
    });
}

#[test]
fn head_beyond_the_limit_is_answered_with_431() {
    run(async |world| {
        world.origin(always("", "x"));
        let client = client(&world);
        for length in [33_000, 100_000] {
            let long = "y".repeat(length);
            let answer = client.ask(&[GET[0], GET[1], GET[2], GET[3], ("x-long", &long)]).await;
            assert_eq!(answer.status(), 431, "{length}");
        }
        assert_eq!(client.get("/").await.status(), 200);
    });
}

/// A HEADERS frame with a GET, and a field of one byte this many times.
fn get_with_ages(count: usize) -> Vec<u8> {
    let (mut block, mut frame) = (Vec::new(), Vec::new());
    let mut encoder = Encoder::begin(&mut block);
    GET.iter().for_each(|(name, value)| encoder.field(name.as_bytes(), value.as_bytes()));
    block.extend(std::iter::repeat_n(0xc2, count));
    write_headers(&block, &mut frame);
    frame
}

#[test]
fn head_with_too_many_fields_is_refused_without_waiting_for_the_end_of_its_request() {
    run(async |world| {
        world.origin(always("", "x"));
        let client = client(&world);
        for count in [40, 62, 200, 3800] {
            let began = Instant::now();
            let id = client.open();
            client.say(id, &get_with_ages(count));
            let is_fine = count == 40;
            if is_fine {
                client.finish(id);
            }
            let status = client.outcome(id).await.status();
            assert_eq!((status, began.elapsed().as_secs()), (if is_fine { 200 } else { 431 }, 0), "{count}");
        }
    });
}

#[test]
fn request_whose_end_is_awaited_counts_and_is_refused_when_memory_is_short() {
    run_with(
        |parameters: &mut Parameters| parameters.requests_memory_max = 3 << 20,
        "",
        async |world| {
            world.origin(always("", "x"));
            let clients = [client(&world), client(&world)];
            let all: Vec<_> =
                clients.iter().flat_map(|client| (0..90).map(move |_| (client, client.begin(&GET)))).collect();
            sleep(Duration::from_millis(10)).await;
            let bytes = world.count(Main::ReqBytes);
            assert!((2 << 20..5 << 20).contains(&bytes), "{bytes}");
            let (mut refused, mut short) = (0, 0);
            for (client, id) in all {
                client.finish(id);
                match client.outcome(id).await {
                    Outcome::Reset(REJECTED) => refused += 1,
                    other if other.status() == 503 => short += 1,
                    other => assert_eq!(other.status(), 200),
                }
            }
            assert!((50..150).contains(&refused), "{refused}");
            assert_eq!(world.count(Main::ReqRefused), refused + short);
            assert_eq!(world.context.in_flight(), 0);
        },
    );
}

#[test]
fn request_abandoned_before_its_end_reaches_no_origin() {
    run(async |world| {
        world.origin(always("", "x"));
        let client = client(&world);
        let id = client.begin(&GET);
        sleep(Duration::from_millis(10)).await;
        client.cancel(id);
        sleep(Duration::from_millis(10)).await;
        assert_eq!((world.dialled(), world.count(Main::ReqReset), world.context.in_flight()), (0, 1, 0));
        assert!(!world.log().iter().any(|line| line.contains("ReqMethod")));
        assert_eq!(client.get("/").await.status(), 200);
    });
}

#[test]
fn answer_that_overtakes_a_100_continue_is_sent_behind_it() {
    // Over HTTP/2 an origin's response is read while the body is awaited.
    let vcl = r#"vcl 4.1; import std; backend http2 { .host = "10.0.0.1"; .port = "80"; .http2 = true; }
        sub vcl_recv { std.late_100_continue(true); return (pass); }"#;
    run_with(
        |_| {},
        vcl,
        async |world| {
            world.origin(|stream| async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    tokio::task::spawn_local(async move {
                        sleep(Duration::from_millis(100)).await;
                        let head = Response::builder().status(413).body(()).unwrap();
                        let mut stream = respond.send_response(head, false).unwrap();
                        stream.send_data(Bytes::from_static(b"no"), true).unwrap();
                        sleep(Duration::from_secs(1)).await;
                        drop(request);
                    });
                }
            });
            let client = client(&world);
            client.is_narrow(true);
            let post =
                [(":method", "POST"), GET[1], GET[2], GET[3], ("content-length", "5"), ("expect", "100-continue")];
            let id = client.begin(&post);
            sleep(Duration::from_millis(200)).await;
            client.is_narrow(false);
            let Outcome::Response(fields, body) = client.outcome(id).await else { panic!() };
            let statuses = fields.iter().filter(|(name, _)| name == ":status").map(|(_, value)| value.as_str());
            assert_eq!((statuses.collect::<Vec<_>>(), &body[..]), (vec!["100", "413"], &b"no"[..]));
        },
    );
}

#[test]
fn a_100_continue_that_had_no_room_is_sent_when_it_has() {
    run_with(
        |_| {},
        "import std; sub vcl_recv { std.late_100_continue(true); return (pass); }",
        async |world| {
            world.origin(always("", "x"));
            let client = client(&world);
            client.is_narrow(true);
            let post =
                [(":method", "POST"), GET[1], GET[2], GET[3], ("content-length", "1"), ("expect", "100-continue")];
            let id = client.begin(&post);
            sleep(Duration::from_millis(200)).await;
            client.is_narrow(false);
            sleep(Duration::from_millis(10)).await;
            assert!(client.has_answer(id));
            client.data(id, b"x");
            client.finish(id);
            assert_eq!(client.outcome(id).await.field("content-length"), Some("1"));
        },
    );
}

#[test]
fn upload_that_is_broken_off_is_incomplete_and_counts_once() {
    run_with(
        |_| {},
        "sub vcl_recv { return (pass); }",
        async |world| {
            world.origin(always("", "x"));
            let upload = [(":method", "POST"), GET[1], GET[2], GET[3], ("content-length", "5")];
            let patient = client(&world);
            for _ in 0..3 {
                let all: Vec<u64> = (0..60).map(|_| patient.begin(&upload)).collect();
                // h2_rapid_reset is one second.
                sleep(Duration::from_millis(1100)).await;
                for id in all {
                    patient.break_off(id);
                    assert_eq!(patient.outcome(id).await, Outcome::Reset(0x10d));
                }
            }
            let hasty = client(&world);
            for _ in 0..90 {
                let id = hasty.begin(&upload);
                sleep(Duration::from_micros(10)).await;
                hasty.break_off(id);
                assert_eq!(hasty.outcome(id).await, Outcome::Reset(0x10d));
            }
            assert_eq!(world.count(Main::H3Abuse), 0);
            assert_eq!(patient.get("/").await.status(), 200);
        },
    );
}

#[test]
fn streams_without_a_head_cost_the_client_something() {
    run(async |world| {
        world.origin(always("", "x"));
        let ending = client(&world);
        for _ in 0..150 {
            let id = ending.open();
            ending.finish(id);
            sleep(Duration::from_micros(10)).await;
        }
        assert_eq!(ending.closed().await, 0x107);
        let waiting = client(&world);
        for _ in 0..2 {
            (0..80).for_each(|_| _ = waiting.open());
            sleep(Duration::from_millis(100)).await;
            assert!(world.count(Main::ReqBytes) >= 80 * 1024, "they count while they wait");
            sleep(Duration::from_secs(5)).await;
        }
        assert_eq!(waiting.closed().await, 0x107);
        assert_eq!((world.count(Main::H3Abuse), world.count(Main::ReqBytes)), (2, 0));
    });
}

#[test]
fn body_has_the_length_of_its_content_length() {
    let vcl = "sub vcl_recv { return (pass); }";
    run_with(
        |_| {},
        vcl,
        async |world| {
            world.origin(always("", "x"));
            let client = client(&world);
            let post = |length| [(":method", "POST"), GET[1], GET[2], GET[3], ("content-length", length)];
            let right = client.begin(&post("6"));
            client.data(right, b"abc");
            client.data(right, b"");
            client.data(right, b"def");
            client.finish(right);
            assert_eq!(client.outcome(right).await.status(), 200);
            for (length, body) in [("6", &b"abc"[..]), ("2", b"abc")] {
                let wrong = client.begin(&post(length));
                client.data(wrong, body);
                client.finish(wrong);
                assert_eq!(client.outcome(wrong).await, Outcome::Reset(MESSAGE_ERROR), "{length}");
            }
            // Trailers with a pseudo header.
            let wrong = client.begin(&[(":method", "POST"), GET[1], GET[2], GET[3]]);
            client.data(wrong, b"abc");
            client.say(wrong, &headers(&[(":path", "/")]));
            client.finish(wrong);
            assert_eq!(client.outcome(wrong).await, Outcome::Reset(MESSAGE_ERROR));
            assert_eq!(client.get("/").await.status(), 200);
        },
    );
}

#[test]
fn protocol_violations_end_the_connection_with_their_code() {
    run(async |world| {
        world.origin(always("", "x"));
        let request = |bytes: &'static [u8]| move |client: &QuicClient| client.say(client.open(), bytes);
        let unidirectional = |bytes: &'static [u8]| move |client: &QuicClient| _ = client.unidirectional(bytes);
        let sayings: [(Saying<'_>, u64, &str); 13] = [
            (&request(&[0, 1, 65]), 0x105, "DATA before HEADERS"),
            (&request(&[4, 0]), 0x105, "SETTINGS on a request"),
            (&request(&[2, 0]), 0x105, "a frame of HTTP/2"),
            (&request(&[1, 3, 0, 0, 0x80]), 0x200, "a dynamic table"),
            (&unidirectional(&[0, 4, 0]), 0x103, "a second control stream"),
            (&unidirectional(&[1, 0]), 0x103, "a push stream"),
            (&unidirectional(&[2, 0x3f, 0x20]), 0x201, "a table of theirs"),
            (&unidirectional(&[3, 0x80]), 0x202, "an acknowledgement of nothing"),
            (&|client| client.finish(2), 0x104, "the end of the control stream"),
            (&|client| client.say(2, &[4, 0]), 0x105, "settings again"),
            (&|client| client.say(2, &[0x80, 0x0f, 0x07, 0x01, 1, 0]), 0x108, "the priority of a push"),
            (
                &|client| client.say(2, &[0x80, 0x0f, 0x07, 0x00, 2, 0x41, 0x94]),
                0x108,
                "that of a stream without credit",
            ),
            (&|client| client.cancel(3), 0x104, "the end of our control stream"),
        ];
        for (say, code, what) in sayings {
            let client = client(&world);
            assert_eq!(client.get("/").await.status(), 200);
            say(&client);
            assert_eq!(client.closed().await, code, "{what}");
        }
        let client = client(&world);
        client.unidirectional(&[0x21, 1, 2, 3]);
        client.unidirectional(&[2, 0x20]);
        client.unidirectional(&[3, 0x41]);
        let odd = client.open();
        client.say(odd, &[0x21, 2, 9, 9]);
        client.say(odd, &headers(&GET));
        client.say(odd, &[0x40, 0x41, 0]);
        client.finish(odd);
        assert_eq!(client.outcome(odd).await.status(), 200, "what is unknown is skipped");
        assert_eq!(world.count(Main::H3Errors), 13);
    });
}

#[test]
fn connection_without_requests_ends_after_timeout_idle_and_others_stay() {
    run(async |world| {
        world.origin(|mut stream| async move {
            OriginRequest::read(&mut stream).await;
            sleep(Duration::from_secs(30)).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx").await.unwrap();
        });
        let began = Instant::now();
        let idle = client(&world);
        assert_eq!(idle.closed().await, NO_ERROR);
        assert_eq!(began.elapsed().as_secs(), 5);
        world.expect_log("SessClose RX_CLOSE_IDLE 5.000");
        assert_eq!(client(&world).get("/").await.status(), 200, "after 30 seconds");
        // A head that is never completed.
        let slow = client(&world);
        let id = slow.open();
        slow.say(id, &headers(&GET)[..5]);
        assert_eq!(slow.outcome(id).await, Outcome::Reset(0x10d));
        assert_eq!(slow.closed().await, NO_ERROR);
    });
}

#[test]
fn stopping_worker_finishes_its_requests_and_refuses_others() {
    run(async |world| {
        world.origin(|mut stream| async move {
            OriginRequest::read(&mut stream).await;
            sleep(Duration::from_secs(1)).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx").await.unwrap();
        });
        let client = client(&world);
        let begun = client.begin(&GET);
        client.finish(begun);
        sleep(Duration::from_millis(100)).await;
        client.tell_to_leave();
        sleep(Duration::from_millis(100)).await;
        assert_eq!(client.control()[client.control().len() - 3..], [7, 1, 4], "GOAWAY");
        assert_eq!(client.get("/late").await, Outcome::Reset(REJECTED));
        assert_eq!(client.outcome(begun).await.status(), 200);
        assert_eq!(client.closed().await, NO_ERROR);
        assert_eq!(world.context.in_flight(), 1, "until the client is told");
        sleep(Duration::from_millis(50)).await;
        assert_eq!(world.context.in_flight(), 0);
    });
}

#[test]
fn connection_is_not_closed_before_its_client_has_its_responses() {
    let vcl = r#"sub vcl_deliver { if (req.url == "/last") { set resp.http.connection = "close"; } }"#;
    run_with(
        |_| {},
        vcl,
        async |world| {
            world.origin(always("", "hello"));
            // timeout_idle is 5 seconds, the time to leave half a second, and drain_timeout 5
            // seconds.
            for (path, stops, slow_seconds, then_millis) in
                [("/", false, 30, 5000), ("/last", false, 30, 500), ("/", true, 4, 500)]
            {
                let client = client(&world);
                let id = client.begin(&[GET[0], GET[1], GET[2], (":path", path)]);
                client.finish(id);
                client.is_slow(true);
                sleep(Duration::from_millis(100)).await;
                if stops {
                    client.tell_to_leave();
                }
                sleep(Duration::from_secs(slow_seconds)).await;
                let began = Instant::now();
                client.is_slow(false);
                assert_eq!(client.outcome(id).await.body(), b"hello");
                assert_eq!(client.closed().await, NO_ERROR);
                assert_eq!(began.elapsed().as_millis(), then_millis, "{path} {stops}");
            }
        },
    );
}

#[test]
fn stopping_worker_notifies_slow_clients_before_its_deadline() {
    run(async |world| {
        world.origin(always("", "hello"));
        let client = client(&world);
        let id = client.begin(&GET);
        client.finish(id);
        client.is_slow(true);
        sleep(Duration::from_secs(20)).await;
        let began = Instant::now();
        client.tell_to_leave();
        assert_eq!(client.closed().await, NO_ERROR);
        assert_eq!(began.elapsed().as_millis(), 4500, "drain_timeout is 5 seconds");
    });
}

#[test]
fn client_that_never_takes_the_rest_of_a_response_is_not_waited_for_without_end() {
    run(async |world| {
        world.origin(always("", "hello"));
        let client = client(&world);
        let id = client.begin(&GET);
        client.finish(id);
        client.is_slow(true);
        let began = Instant::now();
        assert_eq!(client.closed().await, NO_ERROR);
        // idle_send_timeout
        assert_eq!(began.elapsed().as_secs(), 60);
        assert_eq!(client.outcome(id).await, Outcome::Closed(NO_ERROR));
        sleep(Duration::from_secs(1)).await;
        world.expect_log("SessClose TX_ERROR");
    });
}

#[test]
fn connections_that_leave_hold_no_memory_for_requests() {
    run(async |world| {
        world.origin(always("", "hello"));
        let clients: Vec<QuicClient> = (0..100).map(|_| client(&world)).collect();
        sleep(Duration::from_millis(100)).await;
        clients.iter().for_each(QuicClient::tell_to_leave);
        sleep(Duration::from_millis(100)).await;
        assert_eq!((world.context.in_flight(), world.count(Main::ReqBytes)), (100, 0));
    });
}

#[test]
fn client_that_gives_up_one_request_after_the_other_is_sent_away() {
    run(async |world| {
        world.origin(|mut stream| async move {
            OriginRequest::read(&mut stream).await;
            sleep(Duration::from_secs(1)).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx").await.unwrap();
        });
        let client = client(&world);
        for _ in 0..150 {
            let id = client.begin(&GET);
            client.finish(id);
            sleep(Duration::from_micros(10)).await;
            client.cancel(id);
        }
        assert_eq!(client.closed().await, 0x107);
        assert_eq!(world.count(Main::H3Abuse), 1);
        sleep(Duration::from_secs(5)).await;
        world.expect_log("SessClose OVERLOAD");
        assert!(world.count(Main::ReqReset) > 100, "{}", world.count(Main::ReqReset));
    });
}

#[test]
fn late_cancellations_are_not_abuse_and_malformed_requests_are() {
    run_with(
        |_| {},
        "sub vcl_recv { return (pass); }",
        async |world| {
            world.origin(|mut stream| async move {
                OriginRequest::read(&mut stream).await;
                sleep(Duration::from_secs(3)).await;
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx").await.unwrap();
            });
            let patient = client(&world);
            for _ in 0..3 {
                let all: Vec<u64> = (0..60).map(|_| patient.begin(&GET)).collect();
                all.iter().for_each(|id| patient.finish(*id));
                // h2_rapid_reset is one second.
                sleep(Duration::from_millis(1100)).await;
                all.iter().for_each(|id| patient.cancel(*id));
                sleep(Duration::from_secs(3)).await;
            }
            assert_eq!(patient.get("/").await.status(), 200);
            assert_eq!((world.count(Main::H3Abuse), world.count(Main::ReqReset)), (0, 180));
            let careless = client(&world);
            for _ in 0..150 {
                careless.begin(&[(":method", "GET"), (":path", "/")]);
                sleep(Duration::from_micros(10)).await;
            }
            assert_eq!(careless.closed().await, 0x107);
            assert_eq!(world.count(Main::H3Abuse), 1);
        },
    );
}

#[test]
fn responses_have_the_latest_priority_of_the_client() {
    run(async |world| {
        world.origin(always("", &"x".repeat(50_000)));
        let client = client(&world);
        let plain = client.begin(&GET);
        let said = client.begin(&[GET[0], GET[1], GET[2], GET[3], ("priority", "u=1, i")]);
        // A frame may arrive before its request, and takes precedence.
        client.prioritise(8, "u=6");
        client.prioritise(8, "u=5");
        sleep(Duration::from_millis(10)).await;
        let early = client.begin(&[GET[0], GET[1], GET[2], GET[3], ("priority", "u=1")]);
        for id in [plain, said, early] {
            client.finish(id);
        }
        sleep(Duration::from_secs(1)).await;
        assert_eq!(early, 8);
        assert_eq!([plain, said, early].map(|id| client.urgencies(id)), [vec![], vec![1], vec![5]]);
        // Their windows are full: priorities sent now count for the rest.
        client.prioritise(plain, "u=0");
        client.prioritise(said, "u=3");
        for id in [plain, said, early] {
            assert_eq!(client.outcome(id).await.body().len(), 50_000);
        }
        assert_eq!([plain, said, early].map(|id| client.urgencies(id)), [vec![0], vec![1, 3], vec![5]]);
    });
}

#[test]
fn client_that_sends_only_useless_frames_is_disconnected() {
    run(async |world| {
        let frames = client(&world);
        let id = frames.open();
        for _ in 0..1100 {
            frames.say(id, &[0x21, 0]);
        }
        assert_eq!(frames.closed().await, 0x107);
        let streams = client(&world);
        for _ in 0..2100 {
            streams.unidirectional(&[0x21]);
        }
        assert_eq!(streams.closed().await, 0x107);
        for frame in [[7, 1, 4], [0xd, 1, 4], [0x21, 1, 0]] {
            let again = client(&world);
            (0..2100).for_each(|_| again.say(2, &frame));
            assert_eq!(again.closed().await, 0x107, "{frame:?}");
        }
    });
}

#[test]
fn occasional_priority_updates_are_tolerated() {
    run(async |world| {
        world.origin(always("", "x"));
        let client = client(&world);
        for round in 0..200 {
            (0..50).for_each(|_| client.prioritise(4 * (round % 10), "u=1"));
            assert_eq!(client.get("/").await.status(), 200);
            sleep(Duration::from_secs(2)).await;
        }
    });
}

#[test]
fn streams_that_come_at_once_are_all_looked_at() {
    run(async |world| {
        let client = client(&world);
        let began = Instant::now();
        // With the control stream this is the maximum number accepted at a time.
        (0..15).for_each(|_| _ = client.unidirectional(&[0x40]));
        client.unidirectional(&[1]);
        assert_eq!((client.closed().await, began.elapsed().as_secs()), (0x103, 0), "a push stream");
    });
}

#[test]
fn client_that_vanishes_before_the_first_answer_is_not_an_abuser() {
    run(async |world| {
        let client = client(&world);
        client.is_narrow(true);
        sleep(Duration::from_millis(100)).await;
        client.vanish();
        sleep(Duration::from_millis(100)).await;
        world.expect_log("SessClose REM_CLOSE");
        assert_eq!(world.count(Main::H3Errors), 0);
    });
}

#[test]
fn stream_without_a_type_is_abandoned() {
    run(async |world| {
        world.origin(always("", "x"));
        let client = client(&world);
        let silent = client.unidirectional(&[]);
        sleep(Duration::from_secs(3)).await;
        assert_eq!(client.get("/").await.status(), 200);
        let other = client.unidirectional(&[0x40]);
        sleep(Duration::from_millis(2100)).await;
        assert_eq!((client.is_told_to_stop(silent), client.is_told_to_stop(other)), (Some(0x103), None));
        assert_eq!(client.get("/").await.status(), 200);
        sleep(Duration::from_secs(3)).await;
        assert_eq!(client.is_told_to_stop(other), Some(0x103));
    });
}

#[test]
fn no_more_requests_are_under_way_than_a_connection_may_have() {
    run(async |world| {
        world.origin(|mut stream| async move {
            OriginRequest::read(&mut stream).await;
            sleep(Duration::from_secs(1)).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx").await.unwrap();
        });
        let client = client(&world);
        let path = |number: usize| format!("/{number}");
        let all: Vec<u64> = (0..120)
            .map(|number| {
                let id = client.begin(&[GET[0], GET[1], GET[2], (":path", &path(number))]);
                client.finish(id);
                id
            })
            .collect();
        let mut refused = 0;
        for id in all {
            match client.outcome(id).await {
                Outcome::Reset(REJECTED) => refused += 1,
                other => assert_eq!(other.status(), 200),
            }
        }
        assert_eq!((refused, world.count(Main::H3Refused)), (20, 20));
    });
}

#[test]
fn early_requests_that_change_something_wait_for_the_handshake() {
    let vcl = "sub vcl_recv { return (pass); }";
    run_with(
        |_| {},
        vcl,
        async |world| {
            world.origin(always("", "x"));
            let client = QuicClient::connect(&world.context, peer(&world), true);
            assert_eq!(client.get("/").await.status(), 200);
            world.expect_log("BereqHeader Early-Data: 1");
            let post = client.begin(&[(":method", "POST"), GET[1], GET[2], GET[3], ("content-length", "1")]);
            client.data(post, b"x");
            client.finish(post);
            sleep(Duration::from_millis(100)).await;
            assert!(!world.log().iter().any(|line| line.contains("BereqMethod POST")));
            client.establish();
            assert_eq!(client.outcome(post).await.status(), 200);
        },
    );
}

#[test]
fn early_requests_that_change_something_end_with_a_handshake_that_fails() {
    run_with(
        |_| {},
        "sub vcl_recv { return (pass); }",
        async |world| {
            world.origin(always("", "x"));
            let client = QuicClient::connect(&world.context, peer(&world), true);
            let post = client.begin(&[(":method", "POST"), GET[1], GET[2], GET[3]]);
            client.finish(post);
            sleep(Duration::from_millis(100)).await;
            client.vanish();
            sleep(Duration::from_secs(100)).await;
            assert!(!world.log().iter().any(|line| line.contains("Method POST")));
            assert!(world.log().iter().any(|line| line.contains("SessClose")));
        },
    );
}

#[test]
fn response_that_the_origin_cut_off_is_not_complete() {
    let vcl = "sub vcl_backend_response { set beresp.uncacheable = true; }";
    run_with(
        |_| {},
        vcl,
        async |world| {
            world.origin(|mut stream| async move {
                OriginRequest::read(&mut stream).await;
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc").await.unwrap();
                sleep(Duration::from_secs(1)).await;
            });
            assert_eq!(client(&world).get("/").await, Outcome::Reset(0x102));
        },
    );
}

#[test]
fn client_that_vanishes_leaves_nothing_behind() {
    run_with(
        |parameters: &mut Parameters| parameters.first_byte_timeout = 3.0,
        "",
        async |world| {
            world.origin(|mut stream| async move {
                OriginRequest::read(&mut stream).await;
                sleep(Duration::from_secs(1000)).await;
                drop(stream);
            });
            let client = client(&world);
            for path in ["/a", "/b", "/c"] {
                let id = client.begin(&[GET[0], GET[1], GET[2], (":path", path)]);
                client.finish(id);
            }
            client.begin(&[(":method", "POST"), GET[1], GET[2], GET[3], ("content-length", "5")]);
            sleep(Duration::from_millis(100)).await;
            client.vanish();
            sleep(Duration::from_secs(10)).await;
            assert_eq!(world.context.in_flight(), 0);
            world.expect_log("SessClose REM_CLOSE");
        },
    );
}
