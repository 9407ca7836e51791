//! Payloads that commands send and receive over any protocol: generated bodies, compression, bytes
//! in hexadecimal.

mod deflate;

use body::{Gunzip, Gzip, JUNK_AFTER_END};
use rand::RngExt;

use crate::journal::Journal;
use crate::test::Outcome;

/// Most bytes of one generated body, chunk or header.
pub const GENERATED_BYTES_MAX: u64 = 1 << 30;
/// Most bytes of one received body.
pub const BODY_BYTES_MAX: usize = 256 << 20;

/// Compresses a body. `residual`: the bit of a byte at which it shall stop.
///
/// # Errors
/// It can't be compressed: the test fails.
pub fn gzip(journal: &Journal, plain: &[u8], level: u32, residual: Option<usize>) -> Outcome<Vec<u8>> {
    let mut packed = Vec::new();
    if let Err(error) = body::whole(Gzip::new(level), plain, usize::MAX, &mut packed) {
        return Err(journal.fail(format!("Gzip error: {}", error.text())));
    }
    if let Some(stopping) = residual.and_then(|residual| deflate::stopping_at(&packed, residual)) {
        packed = stopping;
    }
    if let Some(found) = deflate::positions(&packed) {
        for (name, bit) in [("startbit", found.start), ("lastbit", found.last), ("stopbit", found.stop)] {
            journal.log(4, format!("{name} = {bit} {}/{}", bit / 8, bit % 8));
        }
    }
    Ok(packed)
}

/// Decompresses a body as far as possible; also returns the error, if any.
pub fn gunzip(packed: &[u8]) -> (Vec<u8>, Option<String>) {
    let mut plain = Vec::new();
    // Bytes after the end are ignored here.
    let failed = match body::whole(Gunzip::new(None), packed, BODY_BYTES_MAX, &mut plain) {
        Err(error) if error != JUNK_AFTER_END => Some(error.text()),
        _ => None,
    };
    let problem = match failed {
        _ if !packed.starts_with(&[0x1f, 0x8b]) => Some("Gunzip error: body lacks gzip magic".to_owned()),
        Some(text) => Some(format!("Gunzip error: {text} (in: {} out: {})", packed.len(), plain.len())),
        None => None,
    };
    (plain, problem)
}

/// A body of 64-byte lines: a pattern that differs from line to line, or random bytes.
pub fn synthetic_body(length: usize, mut noise: Option<&mut dyn rand::Rng>) -> Vec<u8> {
    // The printable characters between `!` and `}`.
    let printable = |number: usize| b'!' + (number % 93) as u8;
    let mut body: Vec<u8> = (0..length)
        .map(|index| match (index % 64, &mut noise) {
            (63, _) => b'\n',
            (_, Some(noise)) => noise.random_range(b' '..b' ' + 95),
            (column, None) => printable(index / 64 + column),
        })
        .collect();
    if let Some(last) = body.last_mut() {
        *last = b'\n';
    }
    body
}

/// Bytes written in hexadecimal, with optional blanks in between.
///
/// # Errors
/// They are not hexadecimal: the test fails.
pub fn hex_bytes(journal: &Journal, text: &[u8]) -> Outcome<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .iter()
        .filter(|byte| !byte.is_ascii_whitespace())
        .map(|byte| (*byte as char).to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    let digits = digits.ok_or_else(|| journal.fail("Illegal hex string"))?;
    // An odd last digit is the high half of a byte.
    Ok(digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synthetic_bodies_are_lines_that_shift() {
        let body = synthetic_body(130, None);
        assert_eq!(
            (body[0], body[1], body[63], body[64], body[128], body[129]),
            (b'!', b'"', b'\n', b'"', b'#', b'\n')
        );
        assert_eq!(synthetic_body(1, None), b"\n");
        let noise = synthetic_body(1000, Some(&mut rand::rng()));
        assert!(noise.iter().all(|byte| *byte == b'\n' || (b' '..=b'~').contains(byte)));
        assert_eq!(noise[63], b'\n');
    }
}
