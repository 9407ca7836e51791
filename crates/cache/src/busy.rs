//! One fetch for many requests: the right to publish, and the waiting list.
//!
//! ```text
//! Wait ──publish, or Busy dropped──▶ rush_exponent waiters woken ──each, when done──▶ as many more
//! ```
//!
//! A waiter is parked, woken or gone, in one atomic; the task that wakes it pops it under the
//! shard's lock. A woken [`Waiter`] passes the wake on when it is dropped, whether or not its task
//! came back to look up again, so a cancelled request does not hold up others. It does not pass it
//! on when that would be useless: when a new fetch is under way and nothing is stored yet.
//!
//! *Invariant:* there is one fetch per busy key, unless VCL says otherwise (hit-for-miss,
//! hit-for-pass, `hash_ignore_busy`).

use crate::digest::Digest;
use crate::lookup_conditions::identity;
use crate::removal_history::RemovalCause;
use crate::shard::{BusyMark, Head, Shard, UNOWNED};
use crate::tag::names_of;
use crate::waiting::{GONE, PARKED, WOKEN, Waiting};
use crate::{Cache, Inner};
use shm::locks::ClassMutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use store::{BodyState, Object};
use surface::counter::{LockClass, Main};
use surface::limits::VARIANTS_MAX;
use surface::reason::RemovalReason;
use tokio::sync::Notify;

/// The right to publish a response under a key, while others wait. Dropping it without `publish`
/// means that the fetch failed and wakes the waiters. Keep it until the fetch ends: if the
/// published object has failed by then, it leaves the index.
pub struct Busy {
    cache: Cache,
    digest: Digest,
    number: u64,
    /// The newest ban when the fetch began: the response may be older than any later one.
    ban: u64,
    /// The key may have at most [`VARIANTS_MAX`] objects.
    is_bounded: bool,
    /// The object that waiting requests may use (`lookup_conditions::identity`); 0 = none.
    granted: AtomicU64,
    published: ClassMutex<Option<Option<Arc<Object>>>>,
}

impl std::fmt::Debug for Busy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Busy").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Cache {
    /// Grants the right to publish under a key a response that another kind of request may bring
    /// (RFC 9110 §9.3.3). No request waits for it; bans and invalidations from now on hit the
    /// published object.
    #[must_use]
    pub fn promise_unawaited(&self, key: &[u8; 32]) -> Busy {
        let digest = self.inner.digest(key);
        let mut shard = self.inner.lock(&digest);
        Busy::new(self, &mut shard, &digest, UNOWNED.to_vec()).bounded(true)
    }
}

impl Busy {
    /// Marks a key as being fetched.
    pub(crate) fn new(cache: &Cache, shard: &mut Shard, digest: &Digest, vary: Vec<u8>) -> Busy {
        let inner = &cache.inner;
        let number = inner.next_busy.fetch_add(1, Ordering::Relaxed);
        let ban = inner.bans.refer_to_newest();
        let (head, is_new) = shard.make_head(digest);
        head.busy.push(BusyMark { number, vary, range: Box::default(), is_outdated: false });
        inner.totals.add(Main::NObjectcore, 1);
        inner.totals.add(Main::NObjecthead, u64::from(is_new));
        Busy {
            cache: cache.clone(),
            digest: *digest,
            number,
            ban,
            is_bounded: false,
            granted: AtomicU64::new(0),
            published: ClassMutex::new(LockClass::Busyobj, None),
        }
    }

    /// The same, with or without a bound on the number of variants.
    pub(crate) fn bounded(mut self, is_bounded: bool) -> Busy {
        self.is_bounded = is_bounded;
        self
    }

    /// Lets waiting requests use an object that is stored already, when the fetch ends without a
    /// new one.
    pub fn grant(&self, object: &Object) {
        self.granted.store(identity(object), Ordering::Relaxed);
    }

    /// Puts the object (streaming or complete) into the index and wakes waiters. Only the first
    /// call counts. An object with another key or a passing one only ends the waiting, and so does
    /// one that a newer ban on obj.* already hits.
    pub fn publish(&self, object: &Arc<Object>) {
        let mut published = self.published.lock();
        if published.is_some() {
            return;
        }
        let inner = &*self.cache.inner;
        let is_ours = !object.is_passing() && inner.digest_of_object(object) == self.digest;
        let mut shard = inner.lock(&self.digest);
        let stays = is_ours
            && !object.is_removed()
            && !self.is_outdated(&mut shard)
            && !inner.arrivals.hit(self.ban, || names_of(object).collect())
            && inner.bans.accept(object, self.ban, inner.recent());
        let mut crowded_out = None;
        if stays {
            crowded_out = self.make_room(&mut shard);
            inner.insert(&mut shard, &self.digest, object);
            self.granted.store(identity(object), Ordering::Relaxed);
        } else if is_ours {
            object.remove();
        }
        *published = Some(stays.then(|| Arc::clone(object)));
        self.end(&mut shard);
        drop(shard);
        if let Some(discarded) = crowded_out {
            inner.log_removal(&discarded);
        }
        inner.keep_to_limit_with(object);
    }

    /// Removes a published object that cannot be kept from the index, durably; `instead`, a marker,
    /// takes its place at once. If nothing has been published yet, publishes the marker.
    pub fn replace(&self, instead: Option<&Arc<Object>>) {
        let mut published = self.published.lock();
        let Some(old) = published.take() else {
            drop(published);
            if let Some(marker) = instead {
                self.publish(marker);
            }
            return;
        };
        let inner = &*self.cache.inner;
        let mut shard = inner.lock(&self.digest);
        let held = old.as_ref().filter(|old| shard.holds(old));
        // Bans that the index has already tested the old object against do not hit the marker
        // either.
        let since = held.map_or(self.ban, |old| old.ban());
        let discarded = held.and_then(|old| {
            inner.discard(&mut shard, &self.digest, old.slot(), RemovalCause::Other(RemovalReason::Dropped))
        });
        let stays = instead.filter(|marker| inner.bans.accept(marker, since, inner.recent()));
        if let Some(marker) = stays {
            inner.insert(&mut shard, &self.digest, marker);
        } else if let Some(marker) = instead {
            marker.remove();
        }
        *published = Some(stays.cloned());
        shard.settle(&inner.stores);
        drop(shard);
        if let Some(discarded) = discarded {
            inner.log_removal(&discarded);
        }
        if let Some(old) = &old {
            old.remove();
        }
        if let Some(marker) = stays {
            inner.keep_to_limit_with(marker);
        }
    }

    /// True if the key was invalidated since the fetch began.
    fn is_outdated(&self, shard: &mut Shard) -> bool {
        let head = shard.existing_head(&self.digest);
        head.is_some_and(|head| head.busy.iter().any(|mark| mark.number == self.number && mark.is_outdated))
    }

    /// Discards the oldest variant if the maximum number is reached.
    fn make_room(&self, shard: &mut Shard) -> Option<Arc<Object>> {
        let oldest = shard.existing_head(&self.digest).and_then(|head| head.oldest_of(VARIANTS_MAX))?;
        let cause = RemovalCause::Other(RemovalReason::Dropped);
        self.is_bounded.then(|| self.cache.inner.discard(shard, &self.digest, oldest, cause)).flatten()
    }

    /// Removes the busy mark and wakes the first waiters.
    fn end(&self, shard: &mut Shard) {
        let inner = &*self.cache.inner;
        inner.bans.release_fetch(self.ban);
        if let Some(head) = shard.existing_head(&self.digest) {
            head.busy.retain(|mark| mark.number != self.number);
            // Requests that start to wait from now on, including a woken waiter that returns, wait
            // for another fetch.
            head.woken_below = inner.next_busy.fetch_add(1, Ordering::Relaxed);
            head.granted = self.granted.load(Ordering::Relaxed);
            inner.rush(head);
        }
        inner.simplify(shard, &self.digest);
        inner.totals.sub(Main::NObjectcore, 1);
        shard.settle(&inner.stores);
    }

    /// Ends the waiting for this fetch; the published object is stored anyway. For a fetch that
    /// itself waits for something.
    pub fn release_waiting_list(&self) {
        self.set_vary(&UNOWNED);
        let inner = &*self.cache.inner;
        let mut shard = inner.lock(&self.digest);
        let Some(head) = shard.existing_head(&self.digest) else { return };
        head.woken_below = inner.next_busy.fetch_add(1, Ordering::Relaxed);
        head.granted = 0;
        inner.rush(head);
    }

    /// True if requests wait for this fetch.
    #[must_use]
    pub fn has_waiters(&self) -> bool {
        let mut shard = self.cache.inner.lock(&self.digest);
        shard
            .existing_head(&self.digest)
            .is_some_and(|head| head.waiting.iter().any(|waiting| waiting.state.load(Ordering::Acquire) == PARKED))
    }

    /// Sets the headers that the response is expected to vary on (`semantics::vary`): requests that
    /// do not match need not wait.
    pub fn set_vary(&self, vary: &[u8]) {
        let mut shard = self.cache.inner.lock(&self.digest);
        let Some(head) = shard.existing_head(&self.digest) else { return };
        if let Some(mark) = head.busy.iter_mut().find(|mark| mark.number == self.number) {
            mark.vary = vary.to_vec();
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        match self.published.get_mut().take() {
            None => {
                let mut shard = self.cache.inner.lock(&self.digest);
                self.end(&mut shard);
            }
            Some(Some(object)) if object.state() == BodyState::Failed => self.cache.remove(&object),
            Some(_) => {}
        }
    }
}

/// An entry on a waiting list. Dropping it is safe at any time.
pub struct Waiter {
    cache: Cache,
    digest: Digest,
    waiting: Arc<Waiting>,
    stale: Option<Arc<Object>>,
}

impl std::fmt::Debug for Waiter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Waiter").finish_non_exhaustive()
    }
}

impl Waiter {
    pub(crate) fn new(cache: &Cache, shard: &mut Shard, digest: &Digest, stale: Option<Arc<Object>>) -> Waiter {
        let number = cache.inner.next_busy.fetch_add(1, Ordering::Relaxed);
        let (state, granted) = (AtomicU8::new(PARKED), AtomicU64::new(0));
        let waiting = Arc::new(Waiting { number, state, granted, wake: Notify::new() });
        let list = &mut shard.make_head(digest).0.waiting;
        if list.len() == list.capacity() {
            // Abandoned entries are removed before the list grows; if they are few, it grows, so
            // that they are not searched for each time.
            list.retain(|waiting| waiting.state.load(Ordering::Acquire) == PARKED);
            list.reserve(list.len() + 1);
        }
        list.push_back(Arc::clone(&waiting));
        Waiter { cache: cache.clone(), digest: *digest, waiting, stale }
    }

    /// Returns when a new lookup is worthwhile. Keep the waiter until that lookup is done, then
    /// drop it.
    pub async fn wait(&self) {
        while self.waiting.state.load(Ordering::Acquire) == PARKED {
            // The waker leaves a permit, so a wake cannot be missed.
            self.waiting.wake.notified().await;
        }
    }

    /// The stored response, stale and past its grace; it may have been removed since.
    #[must_use]
    pub fn stale(&self) -> Option<&Arc<Object>> {
        self.stale.as_ref()
    }

    /// For [`crate::LookupConditions`]: the object that was fetched or validated while the request
    /// waited, or may be used instead; 0 = none.
    #[must_use]
    pub fn granted(&self) -> u64 {
        self.waiting.granted.load(Ordering::Relaxed)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let state = &self.waiting.state;
        if state.compare_exchange(PARKED, GONE, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return;
        }
        let inner = &*self.cache.inner;
        let mut shard = inner.lock(&self.digest);
        let head = shard.existing_head(&self.digest);
        if let Some(head) = head.filter(|head| head.is_without_fetch() || head.has_variants()) {
            inner.rush(head);
        }
        inner.simplify(&mut shard, &self.digest);
        shard.settle(&inner.stores);
    }
}

impl Inner {
    /// Wakes up to `rush_exponent` of the waiters that were on the list when a fetch last ended.
    fn rush(&self, head: &mut Head) {
        let mut left = self.parameters.rush_exponent.load(Ordering::Relaxed);
        while left > 0 {
            if head.waiting.front().is_none_or(|waiting| waiting.number >= head.woken_below) {
                return;
            }
            let Some(waiting) = head.waiting.pop_front() else { return };
            waiting.granted.store(head.granted, Ordering::Relaxed);
            if waiting.state.compare_exchange(PARKED, WOKEN, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                waiting.wake.notify_one();
                self.totals.add(Main::BusyWakeup, 1);
                left -= 1;
            }
        }
    }

    /// Dissolves the head of a key if it is no longer needed.
    pub(crate) fn simplify(&self, shard: &mut Shard, digest: &Digest) {
        if shard.simplify(digest) {
            self.totals.sub(Main::NObjecthead, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_that_have_left_do_not_add_up() {
        let cache = Cache::in_memory(1 << 20, 1e9).unwrap();
        let (key, inner) = ([1; 32], &cache.inner);
        let busy = cache.promise_unawaited(&key);
        let wait = || Waiter::new(&cache, &mut inner.lock(&busy.digest), &busy.digest, None);
        let patient: Vec<Waiter> = (0..100).map(|_| wait()).collect();
        (0..10_000).for_each(|_| drop(wait()));
        let mut shard = inner.lock(&busy.digest);
        let length = shard.existing_head(&busy.digest).unwrap().waiting.len();
        assert!((100..=400).contains(&length), "{length}");
        drop(shard);
        drop(busy);
        let parked = patient.iter().filter(|waiter| waiter.waiting.state.load(Ordering::Acquire) == PARKED).count();
        assert!(parked < 100, "those that stayed are woken");
    }
}
