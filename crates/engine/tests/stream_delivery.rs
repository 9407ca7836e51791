//! All kinds of delivery on streams: each test runs over HTTP/2, with the client half of the
//! library `h2`, and over HTTP/3.

use super::support::quic::{Outcome, QuicClient};
use super::support::{OriginRequest, OriginStream, World, always, run_with, serve_each};
use bytes::Bytes;
use engine::peer::Listener;
use engine::transport::FirstProtocol;
use flate2::read::GzDecoder;
use h2::client::SendRequest;
use http::{HeaderMap, Request};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::Read as _;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use surface::counter::Main;
use surface::parameter::{Parameters, feature};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

/// A connection with many streams.
enum Connection {
    Http2(SendRequest<Bytes>),
    Http3(QuicClient),
}

/// A complete response.
#[derive(Default, Debug)]
struct Got {
    status: u16,
    interim: Vec<u16>,
    /// Fields of the head, followed by those of interim responses and trailers.
    fields: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Got {
    fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
    }

    fn take(&mut self, headers: &HeaderMap) {
        let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
        self.fields.extend(headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))));
    }
}

/// The authority of the connection.
const AUTHORITY: &str = "a.example";

impl Connection {
    async fn http2(world: &World) -> Connection {
        let (sender, connection) = h2::client::handshake(world.wire(64 << 10, FirstProtocol::Http2)).await.unwrap();
        tokio::task::spawn_local(async move { _ = connection.await });
        Connection::Http2(sender.ready().await.unwrap())
    }

    fn http3(world: &World) -> Connection {
        let mut peer = world.peer();
        peer.listener = Rc::new(Listener { tls: true, names_scheme: true, ..(*peer.listener).clone() });
        Connection::Http3(QuicClient::connect(&world.context, peer, false))
    }

    /// A request without a body; an error contains the end of its stream or connection.
    async fn ask(&self, method: &str, path: &str, fields: &[(&str, &str)]) -> Result<Got, String> {
        let mut got = Got::default();
        match self {
            Connection::Http2(sender) => {
                let mut request = Request::builder().method(method).uri(format!("https://{AUTHORITY}{path}"));
                for (name, value) in fields {
                    request = request.header(*name, *value);
                }
                let mut sender = sender.clone().ready().await.map_err(|error| error.to_string())?;
                let (mut response, _) = sender.send_request(request.body(()).unwrap(), true).unwrap();
                let head = poll_fn(|task| {
                    while let Poll::Ready(Some(Ok(interim))) = response.poll_informational(task) {
                        got.interim.push(interim.status().as_u16());
                        got.take(interim.headers());
                    }
                    Pin::new(&mut response).poll(task)
                });
                let (head, mut stream) = head.await.map_err(|error| error.to_string())?.into_parts();
                let before = std::mem::take(&mut got.fields);
                (got.status, got.fields) = (head.status.as_u16(), Vec::new());
                got.take(&head.headers);
                got.fields.extend(before);
                while let Some(piece) = stream.data().await {
                    let piece = piece.map_err(|error| error.to_string())?;
                    got.body.extend_from_slice(&piece);
                    stream.flow_control().release_capacity(piece.len()).unwrap();
                }
                if let Some(trailers) = stream.trailers().await.map_err(|error| error.to_string())? {
                    got.take(&trailers);
                }
            }
            Connection::Http3(client) => {
                let head = [(":method", method), (":scheme", "https"), (":authority", AUTHORITY), (":path", path)];
                let Outcome::Response(received, body) = client.ask(&[&head[..], fields].concat()).await else {
                    return Err("reset".to_owned());
                };
                for (name, value) in received {
                    match (name.as_str(), got.status) {
                        (":status", 0) | (":status", 100..=199) => {
                            got.interim.extend((got.status != 0).then_some(got.status));
                            got.status = value.parse().unwrap();
                        }
                        _ => got.fields.push((name, value)),
                    }
                }
                got.body = body;
            }
        }
        Ok(got)
    }

    async fn get(&self, path: &str, fields: &[(&str, &str)]) -> Got {
        self.ask("GET", path, fields).await.unwrap()
    }
}

/// Runs a test over both.
fn over_both<F: Future<Output = ()>>(vcl: &str, story: impl Fn(Rc<World>, Connection) -> F) {
    over_both_with(|_| {}, vcl, story);
}

fn over_both_with<F: Future<Output = ()>>(
    change: impl Fn(&mut Parameters),
    vcl: &str,
    story: impl Fn(Rc<World>, Connection) -> F,
) {
    for is_http3 in [false, true] {
        let change = |parameters: &mut Parameters| {
            parameters.feature |= feature::HTTP2;
            change(parameters);
        };
        run_with(change, vcl, async |world| {
            let connection = if is_http3 { Connection::http3(&world) } else { Connection::http2(&world).await };
            story(world, connection).await;
        });
    }
}

fn rfc(parameters: &mut Parameters) {
    parameters.http_policy = "rfc".into();
}

/// A complete response of an origin.
fn response(head: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[test]
fn pages_are_put_together_and_packed_as_each_client_wants_them() {
    let vcl =
        "sub vcl_backend_response { if (bereq.url == \"/\") { set beresp.do_esi = true; } set beresp.do_gzip = true; }";
    over_both(vcl, async |world, connection| {
        let part = "part ".repeat(20_000);
        let sent = part.clone();
        world.origin(serve_each(move |request| match request.target() {
            "/" => response("", "<p><esi:include src=\"/part\"/>+<esi:include src=\"/part\"/></p>"),
            _ => response("", &sent),
        }));
        let whole = format!("<p>{part}+{part}</p>");
        for _ in 0..2 {
            let plain = connection.get("/", &[]).await;
            assert_eq!(
                (plain.status, plain.field("content-length"), plain.field("content-encoding")),
                (200, None, None)
            );
            assert!(plain.body == whole.as_bytes(), "{} bytes", plain.body.len());
            let packed = connection.get("/", &[("accept-encoding", "gzip")]).await;
            assert_eq!(packed.field("content-encoding"), Some("gzip"));
            let mut unpacked = String::new();
            GzDecoder::new(&packed.body[..]).read_to_string(&mut unpacked).unwrap();
            assert!(unpacked == whole, "{} bytes", unpacked.len());
        }
        let head = connection.ask("HEAD", "/", &[]).await.unwrap();
        assert_eq!((head.status, head.body.len()), (200, 0));
    });
}

#[test]
fn gzipped_objects_are_decompressed_for_clients_without_gzip() {
    over_both("sub vcl_backend_response { set beresp.do_gzip = true; }", async |world, connection| {
        let body = "hello ".repeat(50_000);
        world.origin(always("Cache-Control: max-age=60\r\n", &body));
        for _ in 0..2 {
            let plain = connection.get("/", &[]).await;
            assert!(plain.field("content-encoding").is_none() && plain.body == body.as_bytes());
            let packed = connection.get("/", &[("accept-encoding", "gzip")]).await;
            assert_eq!(packed.field("content-encoding"), Some("gzip"));
            assert!(packed.body.len() < body.len() / 50 && packed.field("vary") == Some("Accept-Encoding"));
        }
        assert_eq!(world.count(Main::CacheMiss), 1);
    });
}

#[test]
fn head_ranges_and_conditions_are_answered_from_one_object() {
    over_both("", async |world, connection| {
        world.origin(always("ETag: \"1\"\r\nCache-Control: max-age=60\r\n", "0123456789"));
        let whole = connection.get("/", &[]).await;
        assert_eq!((whole.field("content-length"), &whole.body[..]), (Some("10"), &b"0123456789"[..]));
        let head = connection.ask("HEAD", "/", &[]).await.unwrap();
        assert_eq!((head.status, head.field("content-length"), head.body.len()), (200, Some("10"), 0));
        for (range, status, content_range, body) in [
            ("bytes=2-4", 206, Some("bytes 2-4/10"), "234"),
            ("bytes=-3", 206, Some("bytes 7-9/10"), "789"),
            ("bytes=5-", 206, Some("bytes 5-9/10"), "56789"),
            ("bytes=10-", 416, Some("bytes */10"), ""),
        ] {
            let got = connection.get("/", &[("range", range)]).await;
            let seen = (got.status, got.field("content-range"), &*String::from_utf8_lossy(&got.body));
            // The contents of the error page are not compared.
            assert_eq!((seen.0, seen.1), (status, content_range), "{range}");
            if status == 206 {
                assert_eq!((seen.2, got.field("content-length")), (body, Some(&*body.len().to_string())), "{range}");
            }
        }
        let same = connection.get("/", &[("if-none-match", "\"1\"")]).await;
        assert_eq!((same.status, same.field("content-length"), same.body.len()), (304, None, 0));
        assert_eq!(same.field("etag"), Some("\"1\""));
        assert_eq!(connection.get("/", &[("if-none-match", "\"2\"")]).await.status, 200);
        assert_eq!(world.count(Main::CacheMiss), 1);
    });
}

#[test]
fn responses_without_a_body_end_with_their_head() {
    over_both("", async |world, connection| {
        world.origin(serve_each(|request| match request.target() {
            "/204" => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
            _ => b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec(),
        }));
        for _ in 0..2 {
            let none = connection.get("/204", &[]).await;
            assert_eq!((none.status, none.field("content-length"), none.body.len()), (204, None, 0));
            let empty = connection.get("/200", &[]).await;
            assert_eq!((empty.status, empty.field("content-length"), empty.body.len()), (200, Some("0"), 0));
        }
    });
}

#[test]
fn early_hints_and_trailers_come_before_and_after() {
    over_both_with(rfc, "", async |world, connection| {
        world.origin(async |mut stream: OriginStream| {
            while OriginRequest::read(&mut stream).await.is_some() {
                let head = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTrailer: X-Sum, Content-Length\r\n\
                    Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 7\r\nContent-Length: 9\r\nX-Other: 1\r\n\r\n";
                stream.write_all(head.as_bytes()).await.unwrap();
            }
        });
        let got = connection.get("/", &[("te", "trailers")]).await;
        assert_eq!((got.status, &got.interim[..], &got.body[..]), (200, &[103][..], &b"body"[..]));
        assert_eq!((got.field("link"), got.field("x-sum")), (Some("</a>"), Some("7")));
        assert_eq!((got.field("content-length"), got.field("x-other")), (None, None));
    });
}

#[test]
fn errors_have_bodies_and_the_connection_goes_on() {
    let vcl = "sub vcl_recv { if (req.url == \"/teapot\") { return (synth(418, \"Teapot\")); } }";
    over_both(vcl, async |_world, connection| {
        for (path, status, text) in [("/none", 503, "Backend fetch failed"), ("/teapot", 418, "Teapot")] {
            for method in ["GET", "HEAD"] {
                let got = connection.ask(method, path, &[]).await.unwrap();
                assert_eq!(got.status, status);
                let length: usize = got.field("content-length").unwrap().parse().unwrap();
                let body = String::from_utf8_lossy(&got.body);
                match method {
                    "GET" => assert!(body.len() == length && body.contains(text), "{body}"),
                    _ => assert!(body.is_empty() && length > 100, "{length}"),
                }
            }
        }
    });
}

#[test]
fn trailers_of_a_request_reach_the_origin_if_they_are_announced_and_harmless() {
    over_both_with(rfc, "", async |world, connection| {
        let heard = Rc::new(RefCell::new(String::new()));
        let told = Rc::clone(&heard);
        world.origin(move |mut stream: OriginStream| {
            let told = Rc::clone(&told);
            async move {
                let mut received = Vec::new();
                while !(received.ends_with(b"\r\n\r\n") && received.windows(5).any(|five| five == b"\r\n0\r\n")) {
                    received.push(stream.read_u8().await.unwrap());
                }
                *told.borrow_mut() = String::from_utf8_lossy(&received).into_owned();
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
            }
        });
        let fields = [("trailer", "x-sum, content-length, host")];
        let trailers = [("x-sum", "7"), ("content-length", "9"), ("host", "evil"), ("x-other", "1")];
        match &connection {
            Connection::Http2(sender) => {
                let mut request = Request::post(format!("https://{AUTHORITY}/")).body(()).unwrap();
                fields.iter().for_each(|(name, value)| _ = request.headers_mut().insert(*name, value.parse().unwrap()));
                let mut sender = sender.clone().ready().await.unwrap();
                let (response, mut sending) = sender.send_request(request, false).unwrap();
                sending.send_data(Bytes::from_static(b"body"), false).unwrap();
                let mut map = HeaderMap::new();
                trailers.iter().for_each(|(name, value)| _ = map.insert(*name, value.parse().unwrap()));
                sending.send_trailers(map).unwrap();
                assert_eq!(response.await.unwrap().status(), 200);
            }
            Connection::Http3(client) => {
                let head = [(":method", "POST"), (":scheme", "https"), (":authority", AUTHORITY), (":path", "/")];
                let id = client.begin(&[&head[..], &fields].concat());
                client.data(id, b"body");
                client.say(id, &super::support::quic::headers(&trailers));
                client.finish(id);
                assert_eq!(client.outcome(id).await.status(), 200);
            }
        }
        let heard = heard.borrow().clone();
        assert!(heard.ends_with("\r\n\r\n4\r\nbody\r\n0\r\nx-sum: 7\r\n\r\n"), "{heard}");
    });
}

#[test]
fn a_pass_ends_when_its_client_gives_it_up_and_others_go_on() {
    over_both("sub vcl_recv { return (pass); }", async |world, connection| {
        let ended = Rc::new(RefCell::new(Vec::new()));
        let told = Rc::clone(&ended);
        world.origin(move |mut stream: OriginStream| {
            let told = Rc::clone(&told);
            async move {
                while let Some(request) = OriginRequest::read(&mut stream).await {
                    if request.target() == "/small" {
                        stream.write_all(&response("", "small")).await.unwrap();
                        continue;
                    }
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n").await.unwrap();
                    while stream.write_all(&[b'x'; 1000]).await.is_ok() {
                        sleep(Duration::from_millis(1)).await;
                    }
                    told.borrow_mut().push(request.target().to_owned());
                    return;
                }
            }
        });
        match &connection {
            Connection::Http2(sender) => {
                let request = Request::get(format!("https://{AUTHORITY}/large")).body(()).unwrap();
                let mut sender = sender.clone().ready().await.unwrap();
                let mut stream = sender.send_request(request, true).unwrap().0.await.unwrap().into_body();
                assert!(!stream.data().await.unwrap().unwrap().is_empty());
                // Dropping it is CANCEL.
            }
            Connection::Http3(client) => {
                let head = [(":method", "GET"), (":scheme", "https"), (":authority", AUTHORITY), (":path", "/large")];
                let id = client.begin(&head);
                client.finish(id);
                sleep(Duration::from_millis(100)).await;
                client.cancel(id);
            }
        }
        assert_eq!(connection.get("/small", &[]).await.body, b"small");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(*ended.borrow(), ["/large"], "the origin is told at once\n{}", world.story());
        assert_eq!(world.context.in_flight(), 0);
        assert_eq!(connection.get("/small", &[]).await.body, b"small");
    });
}

#[test]
fn a_client_that_waits_for_leave_to_send_its_body_gets_it() {
    let vcl = "import std;
        sub vcl_recv { if (req.url == \"/no\") { std.late_100_continue(true); return (synth(403)); } }";
    over_both(vcl, async |world, connection| {
        world.origin(serve_each(|request| response("", &String::from_utf8_lossy(&request.body))));
        for (path, is_welcome) in [("/no", false), ("/yes", true)] {
            let expected = if is_welcome { (200, b"body".to_vec()) } else { (403, Vec::new()) };
            let seen = match &connection {
                Connection::Http2(sender) => {
                    let request = Request::post(format!("https://{AUTHORITY}{path}")).header("expect", "100-continue");
                    let request = request.header("content-length", 4).body(()).unwrap();
                    let mut sender = sender.clone().ready().await.unwrap();
                    let (mut response, mut sending) = sender.send_request(request, false).unwrap();
                    // The first of two events: permission to send, or an answer that needs no body.
                    let leave = poll_fn(|task| response.poll_informational(task)).await;
                    assert_eq!(leave.map(|leave| leave.unwrap().status().as_u16()), is_welcome.then_some(100));
                    if is_welcome {
                        sending.send_data(Bytes::from_static(b"body"), true).unwrap();
                    }
                    let mut response = response.await.unwrap();
                    let body = response.body_mut().data().await.unwrap().unwrap();
                    (response.status().as_u16(), body.to_vec())
                }
                Connection::Http3(client) => {
                    let head = [(":method", "POST"), (":scheme", "https"), (":authority", AUTHORITY), (":path", path)];
                    let more = [("expect", "100-continue"), ("content-length", "4")];
                    let id = client.begin(&[&head[..], &more].concat());
                    if is_welcome {
                        // A future that was not polled would wait for ever.
                        while !client.has_answer(id) {
                            sleep(Duration::from_millis(1)).await;
                        }
                        client.data(id, b"body");
                        client.finish(id);
                    }
                    let outcome = client.outcome(id).await;
                    let Outcome::Response(fields, body) = outcome else { panic!("{outcome:?}") };
                    let statuses: Vec<&str> =
                        fields.iter().filter(|(name, _)| name == ":status").map(|(_, value)| value.as_str()).collect();
                    assert_eq!(statuses, if is_welcome { vec!["100", "200"] } else { vec!["403"] });
                    (statuses.last().unwrap().parse().unwrap(), body)
                }
            };
            assert_eq!(seen.0, expected.0, "{path}");
            assert!(!is_welcome || seen.1 == expected.1, "{path}: {:?}", String::from_utf8_lossy(&seen.1));
        }
    });
}
