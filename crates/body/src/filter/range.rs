//! `range`: cuts out the part of a body that a client requested, or several. Source: RFC 9110 §14.
//!
//! Under Varnish's rules from a whole body only; under those of the RFC also from a body that is
//! itself a part. Next file: `byteranges.rs`.

use super::byteranges::ByteRanges;
use super::{Effect, Head, Opened, Opening};
use crate::machine::{FilterError, Machine, Progress};
use crate::staging::Staging;
use semantics::date::DateForms;
use semantics::part::Part;
use semantics::range::{self, RangeResult};
use semantics::ranges::{RangeRules, Selection, Span, select};

pub(super) fn open(opening: &mut Opening<'_>) -> Option<Opened> {
    match opening.ranges {
        RangeRules::Varnish => open_as_varnish(opening),
        RangeRules::Rfc { boundary } => open_by_rfc(opening, boundary),
    }
}

fn open_by_rfc(opening: &mut Opening<'_>, boundary: u64) -> Option<Opened> {
    let (head, length) = (&mut *opening.head, opening.length);
    let there = match head.message().status() {
        200 => There { span: None, first: 0, total: Some(length?) },
        _ => There::of_part(Part::of_message(head.message(), length)?),
    };
    match select(head.request()?, head.message(), there.total) {
        Selection::Whole => None,
        // Bytes that are not stored cannot be cut out: the client gets the part unchanged, with its
        // own Content-Range.
        Selection::Parts(spans) if !spans.iter().all(|span| there.span.is_none_or(|all| all.has(*span))) => None,
        Selection::Parts(spans) => match spans.as_slice() {
            [single] if there.span == Some(*single) => None,
            [single] => {
                let mut value = Vec::new();
                range::content_range(single.first, single.last, there.total, &mut value);
                head.set("Content-Range", &value);
                head.set_status(206);
                Some(opened(RangeCut::new(single.first - there.first, single.last - there.first)))
            }
            _ => Some(open_several(head, spans, &there, boundary)),
        },
        Selection::Unsatisfiable => {
            head.debug("RANGE_FAIL nothing of it is there");
            let mut value = Vec::new();
            range::content_range_unsatisfied(there.total, &mut value);
            head.set("Content-Range", &value);
            head.set_status(416);
            Some(opened(RangeCut::new(1, 0)))
        }
    }
}

/// The body that ranges are cut from.
struct There {
    /// Its bytes; `None` = all of the representation.
    span: Option<Span>,
    first: u64,
    total: Option<u64>,
}

impl There {
    fn of_part(part: Part) -> There {
        There { span: Some(part.span), first: part.span.first, total: part.total }
    }
}

fn open_several(head: &mut dyn Head, spans: Vec<Span>, there: &There, boundary: u64) -> Opened {
    let machine = ByteRanges::new(spans, there.first, there.total, boundary, head.message().get("Content-Type"));
    if head.message().has("Content-Range") {
        head.unset("Content-Range");
    }
    head.set("Content-Type", &machine.content_type());
    head.set_status(206);
    let effect = Effect::of_length(machine.output_bytes());
    Opened { machine: Box::new(machine), effect }
}

fn opened(cut: RangeCut) -> Opened {
    let length = (!cut.may_be_short).then(|| cut.remaining());
    Opened { effect: Effect::of_length(length), machine: Box::new(cut) }
}

fn open_as_varnish(opening: &mut Opening<'_>) -> Option<Opened> {
    let (head, length, is_filtered) = (&mut *opening.head, opening.length, opening.is_filtered);
    if head.message().status() != 200 {
        return None;
    }
    let request = head.request()?;
    let dates = DateForms::of_features(opening.parameters.feature);
    let wanted = range::resolve(request.get("Range")?, request.get("If-Range"), head.message(), length, dates);
    let mut value = Vec::new();
    let (status, cut) = match wanted {
        RangeResult::Whole => return None,
        // A page, or an unpacked body, whose length is unknown is not cut.
        RangeResult::Part { .. } if length.is_none() && is_filtered => return None,
        RangeResult::Part { first, last } => {
            range::content_range(first, last, length, &mut value);
            let cut = RangeCut::new(first, last);
            (206, if length.is_some() { cut } else { cut.of_unknown_length() })
        }
        RangeResult::Unsatisfiable(why) => {
            head.debug(&format!("RANGE_FAIL {why}"));
            range::content_range_unsatisfied(length, &mut value);
            (416, RangeCut::new(1, 0))
        }
    };
    head.append("Content-Range", &value);
    head.set_status(status);
    Some(opened(cut))
}

/// Passes only the bytes from `first` to `last` of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RangeCut {
    skip: u64,
    take: u64,
    /// The stream may end before the range does.
    may_be_short: bool,
}

impl RangeCut {
    /// Both ends are inclusive. A range whose end is before its start passes nothing.
    #[must_use]
    pub fn new(first: u64, last: u64) -> Self {
        let take = if last < first { 0 } else { (last - first).saturating_add(1) };
        RangeCut { skip: first, take, may_be_short: false }
    }

    /// The range of a stream that may end before the range does.
    #[must_use]
    pub fn of_unknown_length(self) -> Self {
        RangeCut { may_be_short: true, ..self }
    }

    /// The part of the stream's next `input` that is in the range.
    pub fn cut<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        let (from, to) = self.part(input.len());
        &input[from..to]
    }

    /// The start and end of that part, in an input of this length.
    fn part(&mut self, input_bytes: usize) -> (usize, usize) {
        let before = usize::try_from(self.skip).unwrap_or(usize::MAX).min(input_bytes);
        self.skip -= before as u64;
        let len = usize::try_from(self.take).unwrap_or(usize::MAX).min(input_bytes - before);
        self.take -= len as u64;
        (before, before + len)
    }

    /// Bytes of the range that have not passed yet: if it is not 0 when the stream ends, the stream
    /// was too short.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.take
    }
}

impl Machine for RangeCut {
    fn step(&mut self, input: Option<&[u8]>, _out: &mut Staging) -> Result<Progress, FilterError> {
        let taken = input.map_or(0, <[u8]>::len);
        let passed = Some(self.part(taken));
        // Bytes after the range do not matter.
        Ok(Progress { taken, is_pending: false, has_ended: input.is_none() || self.is_done(), passed })
    }

    fn passes_parts(&self) -> bool {
        true
    }

    fn is_done(&self) -> bool {
        self.take == 0
    }

    fn missing_bytes(&self) -> u64 {
        if self.may_be_short { 0 } else { self.take }
    }

    fn unwanted_bytes(&self) -> u64 {
        if self.take > 0 { self.skip } else { 0 }
    }

    fn skip(&mut self, bytes: u64) {
        self.skip = self.skip.saturating_sub(bytes);
    }
}
