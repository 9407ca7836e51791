//! Reasons (`why`) of the client's side, recorded where the decision is taken.
//!
//! A plain hit has no reason record; its `Hit` record is enough. The meaning of each reason is in
//! `surface::reason`; the fetch's side has its counterpart in `fetch/why.rs`. Off under debug bit
//! `vtc_mode`, whose scripts count records.

use super::Run;
use crate::logged::Thousandths;
use crate::world::Decision;
use cache::{Absence, MissCause};
use message::Message;
use std::fmt::Write as _;
use store::Object;
use surface::limits::{WHY_COOKIES_MAX, WHY_TEXT_BYTES_MAX};
use surface::reason::{MORE, NEVER, RECORD, Reason, TAG};

impl Run<'_> {
    /// Records a reason with its details: `name=value …`, or nothing.
    pub(crate) fn why(&mut self, reason: Reason, details: &[u8]) {
        self.context.histograms.count_reason(reason);
        let task = &mut self.request.task;
        task.life.reason = Some(reason);
        if task.settings.reasons {
            let blank: &[u8] = if details.is_empty() { b"" } else { b" " };
            self.request.log.record_parts(TAG, &[RECORD.as_bytes(), reason.row().word.as_bytes(), blank, details]);
        }
    }

    /// Records the decision of the method that ran last, and its place in the VCL.
    pub(super) fn why_vcl(&mut self, reason: Reason) {
        let request = &mut *self.request;
        match request.vcl.as_ref().filter(|_| request.task.settings.reasons) {
            Some(vcl) => {
                self.context.histograms.count_reason(reason);
                request.task.life.reason = Some(reason);
                let decision = Decision::of(&request.machine, &vcl.program);
                request.log.record_fmt(TAG, format_args!("{RECORD}{} {decision}", reason.row().word));
            }
            None => self.why(reason, b""),
        }
        if reason == Reason::PassByVcl {
            self.why_cookies();
        }
    }

    /// Adds details to the last recorded reason, in a record of their own: if they must be
    /// truncated, nothing else is lost.
    fn why_more(&mut self, details: &[u8]) {
        if self.request.task.settings.reasons {
            self.request.log.record_parts(TAG, &[RECORD.as_bytes(), MORE.as_bytes(), b" ", details]);
        }
    }

    /// Records the names of a passed request's cookies, never their values, and the dialect of the
    /// VCL that could strip them.
    fn why_cookies(&mut self) {
        if !self.request.task.settings.reasons || !self.request.task.request.has("Cookie") {
            return;
        }
        let dialect = self.request.vcl.as_ref().map_or("4", |vcl| vcl.program.program().generation().name());
        let pieces = cookie_names(self.request.task.request.get_all("Cookie"));
        for piece in pieces {
            let mut details = format!("dialect={dialect} cookies=").into_bytes();
            details.extend_from_slice(&piece);
            self.why_more(&details);
        }
    }

    /// Records the cause of a lookup without a usable object.
    pub(super) fn why_miss(&mut self, cause: &MissCause) {
        let is_told = self.request.task.settings.reasons;
        let (reason, details) = match cause {
            MissCause::Absent(absence) if is_told => {
                return self.why_absent(absence);
            }
            MissCause::Absent(_) => (Reason::MissAbsent, String::new()),
            MissCause::Vary { other } if is_told => {
                let mut head = Message::new();
                let names = head.decode(other.head()).and_then(|()| head.get("Vary")).unwrap_or_default();
                let names = String::from_utf8_lossy(names).into_owned();
                self.why(Reason::MissVary, format!("headers={names}").as_bytes());
                let differing = semantics::vary::differing(other.vary(), &self.request.task.request, self.sameness());
                let differing: Vec<_> = differing.map(|name| String::from_utf8_lossy(name)).collect();
                return self.why_more(format!("differs={}", differing.join(", ")).as_bytes());
            }
            MissCause::Vary { .. } => (Reason::MissVary, String::new()),
            MissCause::Expired(seconds) => (Reason::MissExpired, format!("seconds={seconds:.3}")),
            MissCause::MustValidate => (Reason::MissMustValidate, String::new()),
            MissCause::Unwelcome => (Reason::MissUnwelcome, String::new()),
            MissCause::Banned { objects, ban } => {
                self.why(Reason::MissBanned, format!("bans={objects} ban-time={:.3}", ban.time).as_bytes());
                return self.why_more(format!("ban={}", ban.text).as_bytes());
            }
            MissCause::OtherParts => (Reason::MissPart, String::new()),
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

    /// Records that nothing is stored, and the fate of the last object.
    fn why_absent(&mut self, absence: &Absence) {
        let since = |time: f64| (self.request.task.life.received_at - time).max(0.0);
        let Some(removal) = &absence.last_removal else {
            let details = format!("gone={NEVER} seconds={}", Thousandths(since(absence.known_since)));
            return self.why(Reason::MissAbsent, details.as_bytes());
        };
        let mut details = format!("gone={} seconds={}", removal.reason.word(), Thousandths(since(removal.at)));
        if let Some(ban) = &removal.ban {
            let _ = write!(details, " ban-time={:.3}", ban.time);
        }
        self.why(Reason::MissAbsent, details.as_bytes());
        if let Some(ban) = &removal.ban {
            self.why_more(format!("ban={}", ban.text).as_bytes());
        }
    }

    /// Records that a stale object is served.
    pub(super) fn why_grace(&mut self, object: &Object) {
        let late = self.request.task.life.received_at - object.origin() - object.ttl();
        self.why(Reason::HitGrace, format!("seconds={late:.3}").as_bytes());
    }

    /// Records that the client accepts a stale object, if it is stale.
    #[cold]
    pub(super) fn why_welcome(&mut self, object: &Object) {
        let late = self.request.task.life.received_at - object.origin() - object.ttl();
        if late >= 0.0 {
            self.why(Reason::HitStaleWelcome, format!("seconds={late:.3}").as_bytes());
        }
    }
}

/// Names of cookies, split into pieces that fit into a record, with `; ` between names. Names
/// beyond [`WHY_COOKIES_MAX`] are replaced by `...`.
fn cookie_names<'a>(headers: impl Iterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let names = headers.flat_map(|header| header.split(|byte| *byte == b';')).map(|cookie| {
        let end = cookie.iter().position(|byte| *byte == b'=').unwrap_or(cookie.len());
        cookie[..end].trim_ascii()
    });
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    for (count, name) in names.filter(|name| !name.is_empty()).enumerate() {
        let is_last = count == WHY_COOKIES_MAX;
        let name = if is_last { b"..." } else { &name[..name.len().min(WHY_TEXT_BYTES_MAX)] };
        match pieces.last_mut() {
            Some(piece) if piece.len() + 2 + name.len() <= WHY_TEXT_BYTES_MAX => {
                piece.extend_from_slice(b"; ");
                piece.extend_from_slice(name);
            }
            _ => pieces.push(name.to_vec()),
        }
        if is_last {
            break;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookie_names_are_logged_in_pieces_that_fit_a_record() {
        let names = |headers: &[&[u8]]| cookie_names(headers.iter().copied());
        assert_eq!(names(&[b"a=secret; b = secret;c", b"; d=\"x; =nameless"]), [b"a; b; c; d".to_vec()]);
        assert!(names(&[b"", b" ; ;"]).is_empty());
        let many: Vec<u8> = (0..1000).flat_map(|number| format!("cookie{number}=secret; ").into_bytes()).collect();
        let pieces = names(&[&many]);
        assert!(pieces.iter().all(|piece| piece.len() <= WHY_TEXT_BYTES_MAX));
        let all = pieces.join(&b"; "[..]);
        assert_eq!(all.split(|byte| *byte == b';').count(), WHY_COOKIES_MAX + 1);
        assert!(all.ends_with(b"; ...") && !all.windows(6).any(|word| word == b"secret"));
        assert_eq!(names(&[&[b'x'; 5000]]), [vec![b'x'; WHY_TEXT_BYTES_MAX]]);
    }
}
