//! Lookup in the index: hit, miss, pass, or wait for another request's fetch and look up again.
//!
//! Comes from: Hash. Continues with: Hit, Miss or Pass; Finish if the connection breaks while the
//! request waits (`waiting.rs`). A waiting request keeps its place on the list until it has looked
//! up again. An object that was found may turn out at that moment to be too large to be kept; then
//! it has left the index, and the lookup is repeated.

use super::delivered::Delivered;
use super::waiting::Waited;
use super::{Run, Step};
use cache::{Lookup, LookupConditions, LookupRequest, Waiter};
use shm::log::decimal::{INTEGER_BYTES_MAX, SECONDS_BYTES_MAX, integer, seconds};
use std::cell::Cell;
use store::{BodyState, Object};
use surface::counter::Main;
use surface::parameter::debug;
use surface::reason::Reason;
use surface::tag::Tag;
use tokio::time::Instant;

/// The longest record of a hit: three whole numbers and three times.
const HIT_BYTES_MAX: usize = 3 * (INTEGER_BYTES_MAX + 1) + 3 * (SECONDS_BYTES_MAX + 1);

impl Run<'_> {
    pub(super) async fn lookup(&mut self) -> Step {
        let mut held: Option<Waiter> = None;
        // Start of the wait, and a flag that the client has sent something during the wait.
        let mut waiting: Option<(Instant, bool)> = None;
        loop {
            let answer = self.ask(held.as_ref());
            if answer.unchecked().is_some() && !Box::pin(self.check(&answer)).await {
                continue;
            }
            let has_waited = held.take().is_some();
            let step = match answer {
                Lookup::Hit(object) => {
                    let Some(mut object) = Delivered::new(object) else { continue };
                    if object.is_on_disk() && !Box::pin(self.prepare_on_disk(&mut object)).await {
                        continue;
                    }
                    self.request.task.life.reason = None;
                    if self.request.task.choices.request_directives.max_stale.is_some() {
                        self.why_welcome(&object);
                    }
                    self.found(object, false)
                }
                Lookup::Grace { object, fetch } => {
                    let Some(mut object) = Delivered::new(object) else { continue };
                    if object.is_on_disk() && !Box::pin(self.prepare_on_disk(&mut object)).await {
                        continue;
                    }
                    if self.is_legacy() {
                        self.found_in_grace(object, fetch)
                    } else {
                        self.request.task.found.busy =
                            fetch.filter(|_| !self.request.task.choices.request_directives.only_if_cached);
                        self.why_grace(&object);
                        self.found(object, true)
                    }
                }
                Lookup::HitForPass(_) | Lookup::HitForMiss { .. } | Lookup::Miss { .. } | Lookup::Wait(_)
                    if self.request.task.choices.request_directives.only_if_cached =>
                {
                    self.why(Reason::OnlyIfCached, b"");
                    self.synthesise(504, b"")
                }
                Lookup::HitForMiss { .. } | Lookup::Miss { .. }
                    if self.request.task.choices.request_directives.no_store =>
                {
                    self.why(Reason::PassNoStore, b"");
                    Step::Pass
                }
                Lookup::HitForPass(marker) => {
                    self.log_marker(Tag::HitPass, &marker);
                    self.why(Reason::HitForPass, b"");
                    self.request.task.found.is_hitpass = true;
                    Step::Pass
                }
                Lookup::HitForMiss { marker, busy, stale } => {
                    self.log_marker(Tag::HitMiss, &marker);
                    self.why(Reason::HitForMiss, b"");
                    let task = &mut self.request.task;
                    task.found.is_hitmiss = true;
                    task.found.busy = Some(busy);
                    task.found.stale = Some(stale.unwrap_or(marker));
                    Step::Miss
                }
                Lookup::Miss { cause, busy, stale, part } => {
                    // Otherwise vcl_hit has recorded the reason.
                    if !self.request.task.found.is_forced {
                        self.why_miss(&cause);
                    }
                    let task = &mut self.request.task;
                    task.found.busy = Some(busy);
                    task.found.stale = stale;
                    task.found.part = part;
                    Step::Miss
                }
                Lookup::Wait(waiter) => {
                    if self.request.task.settings.debug & debug::WAITINGLIST != 0 {
                        let vxid = self.request.task.life.vxid;
                        self.log().record_fmt(Tag::Debug, format_args!("on waiting list <0x{vxid:x}>"));
                    }
                    self.log().release();
                    self.request.rest();
                    let (since, has_heard) = waiting.get_or_insert_with(|| (Instant::now(), false));
                    match Box::pin(self.wait(&waiter, *since, has_heard)).await {
                        Waited::Turn => held = Some(waiter),
                        other => return self.after_wait(other, &waiter),
                    }
                    continue;
                }
            };
            if has_waited {
                self.request.task.found.has_waited = true;
                self.timestamp("Waitinglist");
            }
            return step;
        }
    }

    /// Checks the long objects in an answer that an earlier worker stored; `false` if one was
    /// damaged and is gone.
    async fn check(&self, answer: &Lookup) -> bool {
        while let Some(object) = answer.unchecked() {
            if !self.context.engine.cache.check(object).await {
                return false;
            }
        }
        true
    }

    /// Looks the key up, with or without a preceding wait.
    #[inline(always)]
    fn ask(&mut self, waiter: Option<&Waiter>) -> Lookup {
        let grace_cap = if self.is_legacy() { self.legacy_grace_cap() } else { self.request.task.choices.grace_cap };
        let parts = self.serves_parts();
        let conditions = if self.follows_rfc() { Some(self.conditions(waiter)) } else { None };
        let sameness = self.sameness();
        let request = &mut *self.request;
        let is_last_use_read = request.vcl.as_ref().is_some_and(|vcl| vcl.reads_last_use);
        let unused_seconds = Cell::new(0.0);
        let task = &request.task;
        let log = &mut request.log;
        let lookup_request = LookupRequest {
            key: &task.life.digest,
            now: task.life.received_at,
            request: &task.request,
            ttl_cap: task.choices.ttl_cap,
            grace_cap,
            always_miss: task.choices.always_miss || task.found.is_forced,
            ignore_busy: task.choices.ignore_busy,
            ignore_vary: task.choices.ignore_vary,
            gzip_support: task.settings.gzip_support,
            parts,
            sameness,
            conditions,
            vary_notice: task.settings.vary_notice,
            unused_seconds: is_last_use_read.then_some(&unused_seconds),
        };
        let cache = &self.context.engine.cache;
        let answer =
            cache.lookup(&lookup_request, &self.context.counters, &mut |tag, payload| log.record(tag, payload));
        request.task.found.unused_seconds = unused_seconds.get();
        answer
    }

    /// True if the request may be answered with a stored part.
    pub(super) fn serves_parts(&self) -> bool {
        let task = &self.request.task;
        self.follows_rfc() && task.settings.range_support && !task.life.is_head
    }

    /// The lookup conditions of RFC 9111 and of the client's request directives.
    fn conditions(&self, waiter: Option<&Waiter>) -> LookupConditions {
        let task = &self.request.task;
        LookupConditions {
            max_stale: task.choices.request_directives.max_stale.unwrap_or(0.0),
            min_fresh: task.choices.request_directives.min_fresh.unwrap_or(0.0),
            granted: waiter.map_or(0, Waiter::granted),
            selects_language: task.settings.vary_language_select,
        }
    }

    pub(super) fn found(&mut self, object: Delivered, is_grace: bool) -> Step {
        self.log_hit(&object);
        let task = &mut self.request.task;
        task.found.is_hit = true;
        task.found.is_grace_hit = is_grace;
        task.found.take_up(object);
        Step::Hit
    }

    /// Logs `vxid ttl grace keep`, and the progress of the fetch if it is still running.
    fn log_hit(&mut self, object: &Object) {
        if self.request.log.is_masked(Tag::Hit) {
            return;
        }
        let task = &self.request.task;
        let lifetime = task.choices.ttl_cap.map_or(object.ttl(), |cap| cap.min(object.ttl()));
        // Assembled here, since a record of a dozen parts costs several times as much as one of one
        // part.
        let mut text = [0; HIT_BYTES_MAX];
        let mut length = integer(object.vxid(), &mut text);
        let left = object.origin() + lifetime - task.life.received_at;
        for value in [left, object.grace(), object.keep()] {
            text[length] = b' ';
            length += 1;
            if let Some(room) = text[length..].first_chunk_mut() {
                length += seconds(value, room);
            }
        }
        if object.state() == BodyState::Writing {
            for bytes in [Some(object.available_bytes()), object.promised_bytes()].into_iter().flatten() {
                text[length] = b' ';
                length += 1 + integer(bytes, &mut text[length + 1..]);
            }
        }
        self.request.log.record(Tag::Hit, &text[..length]);
    }

    fn log_marker(&mut self, tag: Tag, marker: &Object) {
        let left = marker.origin() + marker.ttl() - self.request.task.life.received_at;
        self.log().record_fmt(tag, format_args!("{} {left:.6}", marker.vxid()));
    }
}

/// The counters of a hit, used once VCL has accepted it.
impl Run<'_> {
    pub(super) fn count_hit(&self) {
        self.context.count(Main::CacheHit);
        if self.request.task.found.is_grace_hit {
            self.context.count(Main::CacheHitGrace);
        }
    }
}
