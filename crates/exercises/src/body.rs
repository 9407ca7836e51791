//! Arbitrary bytes gunzipped, gzipped and cut; pages, plans and fragments are in `esi`.

pub mod esi;

use body::{Brotli, Chain, FilterError, Flow, Gunzip, Gzip, Machine, RangeCut, TestGunzip, Unbrotli, Unzstd, Zstd};
use message::Message;
use surface::encoding::Encodings;
use surface::limits::FILTER_STEP_BYTES_MAX;

/// The most steps that a chain may take for a body of this length; a chain that takes more never
/// ends.
fn steps_max(body_bytes: usize) -> usize {
    // Deflate's best ratio is below 1,040. An empty step comes between two that take or yield
    // something.
    1000 + 4 * (body_bytes + body_bytes * 1040 / 4096)
}

/// Reads the first byte as the compression level and the ends of a range, the rest as a body.
///
/// # Panics
/// When a gzipped body is read or refused differently in pieces than at once; when a step yields
/// more than its bound, or a chain does not end; when gzip and gunzip don't restore the body; when
/// a range of a body depends on the pieces in which the body arrives.
pub fn gzip(bytes: &[u8]) {
    let [first, body @ ..] = bytes else { return };
    let all = body.len().max(1);
    let whole = pulled(body, all, [Box::new(Gunzip::new(None))]);
    for (piece, room) in [(1, None), (7, Some(1)), (all, Some(5000))] {
        match (pulled(body, piece, [Box::new(Gunzip::new(room))]), &whole) {
            // The library's message depends on how much of the damaged body it has seen.
            (Err(error), Err(other)) if is_damage(error) && is_damage(*other) => {}
            (result, _) => assert_eq!(result, whole, "pieces of {piece}"),
        }
    }
    for piece in [1, 5, all] {
        let tested = pulled(body, piece, [Box::new(TestGunzip::new())]);
        assert_eq!(tested.is_ok(), whole.is_ok(), "the check and the reader agree");
        assert!(tested.is_err() || tested.as_deref() == Ok(body), "what is checked goes on unchanged");
        let level = u32::from(first % 10);
        let there_and_back: [Box<dyn Machine>; 2] = [Box::new(TestGunzip::new()), Box::new(Gunzip::new(None))];
        let gzipped = pulled(body, piece, [Box::new(Gzip::new(level))]).unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(pulled(&gzipped, 11, there_and_back).as_deref(), Ok(body));
        let at_once: [Box<dyn Machine>; 3] =
            [Box::new(Gzip::new(level)), Box::new(Gunzip::new(None)), Box::new(RangeCut::new(0, u64::MAX - 1))];
        assert_eq!(pulled(body, piece, at_once).as_deref(), Ok(body));
    }
    let (low, high) = (u64::from(first >> 4) * 3, u64::from(first & 15) * 5);
    let cut = RangeCut::new(low, high);
    let at_once = pulled(body, all, [Box::new(cut)]);
    assert_eq!(pulled(body, 3, [Box::new(cut)]), at_once);
    let of_plain = whole.map(|plain| pulled(&plain, plain.len().max(1), [Box::new(cut)]));
    if let Ok(of_plain) = of_plain {
        assert_eq!(pulled(body, 3, [Box::new(Gunzip::new(None)), Box::new(cut)]), of_plain);
    }
}

fn is_damage(error: FilterError) -> bool {
    error.fetch_detail().is_some()
}

/// Pulls a body through filters, in pieces.
fn pulled<const N: usize>(body: &[u8], piece: usize, filters: [Box<dyn Machine>; N]) -> Result<Vec<u8>, FilterError> {
    let mut chain = Chain::default();
    for filter in filters {
        assert!(chain.push(filter), "so many filters are allowed");
    }
    let (held, mut out, mut steps) = (chain.memory_bytes(), Vec::new(), 0);
    for input in body.chunks(piece).map(Some).chain([None]) {
        let mut rest = input;
        loop {
            let step = chain.step(rest)?;
            assert!(step.bytes.len() <= FILTER_STEP_BYTES_MAX.max(piece), "a step has a bound");
            out.extend_from_slice(step.bytes);
            let (taken, flow) = (step.taken, step.flow);
            rest = rest.map(|rest| &rest[taken..]);
            steps += 1;
            assert!(steps <= steps_max(body.len()), "a chain ends");
            match flow {
                Flow::More => {}
                Flow::Hungry if input.is_none() => panic!("a chain that has all its input ends"),
                Flow::Hungry => break,
                Flow::Ended => return Ok(out),
            }
        }
        assert!(rest.is_none_or(<[u8]>::is_empty), "what is hungry has taken all");
        assert!(chain.memory_bytes() <= held, "a chain takes at most what it announced");
    }
    Ok(out)
}

/// Reads the first byte as a choice of level, the rest as a body in brotli or Zstandard, as text to
/// be compressed, and as the value of an Accept-Encoding.
///
/// # Panics
/// When a body is read or refused differently in pieces than at once; when a step yields more than
/// its bound, or a chain does not end; when compression and decompression don't restore the body;
/// when the preferences of a client do not read back the same.
pub fn content_encoding(bytes: &[u8]) {
    let [first, body @ ..] = bytes else { return };
    let filters: [(Packer, Unpacker); 2] = [
        (|level, length| Box::new(Brotli::new(level % 7, length)), || Box::new(Unbrotli::default())),
        (|level, length| Box::new(Zstd::new(level % 7 + 1, length)), || Box::new(Unzstd::default())),
    ];
    for (pack, unpack) in filters {
        let at_once = first_part(body, body.len().max(1), unpack());
        for piece in [1, 7] {
            match (first_part(body, piece, unpack()), &at_once) {
                // More of a damaged body may come out before it is refused.
                (Err(()), Ok(part)) => assert_eq!(part.len(), UNPACKED_BYTES_MAX),
                (Ok(part), Err(())) => assert_eq!(part.len(), UNPACKED_BYTES_MAX),
                (part, at_once) => assert!(part == *at_once, "pieces of {piece}"),
            }
        }
        let length = (first & 128 == 0).then_some(body.len() as u64);
        let packed = pulled(body, 5, [pack(u64::from(*first), length)]).unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(pulled(&packed, 11, [unpack()]).as_deref(), Ok(body));
    }
    accept_encoding(body);
}

type Packer = fn(u64, Option<u64>) -> Box<dyn Machine>;
type Unpacker = fn() -> Box<dyn Machine>;

/// Most decompressed bytes of a body: a few bytes may represent any number.
const UNPACKED_BYTES_MAX: usize = 1 << 20;

/// The output of a filter, up to a bound; a refusal of the body beyond that is ignored.
fn first_part(body: &[u8], piece: usize, filter: Box<dyn Machine>) -> Result<Vec<u8>, ()> {
    let mut chain = Chain::default();
    assert!(chain.push(filter), "one filter is allowed");
    let (mut out, mut idle_steps) = (Vec::new(), 0);
    for input in body.chunks(piece).map(Some).chain([None]) {
        let mut rest = input;
        loop {
            let step = chain.step(rest).map_err(drop)?;
            assert!(step.bytes.len() <= FILTER_STEP_BYTES_MAX, "a step has a bound");
            out.extend_from_slice(step.bytes);
            if out.len() >= UNPACKED_BYTES_MAX {
                out.truncate(UNPACKED_BYTES_MAX);
                return Ok(out);
            }
            idle_steps += usize::from(step.taken == 0 && step.bytes.is_empty());
            assert!(idle_steps <= 1000 + 4 * body.len(), "a chain ends");
            let (taken, flow) = (step.taken, step.flow);
            rest = rest.map(|rest| &rest[taken..]);
            match flow {
                Flow::More => {}
                Flow::Hungry if input.is_none() => panic!("a chain that has all its input ends"),
                Flow::Hungry => break,
                Flow::Ended => return Ok(out),
            }
        }
    }
    Ok(out)
}

/// The preferences of a client are in the operator's list, and read back in its order.
fn accept_encoding(value: &[u8]) {
    let of = |value: &[u8]| {
        let mut request = Message::new();
        request.append(b"Accept-Encoding", value);
        request
    };
    for known in ["gzip", "br gzip", "zstd br gzip"] {
        let known = Encodings::parse(known).unwrap_or_default();
        let list = semantics::encoding::preferred(&of(value), known);
        assert!(list.iter().all(|encoding| known.has(encoding)));
        let again = of(list.join(", ").as_bytes());
        assert_eq!(semantics::encoding::named(&again, known), list);
        for encoding in list.iter() {
            assert!(semantics::encoding::accepts(&again, encoding));
        }
    }
}
