//! Bit positions in a gzip member, from its start: the start of the deflate stream, the start of
//! its last block, and its end.
//!
//! Joining gzip members bit by bit (ESI) involves eight cases, and a script selects one with
//! `-gzipresidual`. The compression library does not return the position, so the stream is walked
//! without decompressing it. If it stops at the wrong bit (the stock runner's library finds shorter
//! matches), an empty block is appended. Source: RFC 1952 §2.3, RFC 1951 §3.2.

/// Bits from the start of a gzip member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Positions {
    /// Start of the first block.
    pub start: usize,
    /// Start of the last block.
    pub last: usize,
    /// Position after the last block.
    pub stop: usize,
}

/// The positions in a gzip member; `None` if it is damaged.
pub(super) fn positions(member: &[u8]) -> Option<Positions> {
    let start = 8 * header_bytes(member)?;
    let mut bits = Bits { bytes: member, at: start };
    loop {
        let last = bits.at;
        let is_final = bits.take(1)? == 1;
        match bits.take(2)? {
            0 => bits.skip_stored()?,
            1 => bits.skip_symbols(&Code::of(&fixed_lengths()), &Code::of(&[5; 30]))?,
            2 => {
                let (symbols, distances) = bits.codes()?;
                bits.skip_symbols(&symbols, &distances)?;
            }
            _ => return None,
        }
        if is_final {
            return Some(Positions { start, last, stop: bits.at });
        }
    }
}

/// A gzip member with the same text whose stream stops `residual` bits (0 to 7) into a byte; `None`
/// if the member is damaged.
pub(super) fn stopping_at(member: &[u8], residual: usize) -> Option<Vec<u8>> {
    let found = positions(member)?;
    if found.stop % 8 == residual {
        return Some(member.to_vec());
    }
    let trailer = member.get(member.len().checked_sub(8)?..)?;
    // Each additional zero takes three bits, and three and eight have no common divisor.
    (0..8).find_map(|zeros| {
        let mut bytes = member[..found.stop.div_ceil(8)].to_vec();
        bytes[found.last / 8] &= !(1 << (found.last % 8));
        let mut bits = Writer { bytes, at: found.stop };
        bits.put_empty_block(zeros);
        (bits.at % 8 == residual).then(|| [&bits.bytes[..], trailer].concat())
    })
}

struct Writer {
    bytes: Vec<u8>,
    at: usize,
}

impl Writer {
    /// Numbers are written with their lowest bit first.
    fn put(&mut self, value: usize, count: usize) {
        for shift in 0..count {
            if self.at == 8 * self.bytes.len() {
                self.bytes.push(0);
            }
            self.bytes[self.at / 8] |= ((value >> shift & 1) as u8) << (self.at % 8);
            self.at += 1;
        }
    }

    /// A final block with its own codes that contains only the end symbol; `zeros` is the number of
    /// additional symbols of length 0.
    fn put_empty_block(&mut self, zeros: usize) {
        self.put(1, 1);
        self.put(2, 2);
        self.put(zeros, 5);
        self.put(0, 5);
        self.put(14, 4);
        // Code lengths for 16, 17, 18, 0, ... 1: 18 is coded as `0`, 1 as `10`, 0 as `110`, 17 as
        // `111`.
        for length in [0, 3, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2] {
            self.put(length, 3);
        }
        // 256 symbols with length 0, in two runs; the end symbol with one bit.
        for run in [138, 118] {
            self.put(0, 1);
            self.put(run - 11, 7);
        }
        self.put(0b01, 2);
        // The additional symbols, and one distance.
        for _ in 0..=zeros {
            self.put(0b011, 3);
        }
        self.put(0, 1);
    }
}

fn header_bytes(member: &[u8]) -> Option<usize> {
    let flags = *member.get(3)?;
    let mut at = 10;
    if flags & 4 != 0 {
        at += 2 + usize::from(u16::from_le_bytes([*member.get(at)?, *member.get(at + 1)?]));
    }
    // A file name, a comment.
    for flag in [8, 16] {
        if flags & flag != 0 {
            at += member.get(at..)?.iter().position(|byte| *byte == 0)? + 1;
        }
    }
    Some(at + if flags & 2 != 0 { 2 } else { 0 })
}

struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, count: usize) -> Option<usize> {
        let mut value = 0;
        for shift in 0..count {
            let bit = *self.bytes.get(self.at / 8)? >> (self.at % 8) & 1;
            value |= usize::from(bit) << shift;
            self.at += 1;
        }
        Some(value)
    }

    fn skip_stored(&mut self) -> Option<()> {
        self.at = self.at.next_multiple_of(8);
        let length = self.take(16)?;
        self.take(16)?;
        self.at += 8 * length;
        (self.at <= 8 * self.bytes.len()).then_some(())
    }

    fn symbol(&mut self, code: &Code) -> Option<usize> {
        let (mut value, mut first, mut index) = (0, 0, 0);
        for count in &code.counts[1..] {
            value |= self.take(1)?;
            if value < first + count {
                return code.symbols.get(index + value - first).copied();
            }
            index += count;
            first = (first + count) << 1;
            value <<= 1;
        }
        None
    }

    /// The two codes at the start of a block that has its own.
    fn codes(&mut self) -> Option<(Code, Code)> {
        const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
        let (symbols, distances, count) = (self.take(5)? + 257, self.take(5)? + 1, self.take(4)? + 4);
        let mut lengths = [0; 19];
        for place in ORDER.iter().take(count) {
            lengths[*place] = self.take(3)?;
        }
        let code = Code::of(&lengths);
        let mut lengths = Vec::new();
        while lengths.len() < symbols + distances {
            let (length, times) = match self.symbol(&code)? {
                length @ 0..=15 => (length, 1),
                16 => (*lengths.last()?, 3 + self.take(2)?),
                17 => (0, 3 + self.take(3)?),
                _ => (0, 11 + self.take(7)?),
            };
            lengths.extend(std::iter::repeat_n(length, times));
        }
        Some((Code::of(lengths.get(..symbols)?), Code::of(lengths.get(symbols..symbols + distances)?)))
    }

    fn skip_symbols(&mut self, symbols: &Code, distances: &Code) -> Option<()> {
        loop {
            match self.symbol(symbols)? {
                0..=255 => {}
                256 => return Some(()),
                length => {
                    let extra = match length {
                        257..=264 | 285 => 0,
                        265..=284 => (length - 261) / 4,
                        _ => return None,
                    };
                    self.take(extra)?;
                    let extra = match self.symbol(distances)? {
                        0..=3 => 0,
                        distance @ 4..=29 => distance / 2 - 1,
                        _ => return None,
                    };
                    self.take(extra)?;
                }
            }
        }
    }
}

/// A canonical Huffman code: the number of code words of each length, and the symbols in order.
struct Code {
    counts: [usize; 16],
    symbols: Vec<usize>,
}

impl Code {
    fn of(lengths: &[usize]) -> Code {
        let mut code = Code { counts: [0; 16], symbols: Vec::new() };
        for length in 1..16 {
            let of_length = (0..lengths.len()).filter(|symbol| lengths[*symbol] == length);
            code.symbols.extend(of_length);
            code.counts[length] = lengths.iter().filter(|found| **found == length).count();
        }
        code
    }
}

fn fixed_lengths() -> [usize; 288] {
    std::array::from_fn(|symbol| match symbol {
        0..=143 => 8,
        144..=255 => 9,
        256..=279 => 7,
        _ => 8,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use body::{Gunzip, Gzip};

    fn gzip(level: u32, text: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        body::whole(Gzip::new(level), text, usize::MAX, &mut packed).unwrap();
        packed
    }

    #[test]
    fn a_stream_stops_in_the_last_byte_before_the_trailer() {
        let noise: Vec<u8> = (0..200_000_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let text = b"some text, some more text, ".repeat(5000);
        for level in 0..=9 {
            for plain in [&b""[..], b"x", b"10", &text, &noise] {
                let packed = gzip(level, plain);
                let found = positions(&packed).unwrap();
                assert_eq!((found.start, found.stop.div_ceil(8)), (80, packed.len() - 8), "level {level}");
                assert!(found.last >= found.start && found.last < found.stop);
            }
        }
    }

    #[test]
    fn a_stream_stops_where_it_is_wanted() {
        for plain in [&b""[..], b"10", b"e04c8d0fd604c", &b"again and again ".repeat(300)] {
            for residual in 0..8 {
                let packed = stopping_at(&gzip(9, plain), residual).unwrap();
                assert_eq!(positions(&packed).unwrap().stop % 8, residual);
                let mut unpacked = Vec::new();
                body::whole(Gunzip::new(None), &packed, plain.len(), &mut unpacked).unwrap();
                assert_eq!(unpacked, plain);
            }
        }
    }

    #[test]
    fn damaged_gzip_has_no_positions() {
        let packed = gzip(9, &b"0123456789abcdef".repeat(100));
        for end in 0..packed.len() - 9 {
            assert_eq!(positions(&packed[..end]), None, "{end}");
        }
        for at in 10..packed.len() {
            let mut damaged = packed.clone();
            damaged[at] ^= 0x55;
            let _ = positions(&damaged);
        }
    }
}
