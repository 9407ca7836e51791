//! A second transport: many exchanges at once on one connection, as streams of frames in memory.
//!
//! All streams of a connection share a short queue of small frames, so that responses interleave
//! and wait for one another. This transport has no wire that it could hand over, has nothing like
//! `Connection` or `Expect`, and marks the end of a body with a frame. The engine is independent of
//! it: it uses only the interface common to all transports (`engine::exchange`).

use super::client::Response;
use engine::context::Loop;
use engine::exchange::{
    BodyAnnounced, BodyBroken, ClientEvent, Exchange, Malformed, Refusal, SendError, SendLimits, Sent, Wire,
};
use engine::peer::Peer;
use engine::request::{self, Request};
use engine::session::{Session, SessionEnd, SessionView};
use message::Message;
use shm::log::LogBuffer;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use surface::close_reason::CloseReason;

/// Maximum number of frames in flight to the client, for all streams together.
const FRAMES_MAX: usize = 4;
/// Maximum number of body bytes in a frame.
const FRAME_BYTES_MAX: usize = 1000;

/// A frame to the client.
enum Frame {
    Head(Vec<u8>),
    Data(Vec<u8>),
    Trailers(String),
    /// The response is complete.
    End,
    /// The response is not complete, and never will be.
    Reset,
}

/// The state of one stream, shared by both sides.
#[derive(Default)]
struct Stream {
    /// The part of the request's body that has arrived.
    body: VecDeque<u8>,
    is_body_over: bool,
    /// The client has cancelled the response.
    is_given_up: bool,
    response: Response,
    /// Set at the end of the response: true if it is complete.
    is_over: Option<bool>,
    server: Option<Waker>,
    client: Option<Waker>,
}

/// One connection.
#[derive(Default)]
struct Link {
    frames: RefCell<VecDeque<(u32, Frame)>>,
    waiting: RefCell<VecDeque<Waker>>,
    streams: RefCell<BTreeMap<u32, Stream>>,
    /// The client has closed the connection: queued data is dropped.
    is_closed: Cell<bool>,
    open: Cell<usize>,
    open_peak: Cell<usize>,
    last: Cell<u32>,
    /// Number of times that a frame belonged to another stream than the frame before it.
    switches: Cell<usize>,
}

impl Link {
    /// Queues a frame. Returns false if there is no room; then the task is woken once there is.
    fn push(&self, context: &Context<'_>, id: u32, frame: Frame) -> bool {
        if self.is_closed.get() {
            return true;
        }
        let mut frames = self.frames.borrow_mut();
        if frames.len() >= FRAMES_MAX {
            self.waiting.borrow_mut().push_back(context.waker().clone());
            return false;
        }
        frames.push_back((id, frame));
        true
    }

    fn with<T>(&self, id: u32, work: impl FnOnce(&mut Stream) -> T) -> T {
        work(self.streams.borrow_mut().entry(id).or_default())
    }

    /// The client's end of the connection: delivers each frame to its stream.
    async fn read(self: Rc<Self>) {
        loop {
            // Every frame takes some time on the wire.
            tokio::time::sleep(std::time::Duration::from_micros(10)).await;
            let frame = self.frames.borrow_mut().pop_front();
            // Only one task is woken at a time, so that the streams take turns.
            if let Some(waker) = self.waiting.borrow_mut().pop_front() {
                waker.wake();
            }
            let Some((id, frame)) = frame else { continue };
            if self.last.replace(id) != id {
                self.switches.set(self.switches.get() + 1);
            }
            self.with(id, |stream| {
                match frame {
                    Frame::Head(bytes) if bytes.starts_with(b"HTTP/2.0 1") => {
                        stream.response.interim.push(String::from_utf8(bytes).unwrap());
                    }
                    Frame::Head(bytes) => stream.response.head = String::from_utf8(bytes).unwrap(),
                    Frame::Trailers(lines) => stream.response.trailers = lines,
                    Frame::Data(bytes) => stream.response.body.extend_from_slice(&bytes),
                    Frame::End => stream.is_over = Some(true),
                    Frame::Reset => stream.is_over = Some(false),
                }
                if let Some(waker) = stream.client.take() {
                    waker.wake();
                }
            });
        }
    }
}

/// The client's end of a connection with streams. Dropping it closes the connection.
pub struct StreamClient {
    link: Rc<Link>,
    context: Rc<Loop>,
    session: Option<Session>,
    reader: tokio::task::JoinHandle<()>,
    next: Cell<u32>,
}

impl StreamClient {
    /// Connects.
    pub fn new(context: &Rc<Loop>, peer: Peer) -> StreamClient {
        let link = Rc::new(Link::default());
        StreamClient {
            session: Some(Session::open(context, peer, "STREAMS")),
            reader: tokio::task::spawn_local(Rc::clone(&link).read()),
            context: Rc::clone(context),
            link,
            next: Cell::new(1),
        }
    }

    /// Sends a request and waits for the response. The head is written as in HTTP/1, including the
    /// empty line.
    pub async fn ask(&self, head: &str, body: &[u8]) -> Response {
        let id = self.begin(head, body);
        let is_whole = poll_fn(|context| {
            self.link.with(id, |stream| match stream.is_over {
                Some(is_whole) => Poll::Ready(is_whole),
                None => {
                    stream.client = Some(context.waker().clone());
                    Poll::Pending
                }
            })
        })
        .await;
        let response = self.link.streams.borrow_mut().remove(&id).unwrap().response;
        Response { is_whole, ..response }
    }

    /// Sends a request and gives up after that time.
    pub async fn break_off(&self, head: &str, after: std::time::Duration) {
        let id = self.begin(head, b"");
        tokio::time::sleep(after).await;
        self.link.with(id, |stream| {
            stream.is_given_up = true;
            if let Some(waker) = stream.server.take() {
                waker.wake();
            }
        });
    }

    /// Begins a request whose body comes later.
    pub fn call(&self, head: &str) -> Call {
        Call { link: Rc::clone(&self.link), id: self.start(head, b"", false) }
    }

    fn begin(&self, head: &str, body: &[u8]) -> u32 {
        self.start(head, body, true)
    }

    fn start(&self, head: &str, body: &[u8], is_whole: bool) -> u32 {
        let id = self.next.replace(self.next.get() + 1);
        self.link.with(id, |stream| {
            stream.body.extend(body);
            stream.is_body_over = is_whole;
        });
        let view = self.session.as_ref().unwrap().view();
        tokio::task::spawn_local(serve(Rc::clone(&self.context), view, Rc::clone(&self.link), id, head.to_owned()));
        id
    }

    /// Maximum number of streams that were open at once.
    pub fn open_peak(&self) -> usize {
        self.link.open_peak.get()
    }

    /// Number of times that a frame belonged to another stream than the frame before it.
    pub fn switches(&self) -> usize {
        self.link.switches.get()
    }
}

/// A request in progress: the client sends and receives in any order.
pub struct Call {
    link: Rc<Link>,
    id: u32,
}

impl Call {
    fn change(&self, change: impl FnOnce(&mut Stream)) {
        self.link.with(self.id, |stream| {
            change(stream);
            if let Some(waker) = stream.server.take() {
                waker.wake();
            }
        });
    }

    /// Sends some of the body.
    pub fn send(&self, bytes: &[u8]) {
        self.change(|stream| stream.body.extend(bytes));
    }

    /// Ends the body.
    pub fn finish(&self) {
        self.change(|stream| stream.is_body_over = true);
    }

    /// Cancels the request.
    pub fn reset(&self) {
        self.change(|stream| stream.is_given_up = true);
    }

    /// Waits until the response satisfies a condition, or is over; returns `None` if it was
    /// aborted.
    pub async fn until(&self, condition: impl Fn(&Response) -> bool) -> Option<Response> {
        poll_fn(|context| {
            self.link.with(self.id, |stream| {
                if stream.is_over == Some(false) {
                    return Poll::Ready(None);
                }
                if condition(&stream.response) || stream.is_over.is_some() {
                    let is_whole = stream.is_over == Some(true);
                    return Poll::Ready(Some(Response { is_whole, ..stream.response.clone() }));
                }
                stream.client = Some(context.waker().clone());
                Poll::Pending
            })
        })
        .await
    }

    /// Waits for the complete response; returns `None` if it was aborted.
    pub async fn response(&self) -> Option<Response> {
        self.until(|_| false).await
    }

    /// Number of bytes of the body that the server has not taken yet.
    pub fn unread_bytes(&self) -> usize {
        self.link.with(self.id, |stream| stream.body.len())
    }
}

impl Drop for StreamClient {
    fn drop(&mut self) {
        self.reader.abort();
        self.link.is_closed.set(true);
        for stream in self.link.streams.borrow_mut().values_mut() {
            stream.is_given_up = true;
            stream.server.take().into_iter().for_each(Waker::wake);
        }
        self.link.waiting.borrow_mut().drain(..).for_each(Waker::wake);
        if let Some(session) = self.session.take() {
            session.close(&self.context, SessionEnd { reason: CloseReason::RemClose, is_by_request: false });
        }
    }
}

/// Serves one stream.
async fn serve(context: Rc<Loop>, mut session: SessionView, link: Rc<Link>, id: u32, head: String) {
    link.open.set(link.open.get() + 1);
    link.open_peak.set(link.open_peak.get().max(link.open.get()));
    let mut slot = context.requests.take(&context.engine.ring);
    let request: &mut Request = &mut slot.request;
    let now = context.clock.now();
    request.arrive(&context.engine.parameters.load(), now);
    fill(request.head(), &head);
    request.complete(head.len() as u64);
    let mut exchange = StreamExchange::new(&link, id);
    let outcome = request::run(&context, &mut session, &mut exchange, request).await;
    if !exchange.is_over {
        let is_whole = !matches!(outcome.close, Some(reason) if reason.is_error() || reason == CloseReason::RemClose);
        poll_fn(|context| {
            let frame = if is_whole { Frame::End } else { Frame::Reset };
            if link.push(context, id, frame) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
    if !outcome.is_ruined {
        context.requests.put(slot);
    }
    link.open.set(link.open.get() - 1);
}

fn fill(head: &mut Message, text: &str) {
    let mut lines = text.lines();
    let mut words = lines.next().unwrap().split(' ');
    head.set_method(words.next().unwrap().as_bytes());
    head.set_target(words.next().unwrap().as_bytes());
    head.set_protocol(b"HTTP/2.0");
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        head.append(name.as_bytes(), value.as_bytes());
    }
}

struct StreamExchange<'a> {
    link: &'a Link,
    id: u32,
    /// Body bytes for the machine to read.
    body: Vec<u8>,
    is_body_begun: bool,
    /// A head that has not been sent yet.
    head: Option<Vec<u8>>,
    /// Number of bytes of the present piece that have been sent.
    gone: usize,
    trailers: String,
    is_over: bool,
    sent: Sent,
}

impl<'a> StreamExchange<'a> {
    fn new(link: &'a Link, id: u32) -> StreamExchange<'a> {
        StreamExchange {
            link,
            id,
            body: Vec::new(),
            is_body_begun: false,
            head: None,
            gone: 0,
            trailers: String::new(),
            is_over: false,
            sent: Sent::default(),
        }
    }

    fn poll_frames(&mut self, context: &Context<'_>, piece: &[u8], is_last: bool) -> Poll<Result<(), SendError>> {
        if self.link.is_closed.get() || self.link.with(self.id, |stream| stream.is_given_up) {
            return Poll::Ready(Err(SendError));
        }
        if let Some(head) = &self.head {
            if !self.link.push(context, self.id, Frame::Head(head.clone())) {
                return Poll::Pending;
            }
            self.head = None;
        }
        while self.gone < piece.len() {
            let end = piece.len().min(self.gone + FRAME_BYTES_MAX);
            if !self.link.push(context, self.id, Frame::Data(piece[self.gone..end].to_vec())) {
                return Poll::Pending;
            }
            self.sent.body_bytes += (end - self.gone) as u64;
            self.gone = end;
        }
        if is_last && !self.trailers.is_empty() {
            if !self.link.push(context, self.id, Frame::Trailers(self.trailers.clone())) {
                return Poll::Pending;
            }
            self.trailers.clear();
        }
        if is_last && !self.is_over {
            if !self.link.push(context, self.id, Frame::End) {
                return Poll::Pending;
            }
            self.is_over = true;
        }
        self.sent.pieces += u64::from(!piece.is_empty());
        self.gone = 0;
        Poll::Ready(Ok(()))
    }
}

impl Exchange for StreamExchange<'_> {
    fn protocol(&self) -> &'static str {
        "STREAMS"
    }

    fn open(&mut self, head: &mut Message, _log: &mut LogBuffer) -> Result<BodyAnnounced, Malformed> {
        let length = head.get("Content-Length").and_then(|value| std::str::from_utf8(value).ok()?.parse().ok());
        if head.has("X-Length-Unknown") {
            return Ok(BodyAnnounced::Unknown);
        }
        Ok(length.filter(|bytes| *bytes > 0).map_or(BodyAnnounced::None, BodyAnnounced::Length))
    }

    fn garbage(&self) -> &[u8] {
        b""
    }

    fn admit(&mut self, _head: &mut Message, _log: &mut LogBuffer) -> Result<Option<CloseReason>, Refusal> {
        Ok(None)
    }

    fn take_continue(&mut self) -> bool {
        false
    }

    fn poll_body(&mut self, context: &mut Context<'_>, _idle_seconds: f64) -> Poll<Result<usize, BodyBroken>> {
        let body = &mut self.body;
        self.link.with(self.id, |stream| {
            if stream.is_given_up {
                return Poll::Ready(Err(BodyBroken("stream given up")));
            }
            let count = stream.body.len().min(FRAME_BYTES_MAX);
            body.extend(stream.body.drain(..count));
            self.is_body_begun |= count > 0;
            if body.is_empty() && !stream.is_body_over {
                stream.server = Some(context.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(Ok(body.len()))
        })
    }

    fn body(&self) -> &[u8] {
        &self.body
    }

    fn consume_body(&mut self, count: usize) {
        self.body.drain(..count);
    }

    fn is_body_begun(&self) -> bool {
        self.is_body_begun
    }

    fn must_drain(&self, _response: &Message) -> bool {
        false
    }

    fn body_source(&self) -> &'static str {
        "STREAM"
    }

    fn describe_synthetic(&self, _response: &mut Message, _log: &mut LogBuffer) {}

    fn frame(
        &mut self,
        _response: &mut Message,
        _log: &mut LogBuffer,
        _has_body: bool,
        _close: &mut Option<CloseReason>,
    ) {
    }

    fn begin(&mut self, response: &Message, _limits: SendLimits) {
        let mut head = format!("HTTP/2.0 {} ", response.status()).into_bytes();
        head.extend_from_slice(response.reason());
        for header in response.headers() {
            head.extend_from_slice(&[b"\r\n", header.name(), b": ", header.value()].concat());
        }
        head.extend_from_slice(b"\r\n\r\n");
        self.sent.head_bytes += head.len() as u64;
        self.head = Some(head);
    }

    fn begin_bare(&mut self, status: u16, _limits: SendLimits) {
        self.head = Some(format!("HTTP/2.0 {status} \r\n\r\n").into_bytes());
    }

    fn is_duplex(&self) -> bool {
        true
    }

    fn sends_trailers(&self) -> bool {
        true
    }

    fn put_trailers(&mut self, trailers: &Message) {
        self.trailers =
            trailers.headers().map(|field| format!("{}\n", String::from_utf8_lossy(field.line()))).collect();
    }

    fn takes_interim(&self) -> bool {
        true
    }

    fn begin_interim(&mut self, response: &Message, limits: SendLimits) {
        self.begin(response, limits);
    }

    fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        piece: &[u8],
        is_last: bool,
        _log: &mut LogBuffer,
    ) -> Poll<Result<(), SendError>> {
        self.poll_frames(context, piece, is_last)
    }

    fn sent(&self) -> Sent {
        self.sent
    }

    fn body_sink(&self) -> &'static str {
        "STREAM"
    }

    fn poll_client_event(&mut self, context: &mut Context<'_>) -> Poll<ClientEvent> {
        self.link.with(self.id, |stream| {
            if stream.is_given_up {
                return Poll::Ready(ClientEvent::Gone);
            }
            stream.server = Some(context.waker().clone());
            Poll::Pending
        })
    }

    fn has_wire(&self) -> bool {
        false
    }

    fn wire(&mut self) -> Option<Wire<'_>> {
        None
    }
}
