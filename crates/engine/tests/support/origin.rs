//! Origins in memory.

use backend::{Dial, DialTarget, Ends, Stream};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};

/// The origin's end of a connection.
pub type OriginStream = DuplexStream;

/// Handles a new connection.
pub(super) type Handler = Rc<dyn Fn(OriginStream)>;

/// Buffer size of a connection between the engine and an origin, in bytes.
const CONNECTION_BYTES: usize = 64 << 10;

/// Opens connections to origins by address; if there is no origin, the connection is refused.
#[derive(Default)]
pub(super) struct DialInMemory {
    origins: RefCell<HashMap<SocketAddr, Handler>>,
    /// Addresses that do not answer.
    silent: RefCell<HashSet<SocketAddr>>,
    dialled: Cell<usize>,
    breaks: Rc<Breaks>,
}

/// The ways in which connections break instead of ending normally.
#[derive(Default)]
pub(super) struct Breaks {
    /// The end of a connection reads as ECONNRESET.
    pub(super) ends_are_resets: Cell<bool>,
    /// The next write on any connection fails with EPIPE and sends nothing.
    pub(super) next_write: Cell<bool>,
}

impl DialInMemory {
    pub(super) fn set(&self, address: SocketAddr, handler: Handler) {
        self.silent.borrow_mut().remove(&address);
        self.origins.borrow_mut().insert(address, handler);
    }

    pub(super) fn silence(&self, address: SocketAddr) {
        self.silent.borrow_mut().insert(address);
    }

    pub(super) fn count(&self) -> usize {
        self.dialled.get()
    }

    pub(super) fn breaks(&self) -> &Breaks {
        &self.breaks
    }
}

impl Dial for DialInMemory {
    fn dial<'a>(
        &'a self,
        target: &'a DialTarget,
        timeout: Duration,
    ) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + 'a>> {
        Box::pin(async move {
            self.dialled.set(self.dialled.get() + 1);
            let address = match target {
                DialTarget::Ip { v4, v6, .. } => v4.or(*v6),
                DialTarget::Unix(_) => None,
            };
            if address.is_some_and(|address| self.silent.borrow().contains(&address)) {
                tokio::time::sleep(timeout).await;
                return Err(io::ErrorKind::TimedOut.into());
            }
            let handler = address.and_then(|address| self.origins.borrow().get(&address).cloned());
            let handler = handler.ok_or_else(|| io::Error::from_raw_os_error(111))?;
            let (near, far) = tokio::io::duplex(CONNECTION_BYTES);
            handler(far);
            let breaks = Rc::clone(&self.breaks);
            Ok(Box::new(NearEnd { stream: near, remote: address, breaks }) as Box<dyn Stream>)
        })
    }
}

/// The engine's end of a connection.
struct NearEnd {
    stream: DuplexStream,
    remote: Option<SocketAddr>,
    breaks: Rc<Breaks>,
}

impl Stream for NearEnd {
    fn ends(&self) -> Ends {
        Ends { remote: self.remote, local: Some("10.0.0.9:40000".parse().unwrap()), fd: -1 }
    }
}

impl AsyncRead for NearEnd {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, into);
        let is_end = matches!(result, Poll::Ready(Ok(()))) && into.filled().len() == before;
        if is_end && self.breaks.ends_are_resets.get() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        result
    }
}

impl AsyncWrite for NearEnd {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.breaks.next_write.take() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A request as an origin received it.
#[derive(Clone, Debug, Default)]
pub struct OriginRequest {
    /// Everything before the empty line.
    pub head: String,
    /// The body, unchunked.
    pub body: Vec<u8>,
}

impl OriginRequest {
    /// Reads the next request; `None` if the engine has closed the connection.
    pub async fn read(stream: &mut OriginStream) -> Option<OriginRequest> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.ok()?);
        }
        let mut request = OriginRequest { head: String::from_utf8(head).unwrap(), body: Vec::new() };
        if let Some(length) = request.header("content-length") {
            request.body = vec![0; length.parse().unwrap()];
            stream.read_exact(&mut request.body).await.ok()?;
        } else if request.header("transfer-encoding").is_some() {
            request.body = super::client::read_chunked(stream).await?;
        }
        Some(request)
    }

    /// The request line without the protocol: `GET /`.
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1")
    }

    /// The request target.
    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    /// The value of a header; `name` is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        super::client::find_header(&self.head, name)
    }
}

/// An origin that answers each request on a connection with the bytes from `answer`.
pub fn serve_each(
    answer: impl Fn(&OriginRequest) -> Vec<u8> + Clone + 'static,
) -> impl Fn(OriginStream) -> Pin<Box<dyn Future<Output = ()>>> {
    move |mut stream| {
        let answer = answer.clone();
        Box::pin(async move {
            while let Some(request) = OriginRequest::read(&mut stream).await {
                if stream.write_all(&answer(&request)).await.is_err() {
                    return;
                }
            }
        })
    }
}

/// An origin that answers every request with a 200, that body, and `headers` (each with its line
/// end).
pub fn always(headers: &str, body: &str) -> impl Fn(OriginStream) -> Pin<Box<dyn Future<Output = ()>>> + use<> {
    let answer = format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
    serve_each(move |_| answer.clone().into_bytes())
}
