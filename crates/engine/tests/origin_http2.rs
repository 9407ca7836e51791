//! Origins with HTTP/2: requests share connections, and a misbehaving origin does not harm other
//! requests.

use crate::support::{OriginStream, World, run_with};
use bytes::Bytes;
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use tokio::time::{Instant, sleep};

/// Everything is passed, so that each request is sent to the origin.
const PASS: &str = r#"vcl 4.1;
    backend http2 { .host = "10.0.0.1"; .port = "80"; .http2 = true; }
    sub vcl_recv { return (pass); }"#;
/// Fetched responses are stored.
const STORE: &str = r#"vcl 4.1; backend http2 { .host = "10.0.0.1"; .port = "80"; .http2 = true; }"#;

/// The origin's view of a request, and its answer.
struct Asked {
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
}

impl Asked {
    fn path(&self) -> String {
        self.request.uri().path().to_owned()
    }

    /// A 200 with this body.
    fn answer(mut self, body: &str) {
        let head = Response::builder().header("content-length", body.len()).body(()).unwrap();
        let mut stream = self.respond.send_response(head, false).unwrap();
        stream.send_data(Bytes::from(body.to_owned()), true).unwrap();
    }

    /// A head, and the stream for the rest of the response.
    fn begin(&mut self, fields: &[(&str, &str)]) -> h2::SendStream<Bytes> {
        let mut head = Response::builder();
        for (name, value) in fields {
            head = head.header(*name, *value);
        }
        self.respond.send_response(head.body(()).unwrap(), false).unwrap()
    }

    /// The whole body of the request, and its trailers.
    async fn body(&mut self) -> (Vec<u8>, Option<HeaderMap>) {
        let body = self.request.body_mut();
        let mut all = Vec::new();
        while let Some(Ok(piece)) = body.data().await {
            body.flow_control().release_capacity(piece.len()).unwrap();
            all.extend_from_slice(&piece);
        }
        (all, body.trailers().await.unwrap_or_default())
    }
}

/// Serves each connection with the library's settings, and each request in a task of its own.
fn serve<F: Future<Output = ()> + 'static>(world: &World, answer: impl Fn(Asked) -> F + Clone + 'static) {
    serve_with(world, |_| {}, answer);
}

fn serve_with<F: Future<Output = ()> + 'static>(
    world: &World,
    set: impl Fn(&mut server::Builder) + Clone + 'static,
    answer: impl Fn(Asked) -> F + Clone + 'static,
) {
    world.origin(move |stream: OriginStream| {
        let (set, answer) = (set.clone(), answer.clone());
        async move {
            let mut builder = server::Builder::new();
            set(&mut builder);
            let mut connection = builder.handshake::<_, Bytes>(stream).await.unwrap();
            while let Some(Ok((request, respond))) = connection.accept().await {
                tokio::task::spawn_local(answer(Asked { request, respond }));
            }
        }
    });
}

#[test]
fn a_request_and_its_response_cross_whole() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            serve(&world, |mut asked| async move {
                let (parts, _) = (asked.request.method().clone(), ());
                let seen = format!(
                    "{parts} {} {:?} {:?} {:?}",
                    asked.request.uri(),
                    asked.request.headers().get("x-a"),
                    asked.request.headers().get("connection"),
                    asked.request.headers().get("content-length"),
                );
                let (body, _) = asked.body().await;
                asked.answer(&format!("{seen} {}", String::from_utf8(body).unwrap()));
            });
            let mut client = world.client();
            client
            .send("POST /a?b HTTP/1.1\r\nHost: example.com\r\nX-A: 1\r\nConnection: x-b\r\nX-B: 2\r\nContent-Length: 5\r\n\r\nhello")
            .await;
            let response = client.response().await;
            assert_eq!(
                (response.status(), response.text().as_str()),
                (200, "POST http://example.com/a?b Some(\"1\") None Some(\"5\") hello")
            );
            client
                .send(
                    "POST /c HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
                )
                .await;
            let response = client.response().await;
            assert_eq!(response.text(), "POST http://example.com/c None None None abc");
            for text in [
                "BackendOpen -1 http2 10.0.0.1 80 10.0.0.9 40000 connect",
                "BackendOpen -1 http2 10.0.0.1 80 10.0.0.9 40000 reuse",
                "BackendClose -1 http2 recycle",
                "BereqProtocol HTTP/2.0",
                "BerespProtocol HTTP/2.0",
                "Fetch_Body 3 length stream",
            ] {
                world.expect_log(text);
            }
            assert_eq!((world.dialled(), world.count(Main::BackendConn), world.count(Main::BackendReuse)), (1, 1, 1));
            assert_eq!(world.count(Main::BackendRecycle), 2);
        },
    );
}

#[test]
fn a_response_is_stored_and_served_as_from_any_origin() {
    run_with(
        |_| {},
        STORE,
        |world| async move {
            serve(&world, |mut asked| async move {
                let mut stream = asked.begin(&[("cache-control", "max-age=60"), ("set-cookie2", "x")]);
                stream.send_data(Bytes::from_static(b"first "), false).unwrap();
                sleep(Duration::from_secs(1)).await;
                stream.send_data(Bytes::from_static(b"second"), true).unwrap();
            });
            let mut client = world.client();
            for _ in 0..2 {
                let response = client.get("/", "").await;
                assert_eq!(
                    (response.status(), response.text().as_str(), response.is_whole),
                    (200, "first second", true)
                );
                assert!(response.head.starts_with("HTTP/1.1 200 OK"), "{}", response.head);
            }
            assert_eq!((world.count(Main::CacheHit), world.count(Main::SFetch)), (1, 1));
            world.expect_log("Fetch_Body 2 chunked stream");
        },
    );
}

#[test]
fn a_hundred_requests_share_a_connection_and_none_waits_for_another() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            serve(&world, |asked| async move {
                if asked.path() == "/slow" {
                    sleep(Duration::from_secs(30)).await;
                }
                asked.answer("x");
            });
            let begun = Instant::now();
            let ask = |path: String| {
                let mut client = world.client();
                async move {
                    let response = client.get(&path, "").await;
                    assert_eq!(response.text(), "x");
                    begun.elapsed()
                }
            };
            let mut tasks = vec![tokio::task::spawn_local(ask("/slow".to_owned()))];
            tasks.extend((1..100).map(|number| tokio::task::spawn_local(ask(format!("/{number}")))));
            let mut times = Vec::new();
            for task in tasks {
                times.push(task.await.unwrap());
            }
            assert!(
                times[0] >= Duration::from_secs(30) && times[1..].iter().all(|time| *time < Duration::from_secs(1))
            );
            assert_eq!((world.dialled(), world.context.shared_connections()), (1, 1));
            assert_eq!((world.count(Main::BackendConn), world.count(Main::BackendReuse)), (1, 99));
        },
    );
}

#[test]
fn no_more_requests_are_sent_on_a_connection_than_the_origin_allows() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            let (now, peak) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
            let in_progress = Rc::clone(&peak);
            serve_with(
                &world,
                |builder| _ = builder.max_concurrent_streams(4),
                move |asked| {
                    now.set(now.get() + 1);
                    in_progress.set(in_progress.get().max(now.get()));
                    let now = Rc::clone(&now);
                    async move {
                        sleep(Duration::from_secs(1)).await;
                        now.set(now.get() - 1);
                        asked.answer("x");
                    }
                },
            );
            let tasks: Vec<_> = (0..10)
                .map(|_| {
                    let mut client = world.client();
                    tokio::task::spawn_local(async move { client.get("/", "").await.status() })
                })
                .collect();
            for task in tasks {
                assert_eq!(task.await.unwrap(), 200);
            }
            assert_eq!((world.dialled(), peak.get()), (3, 10), "four on each connection");
            assert_eq!(world.count(Main::BackendRetry), 0);
        },
    );
}

#[test]
fn max_connections_bounds_the_requests_in_flight() {
    let vcl = r#"vcl 4.1; backend http2 { .host = "10.0.0.1"; .port = "80"; .http2 = true; .max_connections = 2; }
        sub vcl_recv { return (pass); }"#;
    run_with(
        |_| {},
        vcl,
        |world| async move {
            serve(&world, |asked| async move {
                sleep(Duration::from_secs(1)).await;
                asked.answer("x");
            });
            let tasks: Vec<_> = (0..3)
                .map(|_| {
                    let mut client = world.client();
                    tokio::task::spawn_local(async move { client.get("/", "").await.status() })
                })
                .collect();
            let mut statuses = Vec::new();
            for task in tasks {
                statuses.push(task.await.unwrap());
            }
            assert_eq!(statuses, [200, 200, 503]);
            assert_eq!(world.count(Main::BackendBusy), 1);
        },
    );
}

#[test]
fn a_stream_that_is_refused_is_sent_again_whatever_its_method() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            let count = Rc::new(Cell::new(0));
            serve(&world, move |mut asked| {
                let number = count.replace(count.get() + 1);
                async move {
                    match number {
                        0 => asked.respond.send_reset(Reason::REFUSED_STREAM),
                        _ => asked.answer("second"),
                    }
                }
            });
            let mut client = world.client();
            client.send("POST / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            let text = client.response().await.text();
            assert_eq!(text, "second", "{}", world.story());
            assert_eq!((world.dialled(), world.count(Main::BackendRetry)), (2, 1));
        },
    );
}

#[test]
fn a_stream_that_is_reset_is_an_error_that_names_the_code() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            serve(&world, |mut asked| async move {
                match asked.path().as_str() {
                    "/head" => asked.respond.send_reset(Reason::INTERNAL_ERROR),
                    "/body" => {
                        let mut stream = asked.begin(&[]);
                        stream.send_data(Bytes::from_static(b"half"), false).unwrap();
                        sleep(Duration::from_secs(1)).await;
                        stream.send_reset(Reason::ENHANCE_YOUR_CALM);
                    }
                    _ => asked.answer("well"),
                }
            });
            let mut client = world.client();
            assert_eq!(client.get("/head", "").await.status(), 503);
            world.expect_log("FetchError stream reset: INTERNAL_ERROR");
            world.expect_log("why origin-reset");
            assert_eq!(client.get("/well", "").await.text(), "well");
            let broken = world.client().get("/body", "").await;
            assert_eq!((broken.status(), broken.is_whole), (200, false));
            world.expect_log("FetchError stream reset: ENHANCE_YOUR_CALM");
            assert_eq!(world.client().get("/well", "").await.text(), "well");
            assert_eq!((world.dialled(), world.count(Main::BackendRetry)), (1, 0), "the connection is kept");
        },
    );
}

#[test]
fn origin_that_sends_goaway_finishes_its_open_streams() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            world.origin(|stream| async move {
                let mut connection = server::handshake(stream).await.unwrap();
                let mut first = true;
                while let Some(Ok((request, respond))) = connection.accept().await {
                    let asked = Asked { request, respond };
                    if std::mem::take(&mut first) {
                        tokio::task::spawn_local(async move {
                            sleep(Duration::from_secs(5)).await;
                            asked.answer("old");
                        });
                        connection.graceful_shutdown();
                    } else {
                        asked.answer("new");
                    }
                }
            });
            let mut slow = world.client();
            let slow = tokio::task::spawn_local(async move { slow.get("/", "").await.text() });
            sleep(Duration::from_secs(1)).await;
            let mut client = world.client();
            let late = tokio::task::spawn_local(async move { client.get("/", "").await.text() });
            assert_eq!(slow.await.unwrap(), "old");
            assert_eq!(late.await.unwrap(), "old", "it was the first on another connection");
            assert_eq!(world.dialled(), 2);
        },
    );
}

/// Frames by hand: an origin that reads as it chooses.
mod frames {
    use super::OriginStream;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    pub const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";

    /// Reads the preface and the frames up to the head of a request; returns the stream's number.
    pub async fn request(stream: &mut OriginStream) -> Option<u32> {
        loop {
            let (kind, number, _) = frame(stream).await?;
            if kind == 1 {
                return Some(number);
            }
        }
    }

    pub async fn preface(stream: &mut OriginStream) {
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).await.unwrap();
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        stream.write_all(SETTINGS).await.unwrap();
    }

    /// Kind, stream, payload.
    pub async fn frame(stream: &mut OriginStream) -> Option<(u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).await.ok()?;
        Some((head[3], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload))
    }

    pub fn made(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        bytes.extend_from_slice(&[kind, flags]);
        bytes.extend_from_slice(&stream.to_be_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }

    /// A GOAWAY that leaves everything beyond that stream undone.
    pub fn goaway(last: u32, code: u32) -> Vec<u8> {
        made(7, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
    }

    /// A 200 without a body.
    pub fn empty_200(stream: u32) -> Vec<u8> {
        made(1, 5, stream, &[0x88])
    }
}

#[test]
fn unprocessed_requests_are_repeated_on_another_connection_after_a_goaway() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            let connections = Rc::new(Cell::new(0));
            let count = Rc::clone(&connections);
            world.origin(move |mut stream| {
                let number = count.replace(count.get() + 1);
                async move {
                    use tokio::io::AsyncWriteExt;
                    frames::preface(&mut stream).await;
                    let asked = frames::request(&mut stream).await.unwrap();
                    let answer = if number == 0 { frames::goaway(0, 0) } else { frames::empty_200(asked) };
                    stream.write_all(&answer).await.unwrap();
                    sleep(Duration::from_secs(1)).await;
                }
            });
            let mut client = world.client();
            client.send("POST / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            assert_eq!(client.response().await.status(), 200);
            assert_eq!((connections.get(), world.count(Main::BackendRetry)), (2, 1));
        },
    );
}

/// An origin whose first connection sends GOAWAY for a request with a body, before or after it has
/// read that; the others answer with the length of the body. Bodies end with their stream.
fn leaving_with_a_body(world: &World, reads_first: bool) {
    let connections = Cell::new(0);
    world.origin(move |mut stream| {
        let number = connections.replace(connections.get() + 1);
        async move {
            if number == 0 {
                use tokio::io::AsyncWriteExt;
                frames::preface(&mut stream).await;
                frames::request(&mut stream).await.unwrap();
                if reads_first {
                    sleep(Duration::from_secs(1)).await;
                }
                let _ = stream.write_all(&frames::goaway(0, 0)).await;
                return sleep(Duration::from_secs(3)).await;
            }
            let mut connection = server::handshake(stream).await.unwrap();
            while let Some(Ok((request, respond))) = connection.accept().await {
                tokio::task::spawn_local(async move {
                    let mut asked = Asked { request, respond };
                    let (body, _) = asked.body().await;
                    asked.answer(&format!("{} bytes", body.len()));
                });
            }
        }
    });
}

const LIMITED: &str = r#"vcl 4.1; backend http2 { .host = "10.0.0.1"; .http2 = true; .fail_limit = 1; }
    sub vcl_recv { return (pass); }"#;

#[test]
fn a_short_body_is_sent_again_after_a_goaway_whatever_the_method() {
    for case in 0..8 {
        let (reads_first, is_stream, bytes) = (case & 1 > 0, case & 2 > 0, if case & 4 > 0 { 3 } else { 60_000 });
        run_with(
            |_| {},
            LIMITED,
            |world| async move {
                leaving_with_a_body(&world, reads_first);
                let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {bytes}\r\n\r\n");
                let response = match is_stream {
                    true => world.stream_client().ask(&head, &vec![b'x'; bytes]).await,
                    false => world.client().post(head, vec![b'x'; bytes]).await,
                };
                assert_eq!(response.text(), format!("{bytes} bytes"), "{case} {}", world.story());
                assert_eq!((world.dialled(), world.count(Main::BackendRetry)), (2, 1));
            },
        );
    }
}

#[test]
fn unkept_body_fails_after_a_goaway_without_a_breaker_failure() {
    for is_stream in [false, true] {
        run_with(
            |_| {},
            LIMITED,
            |world| async move {
                leaving_with_a_body(&world, true);
                let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\n".to_owned();
                if is_stream {
                    let response = world.stream_client().ask(&head, &[b'x'; 70_000]).await;
                    assert_eq!(response.status(), 0, "reset\n{}", world.story());
                } else {
                    let response = world.client().post(head, vec![b'x'; 70_000]).await;
                    assert_eq!(response.status(), 503, "{}", world.story());
                }
                assert_eq!(world.dialled(), 1);
                assert_eq!(world.client().get("/next", "").await.text(), "0 bytes", "{}", world.story());
            },
        );
    }
}

#[test]
fn processed_requests_are_not_repeated_after_a_goaway() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            world.origin(|mut stream| async move {
                use tokio::io::AsyncWriteExt;
                frames::preface(&mut stream).await;
                let asked = frames::request(&mut stream).await.unwrap();
                stream.write_all(&frames::goaway(asked, 2)).await.unwrap();
            });
            let mut client = world.client();
            client.send("POST / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            assert_eq!(client.response().await.status(), 503);
            assert_eq!((world.dialled(), world.count(Main::BackendRetry)), (1, 0));
        },
    );
}

#[test]
fn a_connection_that_breaks_fails_its_requests_and_the_next_one_gets_another() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            let connections = Rc::new(Cell::new(0));
            let count = Rc::clone(&connections);
            world.origin(move |mut stream| {
                let number = count.replace(count.get() + 1);
                async move {
                    use tokio::io::AsyncWriteExt;
                    frames::preface(&mut stream).await;
                    while let Some(asked) = frames::request(&mut stream).await {
                        if number == 0 {
                            sleep(Duration::from_secs(1)).await;
                            return;
                        }
                        stream.write_all(&frames::empty_200(asked)).await.unwrap();
                    }
                }
            });
            let mut client = world.client();
            client.send("POST / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            assert_eq!(client.response().await.status(), 503);
            world.expect_log("FetchError connection closed");
            client.send("POST / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            assert_eq!(client.response().await.status(), 200);
            assert_eq!(connections.get(), 2);
        },
    );
}

#[test]
fn an_origin_that_lets_nothing_be_sent_is_given_up_in_time() {
    let vcl = r#"vcl 4.1; backend http2 { .host = "10.0.0.1"; .port = "80"; .http2 = true; .first_byte_timeout = 3s; }
        sub vcl_recv { return (pass); }"#;
    run_with(
        |_| {},
        vcl,
        |world| async move {
            serve_with(
                &world,
                |builder| _ = builder.initial_window_size(10),
                |mut asked| async move {
                    if asked.path() == "/stalled" {
                        sleep(Duration::from_secs(100)).await;
                        return;
                    }
                    let (body, _) = asked.body().await;
                    asked.answer(&body.len().to_string());
                },
            );
            let begun = Instant::now();
            let head = "POST /stalled HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n".to_owned();
            let mut client = world.client();
            assert_eq!(client.post(head, vec![7; 100_000]).await.status(), 503);
            assert!(begun.elapsed() >= Duration::from_secs(3) && begun.elapsed() < Duration::from_secs(4));
            world.expect_log("FetchError backend write error: 110");
            let head = "POST /small-window HTTP/1.1\r\nHost: a\r\nContent-Length: 10000\r\n\r\n".to_owned();
            assert_eq!(world.client().post(head, vec![7; 10_000]).await.text(), "10000");
            assert_eq!(world.dialled(), 1);
        },
    );
}

#[test]
fn an_origin_may_answer_before_it_has_the_whole_request() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            serve_with(
                &world,
                |builder| _ = builder.initial_window_size(1000),
                |mut asked| async move {
                    let head = Response::builder().status(413).header("content-length", 3).body(()).unwrap();
                    let mut stream = asked.respond.send_response(head, false).unwrap();
                    stream.send_data(Bytes::from_static(b"big"), true).unwrap();
                    sleep(Duration::from_millis(1)).await;
                    asked.respond.send_reset(Reason::NO_ERROR);
                },
            );
            let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n".to_owned();
            let response = world.client().post(head, vec![7; 100_000]).await;
            assert_eq!((response.status(), response.text().as_str()), (413, "big"));
        },
    );
}

#[test]
fn an_answer_of_an_origin_that_opens_no_window_is_not_waited_for() {
    for (status, within) in [(413, 0), (302, 0), (200, 1)] {
        run_with(
            |_| {},
            PASS,
            |world| async move {
                serve_with(
                    &world,
                    |builder| _ = builder.initial_window_size(1000),
                    move |mut asked| async move {
                        let head = Response::builder().status(status).body(()).unwrap();
                        asked.respond.send_response(head, true).unwrap();
                        std::future::pending::<()>().await;
                    },
                );
                let begun = Instant::now();
                let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n".to_owned();
                let response = world.client().post(head, vec![7; 100_000]).await;
                assert_eq!((response.status(), begun.elapsed().as_secs()), (status, within), "{}", world.story());
                let mut slow = world.client();
                slow.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n1").await;
                if status != 200 {
                    assert_eq!(slow.response().await.status(), status, "{}", world.story());
                }
            },
        );
    }
}

#[test]
fn silence_is_a_timeout_of_the_request_and_not_of_the_others() {
    let vcl = r#"vcl 4.1;
        backend http2 { .host = "10.0.0.1"; .port = "80"; .http2 = true; .first_byte_timeout = 2s; .between_bytes_timeout = 4s; }
        sub vcl_recv { return (pass); }"#;
    run_with(
        |_| {},
        vcl,
        |world| async move {
            serve(&world, |mut asked| async move {
                match asked.path().as_str() {
                    "/head" => sleep(Duration::from_secs(100)).await,
                    "/body" => {
                        let mut stream = asked.begin(&[("content-length", "10")]);
                        stream.send_data(Bytes::from_static(b"half"), false).unwrap();
                        sleep(Duration::from_secs(100)).await;
                    }
                    _ => {
                        sleep(Duration::from_secs(1)).await;
                        asked.answer("well");
                    }
                }
            });
            let begun = Instant::now();
            let mut client = world.client();
            assert_eq!(client.get("/well", "").await.text(), "well");
            let mut other = world.client();
            let busy = tokio::task::spawn_local(async move {
                for _ in 0..20 {
                    assert_eq!(other.get("/well", "").await.text(), "well");
                }
            });
            assert_eq!(client.get("/head", "").await.status(), 503);
            assert_eq!(begun.elapsed().as_secs(), 3);
            world.expect_log("FetchError first byte timeout (reused connection)");
            let response = client.get("/body", "").await;
            assert_eq!((response.status(), response.is_whole, begun.elapsed().as_secs()), (200, false, 7));
            world.expect_log("why between-bytes-timeout");
            busy.await.unwrap();
            assert_eq!(world.dialled(), 1, "something came on the connection meanwhile");
        },
    );
}

#[test]
fn a_connection_on_which_nothing_comes_any_more_is_not_used_again() {
    run_with(
        |parameters| parameters.first_byte_timeout = 2.0,
        PASS,
        |world| async move {
            let connections = Rc::new(Cell::new(0));
            let count = Rc::clone(&connections);
            world.origin(move |mut stream| {
                let number = count.replace(count.get() + 1);
                async move {
                    use tokio::io::AsyncWriteExt;
                    frames::preface(&mut stream).await;
                    while let Some(asked) = frames::request(&mut stream).await {
                        if number == 0 && asked > 1 {
                            sleep(Duration::from_secs(100)).await;
                        }
                        stream.write_all(&frames::empty_200(asked)).await.unwrap();
                    }
                }
            });
            let mut client = world.client();
            assert_eq!(client.get("/", "").await.status(), 200);
            sleep(Duration::from_secs(1)).await;
            assert_eq!(client.get("/", "").await.status(), 503);
            assert_eq!(client.get("/", "").await.status(), 200);
            assert_eq!(connections.get(), 2);
        },
    );
}

#[test]
fn the_length_of_a_body_is_checked() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            serve(&world, |mut asked| async move {
                let length = asked.path()[1..].to_owned();
                let mut stream = asked.begin(&[("content-length", &length)]);
                sleep(Duration::from_secs(1)).await;
                let _ = stream.send_data(Bytes::from_static(b"12345"), true);
            });
            for (length, is_whole) in [(5, true), (4, false), (6, false)] {
                let response = world.client().get(&format!("/{length}"), "").await;
                assert_eq!((response.status(), response.is_whole), (200, is_whole), "{length}");
            }
            assert_eq!(world.client().get("/five", "").await.status(), 503);
            assert_eq!(world.dialled(), 1);
        },
    );
}

#[test]
fn no_more_than_a_window_of_a_body_is_taken_ahead() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            let sent = Rc::new(Cell::new(0));
            let count = Rc::clone(&sent);
            serve(&world, move |mut asked| {
                let count = Rc::clone(&count);
                async move {
                    if asked.path() == "/small" {
                        return asked.answer("small");
                    }
                    let mut stream = asked.begin(&[]);
                    for _ in 0..1000 {
                        stream.reserve_capacity(10_000);
                        while stream.capacity() < 10_000 {
                            let more = std::future::poll_fn(|context| stream.poll_capacity(context));
                            if more.await.is_none_or(|more| more.is_err()) {
                                return;
                            }
                        }
                        stream.send_data(Bytes::from(vec![7; 10_000]), false).unwrap();
                        count.set(count.get() + 10_000);
                    }
                    stream.send_data(Bytes::new(), true).unwrap();
                }
            });
            let mut client = world.client_with(4 << 10);
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            sleep(Duration::from_secs(5)).await;
            let ahead = sent.get();
            assert!(ahead < 1_000_000, "{ahead} bytes were taken for a client that reads nothing");
            assert_eq!(world.client().get("/small", "").await.text(), "small", "on the same connection");
            let response = client.response().await;
            assert_eq!((response.body.len(), response.is_whole, world.dialled()), (10_000_000, true, 1));
        },
    );
}

#[test]
fn a_client_that_goes_away_ends_its_stream_and_nothing_else() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            let resets = Rc::new(RefCell::new(Vec::new()));
            let seen = Rc::clone(&resets);
            serve(&world, move |mut asked| {
                let seen = Rc::clone(&seen);
                async move {
                    let mut stream = asked.begin(&[]);
                    loop {
                        if stream.send_data(Bytes::from(vec![7; 1000]), false).is_err() {
                            break;
                        }
                        sleep(Duration::from_millis(100)).await;
                    }
                    let reason = std::future::poll_fn(|context| stream.poll_reset(context)).await;
                    seen.borrow_mut().push(reason.unwrap());
                }
            });
            let mut client = world.client();
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            sleep(Duration::from_secs(1)).await;
            drop(client);
            sleep(Duration::from_secs(1)).await;
            assert_eq!(*resets.borrow(), [Reason::CANCEL]);
            assert_eq!(world.context.shared_connections(), 1);
        },
    );
}

#[test]
fn floods_end_the_connection_and_cost_a_bounded_amount() {
    /// A name, the frame that is sent repeatedly, and words of the log.
    type Flood = (&'static str, fn(u32) -> Vec<u8>);
    let floods: [Flood; 6] = [
        ("pings", |_| frames::made(6, 0, 0, b"12345678")),
        ("settings", |_| frames::made(4, 0, 0, b"")),
        ("empty data", |stream| frames::made(0, 0, stream, b"")),
        ("interim responses", |stream| frames::made(1, 4, stream, b"\x08\x03103")),
        ("unknown frames", |_| frames::made(99, 0, 0, b"x")),
        ("window updates", |_| frames::made(8, 0, 0, &[0, 0, 0, 1])),
    ];
    for (name, flood) in floods {
        run_with(
            |_| {},
            PASS,
            move |world| async move {
                let sent = Rc::new(Cell::new(0));
                let count = Rc::clone(&sent);
                world.origin(move |mut stream| {
                    let count = Rc::clone(&count);
                    async move {
                        use tokio::io::AsyncWriteExt;
                        frames::preface(&mut stream).await;
                        let asked = frames::request(&mut stream).await.unwrap();
                        if name == "empty data" {
                            stream.write_all(&frames::made(1, 4, asked, &[0x88])).await.unwrap();
                        }
                        let (mut reader, mut writer) = tokio::io::split(stream);
                        let reading = tokio::task::spawn_local(async move {
                            let _ = tokio::io::copy(&mut reader, &mut tokio::io::sink()).await;
                        });
                        while writer.write_all(&flood(asked)).await.is_ok() && count.get() < 100_000 {
                            count.set(count.get() + 1);
                        }
                        reading.abort();
                    }
                });
                let mut client = world.client();
                let response = client.get("/", "").await;
                assert!(response.status() == 503 || !response.is_whole, "{name}: {}", response.head);
                sleep(Duration::from_secs(10)).await;
                assert!(sent.get() < 10_000, "{name}: {} were taken", sent.get());
                assert_eq!(world.context.shared_connections(), 0, "{name}");
            },
        );
    }
}

#[test]
fn a_head_beyond_the_limits_is_refused() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            serve(&world, |mut asked| async move {
                let path = asked.path();
                let (count, bytes) = path[1..].split_once('x').unwrap();
                let value = "v".repeat(bytes.parse().unwrap());
                let mut head = Response::builder();
                for number in 0..count.parse::<usize>().unwrap() {
                    head = head.header(format!("x-{number}"), &value);
                }
                let _ = asked.respond.send_response(head.body(()).unwrap(), true);
            });
            for (path, status) in
                [("/10x10", 200), ("/1x9000", 503), ("/100x10", 503), ("/8x6000", 503), ("/60x7000", 503)]
            {
                assert_eq!(world.client().get(path, "").await.status(), status, "{path}");
            }
            world.expect_log("why response-head-too-large");
        },
    );
}

#[test]
fn a_response_with_pseudo_headers_of_a_request_is_a_failed_fetch() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            world.origin(|mut stream| async move {
                use tokio::io::AsyncWriteExt;
                frames::preface(&mut stream).await;
                let heads: [&[u8]; 8] = [
                    &[0x88],
                    &[0x88, 0x82],
                    &[0x88, 0x84],
                    &[0x81, 0x88],
                    &[0x88, 0x00, 7, b':', b'm', b'e', b't', b'h', b'o', b'd', 3, b'G', b'E', b'T'],
                    // It is entered in the table …
                    &[0x88, 0x44, 2, b'/', b'x'],
                    // … and taken from there.
                    &[0x88, 0xbe],
                    &[0x88],
                ];
                for head in heads {
                    let Some(asked) = frames::request(&mut stream).await else { return };
                    stream.write_all(&frames::made(1, 5, asked, head)).await.unwrap();
                }
                // The same in an interim response, and in trailers.
                let asked = frames::request(&mut stream).await.unwrap();
                stream.write_all(&frames::made(1, 4, asked, &[0x08, 3, b'1', b'0', b'3', 0x82])).await.unwrap();
                stream.write_all(&frames::made(1, 5, asked, &[0x88])).await.unwrap();
                let asked = frames::request(&mut stream).await.unwrap();
                stream.write_all(&frames::made(1, 4, asked, &[0x88])).await.unwrap();
                stream.write_all(&frames::made(0, 0, asked, b"body")).await.unwrap();
                stream.write_all(&frames::made(1, 5, asked, &[0x82])).await.unwrap();
                frames::request(&mut stream).await;
            });
            for expected in [200, 503, 503, 503, 503, 503, 503, 200, 503] {
                assert_eq!(world.client().get("/", "").await.status(), expected, "{}", world.story());
            }
            world.expect_log("FetchError pseudo-header of a request in the response");
            world.expect_log("why response-garbled");
            let mut client = world.client();
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            assert!(!client.rest().await.ends_with("0\r\n\r\n"), "the body does not end as a whole one");
            assert_eq!(world.dialled(), 1, "the connection is kept");
        },
    );
}

#[test]
fn a_header_block_without_end_ends_the_connection() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            let sent = Rc::new(Cell::new(0));
            let count = Rc::clone(&sent);
            world.origin(move |mut stream| {
                let count = Rc::clone(&count);
                async move {
                    use tokio::io::AsyncWriteExt;
                    frames::preface(&mut stream).await;
                    let asked = frames::request(&mut stream).await.unwrap();
                    stream.write_all(&frames::made(1, 0, asked, &[0x88])).await.unwrap();
                    while stream.write_all(&frames::made(9, 0, asked, &[0x00; 1])).await.is_ok()
                        && count.get() < 100_000
                    {
                        count.set(count.get() + 1);
                    }
                }
            });
            assert_eq!(world.client().get("/", "").await.status(), 503);
            sleep(Duration::from_secs(10)).await;
            assert!(sent.get() < 10_000, "{} were taken", sent.get());
        },
    );
}

#[test]
fn interim_responses_are_passed_on_and_counted() {
    run_with(
        |parameters| parameters.http_policy = "rfc".into(),
        PASS,
        |world| async move {
            serve(&world, |mut asked| async move {
                let early = Response::builder().status(103).header("link", "</a.css>").body(()).unwrap();
                asked.respond.send_informational(early).unwrap();
                sleep(Duration::from_secs(1)).await;
                asked.answer("late");
            });
            let client = world.stream_client();
            let response = client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"").await;
            assert_eq!((response.text().as_str(), response.interim.len()), ("late", 1));
            assert!(response.interim[0].contains("link: </a.css>"), "{:?}", response.interim);
            assert_eq!(world.count(Main::Fetch1xx), 1);
        },
    );
}

#[test]
fn idle_connections_are_closed_in_time_and_those_of_a_discarded_vcl_at_once() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            let closed = Rc::new(Cell::new(0));
            let count = Rc::clone(&closed);
            world.origin(move |stream| {
                let count = Rc::clone(&count);
                async move {
                    let mut connection = server::handshake(stream).await.unwrap();
                    while let Some(Ok((request, respond))) = connection.accept().await {
                        Asked { request, respond }.answer("x");
                    }
                    count.set(count.get() + 1);
                }
            });
            let close_idle = || world.context.close_idle_origins(world.context.clock.now(), 60.0);
            assert_eq!(world.client().get("/", "").await.text(), "x");
            sleep(Duration::from_secs(1)).await;
            close_idle();
            sleep(Duration::from_secs(59)).await;
            close_idle();
            assert_eq!(world.context.shared_connections(), 1);
            sleep(Duration::from_secs(2)).await;
            close_idle();
            sleep(Duration::from_secs(1)).await;
            assert_eq!((world.context.shared_connections(), closed.get()), (0, 1));
            assert_eq!(world.client().get("/", "").await.text(), "x");
            assert_eq!((world.dialled(), world.context.shared_connections()), (2, 1));
            sleep(Duration::from_secs(1)).await;
            close_idle();
            assert_eq!(world.context.shared_connections(), 1, "its VCL is in use");
        },
    );
}

#[test]
fn requests_that_wait_for_a_connection_share_its_failure() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            let tasks: Vec<_> = (0..5)
                .map(|_| {
                    let mut client = world.client();
                    tokio::task::spawn_local(async move { client.get("/", "").await.status() })
                })
                .collect();
            for task in tasks {
                assert_eq!(task.await.unwrap(), 503);
            }
            world.expect_log("FetchError backend http2: fail errno 111");
            assert_eq!((world.dialled(), world.context.shared_connections()), (1, 0));
        },
    );
}

#[test]
fn every_method_and_kind_of_empty_response_ends() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            serve(&world, |mut asked| async move {
                let status: u16 = asked.path()[1..].parse().unwrap();
                let head = Response::builder().status(status).header("content-length", 0).body(()).unwrap();
                asked.respond.send_response(head, true).unwrap();
            });
            let mut client = world.client();
            for status in [200, 204, 304, 404] {
                assert_eq!(client.get(&format!("/{status}"), "").await.status(), status);
            }
            client.send("HEAD /200 HTTP/1.1\r\nHost: a\r\n\r\n").await;
            assert_eq!(client.response_to_head().await.status(), 200);
            assert_eq!((world.dialled(), world.count(Main::BackendRecycle)), (1, 5));
        },
    );
}

#[test]
fn requests_that_http2_cannot_express_are_neither_sent_nor_repeated_nor_counted() {
    let vcl = r#"vcl 4.1; backend http2 { .host = "10.0.0.1"; .port = "80"; .http2 = true; .fail_limit = 1; .retry_budget = 1; }
        sub vcl_recv { return (pass); }
        sub vcl_backend_fetch { set bereq.http.host = bereq.http.x-host; }"#;
    run_with(
        |_| {},
        vcl,
        |world| async move {
            serve(&world, |asked| async move { asked.answer("x") });
            let mut client = world.client();
            for host in ["me@you", "caf\u{e9}", "me@you"] {
                assert_eq!(client.get("/", &format!("X-Host: {host}\r\n")).await.status(), 503);
                world.expect_log("FetchError host cannot be said over HTTP/2");
                world.expect_log("why request-unsayable");
                assert_eq!(client.get("/", "X-Host: you\r\n").await.status(), 200, "{}", world.story());
            }
            assert_eq!((world.count(Main::FailUnsayable), world.count(Main::BackendRetry), world.dialled()), (3, 0, 1));
        },
    );
}

/// A gRPC call; its body comes later.
const CALL: &str = "POST /pkg.Service/Method HTTP/2.0\r\nHost: a\r\nContent-Type: application/grpc\r\nTE: trailers\r\n\
    grpc-timeout: 10S\r\nX-Length-Unknown: 1\r\n\r\n";

/// Answers each piece of the body with the same, and its end with the number of bytes, in trailers
/// that nothing announces.
async fn echo(mut asked: Asked) {
    assert_eq!(asked.request.headers().get("te").map(|value| value.as_bytes()), Some(&b"trailers"[..]));
    assert_eq!(asked.request.headers().get("grpc-timeout").map(|value| value.as_bytes()), Some(&b"10S"[..]));
    let mut stream = asked.begin(&[("content-type", "application/grpc")]);
    let mut bytes = 0;
    let body = asked.request.body_mut();
    while let Some(piece) = body.data().await {
        let Ok(piece) = piece else { return };
        body.flow_control().release_capacity(piece.len()).unwrap();
        bytes += piece.len();
        stream.send_data(piece, false).unwrap();
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    trailers.insert("grpc-message", bytes.to_string().parse().unwrap());
    trailers.insert("set-cookie", "a=1".parse().unwrap());
    stream.send_trailers(trailers).unwrap();
}

#[test]
fn a_call_goes_on_in_both_directions_and_ends_with_its_trailers() {
    for policy in ["varnish", "rfc"] {
        run_with(
            |parameters| parameters.http_policy = policy.into(),
            PASS,
            |world| async move {
                serve(&world, echo);
                let client = world.stream_client();
                let call = client.call(CALL);
                for number in 1..=5 {
                    sleep(Duration::from_secs(20)).await;
                    call.send(b"ping ");
                    let response = call.until(|response| response.body.len() == 5 * number).await.unwrap();
                    assert_eq!(
                        (response.status(), response.text(), response.is_whole),
                        (200, "ping ".repeat(number), false)
                    );
                }
                call.finish();
                let response = call.response().await.unwrap();
                assert!(response.is_whole, "{}", world.story());
                assert_eq!(response.trailers, "grpc-status: 0\ngrpc-message: 25\n", "{}", world.story());
                assert_eq!(
                    (response.header("trailer"), response.header("content-type")),
                    (None, Some("application/grpc"))
                );
                sleep(Duration::from_secs(1)).await;
                world.expect_log("BackendClose -1 http2 recycle");
                let account = format!("{} 25 ", "BereqAcct");
                assert!(
                    world.log().iter().any(|line| line.contains("BereqAcct") && line.contains(" 25 ")),
                    "{account}"
                );
            },
        );
    }
}

#[test]
fn calls_may_be_longer_than_any_timeout_as_long_as_something_moves() {
    let vcl = r#"vcl 4.1;
        backend http2 { .host = "10.0.0.1"; .port = "80"; .http2 = true; .first_byte_timeout = 3s; .between_bytes_timeout = 3s; }"#;
    run_with(
        |_| {},
        vcl,
        |world| async move {
            serve(&world, |mut asked| async move {
                let (body, _) = asked.body().await;
                asked.answer(&body.len().to_string());
            });
            let client = world.stream_client();
            let call = client.call(CALL);
            for _ in 0..10 {
                call.send(b"x");
                sleep(Duration::from_secs(2)).await;
            }
            call.finish();
            assert_eq!(call.response().await.unwrap().text(), "10");
            let call = client.call(CALL);
            call.send(b"x");
            let response = call.response().await.unwrap();
            assert_eq!(response.status(), 503, "nothing has moved for three seconds");
            world.expect_log("why first-byte-timeout");
        },
    );
}

#[test]
fn the_time_that_a_client_takes_for_its_body_is_not_the_origins() {
    let vcl = r#"vcl 4.1; backend http2 { .host = "10.0.0.1"; .port = "80"; .http2 = true;
        .first_byte_timeout = 3s; .last_byte_timeout = 5s; .fail_limit = 1; }"#;
    run_with(
        |_| {},
        vcl,
        |world| async move {
            serve(&world, |mut asked| async move {
                if asked.path() == "/silent" {
                    return std::future::pending().await;
                }
                let (body, _) = asked.body().await;
                sleep(Duration::from_secs(2)).await;
                asked.answer(&body.len().to_string());
            });
            let client = world.stream_client();
            let silent = CALL.replace("/pkg.Service/Method", "/silent");
            let call = client.call(&silent);
            call.send(b"x");
            assert_eq!(call.response().await.unwrap().status(), 503, "{}", world.story());
            world.expect_log("why first-byte-timeout");

            let call = client.call(CALL);
            call.send(b"x");
            sleep(Duration::from_millis(2900)).await;
            call.finish();
            assert_eq!(call.response().await.unwrap().text(), "1", "since its end the origin has all of its time");

            let call = client.call(CALL);
            for _ in 0..10 {
                call.send(b"x");
                sleep(Duration::from_secs(1)).await;
            }
            call.finish();
            assert_eq!(call.response().await.unwrap().text(), "10", "{}", world.story());
            assert_eq!(world.dialled(), 1, "the connection was not doubted");

            let call = client.call(&silent);
            call.finish();
            assert_eq!(call.response().await.unwrap().status(), 503);
            world.expect_log("Backend_health http2 Went sick");
        },
    );
}

#[test]
fn a_call_that_the_client_gives_up_is_cancelled_at_the_origin_at_once() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            let cancelled = Rc::new(RefCell::new(Vec::new()));
            let seen = Rc::clone(&cancelled);
            serve(&world, move |mut asked| {
                let seen = Rc::clone(&seen);
                async move {
                    let path = asked.path();
                    if path == "/answered" {
                        let mut stream = asked.begin(&[("content-type", "application/grpc")]);
                        stream.send_data(Bytes::from_static(b"x"), false).unwrap();
                        let reason = std::future::poll_fn(|context| stream.poll_reset(context)).await.unwrap();
                        seen.borrow_mut().push((path, reason));
                    } else {
                        let reason = std::future::poll_fn(|context| asked.respond.poll_reset(context)).await.unwrap();
                        seen.borrow_mut().push((path, reason));
                    }
                }
            });
            let client = world.stream_client();
            for (path, is_finished) in
                [("/answered", true), ("/answered", false), ("/silent", true), ("/silent", false)]
            {
                let call = client.call(&CALL.replace("/pkg.Service/Method", path));
                call.send(b"x");
                if is_finished {
                    call.finish();
                }
                sleep(Duration::from_secs(1)).await;
                call.reset();
                sleep(Duration::from_millis(1)).await;
                assert_eq!(
                    cancelled.borrow_mut().pop(),
                    Some((path.to_owned(), Reason::CANCEL)),
                    "{is_finished} {}",
                    world.story()
                );
            }
            assert_eq!(world.context.shared_connections(), 1);
        },
    );
}

#[test]
fn neither_direction_of_a_call_waits_for_the_other() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            let received = Rc::new(Cell::new(0));
            let count = Rc::clone(&received);
            serve(&world, move |mut asked| {
                let count = Rc::clone(&count);
                async move {
                    let mut stream = asked.begin(&[("content-type", "application/grpc")]);
                    stream.send_data(Bytes::from(vec![7; 200_000]), false).unwrap();
                    let body = asked.request.body_mut();
                    while let Some(Ok(piece)) = body.data().await {
                        body.flow_control().release_capacity(piece.len()).unwrap();
                        count.set(count.get() + piece.len());
                    }
                    stream.send_data(Bytes::new(), true).unwrap();
                }
            });
            let client = world.stream_client();
            let call = client.call(CALL);
            call.until(|response| !response.body.is_empty()).await.unwrap();
            // While the response is still being received, in small frames, the body is sent.
            call.send(&vec![7; 300_000]);
            let before = call.until(|_| true).await.unwrap().body.len();
            sleep(Duration::from_micros(200)).await;
            assert!(before < 200_000 && received.get() > 0, "{before} {}", received.get());
            call.finish();
            let response = call.response().await.unwrap();
            assert_eq!((response.body.len(), response.is_whole, received.get()), (200_000, true, 300_000));
        },
    );
}

#[test]
fn backpressure_of_the_origin_reaches_the_client() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            serve(&world, |mut asked| async move {
                let mut stream = asked.begin(&[("content-type", "application/grpc")]);
                stream.send_data(Bytes::from_static(b"x"), false).unwrap();
                sleep(Duration::from_secs(10)).await;
                let (body, _) = asked.body().await;
                stream.send_data(Bytes::from(body.len().to_string()), true).unwrap();
            });
            let client = world.stream_client();
            let call = client.call(CALL);
            call.send(&vec![7; 1_000_000]);
            sleep(Duration::from_secs(5)).await;
            let unread = call.unread_bytes();
            assert!(unread > 700_000, "only {unread} bytes wait at the client");
            call.finish();
            assert_eq!(call.response().await.unwrap().text(), "x1000000");
        },
    );
}

#[test]
fn errors_of_a_call_reach_the_client_as_they_are() {
    run_with(
        |_| {},
        PASS,
        |world| async move {
            serve(&world, |mut asked| async move {
                match asked.path().as_str() {
                    "/trailers-only" => {
                        let head =
                            Response::builder().header("content-type", "application/grpc").header("grpc-status", "5");
                        asked.respond.send_response(head.body(()).unwrap(), true).unwrap();
                    }
                    "/empty" => {
                        let mut stream = asked.begin(&[("content-type", "application/grpc")]);
                        let mut trailers = HeaderMap::new();
                        trailers.insert("grpc-status", "12".parse().unwrap());
                        stream.send_trailers(trailers).unwrap();
                    }
                    "/early" => {
                        let mut stream = asked.begin(&[("content-type", "application/grpc")]);
                        stream.send_data(Bytes::from_static(b"no more"), false).unwrap();
                        let mut trailers = HeaderMap::new();
                        trailers.insert("grpc-status", "8".parse().unwrap());
                        stream.send_trailers(trailers).unwrap();
                        sleep(Duration::from_secs(1)).await;
                        stream.send_reset(Reason::NO_ERROR);
                    }
                    _ => {
                        let mut stream = asked.begin(&[("content-type", "application/grpc")]);
                        stream.send_data(Bytes::from_static(b"half"), false).unwrap();
                        sleep(Duration::from_secs(1)).await;
                        stream.send_reset(Reason::INTERNAL_ERROR);
                    }
                }
            });
            let client = world.stream_client();
            let call = |path: &str| client.call(&CALL.replace("/pkg.Service/Method", path));
            let response = call("/trailers-only").response().await.unwrap();
            assert_eq!((response.status(), response.header("grpc-status"), response.body.len()), (200, Some("5"), 0));
            let response = call("/empty").response().await.unwrap();
            assert_eq!((response.trailers.as_str(), response.body.len()), ("grpc-status: 12\n", 0));
            let early = call("/early");
            early.send(&[7; 100]);
            let response = early.response().await.unwrap();
            assert_eq!((response.text().as_str(), response.trailers.as_str()), ("no more", "grpc-status: 8\n"));
            assert!(call("/broken").response().await.is_none());
            assert_eq!(world.dialled(), 1);
        },
    );
}

#[test]
fn trailers_that_nothing_announces_are_passed_on_for_grpc_only() {
    run_with(
        |parameters| parameters.http_policy = "rfc".into(),
        PASS,
        |world| async move {
            serve(&world, |mut asked| async move {
                let announced = if asked.path() == "/announced" { "x-sum" } else { "x-other" };
                let mut stream = asked.begin(&[("content-type", "text/plain"), ("trailer", announced)]);
                stream.send_data(Bytes::from_static(b"x"), false).unwrap();
                let mut trailers = HeaderMap::new();
                trailers.insert("x-sum", "1".parse().unwrap());
                stream.send_trailers(trailers).unwrap();
            });
            let client = world.stream_client();
            let ask = async |path: &str| {
                client.ask(&format!("GET {path} HTTP/2.0\r\nHost: a\r\nTE: trailers\r\n\r\n"), b"").await
            };
            assert_eq!(ask("/announced").await.trailers, "x-sum: 1\n");
            assert_eq!(ask("/not").await.trailers, "");
        },
    );
}
