//! Arbitrary bytes as requests, responses and chunked bodies.

use http1::{
    BodyDecoder, BodyError, BodyLength, HeadError, HeadLimits, HeadStatus, connection_options, parse_request,
    parse_response, parse_trailers, request_body_length, response_body_length, split_absolute_form, write_request_head,
    write_response_head, write_trailers,
};
use message::Message;
use surface::limits::CHUNK_TRAILER_BYTES_MAX;

const LIMITS: HeadLimits = HeadLimits { total_bytes: 32 << 10, line_bytes: 8 << 10, headers_max: 64 };
/// Bytes that are decoded one by one; more would only take time.
const SLOW_BYTES_MAX: usize = 4 << 10;

/// A request, its target, its framing and its body.
///
/// # Panics
/// When an accepted request is read differently after it was written.
pub fn request(bytes: &[u8]) {
    let mut message = Message::new();
    let Some(consumed) = head(parse_request(bytes, &LIMITS, &mut message), bytes) else { return };
    assert!(
        split_absolute_form(message.method(), message.target()).is_ok(),
        "a target that was accepted can be taken apart"
    );
    let _ = connection_options(&message);
    let mut written = Vec::new();
    write_request_head(&message, &mut written);
    let mut again = Message::new();
    assert_eq!(parse_request(&written, &LIMITS, &mut again), Ok(HeadStatus::Complete { consumed: written.len() }));
    assert_same(&message, &again);
    assert_eq!(request_body_length(&message), request_body_length(&again));
    if let Ok(length) = request_body_length(&message) {
        assert_ne!(length, BodyLength::UntilClose);
        body(length, &bytes[consumed..]);
    }
}

/// A response, its framing and its body.
///
/// # Panics
/// When an accepted response is read differently after it was written.
pub fn response(bytes: &[u8]) {
    let mut message = Message::new();
    let Some(consumed) = head(parse_response(bytes, &LIMITS, &mut message), bytes) else { return };
    assert!((100..1000).contains(&message.status()));
    let _ = connection_options(&message);
    let mut written = Vec::new();
    write_response_head(&message, &mut written);
    let mut again = Message::new();
    assert_eq!(parse_response(&written, &LIMITS, &mut again), Ok(HeadStatus::Complete { consumed: written.len() }));
    assert_same(&message, &again);
    for method in [&b"GET"[..], b"HEAD"] {
        assert_eq!(response_body_length(&message, method), response_body_length(&again, method));
    }
    if let Ok(length) = response_body_length(&message, b"GET") {
        body(length, &bytes[consumed..]);
    }
}

/// A chunked body.
///
/// # Panics
/// When it is read differently in pieces than at once.
pub fn chunked_body(bytes: &[u8]) {
    body(BodyLength::Chunked, bytes);
}

fn head(status: Result<HeadStatus, HeadError>, bytes: &[u8]) -> Option<usize> {
    match status {
        Ok(HeadStatus::Complete { consumed }) => {
            assert!(consumed <= bytes.len() && consumed <= LIMITS.total_bytes);
            Some(consumed)
        }
        Ok(HeadStatus::Partial) => None,
        Err(error) => {
            let _ = (error.bogo_header(), error.text());
            None
        }
    }
}

fn assert_same(a: &Message, b: &Message) {
    assert_eq!((a.method(), a.target(), a.protocol()), (b.method(), b.target(), b.protocol()));
    assert_eq!((a.status(), a.reason()), (b.status(), b.reason()));
    assert!(a.headers().eq(b.headers()));
}

fn body(length: BodyLength, bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(SLOW_BYTES_MAX)];
    let whole = decode(length, bytes, bytes.len());
    for piece in [1, 7] {
        assert_eq!(decode(length, bytes, piece), whole);
    }
    if let Ok(decoded) = whole
        && decoded.is_complete
        && length == BodyLength::Chunked
    {
        trailers(&decoded.trailers);
    }
}

/// The trailer section of a complete body: the forwarded fields are read the same by the next
/// recipient, and cannot affect framing.
fn trailers(bytes: &[u8]) {
    assert!(bytes.len() <= CHUNK_TRAILER_BYTES_MAX && bytes.ends_with(b"\n"));
    let mut received = Message::new();
    if parse_trailers(bytes, &LIMITS, &mut received).is_err() {
        return;
    }
    let named: Vec<u8> = received.headers().flat_map(|field| [field.name(), b","].concat()).collect();
    let mut passed_on = Message::new();
    semantics::trailers::select(&received, &named, &mut passed_on);
    for name in ["Content-Length", "Transfer-Encoding", "Host", "Cookie", "Set-Cookie", "Connection", "Trailer"] {
        assert!(!passed_on.has(name));
    }
    let mut written = Vec::new();
    write_trailers(&passed_on, &mut written);
    let again = decode(BodyLength::Chunked, &written, written.len());
    let again = again.ok().filter(|again| again.is_complete && again.used_bytes == written.len());
    let again = again.expect("what is written ends where it was meant to");
    parse_trailers(&again.trailers, &LIMITS, &mut received).unwrap();
    let fields = |message: &Message| -> Vec<_> {
        message.headers().map(|field| (field.name().to_vec(), field.value().to_vec())).collect()
    };
    assert_eq!(fields(&received), fields(&passed_on));
}

/// The decoded part of a body.
#[derive(PartialEq, Eq, Debug)]
struct Decoded {
    body: Vec<u8>,
    trailers: Vec<u8>,
    used_bytes: usize,
    is_complete: bool,
}

fn decode(length: BodyLength, bytes: &[u8], piece: usize) -> Result<Decoded, BodyError> {
    let mut decoder = BodyDecoder::new(length);
    let (mut body, mut trailers) = (Vec::new(), Vec::new());
    let (mut at, mut end) = (0, 0);
    loop {
        let step = decoder.step(&bytes[at..end])?;
        trailers.extend_from_slice(&bytes[at + step.skip - step.trailer..at + step.skip]);
        body.extend_from_slice(&bytes[at + step.skip..][..step.data]);
        at += step.skip + step.data;
        if step.done || (at == end && end == bytes.len()) {
            return Ok(Decoded { body, trailers, used_bytes: at, is_complete: step.done });
        }
        if at == end {
            end = bytes.len().min(end + piece.max(1));
        } else {
            assert!(step.data > 0, "no progress");
        }
    }
}
