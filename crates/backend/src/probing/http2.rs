//! A check over HTTP/2: the same request on a stream, and the status of its answer.
//!
//! The rest of the answer is received until the stream ends, so that the measured time covers it;
//! nothing of it is kept. A request spelled out in the definition is parsed: it is written as for
//! HTTP/1.

use super::words::{status_matches, with_number};
use crate::backend::Backend;
use crate::dial::Stream;
use crate::probe::outcome::Outcome;
use h2::client;
use http::{Request, Version};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;
use tokio::time::{Instant, timeout_at};
use vcl_run::program::ProbeDefinition;

/// Largest head of an answer, in bytes.
const HEAD_BYTES_MAX: u32 = 64 << 10;

/// Sends the request on this connection and receives the answer.
pub(super) async fn run(
    backend: &Backend,
    definition: &ProbeDefinition,
    stream: Box<dyn Stream>,
    deadline: Instant,
    outcome: &mut Outcome,
) {
    let Some(request) = request(backend, definition) else {
        outcome.sent = Some(false);
        outcome.text = "The request cannot be sent over HTTP/2".to_owned();
        return;
    };
    let mut is_sent = false;
    let answer = timeout_at(deadline, ask(stream, request, &mut is_sent)).await;
    outcome.sent = Some(is_sent);
    match answer {
        Ok(Ok(status)) => {
            outcome.received = Some(true);
            outcome.text = format!("HTTP/2.0 {status}");
            outcome.happy = status_matches(&outcome.text, definition);
        }
        Ok(Err(error)) => {
            outcome.received = Some(false);
            outcome.text = format!("HTTP/2: {error}");
        }
        Err(_) => {
            outcome.received = Some(false);
            outcome.text = with_number("Poll error", &io::Error::from(io::ErrorKind::TimedOut));
        }
    }
}

/// The request of a definition.
fn request(backend: &Backend, definition: &ProbeDefinition) -> Option<Request<()>> {
    let own = &backend.definition().host_header;
    let (mut method, mut path, mut host, mut fields) = ("GET", definition.url.as_str(), own.as_str(), Vec::new());
    if !definition.request.is_empty() {
        let mut lines = definition.request.lines();
        let mut words = lines.next()?.split(' ');
        (method, path) = (words.next()?, words.next()?);
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            match name.to_ascii_lowercase().as_str() {
                "host" => host = value.trim(),
                "connection" | "keep-alive" | "upgrade" | "transfer-encoding" | "content-length" => {}
                _ => fields.push((name, value.trim())),
            }
        }
    }
    let scheme = if backend.definition().tls.is_some() { "https" } else { "http" };
    let uri = http::Uri::builder().scheme(scheme).authority(host).path_and_query(path).build().ok()?;
    let mut request = Request::builder().method(method).uri(uri).version(Version::HTTP_2);
    for (name, value) in fields {
        request = request.header(name, value);
    }
    request.body(()).ok()
}

/// Returns the status of the answer, once it is complete.
async fn ask(stream: Box<dyn Stream>, request: Request<()>, is_sent: &mut bool) -> Result<u16, h2::Error> {
    let mut builder = client::Builder::new();
    builder.enable_push(false).max_header_list_size(HEAD_BYTES_MAX);
    let (mut requests, connection) = builder.handshake::<_, io::Cursor<&'static [u8]>>(stream).await?;
    let (response, _stream) = requests.send_request(request, true)?;
    *is_sent = true;
    let answer = async {
        let response = response.await?;
        let status = response.status().as_u16();
        let mut body = response.into_body();
        while let Some(piece) = body.data().await {
            body.flow_control().release_capacity(piece?.len())?;
        }
        Ok(status)
    };
    let (mut answer, mut connection) = (pin!(answer), pin!(connection));
    poll_fn(|context| {
        let ended = Pin::as_mut(&mut connection).poll(context);
        match (Pin::as_mut(&mut answer).poll(context), ended) {
            (Poll::Ready(answer), _) => Poll::Ready(answer),
            (Poll::Pending, Poll::Ready(Err(error))) => Poll::Ready(Err(error)),
            (Poll::Pending, _) => Poll::Pending,
        }
    })
    .await
}
