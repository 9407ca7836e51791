//! Judgement: what RFC 9111 says about a response, before VCL sees it (`http_policy=rfc`).
//!
//! VCL has the last word: a ttl that it sets counts even for what must be validated, a grace even for what must not be served
//! stale, a ttl takes back a refusal for want of one, and `set beresp.uncacheable = false` any. Next file: `storage.rs`.

use super::{Fetch, FetchMode};
use message::Message;
use semantics::HttpPolicy;
use semantics::filter::{Class, copy_filtered};
use semantics::rfc::{Judgement, Refusal, Settings, Times, answers_get, judge};
use store::ObjectFlags;
use surface::reason::Reason;
use surface::tag::Tag;

impl Fetch {
    /// Whether the VCL of this request was loaded under `http_policy=rfc`.
    pub(super) fn follows_rfc(&self) -> bool {
        self.task.order.vcl.policy == HttpPolicy::Rfc
    }

    /// Judges the response. One that a 304 has made valid again is judged with the fields it has now; what VCL has already
    /// said about its lifetime stays.
    pub(super) fn judge(&mut self) {
        let (bereq, attempt) = (&self.task.bereq, &self.task.attempt);
        let times = Times { requested: attempt.requested, received: attempt.responded };
        let settings = rfc_settings(&self.task.order.parameters);
        let judgement = judge(&attempt.beresp, bereq.has("Authorization"), times, &settings);
        let Judgement { lifetime, refusal, must_validate, never_stale, unshared } = judgement;
        let refusal = self.lacks_content().then_some(Refusal::NoContent).or(refusal);
        // A 304 that VCL has yet to deal with is not what is stored.
        if attempt.beresp.status() != 304 || attempt.verdict.was_304 {
            let is_cacheable = !self.task.life.uncacheable && refusal.is_none();
            let mut payload = Vec::with_capacity(96);
            semantics::log_ttl_rfc(&lifetime, times.received, is_cacheable, &mut payload);
            self.log.record(Tag::TTL, &payload);
        }
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
        // What a GET would bring may be stored, so that those who wait for it need not ask alone.
        verdict.is_unremembered = refusal == Some(Refusal::NoContent);
    }

    /// Whether the response is one to HEAD, although the fetch is for all: VCL has changed the method. What a 304 has made valid again has
    /// the content that is stored. Source: RFC 9111 §4.
    fn lacks_content(&self) -> bool {
        self.task.bereq.method() == b"HEAD"
            && self.task.order.mode != FetchMode::Pass
            && !self.task.attempt.verdict.was_304
    }

    /// The fields that only the client that asked may get; `None` when it gets them with the others, or there are none.
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

    /// A POST may be answered by what a later GET would get: reserves the right to store that, while bans and invalidations
    /// that come meanwhile can still be known.
    pub(super) fn expect_answer_to_get(&mut self) {
        if self.follows_rfc() && self.task.order.mode == FetchMode::Pass && self.task.bereq.method() == b"POST" {
            self.task.life.promise = Some(self.context.engine.cache.promise_unawaited(&self.task.order.digest));
        }
    }

    /// Whether the response to a POST is stored for a later GET. One with a coding is not: the client's request chose that.
    /// Source: RFC 9110 §9.3.3.
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

    /// What was stored for a GET of an earlier response to a POST is for nobody else now.
    pub(super) fn disown(&mut self) {
        let life = &mut self.task.life;
        if life.answers_get {
            (life.promise, life.uncacheable, life.answers_get) = (life.busy.take(), true, false);
        }
    }

    /// The flags of an object that follow from the judgement and what VCL made of it.
    pub(super) fn judged_flags(&self) -> ObjectFlags {
        let verdict = &self.task.attempt.verdict;
        let mut flags = ObjectFlags::NONE;
        if verdict.must_validate && !verdict.is_ttl_set {
            flags |= ObjectFlags::REVALIDATE;
        }
        // The policy gives no grace to what must not be stale: if there is one, VCL set it.
        if verdict.never_stale && verdict.grace <= 0.0 {
            flags |= ObjectFlags::NEVER_STALE;
        }
        flags
    }
}

/// What the parameters say about storing.
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
        Refusal::NotCacheable => Reason::NotStoredNoLifetime,
        Refusal::Useless => Reason::NotStoredUseless,
        Refusal::NoContent => Reason::NotStoredNoContent,
    }
}
