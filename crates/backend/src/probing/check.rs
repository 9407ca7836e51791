//! One check: connect, send the request, read until the origin closes (or, without `.expect_close`, until time is up),
//! compare the status.
//!
//! All of this must fit into the probe's timeout. Only the first [`KEPT_BYTES`] of the answer are examined; the rest is read
//! and thrown away, so that the measured time covers the whole answer.

use crate::backend::{Backend, error_number, error_text};
use crate::dial::{Dial, DialTarget, Stream};
use crate::probe::bounded;
use crate::probe::outcome::{Family, Outcome};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};
use vcl_run::program::ProbeDefinition;

/// The status line must end within this many bytes of the answer.
pub const KEPT_BYTES: usize = 127;

/// Checks the backend once.
pub async fn check(backend: &Backend, definition: &ProbeDefinition, dial: &dyn Dial, prefer_v6: bool) -> Outcome {
    let start = Instant::now();
    let limit = bounded(definition.timeout);
    let mut outcome =
        Outcome { family: None, sent: None, received: None, happy: false, seconds: 0.0, text: String::new() };
    match backend.target(prefer_v6) {
        None => outcome.text = "No backend".to_owned(),
        Some(target) => run(backend, definition, dial, (&target, prefer_v6), limit, &mut outcome).await,
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
    (target, prefer_v6): (&DialTarget, bool),
    limit: Duration,
    outcome: &mut Outcome,
) {
    let deadline = Instant::now() + limit;
    let mut stream = match dial.dial(target, limit).await {
        Ok(stream) => stream,
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
    let request = request_bytes(backend, definition, stream.as_ref(), prefer_v6);
    match timeout_at(deadline, stream.write_all(&request)).await {
        Ok(Ok(())) => outcome.sent = Some(true),
        Ok(Err(error)) => {
            outcome.sent = Some(false);
            outcome.text = with_number("Write error", &error);
            return;
        }
        Err(_) => {
            outcome.sent = Some(false);
            outcome.text = with_number("Write error", &io::Error::from(io::ErrorKind::TimedOut));
            return;
        }
    }
    receive(definition, stream.as_mut(), deadline, outcome).await;
}

/// The bytes to send: header for a proxy and preamble, PROXY header, request.
fn request_bytes(backend: &Backend, definition: &ProbeDefinition, stream: &dyn Stream, prefer_v6: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    backend.write_opening(prefer_v6, &mut bytes);
    match (backend.definition().proxy_header, stream.ends().local) {
        (1, Some(local)) => proxy_protocol::write_version_1(local, local, &mut bytes),
        (1, None) => proxy_protocol::write_version_1_unknown(&mut bytes),
        (2, _) => proxy_protocol::write_version_2_local(&mut bytes),
        _ => {}
    }
    if definition.request.is_empty() {
        let (url, host) = (&definition.url, &backend.definition().host_header);
        bytes.extend_from_slice(format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes());
    } else {
        bytes.extend_from_slice(definition.request.as_bytes());
    }
    bytes
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
            // Without `.expect_close` the origin may keep the connection open; what it has sent so far is the answer.
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
    outcome.happy = status_of(&outcome.text) == Some(u32::from(definition.expected_response));
}

/// The status of a line `HTTP/<number> <status> …`; anything may follow the digits.
fn status_of(line: &str) -> Option<u32> {
    let rest = line.strip_prefix("HTTP/")?;
    let (version, rest) = rest.split_once(|character: char| character.is_ascii_whitespace())?;
    version.parse::<f64>().ok()?;
    let rest = rest.trim_start();
    let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn with_number(what: &str, error: &io::Error) -> String {
    let errno = error_number(error);
    format!("{what} {errno} ({})", error_text(errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_the_number_behind_the_version() {
        assert_eq!(status_of("HTTP/1.1 200 OK"), Some(200));
        assert_eq!(status_of("HTTP/1.0  204"), Some(204));
        assert_eq!(status_of("HTTP/2 301 Moved"), Some(301));
        assert_eq!(status_of("HTTP/1.1 OK"), None);
        assert_eq!(status_of("HTTP/x 200 OK"), None);
        assert_eq!(status_of("HTTP/1.1"), None);
        assert_eq!(status_of("ICY 200 OK"), None);
        assert_eq!(status_of("HTTP/1.1 99999999999 OK"), None);
    }
}
