//! One check: connect, send the request, read until the origin closes (or, without `.expect_close`,
//! until time is up), compare the status.
//!
//! All of this must fit into the probe's timeout. Only the first [`KEPT_BYTES`] of the answer are
//! examined; the rest is read and discarded, so that the measured time covers the whole answer.

use super::words::{status_matches, with_number};
use crate::addresses::Route;
use crate::backend::Backend;
use crate::dial::{Dial, DialTarget, Stream};
use crate::open::{dial as dial_first, secured};
use crate::probe::bounded;
use crate::probe::outcome::{Family, Outcome};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};
use vcl_run::program::ProbeDefinition;

/// The status line must end within this many bytes of the answer.
pub const KEPT_BYTES: usize = 127;

/// Checks the backend once: at the first of its addresses that can be reached, as a fetch would.
pub async fn check(backend: &Backend, definition: &ProbeDefinition, dial: &dyn Dial, prefer_v6: bool) -> Outcome {
    let start = Instant::now();
    let limit = bounded(definition.timeout);
    let mut outcome =
        Outcome { family: None, sent: None, received: None, happy: false, seconds: 0.0, text: String::new() };
    let routes = backend.routes(prefer_v6);
    match routes.is_empty() {
        true => outcome.text = "No backend".to_owned(),
        false => run(backend, definition, dial, (&routes, prefer_v6), limit, &mut outcome).await,
    }
    if outcome.received == Some(true) {
        outcome.seconds = start.elapsed().as_secs_f64();
    }
    outcome
}

async fn run(
    backend: &Backend,
    definition: &ProbeDefinition,
    dial: &dyn Dial,
    (routes, prefer_v6): (&[Route], bool),
    limit: Duration,
    outcome: &mut Outcome,
) {
    let deadline = Instant::now() + limit;
    let (mut stream, target) = match dial_first(dial, routes, deadline).await {
        Ok((stream, route)) => (stream, &route.target),
        Err(error) => {
            outcome.text = with_number("Open error", &error);
            return;
        }
    };
    let late = Instant::now().saturating_duration_since(deadline);
    if !late.is_zero() {
        outcome.text = format!("Open timeout {:.3}s exceeded by {:.3}s", limit.as_secs_f64(), late.as_secs_f64());
        return;
    }
    outcome.family = Some(match (target, stream.ends().remote) {
        (DialTarget::Unix(_), _) => Family::Unix,
        (DialTarget::Ip { .. }, Some(remote)) if remote.is_ipv6() => Family::Ipv6,
        (DialTarget::Ip { v4: None, .. }, None) => Family::Ipv6,
        (DialTarget::Ip { .. }, _) => Family::Ipv4,
    });
    let (opening, request) = request_bytes(backend, definition, stream.as_ref(), prefer_v6);
    if !send(stream.as_mut(), &opening, deadline, outcome).await {
        return;
    }
    if let Some(settings) = backend.tls() {
        match secured(dial, stream, (settings, backend.protocols(true)), deadline).await {
            Ok(encrypted) => stream = encrypted,
            Err(why) => {
                outcome.text = format!("TLS: {why}");
                return;
            }
        }
    }
    if speaks_http2(backend, stream.as_ref()) {
        return super::http2::run(backend, definition, stream, deadline, outcome).await;
    }
    if send(stream.as_mut(), &request, deadline, outcome).await {
        outcome.sent = Some(true);
        receive(definition, stream.as_mut(), deadline, outcome).await;
    }
}

/// True if the backend is checked over HTTP/2, as its requests are sent.
fn speaks_http2(backend: &Backend, stream: &dyn Stream) -> bool {
    match stream.tls() {
        Some(facts) => facts.alpn.as_deref() == Some("h2"),
        None => backend.definition().http2 && backend.tls().is_none(),
    }
}

/// Sends these bytes; returns false if that failed, and notes it in the outcome.
async fn send(stream: &mut dyn Stream, bytes: &[u8], deadline: Instant, outcome: &mut Outcome) -> bool {
    let sending = async {
        stream.write_all(bytes).await?;
        stream.flush().await
    };
    let result = timeout_at(deadline, sending).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    match result {
        Ok(()) => true,
        Err(error) => {
            outcome.sent = Some(false);
            outcome.text = with_number("Write error", &error);
            false
        }
    }
}

/// The bytes to send in clear (header for a proxy and preamble, PROXY header), and the request.
/// Without encryption all are sent together.
fn request_bytes(
    backend: &Backend,
    definition: &ProbeDefinition,
    stream: &dyn Stream,
    prefer_v6: bool,
) -> (Vec<u8>, Vec<u8>) {
    let mut bytes = Vec::new();
    backend.write_opening(prefer_v6, &mut bytes);
    match (backend.definition().proxy_header, stream.ends().local) {
        (1, Some(local)) => proxy_protocol::write_version_1(local, local, &mut bytes),
        (1, None) => proxy_protocol::write_version_1_unknown(&mut bytes),
        (2, _) => proxy_protocol::write_version_2_local(&mut bytes),
        _ => {}
    }
    let opening =
        if backend.tls().is_some() || backend.definition().http2 { std::mem::take(&mut bytes) } else { Vec::new() };
    if definition.request.is_empty() {
        let (url, host) = (&definition.url, &backend.definition().host_header);
        bytes.extend_from_slice(format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes());
    } else {
        bytes.extend_from_slice(definition.request.as_bytes());
    }
    (opening, bytes)
}

async fn receive(definition: &ProbeDefinition, stream: &mut dyn Stream, deadline: Instant, outcome: &mut Outcome) {
    let mut kept = Vec::with_capacity(KEPT_BYTES);
    let mut buffer = [0; 4096];
    loop {
        match timeout_at(deadline, stream.read(&mut buffer)).await {
            Ok(Ok(0)) => break,
            Ok(Ok(count)) => {
                let room = KEPT_BYTES - kept.len();
                kept.extend_from_slice(&buffer[..count.min(room)]);
            }
            Ok(Err(error)) => {
                outcome.received = Some(false);
                outcome.text = with_number("Read error", &error);
                return;
            }
            // Without `.expect_close` the origin may keep the connection open; the bytes sent so
            // far are the answer.
            Err(_) if !definition.expect_close && !kept.is_empty() => break,
            Err(_) => {
                outcome.received = Some(false);
                outcome.text = with_number("Poll error", &io::Error::from(io::ErrorKind::TimedOut));
                return;
            }
        }
    }
    if kept.is_empty() {
        outcome.text = "Empty response".to_owned();
        return;
    }
    outcome.received = Some(true);
    let end = kept.iter().position(|byte| matches!(byte, b'\r' | b'\n' | 0)).unwrap_or(kept.len());
    outcome.text = String::from_utf8_lossy(&kept[..end]).into_owned();
    outcome.happy = status_matches(&outcome.text, definition);
}
