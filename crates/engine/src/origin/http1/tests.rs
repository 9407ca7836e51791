//! Promises of an exchange over HTTP/1.1, tested with an origin that records every write it
//! receives.

use super::*;
use crate::fetch::task::tests::{event_loop, order};
use crate::origin::OriginExchange;
use backend::{ClientName, Dial, DialTarget, Dialling, Ends, Notes, OpenRequest, ResolveContext, Stream};
use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The bytes sent to the origin, and its answer, which arrives all at once and is followed by the
/// end of the stream.
#[derive(Default)]
struct Script {
    writes: RefCell<Vec<Vec<u8>>>,
    answer: RefCell<Vec<u8>>,
    /// The stream ends without close_notify.
    is_cut_off: bool,
    /// The origin sends nothing and keeps the connection open.
    is_silent: bool,
}

struct Scripted(Rc<Script>);

impl Stream for Scripted {
    fn ends(&self) -> Ends {
        Ends { remote: None, local: None, fd: -1 }
    }

    fn was_cut_off(&self) -> bool {
        self.0.is_cut_off && self.0.answer.borrow().is_empty()
    }
}

impl AsyncRead for Scripted {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.0.is_silent {
            return Poll::Pending;
        }
        let mut answer = self.0.answer.borrow_mut();
        let count = answer.len().min(into.remaining());
        into.put_slice(&answer[..count]);
        answer.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Scripted {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.writes.borrow_mut().push(bytes.to_vec());
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

struct DialScript(Rc<Script>);

impl Dial for DialScript {
    fn dial<'a>(&'a self, _: &'a DialTarget, _: Duration) -> Dialling<'a> {
        let stream = Scripted(Rc::clone(&self.0));
        Box::pin(async { Ok(Box::new(stream) as Box<dyn Stream>) })
    }
}

/// An exchange and its environment.
struct Scene {
    context: Rc<Loop>,
    script: Rc<Script>,
    log: LogBuffer,
    exchange: OriginExchange,
    bereq: Message,
    beresp: Message,
}

const STALL: Duration = Duration::from_secs(1);

impl Scene {
    /// A scene with an origin that gives this answer.
    async fn new(answer: &str) -> Scene {
        Scene::with(Script { answer: RefCell::new(answer.into()), ..Script::default() }).await
    }

    /// A scene with an origin that reads and does not answer.
    async fn silent() -> Scene {
        Scene::with(Script { is_silent: true, ..Script::default() }).await
    }

    async fn with(script: Script) -> Scene {
        let context = event_loop();
        let order = order(&context);
        let notes = Notes::new();
        let backend = order.order.vcl.directors.resolve(
            order.director,
            &ResolveContext {
                now: 1.0,
                random: &context.engine.random,
                url: b"/",
                host: None,
                client: ClientName { identity: None, address: None },
                digest: None,
                is_for_cache: true,
                shard: None,
                notes: &notes,
            },
        );
        let script = Rc::new(script);
        let request = OpenRequest {
            backend: &backend.unwrap_or_else(|none| panic!("{}", none.text())).backend,
            pool: &context.pool,
            dial: &DialScript(Rc::clone(&script)),
            parameters: &context.engine.parameters.load_full(),
            counters: &context.counters,
            clock: &|| 1.0,
            connect_timeout: None,
            fresh: true,
            client: None,
            offers_http2: false,
            held: Cell::default(),
            trial: Cell::default(),
        };
        let exchange = OriginExchange::open(&request, &context).await.unwrap_or_else(|error| panic!("{error}"));
        let mut bereq = Message::new();
        bereq.set_method(b"PUT");
        bereq.set_target(b"/");
        bereq.set_protocol(b"HTTP/1.1");
        let mut log = LogBuffer::new(&context.engine.ring);
        log.start(shm::log::LogId::backend(1), 1.0);
        Scene { log, context, script, exchange, bereq, beresp: Message::new() }
    }

    fn writes(&self) -> Vec<String> {
        self.script.writes.borrow().iter().map(|write| String::from_utf8_lossy(write).into_owned()).collect()
    }

    fn begin(&mut self, body: BodyAnnounced) {
        self.exchange.describe_body(body, &mut self.bereq, &mut self.log);
        self.exchange.put_head(&self.bereq).unwrap();
    }

    async fn head(&mut self) -> ResponseBody {
        self.exchange.receive_head(&mut self.beresp, &limits()).await.unwrap();
        self.exchange.begin_body(&self.bereq, &self.beresp, BodySettings::default()).unwrap()
    }

    /// The pieces of the body until its end.
    async fn body(&mut self) -> Result<Vec<String>, CutShort> {
        let mut pieces = Vec::new();
        while self.exchange.more_body(&limits()).await? > 0 {
            let piece = self.exchange.body().to_vec();
            self.exchange.consume_body(piece.len());
            pieces.push(String::from_utf8(piece).unwrap());
        }
        Ok(pieces)
    }

    /// Releases the connection and returns the log's records about that.
    fn released(mut self) -> String {
        self.exchange.release(&self.beresp, &self.context, &mut self.log);
        self.log.end();
        let records = self.context.engine.ring.records();
        let close = records.iter().find(|record| record.tag == Tag::BackendClose).unwrap();
        String::from_utf8_lossy(&close.payload).into_owned()
    }
}

fn limits() -> ReceiveLimits {
    ReceiveLimits {
        first_byte: Duration::from_secs(60),
        first_byte_by: Instant::now() + STALL,
        between_bytes: STALL,
        last_byte_by: None,
        at_once_bytes: 0,
        head_bytes_max: 1 << 10,
        header_bytes_max: 1 << 10,
        headers_max: 64,
    }
}

#[tokio::test]
async fn a_head_and_a_short_body_go_out_as_one_and_a_long_one_behind_it() {
    let mut scene = Scene::silent().await;
    scene.begin(BodyAnnounced::Length(5));
    assert_eq!(scene.exchange.send(b"short", STALL).await, Ok(5));
    assert_eq!(scene.exchange.end(None, STALL).await, Ok(0));
    assert_eq!(scene.writes(), ["PUT / HTTP/1.1\r\nContent-Length: 5\r\n\r\nshort"]);

    let mut scene = Scene::silent().await;
    let long = vec![b'x'; JOINED_BODY_BYTES_MAX + 1];
    scene.begin(BodyAnnounced::Length(long.len() as u64));
    assert_eq!(scene.exchange.send(&long, STALL).await, Ok(long.len() as u64));
    let sizes: Vec<bool> = scene.writes().iter().map(|write| write.len() == long.len()).collect();
    assert_eq!(sizes, [false, true]);
}

#[tokio::test]
async fn a_body_of_unknown_length_goes_out_in_chunks_and_of_nothing_there_is_none() {
    let mut scene = Scene::silent().await;
    scene.begin(BodyAnnounced::Unknown);
    assert_eq!(scene.exchange.send(b"", STALL).await, Ok(0));
    assert_eq!(scene.exchange.send(b"abc", STALL).await, Ok(8));
    assert_eq!(scene.exchange.send(b"", STALL).await, Ok(0));
    assert_eq!(scene.exchange.end(None, STALL).await, Ok(5));
    let head = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(scene.writes(), [head, "3\r\nabc\r\n", "0\r\n\r\n"]);
}

#[tokio::test]
async fn pieces_come_without_their_framing_and_the_connection_serves_again() {
    let mut scene =
        Scene::new("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").await;
    let body = scene.head().await;
    assert_eq!((body.size, body.carriage), (BodyAnnounced::Unknown, Some(&CHUNKED)));
    assert_eq!(scene.body().await, Ok(vec!["abc".to_owned(), "de".to_owned()]));
    assert_eq!(scene.released(), "-1 default recycle");
}

#[tokio::test]
async fn interim_heads_come_one_by_one_and_leave_nothing_behind() {
    let mut scene = Scene::new("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n").await;
    let interim = scene.exchange.receive_head(&mut scene.beresp, &limits()).await;
    assert_eq!((interim.unwrap(), scene.beresp.status()), (37, 103));
    assert_eq!(scene.head().await, ResponseBody::default());
    assert_eq!((scene.beresp.status(), scene.beresp.has("Link")), (204, false));
    assert_eq!(scene.body().await, Ok(Vec::new()));
    assert_eq!(scene.released(), "-1 default recycle");
}

#[tokio::test]
async fn excess_bytes_or_close_end_the_connection() {
    let mut scene = Scene::new("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 200").await;
    assert_eq!(scene.head().await.size, BodyAnnounced::Length(2));
    assert_eq!(scene.body().await, Ok(vec!["ab".to_owned()]));
    assert_eq!(scene.released(), format!("-1 default close {}", close_reason::JUNK));

    let mut scene = Scene::new("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").await;
    scene.head().await;
    scene.beresp.unset("Connection");
    assert_eq!(scene.released(), format!("-1 default close {}", close_reason::REQUESTED));

    for (connection, why) in [("", close_reason::PROTOCOL), ("Connection: close\r\n", close_reason::REQUESTED)] {
        let mut scene = Scene::new(&format!("HTTP/1.0 204 No Content\r\n{connection}\r\n")).await;
        scene.head().await;
        assert_eq!(scene.released(), format!("-1 default close {why}"));
    }
}

#[tokio::test]
async fn a_body_that_ends_with_the_connection_is_whole_and_one_that_ends_before_its_end_is_not() {
    let mut scene = Scene::new("HTTP/1.1 200 OK\r\n\r\nabc").await;
    assert_eq!(scene.head().await.carriage, Some(&UNTIL_CLOSE));
    assert_eq!(scene.body().await, Ok(vec!["abc".to_owned()]));
    assert_eq!(scene.released(), format!("-1 default close {}", close_reason::REQUESTED));

    let mut scene = Scene::new("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc").await;
    scene.head().await;
    assert_eq!(scene.body().await, Err(CutShort::GONE));
}

#[tokio::test]
async fn an_encrypted_body_that_ends_with_the_connection_needs_the_origins_word_if_that_is_asked_for() {
    for (head, needs, expected) in [
        ("HTTP/1.1 200 OK\r\n\r\n", true, Err(CUT_OFF)),
        ("HTTP/1.1 200 OK\r\n\r\n", false, Ok(vec!["abc".to_owned()])),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", true, Ok(vec!["abc".to_owned()])),
    ] {
        let answer = RefCell::new(format!("{head}abc").into());
        let mut scene = Scene::with(Script { answer, is_cut_off: true, ..Script::default() }).await;
        scene.exchange.receive_head(&mut scene.beresp, &limits()).await.unwrap();
        let settings = BodySettings { needs_close_notify: needs, ..BodySettings::default() };
        scene.exchange.begin_body(&scene.bereq, &scene.beresp, settings).unwrap();
        assert_eq!(scene.body().await, expected, "{head} {needs}");
    }
}
