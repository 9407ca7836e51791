//! The Range header of a client by RFC 9110: one or several ranges, or a header to ignore.
//!
//! A Range that cannot be understood is ignored, never an error. Ranges that overlap or touch are
//! joined, and the rest is sorted, so that no byte is sent twice and one walk over the body serves
//! them all; a request for more than [`RANGES_MAX`] of them gets the whole (CVE-2011-3192).
//! `range.rs` has the other reading, that of Varnish. Source: RFC 9110 §14.1, §14.2, §13.1.5. Next
//! file: `part.rs`.

pub use crate::byte_range::{Span, Wanted};

use crate::byte_range::set;
use crate::conditional::is_same_strong;
use crate::date::{self, DateForms};
use message::Message;
use surface::limits::RANGES_MAX;

/// The reading of Range that applies to a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RangeRules {
    /// Varnish's: one range, and an unreadable one is an error.
    #[default]
    Varnish,
    /// RFC 9110's.
    Rfc {
        /// Separates the parts of a response with several ranges: a number that the author of the
        /// body cannot guess.
        boundary: u64,
    },
}

/// The ranges of a request, in its order; `None` if they are to be ignored: no Range or several,
/// another unit than bytes, a mistake, or more than [`RANGES_MAX`]. At least one.
#[must_use]
pub fn asked(request: &Message) -> Option<Vec<Wanted>> {
    let mut lines = request.get_all("Range");
    let value = lines.next()?;
    if lines.next().is_some() {
        return None;
    }
    let mut ranges = Vec::new();
    for member in
        set(value).ok()?.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
    {
        if ranges.len() == RANGES_MAX {
            return None;
        }
        ranges.push(Wanted::parse(member).ok()?);
    }
    (!ranges.is_empty()).then_some(ranges)
}

/// The range of a request for exactly one.
#[must_use]
pub fn asked_single(request: &Message) -> Option<Wanted> {
    match asked(request)?.as_slice() {
        [single] => Some(*single),
        _ => None,
    }
}

/// The part of a representation that a request gets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selection {
    /// All of it, with 200.
    Whole,
    /// These parts with 206: at least one, in order, with gaps between them.
    Parts(Vec<Span>),
    /// Nothing: 416.
    Unsatisfiable,
}

/// Selects the bytes that a GET gets of a 200 with that head, or of one that is stored in part;
/// `total` is the length of the whole. Where it is unknown, only ranges with two ends can be
/// granted.
#[must_use]
pub fn select(request: &Message, response: &Message, total: Option<u64>) -> Selection {
    let Some(asked) = asked(request) else { return Selection::Whole };
    if request.get("If-Range").is_some_and(|validator| !if_range_holds(validator, response)) {
        return Selection::Whole;
    }
    let meaningless = |wanted: &Wanted| match (wanted, total) {
        (Wanted::FromTo(..), None) => false,
        (_, None) => true,
        // The last bytes of an empty body are the whole body, and no Content-Range could name them.
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

/// True if the response is still the one that If-Range names; only a strong validator can prove
/// that. Source: RFC 9110 §13.1.5, §8.8.2.2.
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

/// The strongest validator of a response, in the form for If-Range; `None` if it has no strong one.
#[must_use]
pub fn strong_validator(response: &Message) -> Option<&[u8]> {
    match response.get("ETag") {
        Some(tag) => tag.starts_with(b"\"").then_some(tag),
        None => strong_date(response).and(response.get("Last-Modified")),
    }
}

/// Last-Modified, if it identifies one version only: the response was made at least a second later.
fn strong_date(response: &Message) -> Option<f64> {
    let seconds = |name| response.get(name).and_then(|value| date::parse(value, DateForms::Exact));
    let modified = seconds("Last-Modified")?;
    (modified + 1.0 <= seconds("Date")?).then_some(modified)
}
