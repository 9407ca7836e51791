//! QUIC in memory, and an HTTP/3 client that can send anything: streams are queues of bytes between
//! two tasks.

use bytes::Bytes;
use engine::context::Loop;
use engine::peer::{EarlyPhase, Peer};
use engine::transport::OpeningSession;
use engine::transport::http3::quic::{self, ConnectionEnd, ReceiveStream, SendStream, StreamOver};
use http3::frames::{Frame, FrameReader, Place, write_data_header, write_headers};
use http3::qpack::{self, Encoder};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use vcl_run::tls::TlsFacts;

/// One direction of a stream.
#[derive(Default)]
struct Pipe {
    bytes: VecDeque<u8>,
    is_finished: bool,
    /// The sender's code.
    reset: Option<u64>,
    /// The receiver's code.
    stopped: Option<u64>,
    /// The urgencies that its sender has assigned.
    urgencies: Vec<u8>,
}

/// Everything between client and server.
#[derive(Default)]
struct Wire {
    /// The client's sent and received bytes, by stream.
    up: BTreeMap<u64, Pipe>,
    down: BTreeMap<u64, Pipe>,
    new_requests: VecDeque<u64>,
    new_unidirectional: VecDeque<u64>,
    opened: u64,
    closed: Option<u64>,
    ended: Option<ConnectionEnd>,
    /// Data sent to the client does not arrive.
    is_slow: bool,
    /// The client gives responses no flow-control window.
    is_narrow: bool,
    wakers: Vec<Waker>,
}

type Shared = Rc<RefCell<Wire>>;

/// The client's control stream.
const CONTROL: u64 = 2;

/// Number of bytes of a response that may wait for the client.
const WINDOW_BYTES: usize = 10_000;

fn wake(wire: &Shared) {
    let wakers = std::mem::take(&mut wire.borrow_mut().wakers);
    wakers.into_iter().for_each(Waker::wake);
}

fn wait<T>(wire: &Shared, context: &Context<'_>) -> Poll<T> {
    wire.borrow_mut().wakers.push(context.waker().clone());
    Poll::Pending
}

struct Server(Shared);
struct Sending(Shared, u64);
struct Receiving(Shared, u64);

impl quic::Connection for Server {
    type Send = Sending;
    type Receive = Receiving;

    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<Result<quic::Sides<Self>, ConnectionEnd>> {
        let mut wire = self.0.borrow_mut();
        match (wire.ended, wire.new_requests.pop_front()) {
            (Some(end), _) => Poll::Ready(Err(end)),
            (None, Some(id)) => Poll::Ready(Ok((Sending(Rc::clone(&self.0), id), Receiving(Rc::clone(&self.0), id)))),
            (None, None) => {
                drop(wire);
                wait(&self.0, context)
            }
        }
    }

    fn poll_accept_one_way(&mut self, context: &mut Context<'_>) -> Poll<Result<Receiving, ConnectionEnd>> {
        let mut wire = self.0.borrow_mut();
        match (wire.ended, wire.new_unidirectional.pop_front()) {
            (Some(end), _) => Poll::Ready(Err(end)),
            (None, Some(id)) => Poll::Ready(Ok(Receiving(Rc::clone(&self.0), id))),
            (None, None) => {
                drop(wire);
                wait(&self.0, context)
            }
        }
    }

    fn poll_open_one_way(&mut self, _context: &mut Context<'_>) -> Poll<Result<Sending, ConnectionEnd>> {
        let mut wire = self.0.borrow_mut();
        let id = wire.opened * 4 + 3;
        wire.opened += 1;
        wire.down.insert(id, Pipe::default());
        Poll::Ready(Ok(Sending(Rc::clone(&self.0), id)))
    }

    fn close(&mut self, code: u64) {
        let mut wire = self.0.borrow_mut();
        wire.closed.get_or_insert(code);
        wire.ended.get_or_insert(ConnectionEnd::ByUs);
        if std::mem::take(&mut wire.is_slow) {
            wire.down.clear();
        }
        drop(wire);
        wake(&self.0);
    }
}

impl SendStream for Sending {
    fn id(&self) -> u64 {
        self.1
    }

    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, StreamOver>> {
        let mut wire = self.0.borrow_mut();
        let is_over = wire.ended.is_some();
        let window_bytes = if wire.is_narrow { 0 } else { WINDOW_BYTES };
        let pipe = wire.down.entry(self.1).or_default();
        if is_over || pipe.stopped.is_some() {
            return Poll::Ready(Err(StreamOver));
        }
        let count = bytes.len().min(window_bytes.saturating_sub(pipe.bytes.len()));
        if count == 0 {
            drop(wire);
            return wait(&self.0, context);
        }
        pipe.bytes.extend(&bytes[..count]);
        drop(wire);
        wake(&self.0);
        Poll::Ready(Ok(count))
    }

    fn finish(&mut self) {
        self.0.borrow_mut().down.entry(self.1).or_default().is_finished = true;
        wake(&self.0);
    }

    fn reset(&mut self, code: u64) {
        self.0.borrow_mut().down.entry(self.1).or_default().reset.get_or_insert(code);
        wake(&self.0);
    }

    fn poll_stopped(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let wire = self.0.borrow();
        let has_all = |pipe: &Pipe| pipe.is_finished && !wire.is_slow;
        let is_over = |pipe: &Pipe| pipe.stopped.is_some() || has_all(pipe);
        let is_stopped = wire.ended.is_some() || wire.down.get(&self.1).is_some_and(is_over);
        drop(wire);
        if is_stopped { Poll::Ready(()) } else { wait(&self.0, context) }
    }

    fn set_urgency(&mut self, urgency: u8) {
        self.0.borrow_mut().down.entry(self.1).or_default().urgencies.push(urgency);
    }
}

impl ReceiveStream for Receiving {
    fn poll_chunk(&mut self, context: &mut Context<'_>, bytes_max: usize) -> Poll<Result<Option<Bytes>, StreamOver>> {
        let mut wire = self.0.borrow_mut();
        let is_over = wire.ended.is_some();
        let pipe = wire.up.entry(self.1).or_default();
        if is_over || pipe.reset.is_some() {
            return Poll::Ready(Err(StreamOver));
        }
        if !pipe.bytes.is_empty() {
            let count = pipe.bytes.len().min(bytes_max);
            return Poll::Ready(Ok(Some(pipe.bytes.drain(..count).collect())));
        }
        if pipe.is_finished {
            return Poll::Ready(Ok(None));
        }
        drop(wire);
        wait(&self.0, context)
    }

    fn stop(&mut self, code: u64) {
        self.0.borrow_mut().up.entry(self.1).or_default().stopped.get_or_insert(code);
        wake(&self.0);
    }
}

/// A client of HTTP/3.
pub struct QuicClient {
    wire: Shared,
    next: Cell<u64>,
    next_unidirectional: Cell<u64>,
    leaving: tokio::sync::watch::Sender<bool>,
    early: Rc<EarlyPhase>,
}

/// The outcome of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// A complete response: its fields with `:status`, and its body.
    Response(Vec<(String, String)>, Vec<u8>),
    /// The stream was reset with this code.
    Reset(u64),
    /// The connection was closed with this code.
    Closed(u64),
}

impl Outcome {
    /// The status; panics unless there is a response.
    #[track_caller]
    pub fn status(&self) -> u16 {
        match self {
            Outcome::Response(fields, _) => fields[0].1.parse().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// The first field with a name.
    pub fn field(&self, name: &str) -> Option<&str> {
        let Outcome::Response(fields, _) = self else { return None };
        fields.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
    }

    /// The body; empty unless there is a response.
    pub fn body(&self) -> &[u8] {
        match self {
            Outcome::Response(_, body) => body,
            Outcome::Reset(_) | Outcome::Closed(_) => b"",
        }
    }
}

impl QuicClient {
    /// Connects. If `is_early`, the handshake is pending until [`QuicClient::establish`].
    pub fn connect(context: &Rc<Loop>, peer: Peer, is_early: bool) -> QuicClient {
        let wire = Shared::default();
        let early = EarlyPhase::begun();
        let (leaving, mut left) = tokio::sync::watch::channel(false);
        let mut session = OpeningSession::open(context, peer, "HTTP/3");
        session.hear_tls(
            context,
            TlsFacts { version: "TLSv1.3", ..TlsFacts::default() },
            is_early.then(|| Rc::clone(&early)),
        );
        let left = async move {
            if left.wait_for(|left| *left).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::task::spawn_local(session.serve_http3(Rc::clone(context), Server(Rc::clone(&wire)), left));
        let client = QuicClient { wire, next: Cell::new(0), next_unidirectional: Cell::new(2), leaving, early };
        client.unidirectional(&[0, 4, 0]);
        client
    }

    /// The handshake is over.
    pub fn establish(&self) {
        self.early.complete();
    }

    /// The worker stops.
    pub fn tell_to_leave(&self) {
        self.leaving.send_replace(true);
    }

    /// Suspends delivery to the client (data is lost if the connection is closed), or resumes it.
    pub fn is_slow(&self, is_slow: bool) {
        self.wire.borrow_mut().is_slow = is_slow;
        wake(&self.wire);
    }

    /// Closes the flow-control window for all responses, or opens it.
    pub fn is_narrow(&self, is_narrow: bool) {
        self.wire.borrow_mut().is_narrow = is_narrow;
        wake(&self.wire);
    }

    /// The client disappears without a notice.
    pub fn vanish(&self) {
        self.wire.borrow_mut().ended = Some(ConnectionEnd::ByClient);
        self.early.fail();
        wake(&self.wire);
    }

    /// Opens a unidirectional stream; returns its number.
    pub fn unidirectional(&self, bytes: &[u8]) -> u64 {
        let id = self.next_unidirectional.replace(self.next_unidirectional.get() + 4);
        self.wire.borrow_mut().new_unidirectional.push_back(id);
        self.say(id, bytes);
        id
    }

    /// Opens a stream for a request.
    pub fn open(&self) -> u64 {
        let id = self.next.replace(self.next.get() + 4);
        let mut wire = self.wire.borrow_mut();
        wire.new_requests.push_back(id);
        wire.up.entry(id).or_default();
        drop(wire);
        wake(&self.wire);
        id
    }

    /// Sends bytes on a stream.
    pub fn say(&self, id: u64, bytes: &[u8]) {
        self.wire.borrow_mut().up.entry(id).or_default().bytes.extend(bytes);
        wake(&self.wire);
    }

    /// Ends a stream.
    pub fn finish(&self, id: u64) {
        self.wire.borrow_mut().up.entry(id).or_default().is_finished = true;
        wake(&self.wire);
    }

    /// The urgencies of the response on a stream, one for each change.
    pub fn urgencies(&self, id: u64) -> Vec<u8> {
        self.wire.borrow().down.get(&id).map(|pipe| pipe.urgencies.clone()).unwrap_or_default()
    }

    /// Sends on the control stream a priority for the response on a stream.
    pub fn prioritise(&self, id: u64, value: &str) {
        let length = u8::try_from(1 + value.len()).unwrap();
        let stream = u8::try_from(id).unwrap();
        self.say(CONTROL, &[&[0x80, 0x0f, 0x07, 0x00, length, stream], value.as_bytes()].concat());
    }

    /// Cancels a request.
    pub fn cancel(&self, id: u64) {
        let mut wire = self.wire.borrow_mut();
        wire.up.entry(id).or_default().reset = Some(0x10c);
        wire.down.entry(id).or_default().stopped = Some(0x10c);
        drop(wire);
        wake(&self.wire);
    }

    /// Sends nothing more of a request, which is not complete.
    pub fn break_off(&self, id: u64) {
        self.wire.borrow_mut().up.entry(id).or_default().reset = Some(0x10c);
        wake(&self.wire);
    }

    /// The code with which the server asked for no more of the request; `None` if it has not.
    pub fn is_told_to_stop(&self, id: u64) -> Option<u64> {
        self.wire.borrow().up.get(&id).and_then(|pipe| pipe.stopped)
    }

    /// Sends a head without ending the stream; returns its number.
    pub fn begin(&self, fields: &[(&str, &str)]) -> u64 {
        let id = self.open();
        self.say(id, &headers(fields));
        id
    }

    /// Sends a piece of a body.
    pub fn data(&self, id: u64, bytes: &[u8]) {
        let mut frame = Vec::new();
        write_data_header(bytes.len(), &mut frame);
        frame.extend_from_slice(bytes);
        self.say(id, &frame);
    }

    /// Sends a complete request and waits for its outcome.
    pub async fn ask(&self, fields: &[(&str, &str)]) -> Outcome {
        let id = self.begin(fields);
        self.finish(id);
        self.outcome(id).await
    }

    /// As [`QuicClient::ask`], a GET.
    pub async fn get(&self, path: &str) -> Outcome {
        self.ask(&[(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", path)]).await
    }

    /// Waits for the end of a request.
    pub async fn outcome(&self, id: u64) -> Outcome {
        let mut reader = FrameReader::new(Place::Request, 1 << 20);
        let (mut fields, mut body) = (Vec::new(), Vec::new());
        poll_fn(|context| {
            loop {
                let mut wire = self.wire.borrow_mut();
                let closed = wire.closed;
                if wire.is_slow {
                    drop(wire);
                    return wait(&self.wire, context);
                }
                let pipe = wire.down.entry(id).or_default();
                if let Some(code) = pipe.reset {
                    return Poll::Ready(Outcome::Reset(code));
                }
                let mut bytes: Bytes = pipe.bytes.drain(..).collect();
                let is_finished = pipe.is_finished;
                drop(wire);
                if bytes.is_empty() {
                    return match (is_finished, closed) {
                        (true, _) => {
                            let whole = reader.end().is_ok();
                            assert!(whole, "the response ends within a frame");
                            Poll::Ready(Outcome::Response(std::mem::take(&mut fields), std::mem::take(&mut body)))
                        }
                        (false, Some(code)) => Poll::Ready(Outcome::Closed(code)),
                        (false, None) => wait(&self.wire, context),
                    };
                }
                wake(&self.wire);
                while let Some(frame) = reader.next(&mut bytes).unwrap() {
                    match frame {
                        Frame::Headers(block) => fields.extend(decoded(&block)),
                        Frame::Data(piece) => body.extend_from_slice(&piece),
                        other => panic!("{other:?}"),
                    }
                }
            }
        })
        .await
    }

    /// True if something has arrived on a stream and was not read.
    pub fn has_answer(&self, id: u64) -> bool {
        self.wire.borrow().down.get(&id).is_some_and(|pipe| !pipe.bytes.is_empty())
    }

    /// Waits until the connection is closed.
    pub async fn closed(&self) -> u64 {
        poll_fn(|context| {
            let closed = self.wire.borrow().closed;
            match closed {
                Some(code) => Poll::Ready(code),
                None => wait(&self.wire, context),
            }
        })
        .await
    }

    /// The bytes that the server has sent on its control stream.
    pub fn control(&self) -> Vec<u8> {
        self.wire.borrow().down.get(&3).map(|pipe| pipe.bytes.iter().copied().collect()).unwrap_or_default()
    }
}

/// A HEADERS frame.
pub fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let (mut block, mut frame) = (Vec::new(), Vec::new());
    let mut encoder = Encoder::begin(&mut block);
    fields.iter().for_each(|(name, value)| encoder.field(name.as_bytes(), value.as_bytes()));
    write_headers(&block, &mut frame);
    frame
}

fn decoded(block: &[u8]) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    qpack::decode(block, |name, value| {
        fields.push((text(name), text(value)));
        true
    })
    .unwrap();
    fields
}
