//! A WebSocket on a stream (RFC 8441): the machine sees and pipes an HTTP/1 request with `Upgrade`,
//! whose bytes become DATA both ways.
//!
//! ```text
//! Awaited ─101, the key is answered→ Open ─origin ends→ Over
//!    │ └another answer→ Refused ─its body is complete→ Over
//!    └none, or one that must not pass → 502 → Over
//! ```
//!
//! The origin's answer is read from the bytes that the pipe writes. *Invariants:* to the client a
//! status of 2xx means that there is a WebSocket, so only a 101 whose key fits becomes one, and no
//! other answer is passed on as 2xx. No byte of the client reaches the origin before that: an
//! origin that continues with HTTP/1 would take it for a request. Bytes that wait in either
//! direction are bounded by the buffers of the pipe, one head, and the client's windows. Source:
//! RFC 8441 §5, RFC 6455 §4. Next file: `wire.rs`.

use super::response_head::ResponseHead;
use super::websocket::WebSocketRequest;
use ::http1::{BodyDecoder, HeadStatus, parse_response, response_body_length};
use message::Message;

/// The origin's answer cannot be passed on.
const BAD_ANSWER: u16 = 502;
/// No origin was reached.
pub(super) const NO_ANSWER: u16 = 503;

/// The path from the origin's answer to the client.
pub(super) struct Tunnel {
    websocket_request: WebSocketRequest,
    pub(super) answer: Answer,
    /// Bytes for the client next.
    pub(super) rest: Vec<u8>,
    /// Nothing follows it.
    pub(super) is_ending: bool,
}

pub(super) enum Answer {
    /// The received part of the head.
    Awaited(Vec<u8>),
    /// The WebSocket is open.
    Open,
    /// The WebSocket is refused; decoder for the body of the answer.
    Refused(BodyDecoder),
    /// There is nothing more to send, or nothing valid.
    Over,
}

impl Tunnel {
    pub(super) fn new(websocket_request: WebSocketRequest) -> Tunnel {
        Tunnel { websocket_request, answer: Answer::Awaited(Vec::new()), rest: Vec::new(), is_ending: false }
    }

    /// Takes bytes of the origin. Returns a head for the client, if they complete it.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Option<ResponseHead> {
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

    /// Skips interim responses, up to the answer.
    fn take_head(&mut self) -> Option<ResponseHead> {
        loop {
            let Answer::Awaited(received) = &mut self.answer else { return None };
            let mut message = Message::new();
            let consumed = match parse_response(received, &self.websocket_request.limits, &mut message) {
                Ok(HeadStatus::Partial) => return None,
                Ok(HeadStatus::Complete { consumed }) => consumed,
                Err(_) => return Some(self.fail(BAD_ANSWER)),
            };
            let after = received.split_off(consumed);
            let is_agreed = message.status() == 101 && is_websocket(&self.websocket_request, &message);
            return Some(match message.status() {
                101 if is_agreed => {
                    self.answer = Answer::Open;
                    self.rest = after;
                    message.set_status(200);
                    message.unset("Sec-WebSocket-Accept");
                    // An Upgrade means no body, whatever Content-Length the head has.
                    message.unset("Content-Length");
                    ResponseHead::of(&message)
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
                        ResponseHead::of(&message)
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

    /// Handles the end of the origin's bytes. Returns a head for the client, if it has none yet.
    pub(super) fn end(&mut self) -> Option<ResponseHead> {
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

    pub(super) fn fail(&mut self, status: u16) -> ResponseHead {
        self.answer = Answer::Over;
        self.is_ending = true;
        ResponseHead::bare(status)
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.answer, Answer::Open)
    }
}

/// True if an answer accepts the requested WebSocket.
fn is_websocket(websocket_request: &WebSocketRequest, answer: &Message) -> bool {
    let accept = answer.get("Sec-WebSocket-Accept").unwrap_or_default();
    let is_upgraded = answer.get("Upgrade").is_some_and(|value| value.eq_ignore_ascii_case(b"websocket"));
    is_upgraded && websocket_request.is_answered_by(accept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::http1::HeadLimits;

    fn tunnel() -> Tunnel {
        let limits = HeadLimits { total_bytes: 1000, line_bytes: 300, headers_max: 20 };
        // The key of the example in RFC 6455 §1.3.
        Tunnel::new(WebSocketRequest { key: "dGhlIHNhbXBsZSBub25jZQ==".to_owned(), limits })
    }

    const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Accept: ";

    /// Status, bytes for the client, and true if they end, when the answer arrives byte by byte.
    fn taken(answer: &str) -> (Option<u16>, String, bool) {
        let mut tunnel = tunnel();
        let mut status = None;
        for byte in answer.bytes() {
            if let Some(head) = tunnel.take(&[byte]) {
                assert!(status.is_none(), "{answer}");
                status = Some(head.status);
            }
        }
        (status, String::from_utf8(tunnel.rest).unwrap(), tunnel.is_ending)
    }

    #[test]
    fn websocket_switch_becomes_a_200_without_hop_by_hop_fields() {
        let mut tunnel = tunnel();
        let answer = format!("HTTP/1.1 103 Early Hints\r\n\r\n{SWITCH}s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nfirst");
        let head = tunnel.take(answer.as_bytes()).unwrap();
        assert_eq!(head.status, 200);
        let names: Vec<_> = head.fields.iter().map(|(name, _)| name).collect();
        assert_eq!(names, [b"sec-websocket-protocol"]);
        assert_eq!((&tunnel.rest[..], tunnel.is_ending, tunnel.is_open()), (&b"first"[..], false, true));
    }

    #[test]
    fn responses_that_refuse_a_websocket_do_not_open_a_tunnel() {
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
        assert_eq!(tunnel.end().unwrap().status, BAD_ANSWER);
        assert!(tunnel.is_ending);
    }
}
