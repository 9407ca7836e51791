//! One connection: reads a request, writes the response, closes.
//!
//! The whole exchange has one time limit, so that neither a client that sends slowly nor one that
//! does not read keeps its place. The body of a request is not read.

use crate::collector::Collector;
use crate::deadline::Deadline;
use crate::exposition::{Format, render};
use crate::listener::Stream;
use crate::negotiation;
use crate::route::{Route, route};
use crate::selection::Selection;
use crate::server::Service;
use crate::totals::Totals;
use flate2::Compression;
use flate2::write::GzEncoder;
use http1::{HeadLimits, HeadStatus};
use message::Message;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use surface::limits::{OBSERVE_CONNECTIONS_MAX, OBSERVE_HEAD_BYTES_MAX, OBSERVE_SCRAPES_MAX};
use surface::metric::Abort;

/// Limits of a request head.
const HEAD_LIMITS: HeadLimits =
    HeadLimits { total_bytes: OBSERVE_HEAD_BYTES_MAX, line_bytes: OBSERVE_HEAD_BYTES_MAX, headers_max: 128 };
/// Time limit for a client to close after the response. Closing at once could destroy what it has
/// not read yet.
const CLOSING: Duration = Duration::from_secs(1);
/// Time until a client that was refused may try again, in seconds.
const RETRY_AFTER_SECONDS: u32 = 1;

/// State that all connections share.
pub(crate) struct Shared {
    pub collector: Mutex<Collector>,
    pub totals: Arc<Totals>,
    scrapes: AtomicUsize,
    /// Time limit of a connection.
    limit: Duration,
}

impl Shared {
    pub fn new(collector: Collector, limit: Duration) -> Shared {
        Shared { collector: Mutex::new(collector), totals: Arc::default(), scrapes: AtomicUsize::new(0), limit }
    }
}

/// A place among the scrapes in progress.
struct Scrape<'a>(&'a AtomicUsize);

impl<'a> Scrape<'a> {
    /// `None` if there are too many.
    fn begin(shared: &'a Shared) -> Option<Scrape<'a>> {
        let place = Scrape(&shared.scrapes);
        (place.0.fetch_add(1, Ordering::AcqRel) < OBSERVE_SCRAPES_MAX).then_some(place)
    }
}

impl Drop for Scrape<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A response without its head.
struct Answer {
    status: u16,
    content_type: &'static str,
    is_gzip: bool,
    body: Vec<u8>,
    /// The abort that it counts as, if it refuses the request.
    abort: Option<Abort>,
}

impl Answer {
    fn text(status: u16, body: impl Into<Vec<u8>>) -> Answer {
        Answer { status, content_type: "text/plain; charset=utf-8", is_gzip: false, body: body.into(), abort: None }
    }

    fn refusal(status: u16, body: impl Into<Vec<u8>>, abort: Abort) -> Answer {
        Answer { abort: Some(abort), ..Answer::text(status, body) }
    }
}

impl Service for Shared {
    const CONNECTIONS_MAX: usize = OBSERVE_CONNECTIONS_MAX;

    fn serve(&self, mut stream: Stream) {
        let deadline = Deadline::after(self.limit);
        if let Err(abort) = exchange(&mut stream, deadline, self) {
            self.totals.count_abort(abort);
        }
    }

    fn refuse(&self, mut stream: Stream) {
        self.totals.count_abort(Abort::Busy);
        if stream.set_nonblocking(true).is_ok() {
            let answer = busy();
            let _ = stream.write(&[head(&answer).as_bytes(), &answer.body].concat());
        }
    }

    fn check(&self) {
        self.collector.lock().unwrap_or_else(PoisonError::into_inner).check(Instant::now());
    }
}

fn exchange(stream: &mut Stream, deadline: Deadline, shared: &Shared) -> Result<(), Abort> {
    let mut request = Message::new();
    let read = read_head(stream, deadline, &mut request);
    let is_head = read.is_ok() && request.method() == b"HEAD";
    let (answer, place) = match read {
        Ok(_) => answer_to(&request, shared),
        Err(ReadError::TooLarge) => (Answer::refusal(431, "request head too large\n", Abort::Request), None),
        Err(ReadError::Malformed(why)) => (Answer::refusal(400, format!("{why}\n"), Abort::Request), None),
        Err(ReadError::Closed) => return Ok(()),
        Err(ReadError::Io(error)) => return Err(abort(&error)),
    };
    write_answer(stream, deadline, &answer, is_head).map_err(|error| abort(&error))?;
    drop(place);
    close(stream, deadline);
    answer.abort.map_or(Ok(()), Err)
}

/// The abort for an error of a socket.
fn abort(error: &io::Error) -> Abort {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Abort::Timeout,
        _ => Abort::Request,
    }
}

/// Failure to read a request.
#[derive(Debug)]
pub(crate) enum ReadError {
    TooLarge,
    Malformed(&'static str),
    /// The client has closed before the first byte.
    Closed,
    Io(io::Error),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> ReadError {
        ReadError::Io(error)
    }
}

/// Reads a request head. Returns the bytes that came with it: the beginning of a body.
///
/// # Errors
/// There is no request to answer, or it is refused.
pub(crate) fn read_head(stream: &mut Stream, deadline: Deadline, request: &mut Message) -> Result<Vec<u8>, ReadError> {
    let mut received = Vec::new();
    let mut room = [0; 4096];
    loop {
        stream.set_timeout(deadline.left()?)?;
        let count = match stream.read(&mut room) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if count == 0 {
            return Err(if received.is_empty() { ReadError::Closed } else { ReadError::Malformed("incomplete head") });
        }
        // A head is parsed only when its end may have come: each byte may come alone.
        let from = received.len().saturating_sub(2);
        received.extend_from_slice(&room[..count]);
        let new = &received[from..];
        let may_end = new.windows(2).any(|two| two == b"\n\n") || new.windows(3).any(|three| three == b"\n\r\n");
        let is_full = received.len() >= OBSERVE_HEAD_BYTES_MAX;
        if may_end || is_full {
            match http1::parse_request(&received, &HEAD_LIMITS, request) {
                Ok(HeadStatus::Complete { consumed }) => return Ok(received.split_off(consumed)),
                Ok(HeadStatus::Partial) if is_full => return Err(ReadError::TooLarge),
                Ok(HeadStatus::Partial) => {}
                Err(http1::HeadError::Overflow | http1::HeadError::TooManyHeaders(_)) => {
                    return Err(ReadError::TooLarge);
                }
                Err(error) => return Err(ReadError::Malformed(error.text())),
            }
        }
    }
}

/// The answer to a request, and the place of a scrape until the answer is written.
fn answer_to<'a>(request: &Message, shared: &'a Shared) -> (Answer, Option<Scrape<'a>>) {
    let collector = || shared.collector.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = match route(request.method(), request.target()) {
        Route::Metrics(selection) => {
            let Some(place) = Scrape::begin(shared) else { return (busy(), None) };
            return (scrape(request, shared, &selection), Some(place));
        }
        Route::Health => Answer::text(200, "ok\n"),
        Route::Ready if collector().check(Instant::now()).worker => Answer::text(200, "ready\n"),
        Route::Ready => Answer::text(503, "no worker serves\n"),
        Route::Refused(why) => Answer::text(400, why),
        Route::Missing => Answer::text(404, "not found; there are /metrics, /healthz, /readyz\n"),
    };
    (answer, None)
}

fn scrape(request: &Message, shared: &Shared, selection: &Selection) -> Answer {
    let field = |name: &str| {
        let values: Vec<_> = request.get_all(name).map(String::from_utf8_lossy).collect();
        values.join(",")
    };
    let format: Format = negotiation::format(&field("Accept"));
    let is_gzip = negotiation::accepts_gzip(&field("Accept-Encoding"));
    shared.totals.count_scrape();
    let families = {
        let mut collector = shared.collector.lock().unwrap_or_else(PoisonError::into_inner);
        collector.collect(selection, &shared.totals, Instant::now())
    };
    let text = render(&families, format).into_bytes();
    let compressed = is_gzip.then(|| compress(&text)).and_then(Result::ok);
    let is_gzip = compressed.is_some();
    let (content_type, body) = (format.content_type(), compressed.unwrap_or(text));
    Answer { status: 200, content_type, is_gzip, body, abort: None }
}

/// The text with gzip.
pub(crate) fn compress(text: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text)?;
    encoder.finish()
}

fn busy() -> Answer {
    Answer::refusal(503, "too many scrapes at once\n", Abort::Busy)
}

fn head(answer: &Answer) -> String {
    let reason = surface::status::phrase(answer.status);
    let mut head = format!("HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\n", answer.status, answer.content_type);
    if answer.is_gzip {
        head += "Content-Encoding: gzip\r\n";
    }
    if answer.status == 503 {
        head += &format!("Retry-After: {RETRY_AFTER_SECONDS}\r\n");
    }
    let length = answer.body.len();
    head + &format!(
        "Content-Length: {length}\r\nVary: Accept, Accept-Encoding\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )
}

fn write_answer(stream: &mut Stream, deadline: Deadline, answer: &Answer, is_head: bool) -> io::Result<()> {
    let head = head(answer);
    let body = if is_head { &[][..] } else { &answer.body };
    write_all(stream, deadline, head.as_bytes())?;
    write_all(stream, deadline, body)
}

/// Writes everything before the deadline.
///
/// # Errors
/// `TimedOut` and those of the socket.
pub(crate) fn write_all(stream: &mut Stream, deadline: Deadline, mut part: &[u8]) -> io::Result<()> {
    while !part.is_empty() {
        stream.set_timeout(deadline.left()?)?;
        match stream.write(part) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => part = &part[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Closes the connection so that the client can read the whole response: its bytes that were not
/// read would make the system reset the connection.
pub(crate) fn close(stream: &mut Stream, deadline: Deadline) {
    let (deadline, mut left_bytes) = (deadline.at_most(CLOSING), OBSERVE_HEAD_BYTES_MAX);
    let mut room = [0; 4096];
    let _ = stream.finish();
    while let Ok(left) = deadline.left() {
        let count = stream.set_timeout(left).and_then(|()| stream.read(&mut room));
        match count {
            Ok(1..) if left_bytes > room.len() => left_bytes -= room.len(),
            _ => return,
        }
    }
}
