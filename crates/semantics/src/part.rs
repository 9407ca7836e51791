//! Parts of a representation: the content of a 206, the requests it answers, its completion, and
//! the parts it may be joined with.
//!
//! A part is accepted only if its Content-Range agrees with the request and with the length of its
//! body; a contradiction is an error, never a shorter body. Two parts are joined only if they have
//! the same strong validator. Source: RFC 9110 §14.4, §15.3.7, RFC 9111 §3.3, §3.4. Next file:
//! `revalidate.rs`.

use crate::byte_range::take_number;
use crate::list;
use crate::range::content_range;
use crate::ranges::{Selection, Span, Wanted, asked_single, select, strong_validator};
use message::Message;
use surface::limits::PART_JOIN_RATIO_MAX;

/// A part of a representation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Its bytes.
    pub span: Span,
    /// The length of the complete representation, if that is known; beyond the span.
    pub total: Option<u64>,
}

impl Part {
    /// Reads the value of a Content-Range that names bytes; `None` if it names none, or contradicts
    /// itself.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Part> {
        let (unit, mut rest) = value.split_at_checked(6)?;
        if !unit.eq_ignore_ascii_case(b"bytes ") {
            return None;
        }
        let mut number = |prefix: &[u8]| {
            rest = rest.strip_prefix(prefix)?;
            take_number(&mut rest).ok().flatten()
        };
        let span = Span { first: number(b"")?, last: number(b"-")? };
        let total = match rest {
            b"/*" => None,
            _ => {
                let mut rest = rest.strip_prefix(b"/")?;
                let total = take_number(&mut rest).ok().flatten()?;
                (rest.is_empty() && span.last < total).then_some(Some(total))?
            }
        };
        (span.first <= span.last).then_some(Part { span, total })
    }

    /// The part in a 206, by its head and the length of its body if known. If one was accepted
    /// although its body is shorter than announced ([`judge`]), it ends with its body, and so does
    /// the representation if that was its end.
    #[must_use]
    pub fn of_message(head: &Message, body_bytes: Option<u64>) -> Option<Part> {
        if head.status() != 206 {
            return None;
        }
        let mut part = Part::parse(head.get("Content-Range")?)?;
        if let Some(bytes) = body_bytes.filter(|&bytes| bytes < part.span.bytes()) {
            let is_end = part.total == Some(part.span.last + 1);
            part.span.last = part.span.first + bytes.checked_sub(1)?;
            if is_end {
                part.total = Some(part.span.last + 1);
            }
        }
        Some(part)
    }

    /// True if nothing is missing.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self.span.first == 0 && self.total == Some(self.span.bytes())
    }

    /// Appends the value of Content-Range.
    pub fn write(self, out: &mut Vec<u8>) {
        content_range(self.span.first, self.span.last, self.total, out);
    }

    /// The missing bytes, if one range covers them.
    #[must_use]
    pub fn rest(self) -> Option<Wanted> {
        let total = self.total.filter(|_| !self.is_whole())?;
        if self.span.first == 0 {
            Some(Wanted::From(self.span.last + 1))
        } else {
            (self.span.last + 1 == total).then(|| Wanted::FromTo(0, self.span.first - 1))
        }
    }

    /// True if the part, stored with that head, contains all bytes that a request asks for. The
    /// request is a GET.
    #[must_use]
    pub fn suffices(self, request: &Message, head: &Message) -> bool {
        match select(request, head, self.total) {
            Selection::Whole => false,
            Selection::Parts(spans) => spans.into_iter().all(|span| self.span.has(span)),
            Selection::Unsatisfiable => true,
        }
    }

    /// Value of an insufficient part to the fetch for a request, in bytes; `None` if it is useless.
    #[must_use]
    pub fn helps(self, request: &Message, head: &Message) -> Option<u64> {
        let is_useful = match (range_to_pass_on(request), asked_single(request)) {
            (Some(_), Some(wanted)) => {
                strong_validator(head).is_some()
                    && wanted.within(self.total).is_some_and(|span| span.touches(self.span))
            }
            _ => self.rest().is_some(),
        };
        is_useful.then(|| self.span.bytes())
    }
}

/// The Range that a cache may send to an origin in order to store the answer: a single one. All
/// other requests are answered from the complete response.
#[must_use]
pub fn range_to_pass_on(request: &Message) -> Option<&[u8]> {
    if request.method() != b"GET" {
        return None;
    }
    asked_single(request).and_then(|_| request.get("Range"))
}

/// The kind of a response to a request with or without Range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// No part.
    Whole,
    /// This part.
    Part(Part),
    /// Parts that only the requesting client can read: several, or of another unit than bytes.
    Foreign,
}

/// Checks the response of an origin. `length` is that of the body, if known. `is_lenient`: also
/// accept a part that is not the requested one, or shorter than announced.
///
/// # Errors
/// The text for the `Error` record: the response contradicts its head, and must not be used.
pub fn judge(bereq: &Message, response: &Message, length: Option<u64>, is_lenient: bool) -> Result<Received, String> {
    if response.status() != 206 {
        return Ok(Received::Whole);
    }
    if !bereq.has("Range") {
        return Err("Partial response (206) to a request without Range".to_owned());
    }
    let single = asked_single(bereq);
    let mut lines = response.get_all("Content-Range");
    let line = match (lines.next(), lines.next()) {
        (Some(line), None) => line,
        (None, _) if single.is_none() => return Ok(Received::Foreign),
        _ => return Err("Partial response (206) without one Content-Range".to_owned()),
    };
    let Some(part) = Part::parse(line) else {
        if single.is_none() {
            return Ok(Received::Foreign);
        }
        return Err("Invalid content-range header".to_owned());
    };
    if is_multipart(response) {
        return Err("Partial response (206) in several parts, but one was asked for".to_owned());
    }
    let Span { first, last } = part.span;
    let promised = part.span.bytes();
    if let Some(length) = length
        && length != promised
        && !(is_lenient && (1..promised).contains(&length))
    {
        return Err(format!("Expected content length {promised}, got {length}"));
    }
    let expected = match single {
        None => return Ok(Received::Foreign),
        Some(_) if is_lenient => first,
        Some(Wanted::From(wanted) | Wanted::FromTo(wanted, _)) => wanted,
        Some(Wanted::Suffix(bytes)) => match part.total {
            Some(total) => total.saturating_sub(bytes),
            None => first,
        },
    };
    if expected != first {
        return Err(format!("Expected low range {expected}, got {first}"));
    }
    match single {
        Some(Wanted::FromTo(_, wanted)) if wanted < last && !is_lenient => {
            Err(format!("Expected high range {wanted} at most, got {last}"))
        }
        _ => Ok(Received::Part(part)),
    }
}

fn is_multipart(response: &Message) -> bool {
    response.get("Content-Type").is_some_and(|value| {
        let kind = list::split_unquoted(value, b';').0.trim_ascii();
        kind.eq_ignore_ascii_case(b"multipart/byteranges")
    })
}

/// The way in which a stored part and a new one become one body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Joint {
    /// The part that they form together.
    pub part: Part,
    /// Number of bytes of the stored body that come first; then the complete new body follows.
    pub before_bytes: u64,
    /// From here on, the stored body follows; `None` = no more of it.
    pub after_offset: Option<u64>,
}

/// True if the two responses are parts of the same version, and the coding of the new one, if it
/// names one, is that of the stored one. Source: RFC 9111 §3.4, RFC 9110 §15.3.7.
#[must_use]
pub fn is_same_version(stored: &Message, new: &Message) -> bool {
    let coding = |message: &Message| message.get("Content-Encoding").map(<[u8]>::to_ascii_lowercase);
    strong_validator(stored).is_some_and(|validator| strong_validator(new) == Some(validator))
        && coding(new).is_none_or(|named| coding(stored) == Some(named))
}

/// Joins a new part with a stored one of the same version; `None` if they leave a gap, contradict
/// each other, or it is not worthwhile: unless the result is complete, at most
/// [`PART_JOIN_RATIO_MAX`] times the new bytes are copied, so that the cost of many small parts is
/// not quadratic in their number.
#[must_use]
pub fn join(stored: Part, new: Part) -> Option<Joint> {
    let total = match (stored.total, new.total) {
        (Some(stored), Some(new)) if stored != new => return None,
        (total, None) | (None, total) | (total, Some(_)) => total,
    };
    let (old, fresh) = (stored.span, new.span);
    if !old.touches(fresh) {
        return None;
    }
    let span = Span { first: old.first.min(fresh.first), last: old.last.max(fresh.last) };
    if total.is_some_and(|total| span.last >= total) {
        return None;
    }
    let joint = Joint {
        part: Part { span, total },
        before_bytes: fresh.first.saturating_sub(old.first),
        after_offset: (fresh.last < old.last).then(|| (fresh.last + 1).saturating_sub(old.first)),
    };
    let is_cheap = old.bytes() <= fresh.bytes().saturating_mul(PART_JOIN_RATIO_MAX);
    (is_cheap || joint.part.is_whole()).then_some(joint)
}

/// Makes a 206 that holds the whole representation the 200 that it represents.
pub fn complete(response: &mut Message) {
    response.unset("Content-Range");
    response.set_status(200);
    response.set_reason(crate::reason::phrase(200).as_bytes());
}

/// Makes the new response the head of the joined body: fields that only the stored one has are
/// kept, all others are the new one's. Source: RFC 9111 §3.4.
pub fn merge(stored: &Message, new: &mut Message, part: Part) {
    crate::revalidate::merge(stored, new);
    if part.is_whole() {
        complete(new);
    } else {
        new.set_status(206);
        new.set_reason(crate::reason::phrase(206).as_bytes());
        let mut value = Vec::new();
        part.write(&mut value);
        new.set("Content-Range", &value);
    }
    let mut number = Vec::new();
    let _ = std::io::Write::write_fmt(&mut number, format_args!("{}", part.span.bytes()));
    new.set("Content-Length", &number);
}
