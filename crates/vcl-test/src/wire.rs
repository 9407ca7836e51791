//! HTTP/1 between the engine and both ends, in memory: the client of a case and its origins.

use crate::case::{Fault, Origin, Request, Values};
use backend::{Connected, Dial, DialTarget, Dialling, Ends, Stream, TlsSettings};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;
use surface::limits::VCL_TEST_MESSAGE_BYTES_MAX;
use surface::quantity::seconds;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream};
use vcl_run::program::{BackendDefinition, Endpoint};

/// Buffer size of a connection in memory, in bytes.
pub(crate) const CONNECTION_BYTES: usize = 64 << 10;

/// Virtual time that a client waits for a response: longer than every default of the daemon.
const CLIENT_SECONDS_MAX: u64 = 86_400;

/// `ECONNREFUSED`.
const REFUSED: i32 = 111;

/// The head of a message and its body.
#[derive(Clone, Debug, Default)]
pub(crate) struct HttpMessage {
    /// The first line.
    pub(crate) start: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl HttpMessage {
    /// The values of a header, ignoring case, joined by commas.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let values: Vec<&str> = self.values(name).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// A word of the first line.
    pub(crate) fn word(&self, index: usize) -> &str {
        self.start.split(' ').nth(index).unwrap_or_default()
    }

    fn has(&self, name: &str) -> bool {
        self.values(name).next().is_some()
    }

    /// Reads a head; `None` at the end of the connection, and for one that is too large.
    pub(crate) async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Option<HttpMessage> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() > VCL_TEST_MESSAGE_BYTES_MAX {
                return None;
            }
            head.push(stream.read_u8().await.ok()?);
        }
        Some(HttpMessage::of_head(&String::from_utf8_lossy(&head)))
    }

    /// Reads the lines of a head.
    pub(crate) fn of_head(head: &str) -> HttpMessage {
        let mut lines = head.lines();
        let start = lines.next().unwrap_or_default().to_owned();
        let headers = lines.filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect();
        HttpMessage { start, headers, body: Vec::new() }
    }

    /// Reads the body that the head announces; without a length up to the end if `until_end`.
    pub(crate) async fn read_body(&mut self, stream: &mut (impl AsyncRead + Unpin), until_end: bool) {
        let limit = VCL_TEST_MESSAGE_BYTES_MAX as u64;
        if self.has("Transfer-Encoding") {
            while let Some(bytes) = read_line(stream).await.and_then(|line| u64::from_str_radix(line.trim(), 16).ok()) {
                let room = limit.saturating_sub(self.body.len() as u64);
                let mut part = stream.take(bytes.min(room));
                let is_last = part.read_to_end(&mut self.body).await.is_err() || bytes == 0 || bytes > room;
                if read_line(stream).await.is_none() || is_last {
                    return;
                }
            }
        } else if let Some(length) = self.header("Content-Length").and_then(|length| length.parse::<u64>().ok()) {
            let _ = stream.take(length.min(limit)).read_to_end(&mut self.body).await;
        } else if until_end {
            let _ = stream.take(limit).read_to_end(&mut self.body).await;
        }
    }
}

async fn read_line(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") && line.len() < 100 {
        line.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8_lossy(&line).into_owned())
}

fn write_headers(headers: &BTreeMap<String, Values>, out: &mut String) {
    for (name, values) in headers {
        for value in values.all() {
            out.push_str(&format!("{name}: {value}\r\n"));
        }
    }
}

fn names(headers: &BTreeMap<String, Values>, wanted: &str) -> bool {
    headers.keys().any(|name| name.eq_ignore_ascii_case(wanted))
}

/// Sends a request and reads the final response. `None` if there is none.
pub(crate) async fn exchange(stream: DuplexStream, request: &Request) -> Option<HttpMessage> {
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.url);
    if !names(&request.headers, "Host") {
        head.push_str("Host: example.com\r\n");
    }
    let body = request.body.clone().unwrap_or_default();
    if request.body.is_some() && !names(&request.headers, "Content-Length") {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    write_headers(&request.headers, &mut head);
    head.push_str("\r\n");
    let (mut reader, mut writer) = tokio::io::split(stream);
    let send = async {
        let _ = writer.write_all(head.as_bytes()).await;
        let _ = writer.write_all(body.as_bytes()).await;
        // The connection stays open in this direction until the response is there.
        std::future::pending::<()>().await;
    };
    let receive = async {
        loop {
            let mut response = HttpMessage::read_head(&mut reader).await?;
            let status = response.word(1).to_owned();
            if status.starts_with('1') && status != "101" {
                continue;
            }
            if request.method != "HEAD" && status != "204" && status != "304" {
                response.read_body(&mut reader, true).await;
            }
            return Some(response);
        }
    };
    let limit = tokio::time::sleep(Duration::from_secs(CLIENT_SECONDS_MAX));
    tokio::select! {
        () = send => None,
        response = receive => response,
        () = limit => None,
    }
}

/// The origins of a case, and the requests that they have received.
#[derive(Default)]
pub(crate) struct Origins {
    backends: Vec<(String, Endpoint)>,
    current: RefCell<(Origin, BTreeMap<String, Origin>)>,
    received: Rc<RefCell<Vec<HttpMessage>>>,
}

impl Origins {
    pub(crate) fn new(backends: &[BackendDefinition]) -> Origins {
        let backends = backends.iter().map(|backend| (backend.name.clone(), backend.endpoint.clone())).collect();
        Origins { backends, ..Origins::default() }
    }

    /// Sets the responses from now on.
    pub(crate) fn answer(&self, origin: Origin, by_name: BTreeMap<String, Origin>) {
        *self.current.borrow_mut() = (origin, by_name);
    }

    /// The requests since the last call.
    pub(crate) fn take_received(&self) -> Vec<HttpMessage> {
        std::mem::take(&mut *self.received.borrow_mut())
    }

    /// The response at an address: that of a backend with it, or else the one for all.
    fn at(&self, target: &DialTarget) -> Origin {
        let current = self.current.borrow();
        let is_there = |endpoint: &Endpoint| match (endpoint, target) {
            (Endpoint::Ip { v4, v6 }, DialTarget::Ip { v4: to_v4, v6: to_v6, .. }) => {
                v4.is_some() && v4 == to_v4 || v6.is_some() && v6 == to_v6
            }
            (Endpoint::Unix(path), DialTarget::Unix(to)) => path == to,
            (Endpoint::None | Endpoint::Ip { .. } | Endpoint::Unix(_), _) => false,
        };
        let mut named = self.backends.iter().filter(|(_, endpoint)| is_there(endpoint));
        let found = named.find_map(|(name, _)| current.1.get(name));
        found.unwrap_or(&current.0).clone()
    }
}

/// Connects to the origins of a case, and to nothing else.
pub(crate) struct DialInMemory(pub(crate) Rc<Origins>);

impl Dial for DialInMemory {
    fn dial<'a>(&'a self, target: &'a DialTarget, timeout: Duration) -> Dialling<'a> {
        Box::pin(async move {
            match self.0.at(target).fail {
                Some(Fault::Refuse) => return Err(io::Error::from_raw_os_error(REFUSED)),
                Some(Fault::Timeout) => {
                    tokio::time::sleep(timeout).await;
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Some(Fault::Close) | None => {}
            }
            let remote = match target {
                DialTarget::Ip { v4, v6, .. } => v4.or(*v6),
                DialTarget::Unix(_) => None,
            };
            let (near, far) = tokio::io::duplex(CONNECTION_BYTES);
            tokio::task::spawn_local(serve(Rc::clone(&self.0), target.clone(), far));
            let ends = Ends { remote, local: Some((Ipv4Addr::LOCALHOST, 40_000).into()), fd: -1 };
            Ok(Box::new(Connected { stream: near, ends }) as Box<dyn Stream>)
        })
    }

    /// The origin in memory has no certificate: the connection stays as it is.
    fn secure<'a>(
        &'a self,
        stream: Box<dyn Stream>,
        _settings: &'a TlsSettings,
        _protocols: &'a [&'static [u8]],
        _timeout: Duration,
    ) -> Dialling<'a> {
        Box::pin(async move { Ok(stream) })
    }
}

/// Answers the requests on one connection.
async fn serve(origins: Rc<Origins>, target: DialTarget, mut stream: DuplexStream) {
    while let Some(mut request) = HttpMessage::read_head(&mut stream).await {
        request.read_body(&mut stream, false).await;
        let is_head = request.word(0) == "HEAD";
        origins.received.borrow_mut().push(request);
        let origin = origins.at(&target);
        if let Some(delay) = origin.delay.as_deref().and_then(seconds) {
            tokio::time::sleep(Duration::from_secs_f64(delay)).await;
        }
        if origin.fail.is_some() || stream.write_all(&response(&origin, is_head)).await.is_err() {
            return;
        }
    }
}

fn response(origin: &Origin, is_head: bool) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} {}\r\n", origin.status, origin.reason);
    write_headers(&origin.headers, &mut head);
    let has_body = !matches!(origin.status, 100..=199 | 204 | 304);
    let is_framed = names(&origin.headers, "Content-Length") || names(&origin.headers, "Transfer-Encoding");
    if has_body && !is_framed {
        head.push_str(&format!("Content-Length: {}\r\n", origin.body.len()));
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    if has_body && !is_head {
        bytes.extend_from_slice(origin.body.as_bytes());
    }
    bytes
}
