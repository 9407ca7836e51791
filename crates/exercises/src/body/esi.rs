//! Arbitrary bytes as pages, as plans of pages, and as fragments that are joined.

use body::esi::join::{GzipFragment, GzipSum, JOINED_HEADER, PlainFragment};
use body::esi::{Esi, EsiGzip, Instruction, Leniency, Page, Plan, PlanWriter};
use body::{Chain, FilterError, Flow, Gunzip, Gzip, Machine, whole};
use surface::limits::{ESI_PLAN_BYTES_MAX, FILTER_STEP_BYTES_MAX};

/// The output of a machine for a body.
#[derive(PartialEq, Debug)]
struct Made {
    body: Vec<u8>,
    notes: Vec<String>,
    annex: Option<Vec<u8>>,
    sum: Option<GzipSum>,
}

fn made(machine: impl Machine + 'static, body: &[u8], piece: usize) -> Result<Made, FilterError> {
    let mut chain = Chain::default();
    assert!(chain.push(Box::new(machine)), "one filter is allowed");
    let mut made = Made { body: Vec::new(), notes: Vec::new(), annex: None, sum: None };
    let mut steps = 0;
    for mut rest in body.chunks(piece.max(1)).map(Some).chain([None]) {
        loop {
            let step = chain.step(rest)?;
            assert!(step.bytes.len() <= FILTER_STEP_BYTES_MAX.max(piece), "a step has a bound");
            made.body.extend_from_slice(step.bytes);
            rest = rest.map(|rest| &rest[step.taken..]);
            let is_done = match step.flow {
                Flow::Ended => true,
                Flow::Hungry => rest.is_none_or(<[u8]>::is_empty),
                Flow::More => false,
            };
            made.notes.extend(std::iter::from_fn(|| chain.note()).map(|note| note.to_string()));
            steps += 1;
            assert!(steps <= 1000 + 8 * body.len(), "a chain ends");
            if is_done {
                break;
            }
        }
    }
    (made.annex, made.sum) = (chain.annex(), chain.gzip_sum());
    Ok(made)
}

fn gunzipped(bytes: &[u8]) -> Result<Vec<u8>, FilterError> {
    let mut out = Vec::new();
    whole(Gunzip::new(None), bytes, usize::MAX, &mut out).map(|()| out)
}

/// Reads the first byte as the permitted operations on a page, the second one as the length of its
/// pieces, the rest as the page.
///
/// # Panics
/// When the plan or the notes depend on the pieces; when the stored body is not the page, or the
/// plan does not cover it; when a compressed page is not the same page with the same plan, or its
/// sent part can't be decompressed; when the address of a fragment has a character that would end
/// the line or the word of a request that it is written to.
pub fn parse(bytes: &[u8]) {
    let [flags, piece, text @ ..] = bytes else { return };
    let leniency = Leniency {
        any_page: flags & 1 != 0,
        within_tags: flags & 2 != 0,
        byte_order_mark: flags & 4 != 0,
        https: flags & 8 != 0,
    };
    let page = Page { target: b"/a/b?c".to_vec(), leniency, is_chopped: false };
    let no_error = |error: FilterError| -> Made { panic!("{}", error.text()) };
    let at_once = made(Esi::new(&page), text, usize::MAX).unwrap_or_else(no_error);
    assert!(at_once.body == text, "a page passes unchanged");
    for piece in [1, 1 + usize::from(*piece)] {
        let in_pieces = made(Esi::new(&page), text, piece).unwrap_or_else(no_error);
        assert_eq!(in_pieces, at_once, "pieces of {piece}");
    }
    let chopped = Page { is_chopped: true, ..page.clone() };
    assert_eq!(made(Esi::new(&chopped), text, usize::MAX).unwrap_or_else(no_error), at_once, "chopped");
    let packed = made(EsiGzip::new(&page, u32::from(flags >> 4)), text, 1 + usize::from(*piece));
    let packed = packed.unwrap_or_else(no_error);
    assert_eq!(gunzipped(&packed.body).as_deref(), Ok(text), "a packed page is the page");
    assert_eq!(packed.notes.len(), at_once.notes.len());
    assert_eq!(packed.annex.is_some(), at_once.annex.is_some());
    let (Some(plan), Some(packed_plan)) = (&at_once.annex, &packed.annex) else { return };
    assert!(plan.len() <= ESI_PLAN_BYTES_MAX && packed_plan.len() <= ESI_PLAN_BYTES_MAX);
    if plan.len() < ESI_PLAN_BYTES_MAX / 16 {
        same_page(plan, text, packed_plan, &packed.body);
    }
}

/// Checks that both plans send the same bytes.
fn same_page(plan: &[u8], text: &[u8], packed_plan: &[u8], packed: &[u8]) {
    let parts = |plan, body: &[u8]| {
        let plan = Plan::decode(plan).unwrap_or_else(|| panic!("a plan that was written is one"));
        assert_eq!(plan.body_bytes(), body.len() as u64, "a plan covers the body");
        let (mut at, mut sum, mut sent, mut includes) = (0, GzipSum::default(), Vec::new(), Vec::new());
        for instruction in plan.instructions() {
            match instruction {
                Instruction::Verbatim { bytes, crc32, plain_bytes } => {
                    sent.extend_from_slice(&body[at..][..bytes as usize]);
                    at += bytes as usize;
                    sum.append(GzipSum { crc32, plain_bytes });
                }
                Instruction::Skip { bytes } => at += bytes as usize,
                Instruction::Include { host, target, .. } => {
                    let ends_word = |byte: &u8| byte.is_ascii_control() || *byte == b' ';
                    let is_one_word = |text: &[u8]| !text.iter().any(ends_word);
                    assert!(is_one_word(target) && host.is_none_or(is_one_word), "an address is one word");
                    includes.push((sum.plain_bytes, instruction));
                }
            }
        }
        (sum, sent, includes)
    };
    let (_, sent, includes) = parts(plan, text);
    let (sum, packed_sent, packed_includes) = parts(packed_plan, packed);
    assert_eq!(format!("{packed_includes:?}"), format!("{includes:?}"), "fragments come at the same places");
    let stream = [&JOINED_HEADER, &packed_sent[..], &sum.trailer()].concat();
    assert_eq!(gunzipped(&stream), Ok(sent), "what is sent of a packed page is what is sent of the plain one");
}

/// Reads the bytes as a plan.
///
/// # Panics
/// When a valid plan is not written as it was read, or its length is not that of its instructions.
pub fn plan(bytes: &[u8]) {
    let Some(plan) = Plan::decode(bytes) else { return };
    let mut writer = PlanWriter::new(plan.is_gzipped());
    let mut body_bytes = 0;
    for instruction in plan.instructions() {
        body_bytes += match instruction {
            Instruction::Verbatim { bytes, .. } | Instruction::Skip { bytes } => bytes,
            Instruction::Include { .. } => 0,
        };
        writer.push(instruction);
    }
    assert_eq!(body_bytes, plan.body_bytes());
    assert_eq!(writer.finish(), bytes, "a plan is written as it was read");
}

/// Reads the first byte as the length of pieces and a level of compression, the rest as a fragment,
/// gzipped or plain.
///
/// # Panics
/// When a gzipped fragment is joined that can't be decompressed, or the other way round, apart from
/// a wrong checksum; when that depends on pieces; when the joined result does not decompress to the
/// input.
pub fn join(bytes: &[u8]) {
    let [first, fragment @ ..] = bytes else { return };
    let piece = 1 + usize::from(first >> 4) * 7;
    let at_once = made(GzipFragment::default(), fragment, usize::MAX);
    assert_eq!(made(GzipFragment::default(), fragment, 1), at_once);
    assert_eq!(made(GzipFragment::default(), fragment, piece), at_once);
    match (at_once, gunzipped(fragment)) {
        (Ok(part), Ok(plain)) => assert_eq!(gunzipped(&joined(&[&part, &part])), Ok(plain.repeat(2))),
        (Ok(_), Err(error)) => assert_eq!(error.text(), "Invalid Gzip data: incorrect data check"),
        (Err(error), Ok(_)) => panic!("a fragment that can be unpacked is refused: {}", error.text()),
        (Err(_), Err(_)) => {}
    }
    let no_error = |error: FilterError| -> Made { panic!("{}", error.text()) };
    let plain = made(PlainFragment::default(), fragment, piece).unwrap_or_else(no_error);
    let zipped = made(Gzip::new(u32::from(first % 10)), fragment, piece).unwrap_or_else(no_error);
    let zipped = made(GzipFragment::default(), &zipped.body, piece).unwrap_or_else(no_error);
    let inner = joined(&[&plain, &zipped]);
    assert_eq!(gunzipped(&inner), Ok(fragment.repeat(2)));
    let nested = made(GzipFragment::default(), &inner, piece).unwrap_or_else(no_error);
    assert_eq!(gunzipped(&joined(&[&zipped, &nested, &plain])), Ok(fragment.repeat(4)));
}

fn joined(parts: &[&Made]) -> Vec<u8> {
    let (mut stream, mut sum) = (JOINED_HEADER.to_vec(), GzipSum::default());
    for part in parts {
        stream.extend_from_slice(&part.body);
        sum.append(part.sum.unwrap_or_default());
    }
    stream.extend_from_slice(&sum.trailer());
    stream
}
