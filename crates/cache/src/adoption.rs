//! What an earlier process stored enters the index.
//!
//! There may be millions of objects, and requests wait meanwhile. Therefore each record is read once and in the order in
//! which it lies in the arena, and each shard is locked once for many objects. They keep the time of their last use.

use crate::departure::Leaving;
use crate::digest::Digest;
use crate::removal::dies_at;
use crate::slices::Families;
use crate::{Cache, SHARDS};
use ::eviction::EvictionPolicy;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use store::Object;
use surface::reason::Departure;

/// How many objects are sorted by shard at a time: their records should still be near the processor when they go in.
const BATCH: usize = 1 << 15;

/// An object about to enter.
struct Arrival {
    object: Arc<Object>,
    digest: Digest,
    shard: usize,
    /// The tick at which it dies.
    due: u32,
    is_tagged: bool,
}

impl Cache {
    /// Takes over the recovered objects of all storages; expired ones are removed. Returns how many were kept.
    pub fn adopt(&self, objects: Vec<Arc<Object>>, now: f64) -> usize {
        let inner = &*self.inner;
        inner.see(now);
        let followed = inner.followed();
        if let Some(oldest) = objects.iter().map(|object| object.ban()).min() {
            inner.bans.reach_back_to(oldest);
        }
        for shard in &inner.shards {
            let mut shard = shard.lock();
            shard.reserve(objects.len() / SHARDS);
            // They are ranked when all are there, by their last use rather than by where they lie.
            (0..).zip(&inner.stores).for_each(|(store, _)| shard.rank_by(store, EvictionPolicy::Lru));
        }
        let mut families = Families::default();
        let mut kept = self.enter_all(objects, now, |object| families.takes_apart(object, now));
        // All heads are there.
        kept += self.enter_all(families.slices_with_heads(), now, Some);
        for shard in &inner.shards {
            let mut shard = shard.lock();
            shard.order_variants();
            (0..).zip(&followed).for_each(|(store, policy)| shard.rank_by(store, *policy));
            shard.settle(&inner.stores);
        }
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
        let (mut objects, mut kept) = (objects.into_iter(), 0);
        while objects.len() > 0 {
            let batch = objects.by_ref().take(BATCH).filter_map(&mut sort);
            arrivals.extend(batch.filter_map(|object| self.arrival(object, now)));
            arrivals.sort_unstable_by_key(|arrival| arrival.shard);
            kept += arrivals.len();
            for group in arrivals.chunk_by(|one, other| one.shard == other.shard) {
                self.enter(group);
            }
            arrivals.clear();
        }
        kept
    }

    /// What has to be known of a recovered object; one whose life has ended meanwhile is removed.
    fn arrival(&self, object: Arc<Object>, now: f64) -> Option<Arrival> {
        let inner = &*self.inner;
        let digest = inner.digest_of_object(&object);
        let dies_at = dies_at(&object);
        if dies_at <= now {
            object.remove();
            inner.lock(&digest).departures.note(&digest, Leaving::As(Departure::Expired), dies_at);
            return None;
        }
        inner.bans.adopt(&object);
        let (shard, is_tagged) = (digest.shard(SHARDS), crate::tag::is_tagged(&object));
        Some(Arrival { object, digest, shard, due: inner.tick_of(dies_at), is_tagged })
    }

    /// Puts objects of one shard into it.
    fn enter(&self, group: &[Arrival]) {
        let inner = &*self.inner;
        let Some(first) = group.first() else { return };
        let (mut shard, mut keys) = (inner.shards[first.shard].lock(), 0);
        for Arrival { object, digest, due, is_tagged, .. } in group {
            inner.log_arrival(object);
            keys += u64::from(shard.insert(digest, Arc::clone(object), *due));
            if *is_tagged {
                inner.tag(object, first.shard);
            }
            inner.objects_of(object).fetch_add(1, Relaxed);
        }
        inner.count_arrivals(group.len() as u64, keys);
    }
}
