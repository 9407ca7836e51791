//! Delivery: lengths, ranges, conditions, codings, streaming, and failures of either end.

use crate::support::{OriginRequest, always, run, run_with};
use engine::transport::{FirstProtocol, serve};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::cell::RefCell;
use std::io::{IoSlice, Write};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use surface::counter::Main;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::{Instant, sleep};

#[test]
fn head_is_answered_without_a_body_from_the_same_object() {
    run(async |world| {
        world.origin(always("", "hello"));
        let mut client = world.client();
        client.get("/", "").await;
        client.send("HEAD / HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
        let head = client.response_to_head().await;
        assert_eq!((head.status(), head.header("content-length")), (200, Some("5")));
        assert_eq!(client.get("/", "").await.text(), "hello");
        assert_eq!(world.count(Main::CacheHit), 2);
    });
}

#[test]
fn condition_that_holds_is_a_304_without_a_length() {
    run(async |world| {
        world.origin(always("ETag: \"abc\"\r\n", "hello"));
        let mut client = world.client();
        client.get("/", "").await;
        let response = client.get("/", "If-None-Match: \"abc\"\r\n").await;
        assert!(response.head.starts_with("HTTP/1.1 304 Not Modified\r\n"), "{}", response.head);
        assert_eq!(response.header("content-length"), None);
        assert_eq!(client.get("/", "If-None-Match: \"abd\"\r\n").await.text(), "hello");
    });
}

#[test]
fn range_is_cut_out_and_an_impossible_one_refused() {
    run(async |world| {
        world.origin(always("", "0123456789"));
        let mut client = world.client();
        client.get("/", "").await;
        let part = client.get("/", "Range: bytes=2-4\r\n").await;
        assert_eq!((part.status(), part.text().as_str()), (206, "234"));
        assert_eq!(part.header("content-range"), Some("bytes 2-4/10"));
        assert_eq!(part.header("content-length"), Some("3"));
        let last = client.get("/", "Range: bytes=-3\r\n").await;
        assert_eq!((last.status(), last.text().as_str()), (206, "789"));
        // A number that does not fit into a machine word is a large one.
        for range in ["0-99999999999999999999", "-99999999999999999999"] {
            let all = client.get("/", &format!("Range: bytes={range}\r\n")).await;
            assert_eq!((all.status(), all.text().as_str()), (206, "0123456789"), "{range}");
            assert_eq!(all.header("content-range"), Some("bytes 0-9/10"));
        }
        let none = client.get("/", "Range: bytes=20-40\r\n").await;
        assert_eq!((none.status(), none.header("content-range")), (416, Some("bytes */10")));
        assert_eq!(none.header("content-length"), Some("0"));
        world.expect_log("Filters  range");
    });
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn gzipped_object_is_unpacked_for_clients_that_cannot() {
    run(async |world| {
        let packed = gzip(&"hello ".repeat(1000));
        let answer = packed.clone();
        world.origin(crate::support::serve_each(move |_| {
            let head = format!(
                "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
                answer.len()
            );
            [head.as_bytes(), &answer].concat()
        }));
        let mut client = world.client();
        let as_is = client.get("/", "Accept-Encoding: gzip\r\n").await;
        assert_eq!((as_is.header("content-encoding"), &as_is.body), (Some("gzip"), &packed));
        let plain = client.get("/", "").await;
        assert_eq!(plain.text(), "hello ".repeat(1000));
        assert_eq!((plain.header("content-encoding"), plain.header("content-length")), (None, Some("6000")));
        assert_eq!(plain.header("etag"), Some("W/\"a\""));
        let part = client.get("/", "Range: bytes=6-10\r\n").await;
        assert_eq!((part.status(), part.text().as_str()), (206, "hello"));
        world.expect_log("Filters  gunzip range");
        world.expect_log("Gzip U D -");
        assert_eq!(world.count(Main::CacheMiss), 1);
    });
}

#[test]
fn body_is_passed_on_while_it_is_still_being_fetched() {
    run(async |world| {
        world.origin(|mut stream| async move {
            OriginRequest::read(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n").await.unwrap();
            sleep(Duration::from_secs(10)).await;
            stream.write_all(b"6\r\nsecond\r\n0\r\n\r\n").await.unwrap();
            sleep(Duration::from_secs(100)).await;
        });
        let start = Instant::now();
        let mut first = world.client();
        first.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
        let head_and_first = first.receive(160).await;
        assert!(head_and_first.starts_with("HTTP/1.1 200 OK\r\n"), "{head_and_first}");
        assert!(start.elapsed() < Duration::from_secs(1));
        let mut second = world.client();
        let whole = second.get("/", "").await;
        assert_eq!((whole.text().as_str(), whole.is_whole), ("firstsecond", true));
        assert_eq!(whole.header("transfer-encoding"), Some("chunked"));
        assert_eq!(start.elapsed().as_secs(), 10);
        let third = second.get("/", "").await;
        assert_eq!((third.text().as_str(), third.header("content-length")), ("firstsecond", Some("11")));
        assert_eq!((world.count(Main::CacheMiss), world.count(Main::CacheHit)), (1, 2));
    });
}

#[test]
fn unknown_length_ends_with_the_connection_for_http_1_0() {
    run_with(
        |_| {},
        "sub vcl_recv { return (pass); }",
        async |world| {
            world.origin(|mut stream| async move {
                OriginRequest::read(&mut stream).await;
                stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n").await.unwrap();
                sleep(Duration::from_secs(1)).await;
                stream.write_all(b"0\r\n\r\n").await.unwrap();
            });
            let mut client = world.client();
            client.send("GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n").await;
            let text = client.rest().await;
            assert!(text.ends_with("\r\n\r\nfirst"), "{text}");
            assert!(!text.contains("chunked"), "{text}");
            world.expect_log("SessClose TX_EOF");
        },
    );
}

#[test]
fn fetch_that_breaks_midway_is_not_taken_for_whole() {
    run(async |world| {
        world.origin(|mut stream| async move {
            OriginRequest::read(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n").await.unwrap();
            sleep(Duration::from_secs(1)).await;
        });
        let mut client = world.client();
        let response = client.get("/", "").await;
        assert_eq!((response.text().as_str(), response.is_whole), ("first", false));
        assert_eq!(client.rest().await, "");
        world.expect_log("SessClose REM_CLOSE");
        let mut other = world.client();
        assert!(!other.get("/", "").await.is_whole, "it must not have been stored");
        assert_eq!(world.count(Main::CacheHit), 0);
    });
}

#[test]
fn origin_that_refuses_is_a_503() {
    run(async |world| {
        let mut client = world.client();
        let response = client.get("/", "").await;
        assert_eq!(response.status(), 503);
        assert!(response.text().contains("503"), "{}", response.text());
    });
}

#[test]
fn client_that_takes_nothing_is_dropped_after_send_timeout() {
    run_with(
        |parameters| {
            parameters.send_timeout = 15.0;
            parameters.idle_send_timeout = 10.0;
        },
        "",
        async |world| {
            world.origin(always("", &"x".repeat(100_000)));
            let start = Instant::now();
            let mut client = world.client_with(1000);
            client.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
            while world.count(Main::ScTxError) == 0 {
                sleep(Duration::from_secs(1)).await;
                assert!(start.elapsed().as_secs() < 60, "{}", world.story());
            }
            assert!((15..=17).contains(&start.elapsed().as_secs()));
            world.expect_log("SessClose TX_ERROR");
        },
    );
}

#[test]
fn send_timeout_counts_from_the_start_of_the_delivery() {
    run_with(
        |parameters| parameters.send_timeout = 4.0,
        "",
        async |world| {
            // The client reads at once: it is the origin that is slow.
            world.origin(async |mut stream| {
                OriginRequest::read(&mut stream).await;
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n").await.unwrap();
                for _ in 0..10 {
                    stream.write_all(b"x").await.unwrap();
                    sleep(Duration::from_secs(1)).await;
                }
            });
            let start = Instant::now();
            let mut client = world.client();
            client.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
            let got = client.rest().await;
            assert!(got.ends_with("\r\n\r\nxxxx"), "{got}");
            assert_eq!(start.elapsed().as_secs(), 4);
            world.expect_log("SessClose TX_ERROR 4.000");
            // The time for a head does not count, nor is an answer aborted that is sent at once.
            sleep(Duration::from_secs(10)).await;
            assert_eq!(world.client().get("/", "").await.text(), "x".repeat(10));
        },
    );
}

#[test]
fn client_that_pauses_longer_than_idle_send_timeout_gets_everything() {
    run_with(
        |parameters| parameters.idle_send_timeout = 1.0,
        "",
        async |world| {
            world.origin(always("", &"x".repeat(100_000)));
            let mut client = world.client_with(1000);
            client.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
            sleep(Duration::from_secs(5)).await;
            let response = client.response().await;
            assert_eq!(response.text().len(), 100_000);
        },
    );
}

#[test]
fn large_body_arrives_byte_for_byte_through_a_narrow_connection() {
    run(async |world| {
        let body: String = (0..200_000).map(|number| char::from(b'a' + (number % 23) as u8)).collect();
        world.origin(always("", &body));
        let mut client = world.client_with(777);
        for _ in 0..3 {
            let response = client.get("/", "").await;
            assert!(response.text() == body);
        }
    });
}

#[test]
fn unknown_filter_is_an_error_of_that_response_alone() {
    run_with(
        |_| {},
        r#"sub vcl_deliver { if (req.url == "/f") { set resp.filters = "nonesuch"; } }"#,
        async |world| {
            world.origin(always("", "x"));
            let mut client = world.client();
            client.send("GET /f HTTP/1.1\r\nHost: a\r\n\r\n").await;
            assert_eq!(client.rest().await, "HTTP/1.1 500 Internal Server Error\r\n\r\n");
            world.expect_log("Error Filter '...nonesuch' not found");
            world.expect_log("SessClose OVERLOAD");
            assert_eq!(world.client().get("/", "").await.text(), "x");
        },
    );
}

/// A client that sends the given number of requests, and takes at most the given number of bytes at
/// a time; records each write.
struct Counted(Rc<RefCell<Asked>>, usize);

#[derive(Default)]
struct Asked {
    left: usize,
    write_sizes: Vec<usize>,
    received: Vec<u8>,
}

impl AsyncRead for Counted {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let mut state = self.0.borrow_mut();
        let Some(left) = state.left.checked_sub(1) else { return Poll::Pending };
        state.left = left;
        room.put_slice(b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Counted {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).take(self.1).collect();
        let mut state = self.0.borrow_mut();
        state.write_sizes.push(bytes.len());
        state.received.extend_from_slice(&bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn a_body_that_was_stored_in_pieces_goes_out_in_one_write() {
    // The first is in several pieces, the last in more than are sent at once.
    for (body_bytes, writes) in [(45_000_usize, 1..=1), (3_000_000, 2..=8)] {
        for write_bytes in [usize::MAX, 1_000] {
            run(async |world| {
                let body: Vec<u8> = (0..body_bytes).map(|at| (at % 251) as u8).collect();
                let origin_body = body.clone();
                world.origin(move |mut stream| {
                    let body = origin_body.clone();
                    async move {
                        OriginRequest::read(&mut stream).await;
                        stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await.unwrap();
                        for piece in body.chunks(8_000) {
                            stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await.unwrap();
                            stream.write_all(piece).await.unwrap();
                            stream.write_all(b"\r\n").await.unwrap();
                        }
                        stream.write_all(b"0\r\n\r\n").await.unwrap();
                        sleep(Duration::from_secs(100)).await;
                    }
                });
                assert!(world.client().get("/", "").await.body == body);
                let state = Rc::new(RefCell::new(Asked { left: 2, ..Asked::default() }));
                let client = Counted(Rc::clone(&state), write_bytes);
                let context = Rc::clone(&world.context);
                let session = serve(context, client, world.peer(), Vec::new(), FirstProtocol::Either);
                assert!(tokio::time::timeout(Duration::from_secs(1), session).await.is_err(), "it waits for more");
                let Asked { write_sizes: sizes, received: bytes, .. } = state.take();
                if write_bytes == usize::MAX {
                    assert!(writes.contains(&(sizes.len() / 2)), "{sizes:?}");
                }
                let at = bytes.len() / 2;
                for response in [&bytes[..at], &bytes[at..]] {
                    let (head, got) = response.split_at(response.len() - body_bytes);
                    let head = String::from_utf8_lossy(head);
                    assert!(head.contains(&format!("Content-Length: {body_bytes}\r\n")), "{head}");
                    assert!(head.ends_with("\r\n\r\n") && got == body, "{head}");
                }
                world.expect_log(&format!(" {body_bytes}"));
            });
        }
    }
}

#[test]
fn pieces_of_a_pass_that_are_there_go_out_together() {
    for write_bytes in [usize::MAX, 1_000] {
        run(async |world| {
            world.load("passing", "sub vcl_recv { return (pass); }");
            let body: Vec<u8> = (0..400_000).map(|at| (at % 251) as u8).collect();
            let origin_body = body.clone();
            world.origin(move |mut stream| {
                let body = origin_body.clone();
                async move {
                    OriginRequest::read(&mut stream).await;
                    let mut answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
                    for piece in body.chunks(8_000) {
                        answer.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                        answer.extend_from_slice(piece);
                        answer.extend_from_slice(b"\r\n");
                    }
                    answer.extend_from_slice(b"0\r\n\r\n");
                    stream.write_all(&answer).await.unwrap();
                    sleep(Duration::from_secs(100)).await;
                }
            });
            let state = Rc::new(RefCell::new(Asked { left: 1, ..Asked::default() }));
            let client = Counted(Rc::clone(&state), write_bytes);
            let context = Rc::clone(&world.context);
            let session = serve(context, client, world.peer(), Vec::new(), FirstProtocol::Either);
            assert!(tokio::time::timeout(Duration::from_secs(1), session).await.is_err(), "it waits for more");
            let Asked { write_sizes, received, .. } = state.take();
            if write_bytes == usize::MAX {
                assert!(write_sizes.len() < 35, "fifty chunks, {write_sizes:?}");
            }
            let text = String::from_utf8_lossy(&received);
            assert!(text.contains("Transfer-Encoding: chunked\r\n") && text.ends_with("\r\n0\r\n\r\n"));
            let at = received.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
            let (mut rest, mut got) = (&received[at..], Vec::new());
            while !rest.is_empty() {
                let line = rest.iter().position(|byte| *byte == b'\r').unwrap();
                let length = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
                got.extend_from_slice(&rest[line + 2..line + 2 + length]);
                rest = &rest[line + 2 + length + 2..];
            }
            assert!(got == body);
        });
    }
}
