//! Several ranges of a stream, received in any pieces.

use body::{ByteRanges, Chain, Flow};
use semantics::ranges::Span;
use surface::limits::{FILTER_STEP_BYTES_MAX, RANGES_MAX};

fn machine(spans: &[(u64, u64)], base: u64) -> ByteRanges {
    let spans = spans.iter().map(|&(first, last)| Span { first, last }).collect();
    ByteRanges::new(spans, base, Some(100), 0xabc, Some(b"text/plain"))
}

/// Pulls a body in pieces; returns the output and the number of missing bytes.
fn pulled(machine: ByteRanges, body: &[u8], piece: usize) -> (String, u64) {
    let mut chain = Chain::default();
    assert!(chain.push(Box::new(machine)));
    let mut out = Vec::new();
    for mut rest in body.chunks(piece).map(Some).chain([None]) {
        while !chain.has_ended() {
            let step = chain.step(rest).unwrap_or_else(|error| panic!("{error:?}"));
            assert!(step.bytes.len() <= FILTER_STEP_BYTES_MAX);
            out.extend_from_slice(step.bytes);
            rest = rest.map(|rest| &rest[step.taken..]);
            if step.flow != Flow::More {
                break;
            }
        }
    }
    (String::from_utf8(out).unwrap(), chain.missing_bytes())
}

const BODY: &[u8] = b"0123456789abcdefghij";

#[test]
fn every_part_has_a_head_of_its_own() {
    let expect = "--0000000000000abc\r\nContent-Type: text/plain\r\nContent-Range: bytes 2-4/100\r\n\r\n234\
        \r\n--0000000000000abc\r\nContent-Type: text/plain\r\nContent-Range: bytes 10-10/100\r\n\r\na\
        \r\n--0000000000000abc--\r\n";
    for piece in [1, 2, 3, 7, 20] {
        let machine = machine(&[(2, 4), (10, 10)], 0);
        assert_eq!(body::Machine::output_bytes(&machine), Some(expect.len() as u64));
        assert_eq!(machine.content_type(), b"multipart/byteranges; boundary=0000000000000abc");
        assert_eq!(pulled(machine, BODY, piece), (expect.to_owned(), 0), "in pieces of {piece}");
    }
}

#[test]
fn the_body_may_itself_begin_in_the_middle() {
    let (text, missing) = pulled(machine(&[(50, 51), (55, 57)], 50), BODY, 4);
    assert!(
        text.contains("bytes 50-51/100\r\n\r\n01\r\n") && text.contains("bytes 55-57/100\r\n\r\n567\r\n"),
        "{text}"
    );
    assert_eq!(missing, 0);
}

#[test]
fn a_body_that_ends_too_soon_leaves_something_missing() {
    for length in [0, 3, 10, 12] {
        let (_, missing) = pulled(machine(&[(2, 4), (10, 15)], 0), &BODY[..length], 5);
        assert!(missing > 0, "{length}");
    }
}

#[test]
fn as_many_parts_as_may_be_need_little_memory() {
    let spans: Vec<(u64, u64)> = (0..RANGES_MAX as u64).map(|index| (index * 1000, index * 1000 + 1)).collect();
    let machine = machine(&spans, 0);
    assert!(body::Machine::state_bytes(&machine) < 4096);
    let length = body::Machine::output_bytes(&machine).unwrap();
    let (text, missing) = pulled(machine, &[b'x'; 100_000], 999);
    assert_eq!((text.len() as u64, missing), (length, 0));
    assert_eq!(text.matches("\r\n\r\nxx\r\n--").count(), RANGES_MAX);
}

#[test]
fn bytes_between_the_parts_may_be_skipped() {
    let spans = [(2, 4), (10, 10), (17, 19)];
    let expect = pulled(machine(&spans, 0), BODY, 3).0;
    let mut chain = Chain::default();
    assert!(chain.push(Box::new(machine(&spans, 0))));
    let (mut out, mut at, mut shown) = (Vec::new(), 0, 0);
    while !chain.has_ended() {
        let unwanted = chain.unwanted_bytes();
        // More than is unwanted is never left out.
        chain.skip(unwanted.saturating_mul(2));
        at += unwanted as usize;
        let step = chain.step(Some(&BODY[at..(at + 2).min(BODY.len())])).unwrap_or_else(|error| panic!("{error:?}"));
        out.extend_from_slice(step.bytes);
        (at, shown) = (at + step.taken, shown + step.taken);
    }
    assert_eq!((String::from_utf8(out).unwrap(), shown, chain.missing_bytes()), (expect, 7, 0));
}
