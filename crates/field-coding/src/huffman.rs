//! The Huffman code of HPACK and QPACK, in both directions. Source: RFC 7541 §5.2, Appendix B.
//!
//! The code is canonical: it follows from the lengths, codes of the same length being in the order
//! of their bytes.

/// The bytes are not a valid text in this code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoText;

/// Number of bits of each byte's code.
#[rustfmt::skip]
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];
/// The longest code. All of its bits set mark the end of a text, which is never written.
const BITS_MAX: usize = 30;

/// The codes of one length.
#[derive(Clone, Copy)]
struct Row {
    /// The first of them.
    first: u32,
    /// Number of codes.
    count: u32,
    /// Index of their first byte in [`BYTES`].
    at: usize,
}

/// The bytes, those with the shortest codes first; the codes of each length; the codes by byte.
const fn tables() -> ([u8; 256], [Row; BITS_MAX + 1], [u32; 256]) {
    let (mut bytes, mut codes) = ([0; 256], [0; 256]);
    let mut rows = [Row { first: 0, count: 0, at: 0 }; BITS_MAX + 1];
    let (mut length, mut at, mut code) = (1, 0, 0u32);
    while length <= BITS_MAX {
        code <<= 1;
        rows[length] = Row { first: code, count: 0, at };
        let mut byte = 0;
        while byte < 256 {
            if LENGTHS[byte] as usize == length {
                bytes[at] = byte as u8;
                codes[byte] = code;
                rows[length].count += 1;
                at += 1;
                code += 1;
            }
            byte += 1;
        }
        length += 1;
    }
    (bytes, rows, codes)
}

/// All bytes, those with the shortest codes first.
static BYTES: [u8; 256] = tables().0;
static ROWS: [Row; BITS_MAX + 1] = tables().1;
static CODES: [u32; 256] = tables().2;

/// Appends the decoded text.
///
/// # Errors
/// See [`NoText`]; the text before the error has been appended.
pub fn decode(text: &[u8], into: &mut Vec<u8>) -> Result<(), NoText> {
    // The bits that were read and not decoded, the next one first, and their number.
    let (mut bits, mut count) = (0u64, 0usize);
    let mut rest = text.iter();
    into.reserve(text.len() + text.len() / 2);
    loop {
        while count <= 56
            && let Some(byte) = rest.next()
        {
            bits |= u64::from(*byte) << (56 - count);
            count += 8;
        }
        let (byte, length) = SHORT[(bits >> 56) as usize];
        let length = usize::from(length);
        if length != 0 && length <= count {
            into.push(byte);
            (bits, count) = (bits << length, count - length);
        } else if count < SHORT_BITS && bits == !(u64::MAX >> count) {
            // A prefix of the longest code, shorter than a byte.
            return Ok(());
        } else {
            let (byte, length) = long(bits, count)?;
            into.push(byte);
            (bits, count) = (bits << length, count - length);
        }
    }
}

/// The byte whose code of more than [`SHORT_BITS`] bits is at the beginning of `bits`, of which
/// `count` were read, and the length of the code.
fn long(bits: u64, count: usize) -> Result<(u8, usize), NoText> {
    for (length, row) in ROWS.iter().enumerate().take(count + 1).skip(SHORT_BITS + 1) {
        let offset = ((bits >> (64 - length)) as u32).wrapping_sub(row.first);
        if offset < row.count {
            return Ok((BYTES[row.at + offset as usize], length));
        }
    }
    Err(NoText)
}

/// Longest code that is found by its first byte.
const SHORT_BITS: usize = 8;

/// For each first byte of a text: the byte whose code it begins with, and the length of the code; 0
/// if that is longer.
static SHORT: [(u8, u8); 256] = {
    let (bytes, rows, _) = tables();
    let mut table = [(0, 0); 256];
    let mut length = 1;
    while length <= SHORT_BITS {
        let row = rows[length];
        let mut offset = 0;
        while offset < row.count {
            let first = ((row.first + offset) as usize) << (SHORT_BITS - length);
            let mut rest = 0;
            while rest < 1 << (SHORT_BITS - length) {
                table[first + rest] = (bytes[row.at + offset as usize], length as u8);
                rest += 1;
            }
            offset += 1;
        }
        length += 1;
    }
    table
};

/// Encodes a text; the rest of its last byte is filled with ones.
#[must_use]
pub fn encode(text: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    let (mut bits, mut count) = (0u64, 0u32);
    for byte in text {
        let byte = usize::from(*byte);
        bits = bits << LENGTHS[byte] | u64::from(CODES[byte]);
        count += u32::from(LENGTHS[byte]);
        while count >= 8 {
            count -= 8;
            encoded.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        encoded.push((bits << (8 - count)) as u8 | 0xff >> count);
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &[u8]) -> Result<Vec<u8>, NoText> {
        let mut into = Vec::new();
        decode(text, &mut into).map(|()| into)
    }

    #[test]
    fn every_byte_comes_back() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decoded(&encode(&all)), Ok(all));
        assert_eq!(encode(b""), b"");
    }

    /// Source: RFC 7541 §C.4.
    #[test]
    fn the_examples_of_the_rfc_are_coded_alike() {
        let encoded = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(encode(b"www.example.com"), encoded);
        assert_eq!(decoded(&encoded).unwrap(), b"www.example.com");
        assert_eq!(encode(b"no-cache"), [0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]);
    }

    /// The decoder bit by bit.
    fn plainly(text: &[u8]) -> Result<Vec<u8>, NoText> {
        let (mut code, mut length, mut into) = (0u32, 0, Vec::new());
        for bit in text.iter().flat_map(|byte| (0..8).rev().map(move |place| byte >> place & 1)) {
            code = code << 1 | u32::from(bit);
            length += 1;
            let offset = code.wrapping_sub(ROWS[length].first);
            if offset < ROWS[length].count {
                into.push(BYTES[ROWS[length].at + offset as usize]);
                (code, length) = (0, 0);
            } else if length == BITS_MAX {
                return Err(NoText);
            }
        }
        if length < 8 && code == (1 << length) - 1 { Ok(into) } else { Err(NoText) }
    }

    #[test]
    fn any_bits_are_decoded_as_one_by_one() {
        let mut state = 1u64;
        for round in 0..20_000 {
            let text: Vec<u8> = (0..round % 12)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    // Many ones make long codes.
                    (state >> 33) as u8 | if round % 3 == 0 { 0xf0 } else { 0 } | if round % 7 == 0 { 0xff } else { 0 }
                })
                .collect();
            assert_eq!(decoded(&text), plainly(&text), "{text:?}");
        }
    }

    #[test]
    fn padding_is_short_and_of_ones() {
        assert_eq!(decoded(&[0x1f]), Ok(b"a".to_vec()));
        for text in [&[0x1e][..], &[0x18], &[0x1f, 0xff], &[0xff], &[0xff, 0xff, 0xff, 0xff]] {
            assert_eq!(decoded(text), Err(NoText), "{text:?}");
        }
    }
}
