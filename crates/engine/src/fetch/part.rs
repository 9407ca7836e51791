//! Parts: the request to the origin when a client wants a part of a response, and the handling of
//! the received part (206).
//!
//! Only under the policy `rfc`. A miss with a single range sends the range on. If the whole is
//! wanted and a part of it is stored, only the rest is requested, provided that the stored version
//! can be identified. A part that contradicts itself, or the request, becomes an error. A part that
//! fits a stored part of the same version is joined with it before VCL sees the response. One that
//! does not fit is stored next to it, or, if the whole is wanted, the whole is requested.
//! *Invariant:* an object with the flag PARTIAL has status 206 and the Content-Range of its body.
//! Source: RFC 9110 §15.3.7, RFC 9111 §3.3, §3.4. Next files: `fill.rs`, `semantics::part`.

use super::fill::Source;
use super::task::PartTaken;
use super::{Fetch, Step};
use crate::logged::{self, BEREQ, BERESP};
use crate::origin::close_reason;
use message::Message;
use semantics::part::{self, Joint, Part, Received};
use semantics::ranges::{Wanted, strong_validator};
use std::sync::Arc;
use store::{Object, ObjectFlags};
use surface::reason::Reason;
use surface::tag::Tag;

impl Fetch {
    fn deals_in_parts(&self) -> bool {
        self.follows_rfc() && self.task.order.parameters.http_range_support
    }

    /// True if the response, if it is a part, is valid for all requests for that part. A part that
    /// VCL has requested by itself, perhaps under a key that names the part, is stored as the
    /// response that VCL takes it for.
    fn is_for_parts(&self) -> bool {
        self.task.life.asks_for_part || self.task.life.wants_rest
    }

    /// Requests the rest if a part is stored and the whole is wanted. Parts are requested without a
    /// coding: a part that one client got must be usable for the next one.
    pub(super) fn ask_for_part(&mut self) {
        if !self.deals_in_parts() {
            return;
        }
        if !self.task.bereq.has("Range") {
            self.ask_for_rest();
        }
        if self.task.bereq.has("Range") && self.task.order.gzip_support {
            logged::force(&mut self.log, BEREQ, &mut self.task.bereq, "Accept-Encoding", b"identity");
        }
    }

    fn ask_for_rest(&mut self) {
        let Some(object) = self.task.life.part.clone() else { return };
        let is_lenient = self.task.order.parameters.partial_leniency;
        let mut stored = Message::new();
        let rest = stored.decode(object.head()).and_then(|()| part_of(&object, &stored)?.rest());
        let validator = strong_validator(&stored);
        let Some(rest) = rest.filter(|_| validator.is_some() || is_lenient) else {
            self.task.life.part = None;
            return;
        };
        let range = match rest {
            Wanted::From(first) => format!("bytes={first}-"),
            Wanted::FromTo(first, last) => format!("bytes={first}-{last}"),
            Wanted::Suffix(bytes) => format!("bytes=-{bytes}"),
        };
        let (log, bereq) = (&mut self.log, &mut self.task.bereq);
        logged::append(log, BEREQ, bereq, "Range", &[range.as_bytes()]);
        if let Some(validator) = validator {
            logged::append(log, BEREQ, bereq, "If-Range", &[validator]);
        }
        self.task.life.wants_rest = true;
    }

    /// Judges a response that may be a part.
    ///
    /// # Errors
    /// The next step instead, if it cannot be used.
    pub(super) fn take_part(&mut self) -> Result<(), Step> {
        self.judge_part().map_or(Ok(()), Err)
    }

    fn judge_part(&mut self) -> Option<Step> {
        self.task.attempt.part = PartTaken::default();
        if !self.deals_in_parts() {
            return None;
        }
        let length = self.task.attempt.body.size.length();
        let (bereq, beresp) = (&self.task.bereq, &self.task.attempt.beresp);
        match part::judge(bereq, beresp, length, self.task.order.parameters.partial_leniency) {
            Ok(Received::Whole) if beresp.status() == 416 && self.task.life.wants_rest => Some(self.ask_for_whole()),
            Ok(Received::Whole) => None,
            Ok(Received::Foreign) => {
                self.task.life.uncacheable = true;
                None
            }
            Ok(Received::Part(_)) => {
                let received = Part::of_message(beresp, length);
                self.task.attempt.part.received = received;
                match received {
                    _ if !self.is_for_parts() => None,
                    Some(part) if part.is_whole() => self.take_whole(part),
                    Some(_) | None => self.join(),
                }
            }
            Err(text) => {
                self.log.record(Tag::Error, text.as_bytes());
                self.why(Reason::ResponseGarbled, &format!("text={text}"));
                if self.task.life.wants_rest {
                    return Some(self.ask_for_whole());
                }
                self.close_connection(close_reason::BODY);
                Some(Step::Error)
            }
        }
    }

    /// The range that was requested is the whole (`bytes=0-`): the response is as good as a 200.
    fn take_whole(&mut self, part: Part) -> Option<Step> {
        let (log, beresp) = (&mut self.log, &mut self.task.attempt.beresp);
        part::complete(beresp);
        logged::log_status_line(log, BERESP, beresp);
        self.task.attempt.part.joint = Some(Joint { part, before_bytes: 0, after_offset: None });
        None
    }

    /// Joins the part with the stored one, if they fit.
    fn join(&mut self) -> Option<Step> {
        let wants_rest = self.task.life.wants_rest;
        let stored = self.task.life.part.clone();
        let fitting = stored.as_deref().and_then(|object| self.fitting(object));
        match fitting {
            Some((stored, joint)) if !wants_rest || joint.part.is_whole() => {
                let (log, beresp) = (&mut self.log, &mut self.task.attempt.beresp);
                part::merge(&stored, beresp, joint.part);
                logged::log_response(log, BERESP, beresp);
                self.task.attempt.part.joint = Some(joint);
                None
            }
            _ if wants_rest => Some(self.ask_for_whole()),
            _ => None,
        }
    }

    /// The head of the stored part, and its relation to the received one.
    fn fitting(&self, object: &Object) -> Option<(Message, Joint)> {
        let mut stored = Message::new();
        stored.decode(object.head())?;
        if !object.is_whole() || object.is_removed() || !part::is_same_version(&stored, &self.task.attempt.beresp) {
            return None;
        }
        let joint = part::join(part_of(object, &stored)?, self.task.attempt.part.received?)?;
        Some((stored, joint))
    }

    /// The stored part and the origin's answer don't make a whole: the whole is requested.
    fn ask_for_whole(&mut self) -> Step {
        self.why(Reason::PartOutdated, "");
        self.task.give_up_response(&self.context, &mut self.log);
        self.task.attempt.part = PartTaken::default();
        self.task.life.part = None;
        self.task.life.wants_rest = false;
        logged::unset(&mut self.log, BEREQ, &mut self.task.bereq, "Range");
        logged::unset(&mut self.log, BEREQ, &mut self.task.bereq, "If-Range");
        Step::Send
    }

    /// The flags of an object that holds a part. If VCL has changed the fields that mark it as a
    /// part, the response is for its client alone: no other request could recognise it as one.
    pub(super) fn part_flags(&mut self) -> ObjectFlags {
        let Some(part) = self.task.attempt.part.stored().filter(|_| self.is_for_parts()) else {
            return ObjectFlags::NONE;
        };
        let length = self.task.attempt.body.size.length().filter(|_| self.task.attempt.part.joint.is_none());
        if Part::of_message(&self.task.attempt.beresp, length) != Some(part) {
            self.task.life.uncacheable = true;
            return ObjectFlags::NONE;
        }
        ObjectFlags::PARTIAL
    }

    /// The length of the body by the part's Content-Range, before filters; `None` when the response
    /// is not a part.
    pub(super) fn part_bytes(&self) -> Option<u64> {
        let PartTaken { received, joint } = self.task.attempt.part;
        joint.map(|joint| joint.part).or(received).map(|part| part.span.bytes())
    }

    /// Puts the stored bytes before and after those that the origin sends.
    pub(super) fn join_source(&self, source: &mut Source) {
        let PartTaken { received, joint } = self.task.attempt.part;
        if let Some(part) = received {
            source.expect(part.span.bytes());
        }
        let (Some(joint), Some(object)) = (joint, &self.task.life.part) else { return };
        if joint.before_bytes > 0 {
            source.begin_with(object.reader(), joint.before_bytes);
        }
        if let Some(offset) = joint.after_offset {
            source.end_with(object.reader(), offset);
        }
    }

    /// The stored part that the new object supersedes.
    pub(super) fn replaced_part(&mut self) -> Option<Arc<Object>> {
        let PartTaken { received, joint } = self.task.attempt.part;
        let is_replaced = !self.task.attempt.is_synthetic && (joint.is_some() || received.is_none());
        self.task.life.part.take().filter(|_| is_replaced)
    }
}

/// The part in a stored object; `stored` is its head.
fn part_of(object: &Object, stored: &Message) -> Option<Part> {
    Part::of_message(stored, Some(object.available_bytes()))
}
