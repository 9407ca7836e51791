//! The prefix codes of deflate, as far as needed to distinguish symbols. Source: RFC 1951 §3.2.

/// Longest code, in bits.
pub(crate) const CODE_BITS_MAX: usize = 15;
/// Codes of up to this length are found with one table access.
const QUICK_BITS: usize = 9;
/// Maximum number of symbols of a code: those of literals and lengths.
pub(crate) const SYMBOLS_MAX: usize = 288;

/// Result of decoding the next bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Symbol {
    /// This symbol, and its number of bits.
    Is(u16, u32),
    /// Undecided: there are too few bits.
    Open,
    /// No code.
    None,
}

/// A prefix code.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    /// For each value of the next bits: symbol × 16 + length. 0 where a longer code begins, or
    /// none.
    quick: [u16; 1 << QUICK_BITS],
    /// Number of codes of each length.
    counts: [u16; CODE_BITS_MAX + 1],
    /// The symbols in the order of their codes.
    symbols: [u16; SYMBOLS_MAX],
}

impl Default for Code {
    /// A code without symbols.
    fn default() -> Code {
        Code { quick: [0; 1 << QUICK_BITS], counts: [0; CODE_BITS_MAX + 1], symbols: [0; SYMBOLS_MAX] }
    }
}

impl Code {
    /// The code whose symbols have codes of these lengths (0 = none), at most [`SYMBOLS_MAX`].
    /// `None` if there can't be one: more codes than there is room for, or fewer, except that
    /// `may_be_poor` allows a single code of one bit, or none at all.
    pub(crate) fn new(lengths: &[u8], may_be_poor: bool) -> Option<Code> {
        let mut code = Code::default();
        for length in lengths {
            code.counts[usize::from(*length)] += 1;
        }
        let absent = std::mem::take(&mut code.counts[0]);
        let mut starts = [0_usize; CODE_BITS_MAX + 2];
        let mut left = 1_i32;
        for length in 1..=CODE_BITS_MAX {
            left = (left << 1) - i32::from(code.counts[length]);
            if left < 0 {
                return None;
            }
            starts[length + 1] = starts[length] + usize::from(code.counts[length]);
        }
        let present = lengths.len() - usize::from(absent);
        let is_poor = present == 0 || (present == 1 && code.counts[1] == 1);
        if left > 0 && !(may_be_poor && is_poor) {
            return None;
        }
        for (symbol, length) in lengths.iter().enumerate().filter(|(_, length)| **length > 0) {
            let at = &mut starts[usize::from(*length)];
            code.symbols[*at] = symbol as u16;
            *at += 1;
        }
        code.fill_quick();
        Some(code)
    }

    fn fill_quick(&mut self) {
        let (mut value, mut index) = (0_usize, 0);
        for length in 1..=QUICK_BITS {
            for _ in 0..self.counts[length] {
                let entry = self.symbols[index] << 4 | length as u16;
                let reversed = value.reverse_bits() >> (usize::BITS as usize - length);
                self.quick.iter_mut().skip(reversed).step_by(1 << length).for_each(|place| *place = entry);
                value += 1;
                index += 1;
            }
            value <<= 1;
        }
    }

    /// The symbol encoded by the next bits; the lowest one comes first, `available` of them are
    /// valid.
    pub(crate) fn find(&self, bits: u64, available: u32) -> Symbol {
        let entry = self.quick[bits as usize & ((1 << QUICK_BITS) - 1)];
        let length = u32::from(entry & 15);
        if length != 0 {
            return if length <= available { Symbol::Is(entry >> 4, length) } else { Symbol::Open };
        }
        self.find_long(bits, available)
    }

    #[cold]
    fn find_long(&self, mut bits: u64, available: u32) -> Symbol {
        let (mut value, mut first, mut index) = (0_u32, 0_u32, 0_u32);
        for length in 1..=CODE_BITS_MAX {
            if length as u32 > available {
                return Symbol::Open;
            }
            value |= bits as u32 & 1;
            bits >>= 1;
            let count = u32::from(self.counts[length]);
            if value < first + count {
                let symbol = self.symbols[(index + value - first) as usize];
                return Symbol::Is(symbol, length as u32);
            }
            index += count;
            first = (first + count) << 1;
            value <<= 1;
        }
        Symbol::None
    }
}
