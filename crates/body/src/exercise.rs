//! The entry of the fuzz target: arbitrary bytes gunzipped, gzipped and cut.
//!
//! A violated promise panics, which is what a fuzzer looks for; nothing else calls this.

use crate::{Gunzip, Gzip, GzipError, RangeCut, TestGunzip};

/// Most that the output grows beyond the bound of a step, in bytes.
const SLACK_BYTES: usize = 64 << 10;

/// Takes the first byte for the level of compression and the ends of a range, and what follows for a body.
///
/// # Panics
/// When a gzipped body is read, or refused, in another way in pieces than at once; when the output of a step has no bound;
/// when what was gzipped is another body after gunzip; when a range of a body depends on the pieces that it comes in.
pub fn exercise(bytes: &[u8]) {
    let [first, body @ ..] = bytes else { return };
    let whole = gunzipped(body, body.len().max(1), usize::MAX);
    for (piece, output_max) in [(1, usize::MAX), (7, 1), (body.len().max(1), 1)] {
        match (gunzipped(body, piece, output_max), &whole) {
            // What the library says of the damage depends on how much it had to look at.
            (Err(GzipError::Damaged(_)), Err(GzipError::Damaged(_))) => {}
            (result, _) => assert_eq!(result, whole, "pieces of {piece}"),
        }
    }
    for piece in [1, 5, body.len().max(1)] {
        let (mut test, mut same) = (TestGunzip::new(), Vec::new());
        let result = body.chunks(piece).try_for_each(|piece| test.push(piece, &mut same));
        let result = result.and_then(|()| test.finish(&mut same));
        assert_eq!(result.is_ok(), whole.is_ok(), "the check and the reader agree");
        assert!(result.is_err() || same == body, "what is checked goes on unchanged");
        let gzipped = gzipped(body, u32::from(first % 10), piece);
        assert_eq!(gunzipped(&gzipped, 11, usize::MAX).as_deref(), Ok(body));
    }
    let (low, high) = (u64::from(first >> 4) * 3, u64::from(first & 15) * 5);
    let (mut at_once, mut in_pieces) = (RangeCut::new(low, high), RangeCut::new(low, high));
    let cut: Vec<u8> = body.chunks(3).flat_map(|piece| in_pieces.cut(piece).to_vec()).collect();
    assert_eq!(at_once.cut(body), cut);
    assert_eq!(at_once, in_pieces);
}

fn gunzipped(body: &[u8], piece: usize, output_max: usize) -> Result<Vec<u8>, GzipError> {
    let (mut gunzip, mut step, mut out) = (Gunzip::new(), Vec::new(), Vec::new());
    for part in body.chunks(piece) {
        let mut rest = part;
        loop {
            step.clear();
            let used = gunzip.push_bounded(rest, &mut step, output_max)?;
            assert!(step.len() <= output_max.saturating_add(SLACK_BYTES), "a step has a bound");
            out.extend_from_slice(&step);
            rest = &rest[used..];
            if rest.is_empty() && (output_max == usize::MAX || step.is_empty()) {
                break;
            }
        }
    }
    gunzip.finish(&mut step)?;
    Ok(out)
}

fn gzipped(body: &[u8], level: u32, piece: usize) -> Vec<u8> {
    let (mut gzip, mut out) = (Gzip::new(level), Vec::new());
    for part in body.chunks(piece) {
        gzip.push(part, &mut out).expect("a compressor takes everything");
    }
    gzip.finish(&mut out).expect("a compressor ends");
    out
}
