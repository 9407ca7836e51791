//! Walk through the blocks of a deflate stream without decompressing them. Source: RFC 1951.
//!
//! Only codes are read: there is no window, so it costs little, and its memory is fixed. It finds
//! the position of the mark of the last block, the end of the stream, and its decompressed length.
//! *Invariant:* a stream that passes can be decompressed without an error, and refers to nothing
//! before its own beginning; only the checksum is not verified.

use super::huffman::{CODE_BITS_MAX, Code, SYMBOLS_MAX, Symbol};
use crate::machine::FilterError;
use std::sync::{Arc, LazyLock};

/// Maximum number of bits of one step: a length and a distance, with their extra bits.
const STEP_BITS_MAX: u32 = 15 + 5 + 15 + 13;

/// Maximum number of blocks of one step: the codes of each have to be built, and an empty one is a
/// few bytes long.
pub(super) const BLOCKS_AT_ONCE_MAX: usize = 256;

/// The codes of fixed blocks: of literals and lengths, and of distances.
static FIXED: LazyLock<Option<[Arc<Code>; 2]>> = LazyLock::new(|| {
    let mut lengths = [8; SYMBOLS_MAX];
    lengths[144..256].fill(9);
    lengths[256..280].fill(7);
    Some([Arc::new(Code::new(&lengths, false)?), Arc::new(Code::new(&[5; 32], false)?)])
});

/// Bits that were read from a stream and not used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bits {
    bits: u64,
    count: u32,
    /// Bits used since the beginning of the stream.
    used: u64,
}

impl Bits {
    /// Takes bytes while there is room; returns their number.
    pub(crate) fn fill(&mut self, bytes: &[u8]) -> usize {
        let room = ((63 - self.count) / 8) as usize;
        if let Some(next) = bytes.first_chunk::<8>() {
            self.bits |= u64::from_le_bytes(*next) << self.count;
            self.count += 8 * room as u32;
            // Bits beyond the count are cleared.
            self.bits &= (1 << self.count) - 1;
            return room;
        }
        let taken = room.min(bytes.len());
        for byte in &bytes[..taken] {
            self.bits |= u64::from(*byte) << self.count;
            self.count += 8;
        }
        taken
    }

    fn use_up(&mut self, count: u32) {
        self.bits >>= count;
        self.count -= count;
        self.used += u64::from(count);
    }

    /// The next bits as a number, if they are there.
    fn take(&mut self, count: u32) -> Option<u32> {
        if self.count < count {
            return None;
        }
        let value = (self.bits & ((1 << count) - 1)) as u32;
        self.use_up(count);
        Some(value)
    }

    /// Skips the rest of a partly used byte.
    pub(crate) fn align(&mut self) {
        self.use_up((self.used.wrapping_neg() & 7) as u32);
    }

    /// The next byte, if it is there.
    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.take(8).map(|byte| byte as u8)
    }

    /// Bits used since the beginning of the stream.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }
}

/// The state of the walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Header,
    StoredLength,
    /// This many bytes of a stored block are left.
    Stored(u32),
    Counts,
    /// Reading the lengths of the codes for lengths; this many are read.
    LengthLengths(usize),
    /// Reading the lengths of the literals' and distances' codes; this many are read.
    Lengths(usize),
    Codes,
    Ended,
}

/// The walk through one stream.
#[derive(Debug)]
pub(crate) struct Walk {
    state: State,
    is_last: bool,
    /// The bit that marks the last block.
    last_mark: Option<u64>,
    plain_bytes: u64,
    counts: [usize; 3],
    lengths: [u8; SYMBOLS_MAX + 32],
    for_lengths: Box<Code>,
    literals: Arc<Code>,
    distances: Arc<Code>,
}

const BAD_BLOCK: FilterError = FilterError::new("Invalid Gzip data: invalid block type");
const BAD_STORED: FilterError = FilterError::new("Invalid Gzip data: invalid stored block lengths");
const BAD_COUNTS: FilterError = FilterError::new("Invalid Gzip data: too many length or distance symbols");
const BAD_LENGTH_CODE: FilterError = FilterError::new("Invalid Gzip data: invalid code lengths set");
const BAD_REPEAT: FilterError = FilterError::new("Invalid Gzip data: invalid bit length repeat");
const NO_END: FilterError = FilterError::new("Invalid Gzip data: invalid code -- missing end-of-block");
const BAD_LITERALS: FilterError = FilterError::new("Invalid Gzip data: invalid literal/lengths set");
const BAD_DISTANCES: FilterError = FilterError::new("Invalid Gzip data: invalid distances set");
const NO_LITERAL: FilterError = FilterError::new("Invalid Gzip data: invalid literal/length code");
const NO_DISTANCE: FilterError = FilterError::new("Invalid Gzip data: invalid distance code");
const TOO_FAR: FilterError = FilterError::new("Invalid Gzip data: invalid distance too far back");

/// The order in which the lengths of the codes for lengths are stored.
const LENGTH_ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
/// Symbols of lengths, from 257 on: the shortest length, and the number of extra bits.
const LENGTHS: [(u16, u8); 29] = [
    (3, 0),
    (4, 0),
    (5, 0),
    (6, 0),
    (7, 0),
    (8, 0),
    (9, 0),
    (10, 0),
    (11, 1),
    (13, 1),
    (15, 1),
    (17, 1),
    (19, 2),
    (23, 2),
    (27, 2),
    (31, 2),
    (35, 3),
    (43, 3),
    (51, 3),
    (59, 3),
    (67, 4),
    (83, 4),
    (99, 4),
    (115, 4),
    (131, 5),
    (163, 5),
    (195, 5),
    (227, 5),
    (258, 0),
];
/// Number of distances that have symbols.
const DISTANCES: u16 = 30;
const END_OF_BLOCK: u16 = 256;

impl Default for Walk {
    fn default() -> Walk {
        Walk {
            state: State::Header,
            is_last: false,
            last_mark: None,
            plain_bytes: 0,
            counts: [0; 3],
            lengths: [0; SYMBOLS_MAX + 32],
            for_lengths: Box::default(),
            literals: Arc::default(),
            distances: Arc::default(),
        }
    }
}

/// The reason why a walk paused or ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pause {
    /// It needs more bytes.
    Hungry,
    /// It has seen the maximum number of blocks per step; there are more bytes.
    Turn,
    /// The last block has ended.
    Ended,
}

impl Walk {
    /// The memory that it uses, in bytes.
    pub(crate) const MEMORY_BYTES: usize = 3 * size_of::<Code>() + size_of::<Walk>();

    /// The position of the bit, from the beginning of the stream, that marks a block as the last;
    /// `None` if it has not been received.
    pub(crate) fn last_mark(&self) -> Option<u64> {
        self.last_mark
    }

    /// Decompressed length of the blocks so far, in bytes.
    pub(crate) fn plain_bytes(&self) -> u64 {
        self.plain_bytes
    }

    /// Continues with bits and the bytes that follow them; returns the number of bytes taken, at
    /// least one. It takes all of them, unless the stream has ended or the step is full.
    ///
    /// # Errors
    /// The stream is damaged.
    pub(crate) fn go_on(&mut self, bits: &mut Bits, bytes: &[u8]) -> Result<(usize, Pause), FilterError> {
        let (mut taken, mut blocks) = (0, 0);
        loop {
            taken += bits.fill(&bytes[taken..]);
            if self.state == State::Header {
                if blocks == BLOCKS_AT_ONCE_MAX && taken < bytes.len() {
                    return Ok((taken, Pause::Turn));
                }
                blocks += 1;
            }
            let is_hungry = match self.state {
                State::Ended => return Ok((taken, Pause::Ended)),
                State::Codes => self.codes(bits, bytes, &mut taken)?,
                State::Stored(left) => {
                    let from_bits = left.min(bits.count / 8);
                    bits.use_up(8 * from_bits);
                    let from_bytes = ((left - from_bits) as usize).min(bytes.len() - taken);
                    taken += from_bytes;
                    bits.used += 8 * from_bytes as u64;
                    self.plain_bytes += u64::from(from_bits) + from_bytes as u64;
                    self.stored(left - from_bits - from_bytes as u32);
                    matches!(self.state, State::Stored(_))
                }
                _ => self.small_step(bits)?,
            };
            if is_hungry && taken == bytes.len() {
                return Ok((taken, Pause::Hungry));
            }
        }
    }

    fn stored(&mut self, left: u32) {
        self.state = match left {
            0 if self.is_last => State::Ended,
            0 => State::Header,
            _ => State::Stored(left),
        };
    }

    /// A step of few bits. Returns true if there were too few.
    fn small_step(&mut self, bits: &mut Bits) -> Result<bool, FilterError> {
        let done = match self.state {
            State::Header => self.header(bits)?,
            State::StoredLength => self.stored_length(bits)?,
            State::Counts => self.code_counts(bits)?,
            State::LengthLengths(at) => self.length_lengths(bits, at)?,
            State::Lengths(at) => self.code_lengths(bits, at)?,
            State::Stored(_) | State::Codes | State::Ended => Some(()),
        };
        Ok(done.is_none())
    }

    fn header(&mut self, bits: &mut Bits) -> Result<Option<()>, FilterError> {
        let at = bits.used();
        let Some(header) = bits.take(3) else { return Ok(None) };
        self.is_last = header & 1 == 1;
        if self.is_last {
            self.last_mark = Some(at);
        }
        self.state = match header >> 1 {
            0 => {
                bits.align();
                State::StoredLength
            }
            1 => {
                let [literals, distances] = FIXED.as_ref().ok_or(BAD_BLOCK)?;
                (self.literals, self.distances) = (Arc::clone(literals), Arc::clone(distances));
                State::Codes
            }
            2 => State::Counts,
            _ => return Err(BAD_BLOCK),
        };
        Ok(Some(()))
    }

    fn stored_length(&mut self, bits: &mut Bits) -> Result<Option<()>, FilterError> {
        let Some(both) = bits.take(32) else { return Ok(None) };
        let length = both & 0xffff;
        if length != !both >> 16 {
            return Err(BAD_STORED);
        }
        self.stored(length);
        Ok(Some(()))
    }

    fn code_counts(&mut self, bits: &mut Bits) -> Result<Option<()>, FilterError> {
        let Some(counts) = bits.take(14) else { return Ok(None) };
        self.counts = [(counts & 31) + 257, (counts >> 5 & 31) + 1, (counts >> 10) + 4].map(|count| count as usize);
        if self.counts[0] > 286 || self.counts[1] > usize::from(DISTANCES) {
            return Err(BAD_COUNTS);
        }
        self.lengths.fill(0);
        self.state = State::LengthLengths(0);
        Ok(Some(()))
    }

    fn length_lengths(&mut self, bits: &mut Bits, mut at: usize) -> Result<Option<()>, FilterError> {
        while at < self.counts[2] {
            let Some(length) = bits.take(3) else {
                self.state = State::LengthLengths(at);
                return Ok(None);
            };
            self.lengths[LENGTH_ORDER[at]] = length as u8;
            at += 1;
        }
        *self.for_lengths = Code::new(&self.lengths[..LENGTH_ORDER.len()], false).ok_or(BAD_LENGTH_CODE)?;
        self.lengths.fill(0);
        self.state = State::Lengths(0);
        Ok(Some(()))
    }

    fn code_lengths(&mut self, bits: &mut Bits, mut at: usize) -> Result<Option<()>, FilterError> {
        let all = self.counts[0] + self.counts[1];
        while at < all {
            self.state = State::Lengths(at);
            let (symbol, length) = match self.for_lengths.find(bits.bits, bits.count) {
                Symbol::Is(symbol, length) => (symbol, length),
                Symbol::Open => return Ok(None),
                Symbol::None => return Err(BAD_LENGTH_CODE),
            };
            let (extra, base) = match symbol {
                16 => (2, 3),
                17 => (3, 3),
                18 => (7, 11),
                _ => (0, 1),
            };
            if bits.count < length + extra {
                return Ok(None);
            }
            bits.use_up(length);
            let count = base + bits.take(extra).unwrap_or_default() as usize;
            let value = match symbol {
                16 if at == 0 => return Err(BAD_REPEAT),
                16 => self.lengths[at - 1],
                17 | 18 => 0,
                _ => symbol as u8,
            };
            self.lengths.get_mut(at..at + count).filter(|_| at + count <= all).ok_or(BAD_REPEAT)?.fill(value);
            at += count;
        }
        let (literals, distances) = self.lengths[..all].split_at(self.counts[0]);
        if literals[usize::from(END_OF_BLOCK)] == 0 {
            return Err(NO_END);
        }
        self.literals = Arc::new(Code::new(literals, true).ok_or(BAD_LITERALS)?);
        self.distances = Arc::new(Code::new(distances, true).ok_or(BAD_DISTANCES)?);
        self.state = State::Codes;
        Ok(Some(()))
    }

    /// Reads the codes of a block. Returns true if it needs more bytes.
    fn codes(&mut self, bits: &mut Bits, bytes: &[u8], taken: &mut usize) -> Result<bool, FilterError> {
        loop {
            if bits.count < STEP_BITS_MAX {
                *taken += bits.fill(&bytes[*taken..]);
            }
            let (symbol, length) = match self.literals.find(bits.bits, bits.count) {
                Symbol::Is(symbol, length) => (symbol, length),
                Symbol::Open => return Ok(true),
                Symbol::None => return Err(NO_LITERAL),
            };
            if symbol < END_OF_BLOCK {
                bits.use_up(length);
                self.plain_bytes += 1;
            } else if symbol == END_OF_BLOCK {
                bits.use_up(length);
                self.state = if self.is_last { State::Ended } else { State::Header };
                return Ok(false);
            } else if !self.copy(bits, symbol, length)? {
                return Ok(true);
            }
        }
    }

    /// A length with its distance. Returns false, and uses nothing, if there are too few bits.
    fn copy(&mut self, bits: &mut Bits, symbol: u16, length: u32) -> Result<bool, FilterError> {
        let (base, extra) = *LENGTHS.get(usize::from(symbol - END_OF_BLOCK - 1)).ok_or(NO_LITERAL)?;
        let mut ahead = *bits;
        ahead.use_up(length);
        let Some(added) = ahead.take(u32::from(extra)) else { return Ok(false) };
        let (symbol, length) = match self.distances.find(ahead.bits, ahead.count) {
            Symbol::Is(symbol, length) => (symbol, length),
            Symbol::Open => return Ok(false),
            Symbol::None => return Err(NO_DISTANCE),
        };
        if symbol >= DISTANCES {
            return Err(NO_DISTANCE);
        }
        ahead.use_up(length);
        let extra = u32::from(symbol / 2).saturating_sub(1);
        let base_distance = if symbol < 2 { u64::from(symbol) + 1 } else { ((2 + u64::from(symbol & 1)) << extra) + 1 };
        let Some(distance) = ahead.take(extra) else { return Ok(false) };
        if base_distance + u64::from(distance) > self.plain_bytes {
            return Err(TOO_FAR);
        }
        self.plain_bytes += u64::from(base) + u64::from(added);
        *bits = ahead;
        Ok(true)
    }
}

const _: () = assert!(STEP_BITS_MAX <= 56, "a step has room in the bits that a fill leaves");
const _: () = assert!(CODE_BITS_MAX <= 15, "a length has room beside a symbol");
