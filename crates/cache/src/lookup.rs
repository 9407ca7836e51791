//! Lookup: the decision about a request, given the objects stored under its key.
//!
//! ```text
//! fresh ─────────────────────▶ Hit │ HitForPass │ HitForMiss
//! stale marker, hit-for-miss ▶ HitForMiss
//! no fetch under way ────────▶ Grace, with the fetch │ Miss, with the stale object
//! a fetch is under way ──────▶ Grace │ Wait
//! ```
//!
//! One shard's lock is held to the end; a hit allocates nothing. Compat: the steps are those of
//! Varnish 7.1 (interoperability notes §9.3), except that an object fetched before a ban and
//! published after it is tested against that ban. Next file: `busy.rs`.

use crate::ban::Ban;
use crate::digest::Digest;
use crate::lookup_conditions::Worth;
use crate::lookup_request::LookupRequest;
use crate::parts::{self, PassedOver, Use, Want};
use crate::removal_history::{Absence, BanNote, RemovalCause};
use crate::shard::Shard;
use crate::{Busy, Cache, Inner, USE_UNITS, Waiter};
use shm::counters::MainCounters;
use smallvec::SmallVec;
use std::sync::Arc;
use store::{Object, ObjectFlags};
use surface::counter::Main;
use surface::reason::RemovalReason;
use surface::tag::Tag;

impl<'a> LookupRequest<'a> {
    fn want(&self) -> Want<'a> {
        Want { parts: self.parts, request: self.request, now: self.now }
    }
}

/// The answer.
#[derive(Debug)]
pub enum Lookup {
    /// Fresh. Its hit count was incremented.
    Hit(Arc<Object>),
    /// Expired, within grace.
    Grace {
        /// The stale object; its hit count was incremented.
        object: Arc<Object>,
        /// Given only to the request that must start the background fetch.
        fetch: Option<Busy>,
    },
    /// A hit-for-pass marker.
    HitForPass(Arc<Object>),
    /// A hit-for-miss marker: fetch, without waiting for others.
    HitForMiss {
        /// The marker.
        marker: Arc<Object>,
        /// With lookup conditions: a response that can be validated. The marker was stored for an
        /// error that followed it.
        stale: Option<Arc<Object>>,
        /// For publishing the response.
        busy: Busy,
    },
    /// Nothing usable: fetch.
    Miss {
        /// The reason why nothing was usable.
        cause: MissCause,
        /// For publishing the response.
        busy: Busy,
        /// An expired object within keep, for a conditional request.
        stale: Option<Arc<Object>>,
        /// A fresh part (206) of the response, which the fetch may complete.
        part: Option<Arc<Object>>,
    },
    /// Another request is already fetching it.
    Wait(Waiter),
}

impl Lookup {
    /// An object in the answer that an earlier process stored, too long to be checked during a
    /// lookup. It has to be checked ([`Cache::check`]) before it is used; then there may be another
    /// one. If it is damaged, repeat the lookup.
    #[must_use]
    #[inline]
    pub fn unchecked(&self) -> Option<&Arc<Object>> {
        let (object, other) = match self {
            Lookup::Hit(object) | Lookup::Grace { object, .. } => (Some(object), None),
            Lookup::HitForMiss { stale, .. } => (stale.as_ref(), None),
            Lookup::Miss { stale, part, .. } => (stale.as_ref(), part.as_ref()),
            Lookup::HitForPass(_) | Lookup::Wait(_) => (None, None),
        };
        object.filter(|object| object.is_unchecked()).or_else(|| other.filter(|object| object.is_unchecked()))
    }
}

/// The reason why no stored object could be used.
#[derive(Clone, Debug)]
pub enum MissCause {
    /// Nothing is stored; contains the removal of the last object of the key.
    Absent(Absence),
    /// Only variants for other request headers are stored.
    Vary {
        /// An object of another variant; its Vary names the headers.
        other: Arc<Object>,
    },
    /// The stored objects are past their time to live and grace; the seconds count from the end of
    /// the time to live.
    Expired(f64),
    /// The stored object must be validated before every use.
    MustValidate,
    /// The stored object is fresh, but the request demands a fresher or validated one.
    Unwelcome,
    /// The stored objects have just been removed by a ban.
    Banned {
        /// Number of objects that the ban removed.
        objects: usize,
        /// The ban; the last one if there were several.
        ban: BanNote,
    },
    /// The stored objects are parts (206), and the request needs something else.
    OtherParts,
    /// `req.hash_always_miss`.
    Forced,
    /// `req.hash_ignore_busy` is set and another request is fetching it.
    IgnoredBusy,
}

/// The objects found among the variants of a key.
#[derive(Default)]
struct FoundVariants {
    fresh: Option<Arc<Object>>,
    /// The youngest of the expired variants.
    stale: Option<Arc<Object>>,
    /// Slots of objects that must be removed, with the ban that hit them; without a ban, their
    /// bodies have failed.
    doomed: SmallVec<[(u32, Option<Arc<Ban>>); 4]>,
    mismatched: u64,
    /// Number of objects that a ban has just removed.
    banned: usize,
    /// The last such ban.
    ban: Option<Arc<Ban>>,
    /// A variant that did not match: shows which headers the response will vary on.
    other_variant: Option<Arc<Object>>,
    /// Parts that don't contain the requested range; `None` = there were none.
    parts: Option<Box<PassedOver>>,
}

impl Cache {
    /// Decides about a request. Counts `cache_hitpass`, `cache_hitmiss` and `busy_sleep` in
    /// `counters` (all others come with [`Cache::counters`]); the caller writes the records `Hit`,
    /// `HitPass` and `HitMiss`, `log` gets `ExpBan` and `Notice`.
    pub fn lookup(
        &self,
        request: &LookupRequest<'_>,
        counters: &MainCounters,
        log: &mut dyn FnMut(Tag, &[u8]),
    ) -> Lookup {
        let inner = &*self.inner;
        inner.see(request.now);
        let digest = inner.digest(request.key);
        let mut removed = SmallVec::<[Arc<Object>; 4]>::new();
        let mut shard = inner.lock(&digest);
        let found =
            if request.always_miss { FoundVariants::default() } else { inner.look(&shard, &digest, request, log) };
        for (slot, ban) in &found.doomed {
            let cause = ban.as_deref().map_or(RemovalCause::Other(RemovalReason::Dropped), RemovalCause::Banned);
            removed.extend(inner.discard(&mut shard, &digest, *slot, cause));
        }
        let answer = self.answer(&mut shard, &digest, request, found, counters);
        if !matches!(answer, Lookup::Hit(_)) || !removed.is_empty() {
            shard.settle(&inner.stores);
        }
        drop(shard);
        // The memory of removed objects is freed here, outside the lock.
        for removed in removed {
            inner.log_removal(&removed);
        }
        answer
    }

    fn answer(
        &self,
        shard: &mut Shard,
        digest: &Digest,
        request: &LookupRequest<'_>,
        found: FoundVariants,
        counters: &MainCounters,
    ) -> Lookup {
        let inner = &*self.inner;
        let FoundVariants { fresh, stale, other_variant, banned, ban, parts, .. } = found;
        let new_busy = |shard: &mut Shard, stale_or_other: Option<&Arc<Object>>| {
            let vary = stale_or_other.map_or(&[][..], |object| object.vary());
            let expected = semantics::vary::of_request(vary, request.request);
            Busy::new(self, shard, digest, expected.unwrap_or_default()).bounded(request.conditions.is_some())
        };
        if let Some(object) = fresh {
            let flags = object.flags();
            if flags.has(ObjectFlags::HIT_FOR_PASS) {
                inner.used(&object, request, 0);
                counters.add(Main::CacheHitpass, 1);
                return Lookup::HitForPass(object);
            }
            if flags.has(ObjectFlags::HIT_FOR_MISS) {
                inner.used(&object, request, 0);
                counters.add(Main::CacheHitmiss, 1);
                return Lookup::HitForMiss { busy: new_busy(shard, Some(&object)), marker: object, stale };
            }
            inner.used(&object, request, 1);
            return Lookup::Hit(object);
        }
        if let Some(marker) = stale.as_ref().filter(|stale| stale.flags().has(ObjectFlags::HIT_FOR_MISS)) {
            counters.add(Main::CacheHitmiss, 1);
            let busy = new_busy(shard, Some(marker));
            return Lookup::HitForMiss { busy, marker: Arc::clone(marker), stale: None };
        }
        let in_grace = stale.as_ref().is_some_and(|stale| is_in_grace(stale, request));
        let is_busy = !request.always_miss && !request.ignore_busy && {
            shard.existing_head(digest).is_some_and(|head| {
                head.busy
                    .iter()
                    .filter(|mark| parts::concerns(mark, request.want(), stale.as_deref()))
                    .any(|mark| request.ignore_vary || is_variant(&mark.vary, request))
            })
        };
        match (stale, in_grace, is_busy) {
            (Some(object), true, is_busy) => {
                inner.used(&object, request, 1);
                let vary = || object.vary().to_vec();
                let fetch =
                    (!is_busy).then(|| Busy::new(self, shard, digest, vary()).bounded(request.conditions.is_some()));
                Lookup::Grace { object, fetch }
            }
            (stale, _, true) => {
                counters.add(Main::BusySleep, 1);
                let stale = stale.filter(|stale| crate::removal::dies_at(stale) >= request.now);
                Lookup::Wait(Waiter::new(self, shard, digest, stale))
            }
            (stale, _, false) => {
                let is_ignored =
                    request.ignore_busy && shard.existing_head(digest).is_some_and(|head| !head.busy.is_empty());
                let cause = match (&stale, &ban, &other_variant) {
                    _ if request.always_miss => MissCause::Forced,
                    (Some(stale), ..) => not_fresh(stale, request),
                    (None, Some(ban), _) => MissCause::Banned { objects: banned, ban: BanNote::of(ban) },
                    _ if is_ignored => MissCause::IgnoredBusy,
                    (None, None, _) if parts.as_ref().is_some_and(|parts| parts.are_any()) => MissCause::OtherParts,
                    (None, None, Some(other)) => MissCause::Vary { other: Arc::clone(other) },
                    (None, None, None) => MissCause::Absent(shard.removal_history.of(digest)),
                };
                let stale = stale.filter(|stale| crate::removal::dies_at(stale) >= request.now);
                let busy = new_busy(shard, stale.as_ref().or(other_variant.as_ref()));
                parts::note_range(shard, digest, request.want(), stale.as_deref());
                Lookup::Miss { cause, busy, stale, part: parts.and_then(|parts| parts.into_best()) }
            }
        }
    }
}

/// The reason why a stored object cannot be used as it is.
fn not_fresh(object: &Object, request: &LookupRequest<'_>) -> MissCause {
    if request.conditions.is_some() && object.flags().has(ObjectFlags::REVALIDATE) {
        return MissCause::MustValidate;
    }
    let late = request.now - object.origin() - object.ttl();
    // Only with lookup conditions an object can be refused before its time.
    if late < 0.0 { MissCause::Unwelcome } else { MissCause::Expired(late) }
}

/// True if a variant is the one for this request.
fn is_variant(key: &[u8], request: &LookupRequest<'_>) -> bool {
    semantics::vary::matches(key, request.request, request.gzip_support, request.sameness)
}

/// True if a stale object may still be served. Compat: `req.ttl` moves the end of grace forward, as
/// `EXP_Ttl_grace` does.
fn is_in_grace(object: &Object, request: &LookupRequest<'_>) -> bool {
    if request.conditions.is_some_and(|conditions| !conditions.allow_grace(object, request)) {
        return false;
    }
    let grace = request.grace_cap.map_or(object.grace(), |cap| object.grace().min(cap));
    // With lookup conditions `req.ttl` is the client's demand, which was examined above.
    let ttl_cap = request.ttl_cap.filter(|_| request.conditions.is_none());
    object.origin() + ttl_cap.map_or(object.ttl(), |cap| object.ttl().min(cap)) + grace >= request.now
}

impl Inner {
    /// Looks through the variants under a key, newest first, until one is fresh.
    fn look(
        &self,
        shard: &Shard,
        digest: &Digest,
        request: &LookupRequest<'_>,
        log: &mut dyn FnMut(Tag, &[u8]),
    ) -> FoundVariants {
        let mut found = FoundVariants::default();
        let newest_ban = self.bans.newest();
        let mut youngest = f64::NEG_INFINITY;
        let others_max = self.parameters.ban_any_variant.load(std::sync::atomic::Ordering::Relaxed);
        let mut others_tested = 0;
        for slot in shard.variants(shard.find(digest)) {
            let Some(object) = shard.slots.get(slot) else { continue };
            if !object.is_usable() {
                if object.is_unchecked() {
                    let said = format!("Stored object {} is damaged and was removed", object.vxid());
                    log(Tag::Error, said.as_bytes());
                }
                found.doomed.push((slot, None));
                continue;
            }
            let ttl = object.ttl();
            if ttl <= 0.0 && request.conditions.is_none() {
                continue;
            }
            let is_other = !request.ignore_vary
                && !is_variant(object.vary(), request)
                && request.conditions.is_none_or(|conditions| !conditions.speaks(object, request));
            let is_tested = object.ban() != newest_ban && (!is_other || others_tested < others_max);
            others_tested += u64::from(is_other && is_tested);
            if is_tested && let Some(ban) = self.banned_by(object, request) {
                log(Tag::ExpBan, format!("{} banned lookup", object.vxid()).as_bytes());
                found.banned += 1;
                found.ban = Some(Arc::clone(&ban));
                found.doomed.push((slot, Some(ban)));
                continue;
            }
            if is_other {
                found.mismatched += 1;
                if found.other_variant.is_none() {
                    found.other_variant = Some(Arc::clone(object));
                }
                continue;
            }
            if object.flags().has(ObjectFlags::PARTIAL) {
                match found.parts.get_or_insert_default().judge(object, request.want()) {
                    Use::Answers => {}
                    Use::PassedOver => continue,
                    Use::Surplus => {
                        found.doomed.push((slot, None));
                        continue;
                    }
                }
            }
            let origin = object.origin();
            if let Some(conditions) = &request.conditions {
                let is_marker = object.flags().has(ObjectFlags::HIT_FOR_MISS);
                match (conditions.worth(object, request), is_marker) {
                    (Worth::Answer, false) if found.fresh.is_none() => {
                        found.fresh = Some(Arc::clone(object));
                        break;
                    }
                    // A response behind a marker may still be validated.
                    (Worth::Answer | Worth::Stale, false) if origin > youngest => {
                        youngest = origin;
                        found.stale = Some(Arc::clone(object));
                    }
                    (Worth::Answer, true) => _ = found.fresh.get_or_insert_with(|| Arc::clone(object)),
                    (Worth::Stale, true) => _ = found.stale.get_or_insert_with(|| Arc::clone(object)),
                    (..) => {}
                }
                continue;
            }
            if origin + request.ttl_cap.map_or(ttl, |cap| ttl.min(cap)) > request.now {
                found.fresh = Some(Arc::clone(object));
                break;
            }
            let has_expired = origin + ttl <= request.now;
            if has_expired && origin > youngest && !object.flags().has(ObjectFlags::HIT_FOR_PASS) {
                youngest = origin;
                found.stale = Some(Arc::clone(object));
            }
        }
        if request.vary_notice > 0 && found.mismatched >= request.vary_notice {
            log(Tag::Notice, format!("vsl: High number of variants ({})", found.mismatched).as_bytes());
        }
        found
    }

    /// The ban that hits an object, among those it has not been tested against.
    fn banned_by(&self, object: &Object, request: &LookupRequest<'_>) -> Option<Arc<Ban>> {
        self.bans.check(object, request.request, request.now, self.idle_seconds(object, request.now))
    }

    /// Records that a lookup found an object. The shard's lock is held.
    fn used(&self, object: &Object, request: &LookupRequest<'_>, hits: u32) {
        let now = self.use_units(request.now);
        let units = match request.unused_seconds {
            None => self.parameters.lru_interval.get() * USE_UNITS,
            Some(seconds) => {
                // Units wrap, and clocks of event loops differ by a little.
                let units = now.wrapping_sub(object.last_use()).cast_signed().max(0);
                seconds.set(f64::from(units) / USE_UNITS);
                0.0
            }
        };
        // The cast saturates; at least one unit, so that several hits at one moment do not each
        // count as a move.
        let interval = (units as u32).max(1);
        if object.touch(now, hits, interval) {
            self.totals.add(Main::NLruMoved, 1);
        }
    }
}
