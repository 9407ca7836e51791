//! Lengths of bodies, and their positions in bytes that are cut into pieces in any way.

use http1::{
    BodyDecoder, BodyError, BodyLength, FramingError, HeadError, HeadLimits, LAST_CHUNK, START_LINE_SLOTS,
    chunk_header, parse_trailers, response_body_length, write_trailers,
};
use message::Message;
use rand::{RngExt, SeedableRng, rngs::SmallRng};

/// Feeds `bytes` in pieces of the lengths that `piece` gives; returns the body and the number of
/// bytes consumed.
fn decode(length: BodyLength, bytes: &[u8], mut piece: impl FnMut() -> usize) -> Result<(Vec<u8>, usize), BodyError> {
    let mut decoder = BodyDecoder::new(length);
    let mut body = Vec::new();
    let mut at = 0;
    let mut end = 0;
    loop {
        let step = decoder.step(&bytes[at..end])?;
        body.extend_from_slice(&bytes[at + step.skip..][..step.data]);
        at += step.skip + step.data;
        assert!(at <= end);
        assert_eq!(step.done, decoder.is_done());
        if step.done {
            return Ok((body, at));
        }
        if step.data == 0 {
            assert_eq!(at, end, "a step without data has used up its input");
        }
        if at == end {
            if end == bytes.len() {
                decoder.end_of_input()?;
                return Ok((body, at));
            }
            end = bytes.len().min(end + piece());
        }
    }
}

fn at_once(length: BodyLength, bytes: &[u8]) -> Result<(Vec<u8>, usize), BodyError> {
    decode(length, bytes, || usize::MAX / 2)
}

#[test]
fn body_ends_at_its_length_and_the_rest_is_left() {
    let body = |length, bytes: &[u8]| at_once(length, bytes).map(|(body, at)| (String::from_utf8(body).unwrap(), at));
    assert_eq!(body(BodyLength::None, b"next"), Ok((String::new(), 0)));
    assert_eq!(body(BodyLength::Length(0), b"next"), Ok((String::new(), 0)));
    assert_eq!(body(BodyLength::Length(5), b"hellonext"), Ok(("hello".to_owned(), 5)));
    assert_eq!(body(BodyLength::UntilClose, b"hello"), Ok(("hello".to_owned(), 5)));
    assert_eq!(body(BodyLength::Length(6), b"hello"), Err(BodyError::LengthShort));
    assert_eq!(body(BodyLength::Chunked, b"5\r\nhello\r\n0\r\n\r\nnext"), Ok(("hello".to_owned(), 15)));
    assert_eq!(body(BodyLength::Chunked, b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"), Ok(("hello".to_owned(), 20)));
}

#[test]
fn truncated_chunked_body_reports_its_position() {
    let cases: &[(&[u8], BodyError)] = &[
        (b"", BodyError::ChunkedShort),
        (b"5", BodyError::ChunkedShort),
        (b"5\r\nhel", BodyError::ChunkShort),
        (b"5\r\nhello", BodyError::ChunkedShort),
        (b"5\r\nhello\r\n", BodyError::ChunkedShort),
        (b"0\r\n", BodyError::ChunkedShort),
        (b"0\r\nX: y\r\n", BodyError::ChunkedShort),
    ];
    for (bytes, expect) in cases {
        assert_eq!(at_once(BodyLength::Chunked, bytes), Err(*expect), "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn the_trailer_section_is_pointed_out_and_can_be_read() {
    let body = b"2\r\nab\r\n0\r\nX-Sum: 7\r\nx-t:\r\n\r\nGET /";
    for piece in 1..body.len() {
        let mut decoder = BodyDecoder::new(BodyLength::Chunked);
        let (mut at, mut end, mut trailers) = (0, 0, Vec::new());
        while !decoder.is_done() {
            end = body.len().min(end + piece);
            while at < end && !decoder.is_done() {
                let step = decoder.step(&body[at..end]).unwrap();
                trailers.extend_from_slice(&body[at + step.skip - step.trailer..at + step.skip]);
                at += step.skip + step.data;
            }
        }
        assert_eq!(trailers, b"X-Sum: 7\r\nx-t:\r\n\r\n", "in pieces of {piece}");
        let limits = HeadLimits { total_bytes: 8192, line_bytes: 100, headers_max: 2 + START_LINE_SLOTS };
        let mut message = Message::new();
        assert_eq!(parse_trailers(&trailers, &limits, &mut message), Ok(()));
        let mut written = Vec::new();
        write_trailers(&message, &mut written);
        assert_eq!(written, b"0\r\nX-Sum: 7\r\nx-t:\r\n\r\n");
        let fewer = HeadLimits { headers_max: 1 + START_LINE_SLOTS, ..limits };
        assert!(matches!(parse_trailers(&trailers, &fewer, &mut message), Err(HeadError::TooManyHeaders(_))));
    }
}

#[test]
fn size_lines_and_trailers_are_bounded() {
    let chunked = |bytes: &[u8]| at_once(BodyLength::Chunked, bytes).map(|(body, _)| body.len());
    let with_extension = |bytes: usize| format!("5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(bytes - 4));
    assert_eq!(chunked(with_extension(256).as_bytes()), Ok(5));
    assert_eq!(chunked(with_extension(257).as_bytes()), Err(BodyError::ChunkHeaderTooLong));
    assert_eq!(chunked("0".repeat(1000).as_bytes()), Err(BodyError::ChunkHeaderTooLong));
    let with_trailer = |bytes: usize| format!("0\r\nX: {}\r\n\r\n", "x".repeat(bytes - 7));
    assert_eq!(chunked(with_trailer(8192).as_bytes()), Ok(0));
    assert_eq!(chunked(with_trailer(8193).as_bytes()), Err(BodyError::Trailer));
}

#[test]
fn chunks_written_are_read_back() {
    let mut random = SmallRng::seed_from_u64(11);
    for _ in 0..200 {
        let mut wire = Vec::new();
        let mut body = Vec::new();
        for _ in 0..random.random_range(0..6) {
            let chunk: Vec<u8> = (0..random.random_range(1..400)).map(|_| random.random()).collect();
            chunk_header(chunk.len(), &mut wire);
            wire.extend_from_slice(&chunk);
            wire.extend_from_slice(b"\r\n");
            body.extend_from_slice(&chunk);
        }
        wire.extend_from_slice(LAST_CHUNK);
        let wire_bytes = wire.len();
        wire.extend_from_slice(b"GET / HTTP/1.1\r\n");
        assert_eq!(at_once(BodyLength::Chunked, &wire), Ok((body.clone(), wire_bytes)));
        for _ in 0..20 {
            let pieces = decode(BodyLength::Chunked, &wire, || random.random_range(1..40));
            assert_eq!(pieces, Ok((body.clone(), wire_bytes)));
        }
    }
}

#[test]
fn mangled_chunks_are_judged_alike_however_they_are_cut() {
    let mut random = SmallRng::seed_from_u64(12);
    let whole = b"5;a=b\r\nhello\r\nA\r\n0123456789\r\n000\r\nX-T: a\r\nY: b\r\n\r\nGET / HTTP/1.1\r\n\r\n";
    let alphabet = b"\r\n\t 0159afAFgx;:,-+\x00\x7f";
    for _ in 0..3000 {
        let mut bytes = whole.to_vec();
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..bytes.len());
            match random.random_range(0..3) {
                0 => bytes[at] = alphabet[random.random_range(0..alphabet.len())],
                1 => bytes.insert(at, alphabet[random.random_range(0..alphabet.len())]),
                _ => drop(bytes.remove(at)),
            }
        }
        let expect = at_once(BodyLength::Chunked, &bytes);
        assert_eq!(decode(BodyLength::Chunked, &bytes, || 1), expect, "{}", String::from_utf8_lossy(&bytes));
        assert_eq!(decode(BodyLength::Chunked, &bytes, || random.random_range(1..9)), expect);
    }
}

#[test]
fn decoder_reports_the_missing_bytes() {
    let mut decoder = BodyDecoder::new(BodyLength::Length(10));
    assert_eq!(decoder.remaining(), Some(10));
    decoder.step(b"abc").unwrap();
    assert_eq!(decoder.remaining(), Some(7));
    assert_eq!(BodyDecoder::new(BodyLength::Chunked).remaining(), None);
    assert_eq!(BodyDecoder::new(BodyLength::None).remaining(), Some(0));
}

#[test]
fn response_lengths_follow_status_method_and_headers() {
    let length = |method: &str, status: u16, headers: &[(&str, &str)]| {
        let mut message = Message::new();
        message.set_protocol(b"HTTP/1.1");
        message.set_status(status);
        for (name, value) in headers {
            message.append(name.as_bytes(), value.as_bytes());
        }
        response_body_length(&message, method.as_bytes())
    };
    let two = ("Content-Length", "2");
    let chunked = ("Transfer-Encoding", "chunked");
    assert_eq!(length("GET", 200, &[two]), Ok(BodyLength::Length(2)));
    assert_eq!(length("GET", 200, &[("content-length", "2 ")]), Err(FramingError::LengthSyntax));
    assert_eq!(length("GET", 200, &[chunked]), Ok(BodyLength::Chunked));
    assert_eq!(length("GET", 200, &[("Transfer-Encoding", "Chunked")]), Ok(BodyLength::Chunked));
    assert_eq!(length("GET", 200, &[]), Ok(BodyLength::UntilClose));
    assert_eq!(length("GET", 200, &[("Connection", "close")]), Ok(BodyLength::UntilClose));
    assert_eq!(length("GET", 200, &[("Connection", "keep-alive")]), Ok(BodyLength::None));
    assert_eq!(length("HEAD", 200, &[two]), Ok(BodyLength::None));
    assert_eq!(length("HEAD", 200, &[chunked]), Ok(BodyLength::None));
    assert_eq!(length("GET", 304, &[two]), Ok(BodyLength::None));
    assert_eq!(length("GET", 304, &[chunked]), Ok(BodyLength::None));
    assert_eq!(length("GET", 204, &[]), Ok(BodyLength::None));
    assert_eq!(length("GET", 204, &[("Content-Length", "0")]), Ok(BodyLength::None));
    assert_eq!(length("GET", 204, &[two]), Err(FramingError::UnexpectedBody));
    assert_eq!(length("GET", 204, &[chunked]), Err(FramingError::UnexpectedBody));
    assert_eq!(length("GET", 103, &[]), Err(FramingError::InterimResponse));
    assert_eq!(length("GET", 200, &[chunked, two]), Err(FramingError::LengthAndTransferEncoding));
    assert_eq!(length("GET", 200, &[two, ("Content-Length", "3")]), Err(FramingError::SeveralLengths));
    for value in ["identity", "gzip, chunked", "xchunked", "", "chunked, chunked"] {
        let answer = length("GET", 200, &[("Transfer-Encoding", value)]);
        assert_eq!(answer, Err(FramingError::UnknownTransferEncoding), "{value}");
    }
    assert_eq!(length("GET", 200, &[chunked, chunked]), Err(FramingError::UnknownTransferEncoding));
    for value in ["", "+2", "-2", "2x", "0x2", "2,2", "2 2", "99999999999999999999", "9223372036854775808"] {
        assert_eq!(length("GET", 200, &[("Content-Length", value)]), Err(FramingError::LengthSyntax), "{value}");
    }
}
