//! Why: the reasons of the client's side, recorded where the decision is taken.
//!
//! A plain hit leaves no record of its own: `Hit` says it. What each reason means stands in `surface::reason`; the fetch's
//! side has the same in `fetch/why.rs`. Off under debug bit `vtc_mode`, whose scripts count records.

use super::Run;
use crate::vcl_context::Decision;
use cache::MissCause;
use message::Message;
use std::fmt::Write as _;
use store::{Object, ObjectFlags};
use surface::reason::{RECORD, Reason};
use surface::tag::Tag;

impl<S> Run<'_, S> {
    /// Notes a reason, with what belongs to it: `name=value …`, or nothing.
    pub(crate) fn why(&mut self, reason: Reason, details: &[u8]) {
        let task = &mut self.request.task;
        task.life.reason = Some(reason);
        if task.settings.reasons {
            let blank: &[u8] = if details.is_empty() { b"" } else { b" " };
            self.request
                .log
                .record_parts(Tag::Notice, &[RECORD.as_bytes(), reason.row().word.as_bytes(), blank, details]);
        }
    }

    /// Notes what the method that ran last decided, and where it stands.
    pub(super) fn why_vcl(&mut self, reason: Reason) {
        let details = match &self.request.vcl {
            Some(vcl) if self.request.task.settings.reasons => {
                Decision::of(&self.request.machine, &vcl.program).to_string()
            }
            Some(_) | None => String::new(),
        };
        self.why(reason, details.as_bytes());
    }

    /// Notes why lookup found nothing usable.
    pub(super) fn why_miss(&mut self, cause: &MissCause) {
        let is_told = self.request.task.settings.reasons;
        let (reason, details) = match cause {
            MissCause::Absent => (Reason::MissAbsent, String::new()),
            MissCause::Vary { other } if is_told => {
                let mut head = Message::new();
                let names = head.decode(other.head()).and_then(|()| head.get("Vary")).unwrap_or_default();
                (Reason::MissVary, format!("headers={}", String::from_utf8_lossy(names)))
            }
            MissCause::Vary { .. } => (Reason::MissVary, String::new()),
            MissCause::Expired(seconds) => (Reason::MissExpired, format!("seconds={seconds:.3}")),
            MissCause::Banned(count) => (Reason::MissBanned, format!("bans={count}")),
            MissCause::Forced => {
                let request = &*self.request;
                let noted = request.task.choices.always_miss_by.as_ref().zip(request.vcl.as_ref());
                let place = noted.map(|(noted, vcl)| Decision::noted(noted, &vcl.program).to_string());
                (Reason::MissForced, place.unwrap_or_default())
            }
            MissCause::IgnoredBusy => (Reason::MissIgnoredBusy, String::new()),
        };
        self.why(reason, details.as_bytes());
    }

    /// Notes that a stale object is served.
    pub(super) fn why_grace(&mut self, object: &Object) {
        let late = self.request.task.life.received_at - object.origin() - object.ttl();
        self.why(Reason::HitGrace, format!("seconds={late:.3}").as_bytes());
    }

    /// `Cache-Status` of the response, when the operator wants it. Source: RFC 9211.
    pub(super) fn add_cache_status(&mut self) {
        if !self.request.task.settings.cache_status {
            return;
        }
        let request = &mut *self.request;
        let task = &mut request.task;
        let row = task.life.reason.map(Reason::row);
        let forwarded = row.map(|row| row.cache_status).filter(|status| !matches!(*status, "" | "hit"));
        let mut value = String::from("copal");
        match (&task.found.object, forwarded) {
            (Some(object), None) => {
                let left = object.origin() + object.ttl() - task.life.received_at;
                let _ = write!(value, "; hit; ttl={left:.0}");
            }
            (object, Some(forwarded)) => {
                let _ = write!(value, "; {forwarded}; fwd-status={}", task.response.status() % 1000);
                let is_stored = |object: &Object| !object.is_passing() && !object.flags().has(ObjectFlags::PRIVATE);
                if object.as_ref().is_some_and(|object| is_stored(object)) {
                    value.push_str("; stored");
                }
            }
            (None, None) => {}
        }
        if let Some(row) = row {
            let _ = write!(value, "; detail={}", row.word);
        }
        crate::logged::append(
            &mut request.log,
            crate::logged::RESP,
            &mut task.response,
            "Cache-Status",
            &[value.as_bytes()],
        );
    }
}
