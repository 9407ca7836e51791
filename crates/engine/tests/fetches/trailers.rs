//! Trailers: fields after a chunked body, from an origin and from a client.

use crate::support::{OriginRequest, OriginStream, World, run, run_with, serve_each};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use surface::parameter::Parameters;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const HEAD: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\
    Trailer: X-Sum, Set-Cookie, Content-Length\r\n\r\n";
const TRAILERS: &str = "X-Sum: 7\r\nSet-Cookie: evil=1\r\nContent-Length: 9\r\nX-Unannounced: 1\r\n";

fn rfc(parameters: &mut Parameters) {
    parameters.http_policy = "rfc".into();
}

/// An origin whose responses have trailers.
fn serve_with_trailers(world: &World) {
    world.origin(serve_each(|_| format!("{HEAD}5\r\nhello\r\n0\r\n{TRAILERS}\r\n").into_bytes()));
}

/// All bytes that a client gets for its only request.
async fn all_of(world: &World, headers: &str) -> String {
    let mut client = world.client();
    client.send(format!("GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}\r\n")).await;
    client.rest().await
}

#[test]
fn a_client_that_takes_trailers_gets_those_that_were_announced_and_are_harmless() {
    run_with(rfc, "", |world| async move {
        serve_with_trailers(&world);
        let answer = all_of(&world, "TE: trailers\r\n").await;
        assert!(answer.ends_with("\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 7\r\n\r\n"), "{answer}");
        assert!(answer.contains("\r\nTrailer: X-Sum\r\n"), "{answer}");
        assert!(!answer.to_lowercase().contains("content-length"), "{answer}");
        world.expect_log("2 RespHeader X-Sum: 7");
        let hit = all_of(&world, "TE: trailers\r\n").await;
        assert!(hit.ends_with("\r\nhello") && !hit.contains("X-Sum"), "they are not stored: {hit}");
        assert_eq!((world.count(Main::CacheHit), world.count(Main::ReqBytes)), (1, 0));
    });
}

#[test]
fn trailers_that_come_later_than_the_body_are_waited_for() {
    run_with(rfc, "sub vcl_recv { return (pass); }", |world| async move {
        world.origin(async |mut stream: OriginStream| {
            let _ = OriginRequest::read(&mut stream).await;
            for part in [&format!("{HEAD}5\r\nhello\r\n"), "0\r\nX-S", "um: 7\r", "\n\r\n"] {
                stream.write_all(part.as_bytes()).await.unwrap();
                tokio::time::sleep(Duration::from_secs(3)).await;
            }
        });
        let answer = all_of(&world, "TE: trailers\r\n").await;
        assert!(answer.ends_with("hello\r\n0\r\nX-Sum: 7\r\n\r\n"), "{answer}");
    });
}

/// Asserts that the client gets the body and no trailers.
async fn expect_none(world: Rc<World>, headers: &str) {
    serve_with_trailers(&world);
    let answer = all_of(&world, headers).await;
    assert!(answer.ends_with("\r\nhello") || answer.ends_with("\r\nhello\r\n0\r\n\r\n"), "{answer}");
    assert!(!answer.contains("Trailer") && !answer.contains("X-Sum"), "{answer}");
}

#[test]
fn other_clients_get_no_trailers() {
    run_with(rfc, "", |world| expect_none(world, "TE: gzip\r\n"));
    run_with(rfc, "", |world| expect_none(world, ""));
    run_with(rfc, "sub vcl_backend_response { unset beresp.http.Trailer; }", |world| {
        expect_none(world, "TE: trailers\r\n")
    });
    run_with(rfc, "sub vcl_deliver { unset resp.http.Trailer; }", |world| expect_none(world, "TE: trailers\r\n"));
    run(|world| expect_none(world, "TE: trailers\r\n"));
}

#[test]
fn a_range_of_the_body_has_no_trailers() {
    run_with(rfc, "sub vcl_recv { unset req.http.X; }", |world| async move {
        serve_with_trailers(&world);
        let answer = all_of(&world, "TE: trailers\r\nRange: bytes=1-2\r\n").await;
        assert!(!answer.contains("Trailer") && !answer.contains("X-Sum: 7"), "{answer}");
    });
}

#[test]
fn the_origin_is_asked_for_trailers_if_the_client_takes_them() {
    run_with(rfc, "", |world| async move {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let noted = Rc::clone(&seen);
        world.origin(serve_each(move |request| {
            noted.borrow_mut().push(request.header("te").map(str::to_owned));
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()
        }));
        let mut client = world.client();
        client.get("/1", "TE: trailers, gzip;q=0\r\n").await;
        client.get("/2", "TE: gzip\r\n").await;
        assert_eq!(*seen.borrow(), [Some("trailers".to_owned()), None]);
        assert_eq!(world.dialled(), 1, "the connection is used again");
    });
}

#[test]
fn malformed_trailers_end_the_body_as_broken() {
    run_with(rfc, "", |world| async move {
        world.origin(serve_each(|_| format!("{HEAD}5\r\nhello\r\n0\r\nX-Sum: 7\r\n folded\r\n\r\n").into_bytes()));
        let answer = all_of(&world, "TE: trailers\r\n").await;
        assert!(!answer.contains("X-Sum: 7") && !answer.ends_with("0\r\n\r\n"), "{answer}");
        world.expect_log("FetchError chunked tail no NL");
        assert_eq!(world.engine.cache.object_count(), 0);
    });
}

/// The bytes that an origin receives of a request with trailers, after the head.
async fn received_of(world: &World, trailer: &str) -> String {
    let seen = Rc::new(RefCell::new(String::new()));
    let noted = Rc::clone(&seen);
    world.origin(move |mut stream| {
        let noted = Rc::clone(&noted);
        async move {
            let (mut all, mut some) = (Vec::new(), [0; 1000]);
            while !(all.ends_with(b"\r\n\r\n") && all.windows(4).any(|end| end == b"\n0\r\n")) {
                let count = stream.read(&mut some).await.unwrap();
                all.extend_from_slice(&some[..count]);
            }
            *noted.borrow_mut() = String::from_utf8(all).unwrap();
            for _ in 0..2 {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
                let _ = OriginRequest::read(&mut stream).await;
            }
        }
    });
    let mut client = world.client();
    let head = format!("POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n{trailer}\r\n");
    let trailers = "X-Sum: 7\r\nX-Forwarded-For: 127.0.0.1\r\nHost: evil\r\nX-Unannounced: 1\r\n";
    client.send(format!("{head}5\r\nhello\r\n0\r\n{trailers}\r\n")).await;
    assert_eq!(client.response().await.status(), 200, "{}", world.story());
    assert_eq!(client.get("/after", "").await.status(), 200, "nothing of the trailers is taken for the next request");
    let seen = seen.borrow();
    assert_eq!(seen.contains("\r\nTrailer: X-Sum\r\n"), seen.contains("\r\nX-Sum: 7"), "{seen}");
    seen.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn a_clients_trailers_go_to_the_origin_if_announced_and_harmless() {
    let announced = "Trailer: X-Sum, X-Forwarded-For, Host\r\n";
    run_with(rfc, "", |world| async move {
        let origin = received_of(&world, announced).await;
        assert!(origin.ends_with("5\r\nhello\r\n0\r\nX-Sum: 7\r\n\r\n"), "{origin}");
    });
    run_with(rfc, "", |world| async move {
        assert!(received_of(&world, "").await.ends_with("hello\r\n0\r\n\r\n"), "not announced");
    });
    run_with(rfc, "sub vcl_backend_fetch { unset bereq.http.Trailer; }", |world| async move {
        assert!(received_of(&world, announced).await.ends_with("hello\r\n0\r\n\r\n"), "VCL has objected");
    });
    run(|world| async move {
        assert!(received_of(&world, announced).await.ends_with("hello\r\n0\r\n\r\n"), "the policy of Varnish");
    });
}

#[test]
fn bytes_after_a_response_never_answer_the_next_request() {
    for pause in [Duration::ZERO, Duration::from_millis(10)] {
        run_with(rfc, "", |world| async move {
            world.origin(move |mut stream| async move {
                while OriginRequest::read(&mut stream).await.is_some() {
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").await.unwrap();
                    tokio::time::sleep(pause).await;
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil").await;
                }
            });
            let mut client = world.client();
            for target in ["/1", "/2", "/3"] {
                assert_eq!(client.get(target, "").await.text(), "hello", "{}", world.story());
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            assert_eq!(world.dialled(), 3);
        });
    }
}

#[test]
fn unknown_transfer_encoding_is_an_error_unless_allowed() {
    fn lenient(parameters: &mut Parameters) {
        parameters.unknown_transfer_encoding = true;
    }
    async fn ask(world: Rc<World>, head: &'static str, status: u16) {
        world.origin(move |mut stream| async move {
            let _ = OriginRequest::read(&mut stream).await;
            let head = format!("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n{head}\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            tokio::time::sleep(Duration::from_secs(5)).await;
            let _ = stream.write_all(b"hello").await;
        });
        let mut client = world.client();
        let response = client.get("/a", "").await;
        assert_eq!(response.status(), status, "{}", world.story());
        if status == 200 {
            assert_eq!((response.text().as_str(), response.header("transfer-encoding")), ("hello", Some("chunked")));
            let hit = client.get("/a", "").await;
            assert_eq!((hit.text().as_str(), hit.header("transfer-encoding")), ("hello", None));
            assert_eq!(world.count(Main::CacheHit), 1);
        }
    }
    run(|world| ask(world, "Transfer-Encoding: other\r\n", 503));
    run_with(lenient, "", |world| ask(world, "Transfer-Encoding: other\r\n", 200));
    run_with(lenient, "", |world| ask(world, "Transfer-Encoding: chunked, other\r\n", 503));
    run_with(lenient, "", |world| ask(world, "Transfer-Encoding: xChunked\r\n", 503));
    run_with(lenient, "", |world| ask(world, "Transfer-Encoding: other\r\nContent-Length: 5\r\n", 503));
    run_with(lenient, "", |world| ask(world, "Transfer-Encoding: other\r\nTransfer-Encoding: chunked\r\n", 503));
}
