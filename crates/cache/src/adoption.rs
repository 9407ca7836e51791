//! Adoption: objects stored by an earlier process enter the index.
//!
//! There may be millions of objects, and requests wait until this is done. Therefore several
//! threads take a part each; each record is read once, in arena order, with many prefetches in
//! flight; and a shard is locked once for many objects. Objects keep the time of their last use.

use crate::digest::Digest;
use crate::removal::dies_at;
use crate::removal_history::RemovalCause;
use crate::slices::Families;
use crate::{Cache, SHARDS};
use parking_lot::Mutex;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::Builder;
use store::Object;
use surface::reason::RemovalReason;

/// Number of objects sorted by shard at a time: their records should still be in the CPU cache when
/// they are inserted.
const BATCH: usize = 1 << 11;

/// Number of objects prefetched ahead of the one being examined.
const AHEAD: usize = 16;

/// An object about to enter.
struct Arrival {
    object: Arc<Object>,
    digest: Digest,
    shard: usize,
    /// The tick at which it expires.
    due: u32,
    is_tagged: bool,
}

/// Number of objects that have entered, by storage, and number of new keys. Totalled once, since
/// several threads count.
struct Entered {
    objects: Box<[u64]>,
    keys: u64,
}

impl Entered {
    fn new(stores: usize) -> Entered {
        Entered { objects: vec![0; stores].into(), keys: 0 }
    }
}

/// The objects in their order, each after its prefetch had time to complete.
fn fetched(objects: &[Arc<Object>]) -> impl Iterator<Item = &Arc<Object>> {
    objects.iter().take(AHEAD).for_each(|object| object.prefetch());
    objects.iter().enumerate().map(|(at, object)| {
        if let Some(next) = objects.get(at + AHEAD) {
            next.prefetch();
        }
        object
    })
}

/// Processes each part with the same function, on as many threads as there are parts, including
/// this one; on fewer if the system cannot start them.
fn with_hands<T: Send, R: Send>(parts: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let hands = parts.len();
    let left = Mutex::new(parts);
    let work_off = || std::iter::from_fn(|| left.lock().pop()).map(&work).collect::<Vec<R>>();
    std::thread::scope(|scope| {
        let hired = (1..hands).map_while(|_| Builder::new().name("adoption".into()).spawn_scoped(scope, work_off).ok());
        let others: Vec<_> = hired.collect();
        let mut results = work_off();
        for other in others {
            results.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    })
}

/// Divides objects into about equal parts, at most `most`, of at least a batch each.
fn divided(mut objects: Vec<Arc<Object>>, most: usize) -> Vec<Vec<Arc<Object>>> {
    let count = most.min(objects.len().div_ceil(BATCH)).max(1);
    let each = objects.len().div_ceil(count);
    let mut parts: Vec<_> = (1..count).rev().map(|part| objects.split_off((part * each).min(objects.len()))).collect();
    parts.push(objects);
    parts
}

impl Cache {
    /// Takes over the recovered objects of all storages with the given number of threads (at least
    /// one); expired objects are removed. Returns the number of objects kept.
    pub fn adopt(&self, objects: Vec<Arc<Object>>, now: f64, hands: usize) -> usize {
        let inner = &*self.inner;
        inner.see(now);
        let oldest_of = |objects: &[Arc<Object>]| fetched(objects).map(|object| object.ban()).min();
        let parts = objects.chunks(objects.len().div_ceil(hands.max(1)).max(1)).collect();
        if let Some(oldest) = with_hands(parts, oldest_of).into_iter().flatten().min() {
            inner.bans.reach_back_to(oldest);
        }
        for shard in &inner.shards {
            shard.lock().expect(objects.len() / SHARDS);
        }
        let parts = with_hands(divided(objects, hands), |objects| {
            let mut families = Families::default();
            let kept = self.enter_all(objects, now, |object| families.takes_apart(object, now));
            (kept, families)
        });
        let (mut kept, mut families) = (0, Families::default());
        for (of_part, family) in parts {
            kept += of_part;
            families.join(family);
        }
        // All heads are in the index.
        kept += self.enter_all(families.slices_with_heads(), now, Some);
        with_hands(inner.shards.chunks(SHARDS.div_ceil(hands.max(1))).collect(), |shards| {
            for shard in shards {
                let mut shard = shard.lock();
                shard.order_variants();
                shard.rank_expected();
                shard.settle(&inner.stores);
            }
        });
        inner.bans.clean_tail();
        for store in &inner.stores {
            inner.keep_to_limit(store);
        }
        kept
    }

    /// Puts objects into the index, except those that `sort` keeps; returns the number that
    /// entered.
    fn enter_all(
        &self,
        objects: Vec<Arc<Object>>,
        now: f64,
        mut sort: impl FnMut(Arc<Object>) -> Option<Arc<Object>>,
    ) -> usize {
        let mut arrivals = Vec::with_capacity(BATCH.min(objects.len()));
        let (mut objects, mut entered) = (objects.into_iter(), Entered::new(self.inner.stores.len()));
        objects.as_slice().iter().take(AHEAD).for_each(|object| object.prefetch());
        while objects.len() > 0 {
            for _ in 0..BATCH {
                let Some(object) = objects.next() else { break };
                if let Some(next) = objects.as_slice().get(AHEAD - 1) {
                    next.prefetch();
                }
                arrivals.extend(sort(object).and_then(|object| self.arrival(object, now)));
            }
            self.inner.bans.adopt(arrivals.iter().map(|arrival: &Arrival| &*arrival.object));
            arrivals.sort_unstable_by_key(|arrival| arrival.shard);
            while let Some(last) = arrivals.last() {
                let of_shard = arrivals.partition_point(|arrival| arrival.shard < last.shard);
                self.enter(arrivals.drain(of_shard..), &mut entered);
            }
        }
        let objects = entered.objects.iter().sum();
        for (counter, count) in self.inner.objects.iter().zip(entered.objects) {
            counter.fetch_add(count, Relaxed);
        }
        self.inner.count_arrivals(objects, entered.keys);
        objects as usize
    }

    /// The values needed to insert a recovered object; an object that has expired is removed.
    fn arrival(&self, object: Arc<Object>, now: f64) -> Option<Arrival> {
        let inner = &*self.inner;
        let (digest, dies_at) = (inner.digest_of_object(&object), dies_at(&object));
        if dies_at <= now {
            object.remove();
            inner.lock(&digest).removal_history.note(&digest, RemovalCause::Other(RemovalReason::Expired), dies_at);
            return None;
        }
        let (shard, is_tagged) = (digest.shard(SHARDS), crate::tag::is_tagged(&object));
        Some(Arrival { object, digest, shard, due: inner.tick_of(dies_at), is_tagged })
    }

    /// Puts objects into their shard.
    fn enter(&self, arrivals: std::vec::Drain<'_, Arrival>, entered: &mut Entered) {
        let inner = &*self.inner;
        let Some(number) = arrivals.as_slice().first().map(|arrival| arrival.shard) else { return };
        let mut shard = inner.shards[number].lock();
        shard.fetch_places(arrivals.as_slice().iter().map(|arrival| &arrival.digest));
        for Arrival { object, digest, due, is_tagged, .. } in arrivals {
            inner.log_adoption(&object);
            entered.objects[usize::from(object.store_number().unwrap_or(0))] += 1;
            let tagged = is_tagged.then(|| Arc::clone(&object));
            entered.keys += u64::from(shard.insert(&digest, object, due));
            if let Some(object) = tagged {
                inner.tag(&object, number);
            }
        }
    }
}
