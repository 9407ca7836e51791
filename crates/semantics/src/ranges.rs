//! What a client asks for with Range, by RFC 9110: one or several ranges, or nothing that need be heeded.
//!
//! A Range that cannot be understood is ignored, never an error. Ranges that overlap or touch are joined, and the rest is
//! put in order, so that no byte is sent twice and one walk over the body serves them all; a request for more than
//! [`RANGES_MAX`] of them gets the whole (CVE-2011-3192). `range.rs` has the other reading, that of Varnish. Source: RFC 9110
//! §14.1, §14.2, §13.1.5. Next file: `part.rs`.

use crate::conditional::is_same_strong;
use crate::date::{self, DateForms};
use crate::range::take_number;
use message::Message;
use surface::limits::RANGES_MAX;

/// Which reading of Range applies to a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RangeRules {
    /// Varnish's: one range, and what cannot be read is an error.
    #[default]
    Varnish,
    /// RFC 9110's.
    Rfc {
        /// Separates the parts of a response with several ranges: a number that whoever wrote the body cannot guess.
        boundary: u64,
    },
}

/// Bytes of a representation, both ends inclusive; `first <= last`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Span {
    /// The first byte.
    pub first: u64,
    /// The last byte.
    pub last: u64,
}

impl Span {
    /// How many bytes there are; at least 1.
    #[must_use]
    pub fn bytes(self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }

    /// Whether all bytes of `other` are in it.
    #[must_use]
    pub fn has(self, other: Span) -> bool {
        self.first <= other.first && other.last <= self.last
    }

    /// Whether they have bytes in common, or follow one another without a gap.
    #[must_use]
    pub fn touches(self, other: Span) -> bool {
        self.first <= other.last.saturating_add(1) && other.first <= self.last.saturating_add(1)
    }
}

/// One range as it was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// From a byte to the end.
    From(u64),
    /// From a byte to another; the first is not after the second.
    FromTo(u64, u64),
    /// So many bytes at the end.
    Suffix(u64),
}

impl Wanted {
    /// The bytes that it means if there are `total`; `None` when there are none of them. Where the total is unknown, only
    /// `FromTo` means anything.
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

/// The ranges that a request asks for, in its order; `None` when they need not be heeded: no Range or several, another unit
/// than bytes, a mistake, or more than [`RANGES_MAX`]. At least one.
#[must_use]
pub fn asked(request: &Message) -> Option<Vec<Wanted>> {
    let mut lines = request.get_all("Range");
    let value = lines.next()?;
    if lines.next().is_some() {
        return None;
    }
    let (unit, set) = value.split_at(value.iter().position(|&byte| byte == b'=')?);
    if !unit.eq_ignore_ascii_case(b"bytes") {
        return None;
    }
    let mut ranges = Vec::new();
    for member in set[1..].split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty()) {
        if ranges.len() == RANGES_MAX {
            return None;
        }
        ranges.push(parse_one(member)?);
    }
    (!ranges.is_empty()).then_some(ranges)
}

/// The range of a request that asks for exactly one.
#[must_use]
pub fn asked_single(request: &Message) -> Option<Wanted> {
    match asked(request)?.as_slice() {
        [single] => Some(*single),
        _ => None,
    }
}

fn parse_one(mut member: &[u8]) -> Option<Wanted> {
    // A number that does not fit lies beyond the end of everything.
    let first = take_number(&mut member).unwrap_or(Some(u64::MAX - 1));
    member = member.strip_prefix(b"-")?;
    let last = take_number(&mut member).unwrap_or(Some(u64::MAX - 1));
    if !member.is_empty() {
        return None;
    }
    match (first, last) {
        (None, None) => None,
        (None, Some(bytes)) => Some(Wanted::Suffix(bytes)),
        (Some(first), None) => Some(Wanted::From(first)),
        (Some(first), Some(last)) => (first <= last).then_some(Wanted::FromTo(first, last)),
    }
}

/// What a request gets of a representation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selection {
    /// All of it, with 200.
    Whole,
    /// These parts with 206: at least one, in order, with gaps between them.
    Parts(Vec<Span>),
    /// Nothing: 416.
    Unsatisfiable,
}

/// Decides what a GET gets of a 200 with that head, or of one that is stored in part; `total` is the length of the whole.
/// Where it is unknown, only ranges with two ends can be granted.
#[must_use]
pub fn select(request: &Message, response: &Message, total: Option<u64>) -> Selection {
    let Some(asked) = asked(request) else { return Selection::Whole };
    if request.get("If-Range").is_some_and(|validator| !if_range_holds(validator, response)) {
        return Selection::Whole;
    }
    let meaningless = |wanted: &Wanted| match (wanted, total) {
        (Wanted::FromTo(..), None) => false,
        (_, None) => true,
        // The last bytes of nothing are all that there is, and no Content-Range could name them.
        (Wanted::Suffix(bytes), Some(0)) => *bytes > 0,
        (_, Some(_)) => false,
    };
    if asked.iter().any(meaningless) {
        return Selection::Whole;
    }
    let mut spans: Vec<Span> = asked.into_iter().filter_map(|wanted| wanted.within(total)).collect();
    spans.sort_unstable();
    spans.dedup_by(|next, before| {
        let joins = before.touches(*next);
        if joins {
            before.last = before.last.max(next.last);
        }
        joins
    });
    if spans.is_empty() { Selection::Unsatisfiable } else { Selection::Parts(spans) }
}

/// Whether the response is still the one that If-Range names; only strong validators can say so. Source: RFC 9110
/// §13.1.5, §8.8.2.2.
#[must_use]
pub fn if_range_holds(validator: &[u8], response: &Message) -> bool {
    match validator {
        [b'"', ..] => response.get("ETag").is_some_and(|tag| is_same_strong(validator, tag)),
        [b'W', b'/', ..] => false,
        _ => {
            let wanted = date::parse(validator, DateForms::Exact);
            wanted.is_some() && wanted == strong_date(response)
        }
    }
}

/// The strongest validator of a response, as If-Range takes it; `None` when it has no strong one.
#[must_use]
pub fn strong_validator(response: &Message) -> Option<&[u8]> {
    match response.get("ETag") {
        Some(tag) => tag.starts_with(b"\"").then_some(tag),
        None => strong_date(response).and(response.get("Last-Modified")),
    }
}

/// Last-Modified, where it can only mean one version: the response was made at least a second later.
fn strong_date(response: &Message) -> Option<f64> {
    let seconds = |name| response.get(name).and_then(|value| date::parse(value, DateForms::Exact));
    let modified = seconds("Last-Modified")?;
    (modified + 1.0 <= seconds("Date")?).then_some(modified)
}
