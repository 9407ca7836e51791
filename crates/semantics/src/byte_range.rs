//! The parser of the Range header, for both readings of it.
//!
//! `range.rs` (Varnish's) allows one range and reports why it cannot be read; `ranges.rs` (RFC
//! 9110's) allows a list and ignores what it cannot read. Source: RFC 9110 §14.1.

/// Bytes of a representation, both ends inclusive; `first <= last`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Span {
    /// The first byte.
    pub first: u64,
    /// The last byte.
    pub last: u64,
}

impl Span {
    /// Number of bytes; at least 1.
    #[must_use]
    pub fn bytes(self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }

    /// True if all bytes of `other` are in it.
    #[must_use]
    pub fn has(self, other: Span) -> bool {
        self.first <= other.first && other.last <= self.last
    }

    /// True if they have bytes in common, or follow one another without a gap.
    #[must_use]
    pub fn touches(self, other: Span) -> bool {
        self.first <= other.last.saturating_add(1) && other.first <= self.last.saturating_add(1)
    }
}

/// One range as requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// From a byte to the end.
    From(u64),
    /// From a byte to another; the first is not after the second.
    FromTo(u64, u64),
    /// This many bytes at the end.
    Suffix(u64),
}

impl Wanted {
    /// Parses one range: `first-last`, `first-` or `-bytes`.
    ///
    /// # Errors
    /// A malformed range, in the words of Varnish.
    pub(crate) fn parse(mut range: &[u8]) -> Result<Wanted, &'static str> {
        let first = take_number(&mut range).unwrap_or(Some(TOO_BIG));
        range = range.strip_prefix(b"-").ok_or("Missing hyphen")?;
        let last = take_number(&mut range).unwrap_or(Some(TOO_BIG));
        if !range.is_empty() {
            return Err("Trailing stuff");
        }
        match (first, last) {
            (None, None) => Err("Neither high nor low"),
            (None, Some(bytes)) => Ok(Wanted::Suffix(bytes)),
            (Some(first), None) => Ok(Wanted::From(first)),
            (Some(first), Some(last)) if last < first => Err("high smaller than low"),
            (Some(first), Some(last)) => Ok(Wanted::FromTo(first, last)),
        }
    }

    /// The bytes of the range in a body of `total` bytes; `None` if it contains none of them. Where
    /// the total is unknown, only `FromTo` can be resolved.
    #[must_use]
    pub fn within(self, total: Option<u64>) -> Option<Span> {
        let (first, last) = match (self, total) {
            (Wanted::FromTo(first, last), None) => return Some(Span { first, last }),
            (_, None | Some(0)) | (Wanted::Suffix(0), _) => return None,
            (Wanted::From(first), Some(total)) => (first, total - 1),
            (Wanted::FromTo(first, last), Some(total)) => (first, last.min(total - 1)),
            (Wanted::Suffix(bytes), Some(total)) => (total.saturating_sub(bytes), total - 1),
        };
        (first <= last).then_some(Span { first, last })
    }
}

/// The set of ranges in a Range header.
///
/// # Errors
/// The unit is not bytes.
pub(crate) fn set(value: &[u8]) -> Result<&[u8], &'static str> {
    let equals = value.iter().position(|&byte| byte == b'=').ok_or("Missing '='")?;
    let (unit, set) = value.split_at(equals);
    if unit.eq_ignore_ascii_case(b"bytes") { Ok(&set[1..]) } else { Err("Not Bytes") }
}

/// The range of a header with exactly one, as Varnish reads it.
///
/// # Errors
/// A malformed range, in the words of Varnish.
pub(crate) fn single(value: &[u8]) -> Result<Wanted, &'static str> {
    match Wanted::parse(set(value)?)? {
        Wanted::Suffix(0) => Err("No low, high is zero"),
        wanted => Ok(wanted),
    }
}

/// Stands for a number that does not fit, which is beyond the end of every body. Source: RFC 9110
/// §14.1.1.
const TOO_BIG: u64 = u64::MAX - 1;

/// A number of 2^63 or more.
pub(crate) struct TooBig;

/// Cuts off a number; `None` if there are no digits. Numbers are less than 2^63; the digits of a
/// larger one are cut off too.
pub(crate) fn take_number(rest: &mut &[u8]) -> Result<Option<u64>, TooBig> {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, tail) = rest.split_at(digits);
    *rest = tail;
    if number.is_empty() {
        return Ok(None);
    }
    number
        .iter()
        .try_fold(0u64, |sum, digit| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
        .filter(|&number| number <= i64::MAX as u64)
        .map(Some)
        .ok_or(TooBig)
}
