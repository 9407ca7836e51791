//! Range requests, and backends that answer them.
//!
//! Compat: only a single range is served; an unreadable one is answered with 416. Observed of Varnish 7.1.1, texts
//! included. `ranges.rs` and `part.rs` are the reading of RFC 9110. Source: RFC 9110 §14.

use crate::conditional::is_same_strong;
use crate::date::{self, DateForms};
use message::Message;
use std::io::Write;

/// How much later than Date a Last-Modified may be and still serve as a validator for If-Range, in seconds.
const LAST_MODIFIED_SLACK: f64 = 60.0;

/// What a Range header leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangeResult {
    /// Serve the whole body.
    Whole,
    /// Serve these bytes with 206. Only when the length is known; `first <= last < length`.
    Part {
        /// First byte.
        first: u64,
        /// Last byte, inclusive.
        last: u64,
    },
    /// Answer 416, for this reason (logged as `RANGE_FAIL <reason>`).
    Unsatisfiable(&'static str),
}

/// Decides on the Range header of a GET whose response is a 200. `length` is that of the body, if known; `if_range` is
/// the value of If-Range.
#[must_use]
pub fn resolve(
    range: &[u8],
    if_range: Option<&[u8]>,
    response: &Message,
    length: Option<u64>,
    forms: DateForms,
) -> RangeResult {
    if if_range.is_some_and(|validator| !still_holds(validator, response, forms)) {
        return RangeResult::Whole;
    }
    let wanted = match Wanted::parse(range) {
        Ok(wanted) => wanted,
        Err(reason) => return RangeResult::Unsatisfiable(reason),
    };
    let Some(length) = length else { return RangeResult::Whole };
    let (first, last) = match wanted {
        Wanted::From(first) => (first, u64::MAX),
        Wanted::FromTo(first, last) => (first, last),
        Wanted::Suffix(bytes) => (length.saturating_sub(bytes), u64::MAX),
    };
    if first >= length {
        return RangeResult::Unsatisfiable("low range beyond object");
    }
    RangeResult::Part { first, last: last.min(length - 1) }
}

/// Whether the response is still the one that If-Range refers to. Source: RFC 9110 §13.1.5.
fn still_holds(validator: &[u8], response: &Message, forms: DateForms) -> bool {
    match validator {
        [b'"', ..] => response.get("ETag").is_some_and(|tag| is_same_strong(validator, tag)),
        _ => {
            let header = |name| response.get(name).and_then(|value| date::parse(value, forms));
            let (Some(wanted), Some(modified), Some(date)) =
                (date::parse(validator, forms), header("Last-Modified"), header("Date"))
            else {
                return false;
            };
            wanted == modified && modified <= date + LAST_MODIFIED_SLACK
        }
    }
}

/// A range as requested, before the length is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wanted {
    From(u64),
    FromTo(u64, u64),
    Suffix(u64),
}

impl Wanted {
    fn parse(range: &[u8]) -> Result<Self, &'static str> {
        let Some(equals) = range.iter().position(|&byte| byte == b'=') else { return Err("Missing '='") };
        if !range[..equals].eq_ignore_ascii_case(b"bytes") {
            return Err("Not Bytes");
        }
        let mut rest = &range[equals + 1..];
        // A number that does not fit lies beyond the end of every object. Compat: Varnish answers 416. Source: RFC 9110
        // §14.1.1.
        let first = take_number(&mut rest).unwrap_or(Some(u64::MAX));
        rest = rest.strip_prefix(b"-").ok_or("Missing hyphen")?;
        let last = take_number(&mut rest).unwrap_or(Some(u64::MAX));
        if !rest.is_empty() {
            return Err("Trailing stuff");
        }
        match (first, last) {
            (None, None) => Err("Neither high nor low"),
            (None, Some(0)) => Err("No low, high is zero"),
            (None, Some(bytes)) => Ok(Wanted::Suffix(bytes)),
            (Some(first), None) => Ok(Wanted::From(first)),
            (Some(first), Some(last)) if last < first => Err("high smaller than low"),
            (Some(first), Some(last)) => Ok(Wanted::FromTo(first, last)),
        }
    }
}

/// A number of 2^63 or more.
pub(crate) struct TooBig;

/// Cuts off a number; `None` when there are no digits. Numbers are less than 2^63; the digits of a larger one are cut
/// off too.
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

/// Appends the value of `Content-Range` for a part, `bytes a-b/length` (`*` when unknown).
pub fn content_range(first: u64, last: u64, length: Option<u64>, out: &mut Vec<u8>) {
    // Writing to a Vec cannot fail.
    let _ = match length {
        Some(length) => write!(out, "bytes {first}-{last}/{length}"),
        None => write!(out, "bytes {first}-{last}/*"),
    };
}

/// Appends the value of `Content-Range` of a 416, `bytes */length`. Appends nothing when the length is unknown: the
/// header is then left out.
pub fn content_range_unsatisfied(length: Option<u64>, out: &mut Vec<u8>) {
    if let Some(length) = length {
        let _ = write!(out, "bytes */{length}");
    }
}

/// A Content-Range as received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sent {
    Part(u64, u64),
    /// `*/length`
    Unsatisfied(u64),
}

impl Sent {
    fn parse(value: &[u8]) -> Option<Self> {
        let (unit, mut rest) = value.split_at_checked(6)?;
        if !unit.eq_ignore_ascii_case(b"bytes ") {
            return None;
        }
        let mut number = |prefix: &[u8]| {
            rest = rest.strip_prefix(prefix)?;
            take_number(&mut rest).ok().flatten()
        };
        let sent = if let Some(length) = number(b"*/") {
            Sent::Unsatisfied(length)
        } else {
            let first = number(b"")?;
            let last = number(b"-")?;
            let length = number(b"/")?;
            (first <= last && last < length).then_some(Sent::Part(first, last))?
        };
        rest.is_empty().then_some(sent)
    }
}

/// Checks a backend's response against the range that was requested: a part that is not the requested one, or not as
/// long as it claims, would otherwise reach clients as if it were. `length` is that of the response body, if known.
///
/// # Errors
/// The text for the `Error` record; the response must not be used.
pub fn check_backend(bereq: &Message, response: &Message, length: Option<u64>) -> Result<(), String> {
    let wanted = match bereq.get("Range").map(Wanted::parse) {
        None => None,
        Some(Ok(wanted)) => Some(wanted),
        Some(Err(reason)) => return Err(format!("Invalid range header ({reason})")),
    };
    let Some(sent) = response.get("Content-Range") else { return Ok(()) };
    let Some(sent) = Sent::parse(sent) else { return Err("Invalid content-range header".to_owned()) };
    let Some(wanted) = wanted else { return Err("Unexpected content-range header".to_owned()) };
    let part_length = match sent {
        Sent::Unsatisfied(_) if response.status() == 416 => return Ok(()),
        Sent::Unsatisfied(length) => length,
        // The parser made sure that the range has at least one byte, and fewer than 2^63.
        Sent::Part(first, last) => last - first + 1,
    };
    if let Some(length) = length
        && length != part_length
    {
        return Err(format!("Expected content length {part_length}, got {length}"));
    }
    let Sent::Part(sent_first, sent_last) = sent else { return Ok(()) };
    match wanted {
        Wanted::From(first) | Wanted::FromTo(first, _) if first != sent_first => {
            Err(format!("Expected low range {sent_first}, got {first}"))
        }
        Wanted::FromTo(_, last) if last < sent_last => {
            Err(format!("Expected minimum high range {sent_last}, got {last}"))
        }
        Wanted::From(_) | Wanted::FromTo(..) | Wanted::Suffix(_) => Ok(()),
    }
}
