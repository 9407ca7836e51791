//! Cacheability: the rules of RFC 9111 about a response, applied before VCL sees it
//! (`http_policy=rfc`).
//!
//! VCL has the final decision. A ttl that it sets cancels a refusal for lack of one, and a grace
//! that it sets applies even to a response that must not be served stale. A ttl alone never shares
//! a response that is for one client (`semantics::rfc::Sharing`): that requires `set
//! beresp.uncacheable = false`, which cancels any refusal. Next file: `storage.rs`.

use super::{Fetch, FetchMode};
use message::Message;
use semantics::HttpPolicy;
use semantics::filter::{Class, copy_filtered};
use semantics::rfc::{Cacheability, Refusal, Settings, Times, answers_get, judge, unkeyed};
use store::ObjectFlags;
use surface::reason::Reason;
use surface::tag::Tag;

impl Fetch {
    /// True if the VCL of this request was loaded under `http_policy=rfc`.
    pub(super) fn follows_rfc(&self) -> bool {
        self.task.order.vcl.policy == HttpPolicy::Rfc
    }

    /// Judges the response. A response that a 304 has made valid again is judged with the fields it
    /// has now; VCL's settings of its lifetime stay.
    pub(super) fn judge(&mut self) {
        let (bereq, attempt) = (&self.task.bereq, &self.task.attempt);
        let times = Times { requested: attempt.requested, received: attempt.responded };
        let settings = rfc_settings(&self.task.order.parameters);
        let cacheability = judge(&attempt.beresp, bereq.has("Authorization"), times, &settings);
        let Cacheability { lifetime, refusal, must_validate, never_stale, unshared, sharing } = cacheability;
        // VCL may have changed the request since the origin answered 304.
        let earlier = attempt.verdict.sharing.filter(|_| attempt.verdict.was_304);
        let sharing = earlier.map_or_else(|| sharing.asked_by(bereq), |earlier| sharing.asked_as(earlier));
        let unkeyed = unkeyed(bereq, &attempt.beresp);
        let is_odd = unkeyed.is_some_and(|unkeyed| unkeyed.is_odd);
        let lacks_content = self.lacks_content();
        let refusal = match unkeyed {
            _ if lacks_content => Some(Refusal::NoContent),
            Some(_) => Some(Refusal::Unkeyed),
            None => refusal,
        };
        let verdict = &mut self.task.attempt.verdict;
        if !verdict.was_304 {
            *verdict = super::task::Verdict { do_stream: true, ..Default::default() };
        }
        verdict.origin = lifetime.origin;
        if !verdict.is_ttl_set {
            (verdict.ttl, verdict.grace, verdict.keep) = (lifetime.ttl, lifetime.grace, lifetime.keep);
        }
        (verdict.refusal, verdict.must_validate, verdict.never_stale) = (refusal, must_validate, never_stale);
        verdict.unshared = unshared;
        verdict.sharing = Some(sharing);
        // The response to a usual GET may be stored, so that requests that wait for it need not be
        // sent one by one.
        verdict.is_unremembered = lacks_content || is_odd;
        // A 304 that VCL still has to handle is not the response that is stored.
        if self.task.attempt.beresp.status() != 304 || self.task.attempt.verdict.was_304 {
            let mut payload = Vec::with_capacity(96);
            semantics::log_ttl_rfc(&lifetime, times.received, !self.task.is_uncacheable(), &mut payload);
            self.log.record(Tag::TTL, &payload);
        }
    }

    /// True if the response is one to HEAD, although the fetch is for all: VCL has changed the
    /// method. A response that a 304 has made valid has the content that is stored. Source: RFC
    /// 9111 §4.
    fn lacks_content(&self) -> bool {
        self.task.bereq.method() == b"HEAD"
            && self.task.order.mode != FetchMode::Pass
            && !self.task.attempt.verdict.was_304
    }

    /// The fields that only the requesting client may get; `None` if it gets them with the others,
    /// or there are none.
    pub(super) fn unshared_fields(&self) -> Option<Box<Message>> {
        let names = &self.task.attempt.verdict.unshared;
        if names.is_empty() || self.task.is_uncacheable() {
            return None;
        }
        let mut fields = Message::new();
        copy_filtered(&self.task.attempt.beresp, &mut fields, Class::StorePass);
        fields.retain(|header| names.contain(header.name()));
        (fields.header_count() > 0).then(|| Box::new(fields))
    }

    /// The status with which the origin answered; `None` when the response was made here.
    pub(super) fn origin_status(&self) -> Option<u16> {
        let attempt = &self.task.attempt;
        let status = if attempt.verdict.was_304 { 304 } else { attempt.beresp.status() };
        (!attempt.is_synthetic).then_some(status % 1000)
    }

    /// The response to a POST may be the one that a later GET would get: reserves the right to
    /// store it, while bans and invalidations that arrive in between can still be matched.
    pub(super) fn expect_answer_to_get(&mut self) {
        if self.follows_rfc() && self.task.order.mode == FetchMode::Pass && self.task.bereq.method() == b"POST" {
            self.task.life.promise = Some(self.context.engine.cache.promise_unawaited(&self.task.order.digest));
        }
    }

    /// True if the response to a POST is stored for a later GET. A response with a content coding
    /// is not stored: the client's request chose the coding. Source: RFC 9110 §9.3.3.
    pub(super) fn adopt(&mut self) -> bool {
        self.disown();
        let (bereq, beresp) = (&self.task.bereq, &self.task.attempt.beresp);
        let is_one = self.task.life.promise.is_some()
            && !self.task.order.is_hit_for_pass
            && !beresp.has("Content-Encoding")
            && answers_get(bereq, beresp, &rfc_settings(&self.task.order.parameters));
        if is_one {
            let life = &mut self.task.life;
            (life.busy, life.uncacheable, life.answers_get) = (life.promise.take(), false, true);
            self.draw_storage();
        }
        is_one
    }

    /// Removes the object that an earlier response to a POST stored for a GET: it is not valid for
    /// other requests any more.
    pub(super) fn disown(&mut self) {
        let life = &mut self.task.life;
        if life.answers_get {
            (life.promise, life.uncacheable, life.answers_get) = (life.busy.take(), true, false);
        }
    }

    /// The flags of an object that follow from the evaluation and from VCL.
    pub(super) fn judged_flags(&self) -> ObjectFlags {
        let verdict = &self.task.attempt.verdict;
        let mut flags = ObjectFlags::NONE;
        if verdict.must_validate_always() {
            flags |= ObjectFlags::REVALIDATE;
        }
        if verdict.is_never_stale() {
            flags |= ObjectFlags::NEVER_STALE;
        }
        flags
    }
}

/// Parameters that decide about storing.
pub(super) fn rfc_settings(parameters: &surface::parameter::Parameters) -> Settings<'_> {
    Settings {
        keep: parameters.default_keep + parameters.default_grace,
        targets: &parameters.cache_control_targets,
        stores_set_cookie: parameters.store_set_cookie,
    }
}

/// The reason to record for a refusal.
pub(super) fn reason_of(refusal: Refusal) -> Reason {
    match refusal {
        Refusal::NoStore => Reason::NotStoredNoStore,
        Refusal::Private => Reason::NotStoredPrivate,
        Refusal::NotUnderstood => Reason::NotStoredNotUnderstood,
        Refusal::Authorization => Reason::NotStoredAuthorization,
        Refusal::SetCookie => Reason::NotStoredSetCookie,
        Refusal::ResponseCookie => Reason::NotStoredResponseCookie,
        Refusal::RequestCookie => Reason::NotStoredRequestCookie,
        Refusal::NoCache => Reason::NotStoredNoCache,
        Refusal::NotCacheable => Reason::NotStoredNoLifetime,
        Refusal::Useless => Reason::NotStoredUseless,
        Refusal::Unkeyed => Reason::NotStoredUnkeyed,
        Refusal::NoContent => Reason::NotStoredNoContent,
        Refusal::Marked => Reason::NotStoredMarked,
        Refusal::Differs => Reason::NotStoredDiffers,
    }
}
