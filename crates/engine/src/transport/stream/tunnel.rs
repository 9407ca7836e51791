//! A WebSocket on a stream (RFC 8441): what the machine sees as a request of HTTP/1 with `Upgrade`, and pipes, becomes DATA both ways.
//!
//! ```text
//! Awaited ─101, the key is answered→ Open ─origin ends→ Over
//!    │ └another answer→ Refused ─its body is complete→ Over
//!    └none, or none that may pass → 502 → Over
//! ```
//!
//! The origin's answer is read from the bytes that the pipe writes. *Invariants:* to the client a status of 2xx means that there is a
//! WebSocket, so only a 101 whose key fits becomes one, and no other answer is passed on as 2xx. Nothing of what the client sends
//! reaches the origin before that: an origin that goes on with HTTP/1 would take it for a request. What waits in either direction
//! is bounded by the buffers of the pipe, one head, and the client's windows. Source: RFC 8441 §5, RFC 6455 §4. Next file: `wire.rs`.

use super::response_head::{bare, response};
use super::websocket::WebSocketWish;
use ::http1::{BodyDecoder, HeadStatus, parse_response, response_body_length};
use http::Response;
use message::Message;

/// The origin's answer cannot be passed on.
const BAD_ANSWER: u16 = 502;
/// No origin was reached.
pub(super) const NO_ANSWER: u16 = 503;

/// The way from the origin's answer to the client.
pub(super) struct Tunnel {
    wish: WebSocketWish,
    pub(super) answer: Answer,
    /// What goes to the client next.
    pub(super) rest: Vec<u8>,
    /// Nothing follows it.
    pub(super) is_ending: bool,
}

pub(super) enum Answer {
    /// This has come of the head.
    Awaited(Vec<u8>),
    /// The WebSocket is there.
    Open,
    /// It is not, and this is the body of the answer.
    Refused(BodyDecoder),
    /// There is nothing to say any more, or nothing sensible.
    Over,
}

impl Tunnel {
    pub(super) fn new(wish: WebSocketWish) -> Tunnel {
        Tunnel { wish, answer: Answer::Awaited(Vec::new()), rest: Vec::new(), is_ending: false }
    }

    /// Takes bytes of the origin. Returns a head for the client, if they complete it.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Option<Response<()>> {
        match &mut self.answer {
            Answer::Awaited(received) => {
                received.extend_from_slice(bytes);
                self.take_head()
            }
            Answer::Open => {
                self.rest.extend_from_slice(bytes);
                None
            }
            Answer::Refused(_) => {
                self.take_body(bytes);
                None
            }
            Answer::Over => None,
        }
    }

    /// Passes over interim responses, up to the answer.
    fn take_head(&mut self) -> Option<Response<()>> {
        loop {
            let Answer::Awaited(received) = &mut self.answer else { return None };
            let mut message = Message::new();
            let consumed = match parse_response(received, &self.wish.limits, &mut message) {
                Ok(HeadStatus::Partial) => return None,
                Ok(HeadStatus::Complete { consumed }) => consumed,
                Err(_) => return Some(self.fail(BAD_ANSWER)),
            };
            let after = received.split_off(consumed);
            let is_agreed = message.status() == 101 && is_websocket(&self.wish, &message);
            return Some(match message.status() {
                101 if is_agreed => {
                    self.answer = Answer::Open;
                    self.rest = after;
                    message.set_status(200);
                    message.unset("Sec-WebSocket-Accept");
                    // An Upgrade means no body, whatever it says.
                    message.unset("Content-Length");
                    response(&message).0
                }
                100 | 102..200 => {
                    self.answer = Answer::Awaited(after);
                    continue;
                }
                ..300 => self.fail(BAD_ANSWER),
                _ => match response_body_length(&message, b"GET") {
                    Ok(length) => {
                        self.answer = Answer::Refused(BodyDecoder::new(length));
                        self.take_body(&after);
                        response(&message).0
                    }
                    Err(_) => self.fail(BAD_ANSWER),
                },
            });
        }
    }

    fn take_body(&mut self, mut bytes: &[u8]) {
        let Answer::Refused(decoder) = &mut self.answer else { return };
        while !decoder.is_done() && !bytes.is_empty() {
            let Ok(step) = decoder.step(bytes) else {
                // The response remains without its end.
                self.answer = Answer::Over;
                return;
            };
            self.rest.extend_from_slice(&bytes[step.skip..step.skip + step.data]);
            bytes = &bytes[step.skip + step.data..];
        }
        self.is_ending = decoder.is_done();
    }

    /// The origin sends nothing more. Returns a head for the client, if it has none yet.
    pub(super) fn end(&mut self) -> Option<Response<()>> {
        match &mut self.answer {
            Answer::Awaited(_) => return Some(self.fail(BAD_ANSWER)),
            Answer::Open => self.is_ending = true,
            Answer::Refused(decoder) => match decoder.end_of_input() {
                Ok(()) => self.is_ending = true,
                Err(_) => self.answer = Answer::Over,
            },
            Answer::Over => {}
        }
        None
    }

    pub(super) fn fail(&mut self, status: u16) -> Response<()> {
        self.answer = Answer::Over;
        self.is_ending = true;
        bare(status).0
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.answer, Answer::Open)
    }
}

/// Whether an answer agrees to the WebSocket that was asked for.
fn is_websocket(wish: &WebSocketWish, answer: &Message) -> bool {
    let accept = answer.get("Sec-WebSocket-Accept").unwrap_or_default();
    let is_upgraded = answer.get("Upgrade").is_some_and(|value| value.eq_ignore_ascii_case(b"websocket"));
    is_upgraded && wish.is_answered_by(accept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::http1::HeadLimits;

    fn tunnel() -> Tunnel {
        let limits = HeadLimits { total_bytes: 1000, line_bytes: 300, headers_max: 20 };
        // The key of the example in RFC 6455 §1.3.
        Tunnel::new(WebSocketWish { key: "dGhlIHNhbXBsZSBub25jZQ==".to_owned(), limits })
    }

    const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Accept: ";

    /// Status, bytes for the client, and whether they end, when the answer comes byte by byte.
    fn taken(answer: &str) -> (Option<u16>, String, bool) {
        let mut tunnel = tunnel();
        let mut status = None;
        for byte in answer.bytes() {
            if let Some(head) = tunnel.take(&[byte]) {
                assert!(status.is_none(), "{answer}");
                status = Some(head.status().as_u16());
            }
        }
        (status, String::from_utf8(tunnel.rest).unwrap(), tunnel.is_ending)
    }

    #[test]
    fn a_switch_that_answers_the_key_is_a_200_without_what_was_between_us_and_the_origin() {
        let mut tunnel = tunnel();
        let answer = format!("HTTP/1.1 103 Early Hints\r\n\r\n{SWITCH}s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nfirst");
        let head = tunnel.take(answer.as_bytes()).unwrap();
        assert_eq!(head.status(), 200);
        let names: Vec<_> = head.headers().keys().map(http::HeaderName::as_str).collect();
        assert_eq!(names, ["sec-websocket-protocol"]);
        assert_eq!((&tunnel.rest[..], tunnel.is_ending, tunnel.is_open()), (&b"first"[..], false, true));
    }

    #[test]
    fn what_is_no_websocket_never_looks_like_one() {
        for wrong in [
            format!("{SWITCH}AAAALMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"),
            "HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
                .to_owned(),
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".to_owned(),
            "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
            "SSH-2.0-OpenSSH\r\n\r\n".to_owned(),
            format!("HTTP/1.1 101 {}\r\n\r\n", "x".repeat(2000)),
        ] {
            assert_eq!(taken(&wrong), (Some(BAD_ANSWER), String::new(), true), "{wrong}");
        }
    }

    #[test]
    fn a_refusal_is_passed_on_with_its_body_and_nothing_after_it() {
        let plain = "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nnoHTTP/1.1 200 OK";
        assert_eq!(taken(plain), (Some(403), "no".to_owned(), true));
        let chunked = "HTTP/1.1 302 F\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nn\r\n1\r\no\r\n0\r\n\r\n";
        assert_eq!(taken(chunked), (Some(302), "no".to_owned(), true));
        assert_eq!(taken("HTTP/1.1 500 E\r\nConnection: close\r\n\r\nno"), (Some(500), "no".to_owned(), false));
        let cut = "HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\nz";
        assert_eq!(taken(cut), (Some(403), String::new(), false));
    }

    #[test]
    fn an_origin_that_ends_without_an_answer_is_a_bad_one() {
        let mut tunnel = tunnel();
        assert!(tunnel.take(b"HTTP/1.1 101").is_none());
        assert_eq!(tunnel.end().unwrap().status(), BAD_ANSWER);
        assert!(tunnel.is_ending);
    }
}
