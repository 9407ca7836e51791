//! What an earlier process stored enters the index.
//!
//! There may be millions of objects, and requests wait meanwhile. Therefore several threads take a part each; a record is read
//! once, in the order in which it lies in the arena and with many on their way from memory at a time; and a shard is locked once for
//! many objects. They keep the time of their last use.

use crate::departure::Leaving;
use crate::digest::Digest;
use crate::removal::dies_at;
use crate::slices::Families;
use crate::{Cache, SHARDS};
use parking_lot::Mutex;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::Builder;
use store::Object;
use surface::reason::Departure;

/// How many objects are sorted by shard at a time: their records should still be near the processor when they go in.
const BATCH: usize = 1 << 11;

/// How many objects are on their way from memory while one is looked at.
const AHEAD: usize = 16;

/// An object about to enter.
struct Arrival {
    object: Arc<Object>,
    digest: Digest,
    shard: usize,
    /// The tick at which it dies.
    due: u32,
    is_tagged: bool,
}

/// How many objects have entered, by storage, and keys that were new: counted once, since several threads count.
struct Entered {
    objects: Box<[u64]>,
    keys: u64,
}

impl Entered {
    fn new(stores: usize) -> Entered {
        Entered { objects: vec![0; stores].into(), keys: 0 }
    }
}

/// The objects in their order, each when it had time to come near the processor.
fn fetched(objects: &[Arc<Object>]) -> impl Iterator<Item = &Arc<Object>> {
    objects.iter().take(AHEAD).for_each(|object| object.prefetch());
    objects.iter().enumerate().map(|(at, object)| {
        if let Some(next) = objects.get(at + AHEAD) {
            next.prefetch();
        }
        object
    })
}

/// Does the same with each part, with as many threads as there are parts, this one among them; with fewer where the system has no more.
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
    /// Takes over the recovered objects of all storages, with so many threads (at least one); expired ones are removed. Returns how
    /// many were kept.
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
        // All heads are there.
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

    /// Puts objects into the index, except those that `sort` keeps; returns how many entered.
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

    /// What has to be known of a recovered object; one whose life has ended meanwhile is removed.
    fn arrival(&self, object: Arc<Object>, now: f64) -> Option<Arrival> {
        let inner = &*self.inner;
        let (digest, dies_at) = (inner.digest_of_object(&object), dies_at(&object));
        if dies_at <= now {
            object.remove();
            inner.lock(&digest).departures.note(&digest, Leaving::As(Departure::Expired), dies_at);
            return None;
        }
        let (shard, is_tagged) = (digest.shard(SHARDS), crate::tag::is_tagged(&object));
        Some(Arrival { object, digest, shard, due: inner.tick_of(dies_at), is_tagged })
    }

    /// Puts objects of one shard into it.
    fn enter(&self, arrivals: std::vec::Drain<'_, Arrival>, entered: &mut Entered) {
        let inner = &*self.inner;
        let Some(number) = arrivals.as_slice().first().map(|arrival| arrival.shard) else { return };
        let mut shard = inner.shards[number].lock();
        shard.fetch_places(arrivals.as_slice().iter().map(|arrival| &arrival.digest));
        for Arrival { object, digest, due, is_tagged, .. } in arrivals {
            inner.log_arrival(&object);
            entered.objects[usize::from(object.store_number().unwrap_or(0))] += 1;
            let tagged = is_tagged.then(|| Arc::clone(&object));
            entered.keys += u64::from(shard.insert(&digest, object, due));
            if let Some(object) = tagged {
                inner.tag(&object, number);
            }
        }
    }
}
