//! Arbitrary ranges of a request, and heads of two parts (206), through all code that cuts, checks,
//! joins and sends parts.

use super::message_of;
use body::{ByteRanges, Chain, Flow, Machine};
use message::Message;
use semantics::part::{Joint, Part, Received, join, judge, merge, range_to_pass_on};
use semantics::ranges::{Selection, Span, select};
use surface::limits::{FILTER_STEP_BYTES_MAX, PART_JOIN_RATIO_MAX, RANGES_MAX};

/// Reads the first byte as the length of a representation, the second as that of the pieces in
/// which it arrives, the third as that of a received body, and the rest as the lines of three heads
/// with an empty line between them: a request, an origin's answer, and a stored head.
///
/// # Panics
/// When a range is outside of the representation, is sent twice or differs from its head; when a
/// part is accepted that contradicts itself; or when two joined parts are not the bytes that the
/// joint declares.
pub fn ranges(bytes: &[u8]) {
    let [total, piece, received, text @ ..] = bytes else { return };
    let mut lines = text.split(|&byte| byte == b'\n');
    let mut request = message_of(&mut lines);
    request.set_method(b"GET");
    let mut answer = message_of(&mut lines);
    answer.set_status(206);
    let mut stored = message_of(&mut lines);
    stored.set_status(206);
    let total = u64::from(*total);
    selected(&request, &stored, total, usize::from(*piece).max(1));
    let _ = select(&request, &stored, None);
    assert!(range_to_pass_on(&request).is_none_or(|range| request.get("Range") == Some(range)));
    for length in [None, Some(u64::from(*received))] {
        believed(&request, &answer, length);
    }
    let part =
        |message: &Message| Part::of_message(message, message.get("Content-Range").map(|_| u64::from(*received)));
    if let (Some(old), Some(new)) = (part(&stored), part(&answer)) {
        answers(&request, &stored, old);
        if let Some(joint) = join(old, new) {
            joined(&stored, &answer, old, new, joint);
        }
    }
}

/// The byte of a representation at a position.
fn byte_at(position: u64) -> u8 {
    (position % 251) as u8
}

fn bytes_of(span: Span) -> Vec<u8> {
    (span.first..=span.last).map(byte_at).collect()
}

fn selected(request: &Message, response: &Message, total: u64, piece: usize) {
    let Selection::Parts(spans) = select(request, response, Some(total)) else { return };
    assert!((1..=RANGES_MAX).contains(&spans.len()));
    assert!(spans.iter().all(|span| span.first <= span.last && span.last < total), "{spans:?} of {total}");
    assert!(spans.windows(2).all(|pair| pair[0].last + 1 < pair[1].first), "in order, with gaps: {spans:?}");
    let machine = ByteRanges::new(spans.clone(), 0, Some(total), 7, response.get("Content-Type"));
    let announced = machine.output_bytes();
    let body: Vec<u8> = (0..total).map(byte_at).collect();
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
    assert_eq!((Some(out.len() as u64), chain.missing_bytes()), (announced, 0));
    let mut rest = &out[..];
    for span in spans {
        let head = find(rest, b"\r\n\r\n").unwrap_or_else(|| panic!("no head for {span:?}"));
        let range = format!("Content-Range: bytes {}-{}/{total}", span.first, span.last);
        assert!(rest[..head].ends_with(range.as_bytes()), "{}", String::from_utf8_lossy(&rest[..head]));
        rest = &rest[head + 4..];
        let expected = bytes_of(span);
        assert!(rest.starts_with(&expected), "not the bytes of {span:?}");
        rest = &rest[expected.len()..];
    }
    assert_eq!(rest, b"\r\n--0000000000000007--\r\n");
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn believed(request: &Message, answer: &Message, length: Option<u64>) {
    let strict = judge(request, answer, length, false);
    if let Ok(Received::Part(part)) = strict {
        assert!(part.span.first <= part.span.last && part.total.is_none_or(|total| part.span.last < total));
        assert!(length.is_none_or(|length| length == part.span.bytes()), "{part:?} of {length:?}");
        assert_eq!(Part::of_message(answer, length), Some(part));
        assert_eq!(judge(request, answer, length, true), strict, "leniency refuses nothing more");
        let mut value = Vec::new();
        part.write(&mut value);
        assert_eq!(Part::parse(&value), Some(part));
    }
    if let Ok(Received::Part(_)) = judge(request, answer, length, true) {
        let part = Part::of_message(answer, length);
        assert!(part.is_some_and(|part| length.is_none_or(|length| length == part.span.bytes())));
    }
}

fn answers(request: &Message, stored: &Message, part: Part) {
    if part.suffices(request, stored)
        && let Selection::Parts(spans) = select(request, stored, part.total)
    {
        assert!(spans.iter().all(|span| part.span.has(*span)), "{spans:?} of {part:?}");
    }
    let _ = part.helps(request, stored);
    assert!(part.rest().is_none() || !part.is_whole());
}

fn joined(stored: &Message, answer: &Message, old: Part, new: Part, joint: Joint) {
    let is_whole = joint.part.is_whole();
    assert!(is_whole || old.span.bytes() <= new.span.bytes().saturating_mul(PART_JOIN_RATIO_MAX));
    assert!(joint.part.span.has(old.span) && joint.part.span.has(new.span), "{joint:?}");
    assert!(joint.before_bytes <= old.span.bytes() && joint.after_offset.is_none_or(|at| at < old.span.bytes()));
    let after_bytes = joint.after_offset.map_or(0, |offset| old.span.bytes() - offset);
    assert_eq!(joint.before_bytes + new.span.bytes() + after_bytes, joint.part.span.bytes(), "{joint:?}");
    if joint.part.span.bytes() < 4096 {
        let stored_bytes = bytes_of(old.span);
        let mut body = stored_bytes[..joint.before_bytes as usize].to_vec();
        body.extend(bytes_of(new.span));
        body.extend(joint.after_offset.map_or(&[][..], |offset| &stored_bytes[offset as usize..]));
        assert!(body == bytes_of(joint.part.span), "{joint:?}");
    }
    let mut head = answer.clone();
    merge(stored, &mut head, joint.part);
    assert_eq!(head.status(), if is_whole { 200 } else { 206 });
    assert_eq!(Part::of_message(&head, None), (!is_whole).then_some(joint.part));
}
