//! The recorded responses of origins, and the connection to them.
//!
//! A request is answered with what was recorded for the same request: method, host, URL and
//! credentials; if there is none, for the same one without credentials, which counts as similar. Of
//! several, with the one of the replayed exchange, or else the latest before it, or else the first
//! after it. Conditional requests are answered as an origin would. Nothing else is made up.

use crate::wire::{CONNECTION_BYTES, HttpMessage};
use backend::{Connected, Dial, DialTarget, Dialling, Ends, Stream, TlsSettings};
use flate2::Compression;
use flate2::write::GzEncoder;
use recording::{Exchange, Head};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;
use surface::limits::{REPLAY_ANSWERS_BYTES_MAX, REPLAY_BODY_BYTES_MAX};
use tokio::io::{AsyncWriteExt as _, DuplexStream};

/// Overhead that is charged for an answer besides its text, in bytes.
const ANSWER_BYTES: usize = 200;
/// Bytes that gzip adds to a body that it does not compress.
const GZIP_BYTES: usize = 23;

/// A recorded response.
struct Answer {
    at: f64,
    exchange: u32,
    /// The first line and the fields, except those that frame the body.
    text: Box<[u8]>,
    status: u16,
    bytes: u64,
    is_chunked: bool,
    is_gzip: bool,
    /// It was delivered from the cache, and replaces one that is not in the recording.
    is_stand_in: bool,
}

/// All recorded responses.
#[derive(Default)]
pub(super) struct Answers {
    all: Vec<Answer>,
    exact: HashMap<u64, Vec<u32>>,
    similar: HashMap<u64, Vec<u32>>,
    stand_ins: HashMap<u64, u32>,
    bytes: usize,
}

/// The parts of a request by which answers are found.
struct Wanted<'a> {
    method: &'a [u8],
    host: &'a [u8],
    url: &'a [u8],
    credentials: [&'a [u8]; 3],
}

impl Wanted<'_> {
    fn similar(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let method: &[u8] = if self.method == b"HEAD" { b"GET" } else { self.method };
        (method, self.host.to_ascii_lowercase(), self.url).hash(&mut hasher);
        hasher.finish()
    }

    fn exact(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.similar(), self.credentials).hash(&mut hasher);
        hasher.finish()
    }
}

impl Answers {
    /// Adds the responses of an exchange; with `is_warm`, that which was delivered from the cache
    /// too.
    ///
    /// # Errors
    /// They take too much memory, in words.
    pub(super) fn add(&mut self, number: u32, exchange: &Exchange, is_warm: bool) -> Result<(), String> {
        for fetch in exchange.fetches.iter().filter(|fetch| !fetch.request.line[0].is_empty()) {
            let value = |name| fetch.request.value(name).unwrap_or_default();
            let wanted = Wanted {
                method: &fetch.request.line[0],
                host: value("Host"),
                url: &fetch.request.line[1],
                credentials: [value("Cookie"), value("Authorization"), value("Range")],
            };
            let place = self.all.len() as u32;
            self.push(number, fetch.start, fetch.response.as_ref(), fetch.body_bytes, false)?;
            self.exact.entry(wanted.exact()).or_default().push(place);
            self.similar.entry(wanted.similar()).or_default().push(place);
        }
        let is_hit = exchange.handling.starts_with("hit");
        if let (true, true, Some((host, url)), Some(response)) = (is_warm, is_hit, &exchange.lookup, &exchange.response)
        {
            let wanted = Wanted { method: b"GET", host, url, credentials: [b""; 3] };
            let place = self.all.len() as u32;
            if response.status() == 200 && !self.stand_ins.contains_key(&wanted.similar()) {
                self.push(number, exchange.start, Some(&delivered(response)), exchange.response_bytes, true)?;
                self.stand_ins.insert(wanted.similar(), place);
            }
        }
        Ok(())
    }

    fn push(
        &mut self,
        exchange: u32,
        at: f64,
        head: Option<&Head>,
        bytes: u64,
        is_stand_in: bool,
    ) -> Result<(), String> {
        let has = |name, wanted: &[u8]| {
            head.and_then(|head| head.value(name)).is_some_and(|value| value.eq_ignore_ascii_case(wanted))
        };
        let answer = Answer {
            at,
            exchange,
            text: head.map(text_of).unwrap_or_default().into(),
            status: head.map_or(0, Head::status),
            bytes,
            is_chunked: has("Transfer-Encoding", b"chunked"),
            is_gzip: has("Content-Encoding", b"gzip") || has("Content-Encoding", b"x-gzip"),
            is_stand_in,
        };
        self.bytes += answer.text.len() + ANSWER_BYTES;
        self.all.push(answer);
        if self.bytes > REPLAY_ANSWERS_BYTES_MAX {
            return Err("the recording has more responses than a replay can hold; record a sample".to_owned());
        }
        Ok(())
    }

    /// The answer for a request of an exchange; `true` if only a similar one was found.
    fn find(
        &self,
        wanted: &Wanted<'_>,
        is_meant: impl Fn(&Answer) -> bool,
        now: (u32, f64),
    ) -> Option<(&Answer, bool)> {
        let of = |places: Option<&Vec<u32>>| {
            let all = places.into_iter().flatten().map(|place| &self.all[*place as usize]);
            best(all.filter(|answer| is_meant(answer)), now)
        };
        if let Some(answer) = of(self.exact.get(&wanted.exact())) {
            return Some((answer, false));
        }
        if let Some(answer) = of(self.similar.get(&wanted.similar())) {
            return Some((answer, true));
        }
        let place = self.stand_ins.get(&wanted.similar())?;
        Some((&self.all[*place as usize], false)).filter(|(answer, _)| is_meant(answer))
    }
}

/// The answer of this exchange, or the latest before now, or the first.
fn best<'a>(answers: impl Iterator<Item = &'a Answer>, (exchange, now): (u32, f64)) -> Option<&'a Answer> {
    let rank = |answer: &Answer| (answer.exchange == exchange, answer.at <= now);
    answers.reduce(|best, other| match (rank(best), rank(other)) {
        (one, two) if one != two => {
            if two > one {
                other
            } else {
                best
            }
        }
        ((_, true), _) if other.at >= best.at => other,
        ((_, false), _) if other.at < best.at => other,
        _ => best,
    })
}

/// A response as the origin may have sent it, from one that was delivered from the cache.
fn delivered(response: &Head) -> Head {
    const ADDED: [&str; 8] =
        ["Age", "Via", "X-Varnish", "Cache-Status", "X-Cache", "Connection", "Accept-Ranges", "Content-Range"];
    let mut head = response.clone();
    head.fields.retain(|(name, _)| !ADDED.iter().any(|added| name.eq_ignore_ascii_case(added.as_bytes())));
    head
}

fn text_of(head: &Head) -> Vec<u8> {
    const FRAMING: [&str; 4] = ["Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive"];
    let [_, status, reason] = &head.line;
    let mut text = [b"HTTP/1.1 ", &status[..], b" ", reason, b"\r\n"].concat();
    for (name, value) in &head.fields {
        if !FRAMING.iter().any(|framing| name.eq_ignore_ascii_case(framing.as_bytes())) {
            text.extend_from_slice(&[name, b": " as &[u8], value, b"\r\n"].concat());
        }
    }
    text
}

/// The origin of one replayed VCL.
pub(super) struct Origin {
    answers: Rc<Answers>,
    /// The exchange that is replayed, and its time.
    now: Cell<(u32, f64)>,
    seen: RefCell<Seen>,
}

/// The requests to an origin in one exchange.
#[derive(Default)]
pub(super) struct Seen {
    /// Requests without an answer: method, host and URL.
    pub(super) missing: Vec<String>,
    /// Answers that were recorded with other credentials.
    pub(super) similar: u32,
    /// Answers that stood in for others.
    pub(super) stand_ins: u32,
}

impl Origin {
    pub(super) fn new(answers: Rc<Answers>) -> Origin {
        Origin { answers, now: Cell::new((0, 0.0)), seen: RefCell::default() }
    }

    /// Begins an exchange.
    pub(super) fn begin(&self, exchange: u32, at: f64) {
        self.now.set((exchange, at));
        self.seen.take();
    }

    pub(super) fn take_seen(&self) -> Seen {
        self.seen.take()
    }

    /// The bytes of a response; `None` = the connection fails.
    fn answer(&self, request: &HttpMessage) -> Option<Vec<u8>> {
        let value = |name: &str| request.header(name).unwrap_or_default();
        let (host, cookie, authorization, range) =
            (value("Host"), value("Cookie"), value("Authorization"), value("Range"));
        let wanted = Wanted {
            method: request.word(0).as_bytes(),
            host: host.as_bytes(),
            url: request.word(1).as_bytes(),
            credentials: [cookie.as_bytes(), authorization.as_bytes(), range.as_bytes()],
        };
        let (tag, since) = (request.header("If-None-Match"), request.header("If-Modified-Since"));
        let is_conditional = tag.is_some() || since.is_some();
        let found = self.answers.find(&wanted, |answer| is_conditional || answer.status != 304, self.now.get());
        let mut seen = self.seen.borrow_mut();
        let Some((answer, is_similar)) = found else {
            seen.missing.push(format!("{} {host}{}", request.word(0), request.word(1)));
            return None;
        };
        seen.similar += u32::from(is_similar);
        seen.stand_ins += u32::from(answer.is_stand_in);
        if answer.status == 0 {
            return None;
        }
        let head = HttpMessage::of_head(&String::from_utf8_lossy(&answer.text));
        let is_same = match (&tag, head.header("ETag")) {
            (Some(tag), Some(own)) => tag.split(',').any(|one| weak(one) == weak(&own)),
            _ => since.is_some() && since == head.header("Last-Modified"),
        };
        Some(answer.bytes(request.word(0) == "HEAD", answer.status == 200 && is_same))
    }
}

fn weak(tag: &str) -> &str {
    let tag = tag.trim();
    tag.strip_prefix("W/").unwrap_or(tag)
}

impl Answer {
    fn bytes(&self, is_head: bool, is_unchanged: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        if is_unchanged {
            bytes.extend_from_slice(b"HTTP/1.1 304 Not Modified\r\n");
            let end = self.text.windows(2).position(|pair| pair == b"\r\n").map_or(self.text.len(), |end| end + 2);
            bytes.extend_from_slice(&self.text[end..]);
        } else {
            bytes.extend_from_slice(&self.text);
        }
        if is_unchanged || matches!(self.status, 204 | 304) {
            bytes.extend_from_slice(b"\r\n");
            return bytes;
        }
        let length = self.bytes.min(REPLAY_BODY_BYTES_MAX) as usize;
        let body = if self.is_gzip && length > 0 && !is_head { zipped(length) } else { vec![b'x'; length] };
        if self.is_chunked {
            bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
        } else {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        }
        match (is_head, self.is_chunked) {
            (true, _) => {}
            (false, false) => bytes.extend_from_slice(&body),
            (false, true) if body.is_empty() => bytes.extend_from_slice(b"0\r\n\r\n"),
            (false, true) => {
                bytes.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
                bytes.extend_from_slice(&body);
                bytes.extend_from_slice(b"\r\n0\r\n\r\n");
            }
        }
        bytes
    }
}

/// A body in gzip of about this length.
fn zipped(length: usize) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    let written = encoder.write_all(&vec![b'x'; length.saturating_sub(GZIP_BYTES)]);
    written.and_then(|()| encoder.finish()).expect("memory takes what is written")
}

/// Connects to the recorded origin, and to nothing else.
pub(super) struct DialRecorded(pub(super) Rc<Origin>);

impl Dial for DialRecorded {
    fn dial<'a>(&'a self, target: &'a DialTarget, _: Duration) -> Dialling<'a> {
        Box::pin(async move {
            let remote = match target {
                DialTarget::Ip { v4, v6, .. } => v4.or(*v6),
                DialTarget::Unix(_) => None,
            };
            let (near, far) = tokio::io::duplex(CONNECTION_BYTES);
            tokio::task::spawn_local(serve(Rc::clone(&self.0), far));
            let ends = Ends { remote, local: Some((Ipv4Addr::LOCALHOST, 40_000).into()), fd: -1 };
            Ok(Box::new(Connected { stream: near, ends }) as Box<dyn Stream>)
        })
    }

    /// The recorded origin has no certificate: the connection stays as it is.
    fn secure<'a>(
        &'a self,
        stream: Box<dyn Stream>,
        _: &'a TlsSettings,
        _: &'a [&'static [u8]],
        _: Duration,
    ) -> Dialling<'a> {
        Box::pin(async move { Ok(stream) })
    }
}

async fn serve(origin: Rc<Origin>, mut stream: DuplexStream) {
    while let Some(mut request) = HttpMessage::read_head(&mut stream).await {
        request.read_body(&mut stream, false).await;
        let Some(bytes) = origin.answer(&request) else { return };
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
