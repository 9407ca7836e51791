//! Range requests, and backends that answer them.
//!
//! Compat: only a single range is served; an unreadable one is answered with 416. Observed of
//! Varnish 7.1.1, texts included. As in 7.7, a range with both ends is cut out of a body whose
//! length is not known yet, unless the body is coded. `ranges.rs` and `part.rs` are the reading of
//! RFC 9110. Source: RFC 9110 §14.

use crate::byte_range::{Span, Wanted, single, take_number};
use crate::conditional::is_same_strong;
use crate::date::{self, DateForms};
use message::Message;
use std::io::Write;

/// Maximum time, in seconds, by which a Last-Modified may be later than Date and still serve as a
/// validator for If-Range.
const LAST_MODIFIED_SLACK: f64 = 60.0;

/// The result of a Range header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangeResult {
    /// Serve the whole body.
    Whole,
    /// Serve these bytes with 206; `first <= last < length` if the length is known.
    Part {
        /// First byte.
        first: u64,
        /// Last byte, inclusive.
        last: u64,
    },
    /// Answer 416, for this reason (logged as `RANGE_FAIL <reason>`).
    Unsatisfiable(&'static str),
}

/// Evaluates the Range header of a GET whose response is a 200. `length` is that of the body, if
/// known; `if_range` is the value of If-Range.
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
    let wanted = match single(range) {
        Ok(wanted) => wanted,
        Err(reason) => return RangeResult::Unsatisfiable(reason),
    };
    if length.is_none() {
        return match wanted {
            Wanted::FromTo(first, last) if !response.has("Content-Encoding") => RangeResult::Part { first, last },
            _ => RangeResult::Whole,
        };
    }
    match wanted.within(length) {
        Some(Span { first, last }) => RangeResult::Part { first, last },
        None => RangeResult::Unsatisfiable("low range beyond object"),
    }
}

/// True if the response is still the one that If-Range refers to. Source: RFC 9110 §13.1.5.
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

/// Appends the value of `Content-Range` for a part, `bytes a-b/length` (`*` when unknown).
pub fn content_range(first: u64, last: u64, length: Option<u64>, out: &mut Vec<u8>) {
    // Writing to a Vec cannot fail.
    let _ = match length {
        Some(length) => write!(out, "bytes {first}-{last}/{length}"),
        None => write!(out, "bytes {first}-{last}/*"),
    };
}

/// Appends the value of `Content-Range` of a 416, `bytes */length`. Appends nothing when the length
/// is unknown: the header is then left out.
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
            let is_within = match rest.strip_prefix(b"/*") {
                Some(behind) => {
                    rest = behind;
                    true
                }
                None => take_total(&mut rest).is_some_and(|length| last < length),
            };
            (first <= last && is_within).then_some(Sent::Part(first, last))?
        };
        rest.is_empty().then_some(sent)
    }
}

/// Takes `/` and a number.
fn take_total(rest: &mut &[u8]) -> Option<u64> {
    *rest = rest.strip_prefix(b"/")?;
    take_number(rest).ok().flatten()
}

/// Checks a backend's response against the range that was requested: otherwise a part that is not
/// the requested one, or not as long as it claims, would reach clients as if it were. `length` is
/// that of the response body, if known.
///
/// # Errors
/// The text for the `Error` record; the response must not be used.
pub fn check_backend(bereq: &Message, response: &Message, length: Option<u64>) -> Result<(), String> {
    let wanted = match bereq.get("Range").map(single) {
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
