//! The reclaimer: makes room in the file, segment by segment, in its order.
//!
//! The file is divided into segments. The next segment in turn loses all its objects except those
//! that were hit since its last turn (second chance, as in CLOCK), so that long adjacent runs
//! become free and are written in one go. Bodies are never moved. A request for room skips only a
//! few segments because of hits; then a segment loses everything.

use super::Tier;
use super::runs::Extent;
use crate::object::Object;
use std::sync::{Arc, Weak};

const SEGMENTS_MAX: u64 = 512;
const SEGMENT_BYTES_MIN: u64 = 256 << 10;
/// Number of consecutive segments that may keep objects that were hit.
const SECOND_CHANCE_TURNS_MAX: u32 = 8;

/// Called with objects that have to leave the index: because their room in the file is needed, or,
/// marked as removed, because they could not be written to it.
pub type Reclaimer = dyn Fn(&[Arc<Object>]) + Send + Sync;

#[derive(Default)]
struct Segment {
    /// Objects whose bodies begin here; some may have been dropped.
    objects: Vec<Weak<Object>>,
    /// The newest time of use among them at the last turn, in the index's units.
    seen_use: Option<u32>,
}

/// The segments of a file.
pub(super) struct Segments {
    from: u64,
    bytes: u64,
    all: Vec<Segment>,
    next: usize,
}

impl Segments {
    pub(super) fn new(from: u64, to: u64, granularity: u64) -> Segments {
        let bytes = ((to - from) / SEGMENTS_MAX).max(SEGMENT_BYTES_MIN).next_multiple_of(granularity);
        let all = (0..(to - from).div_ceil(bytes)).map(|_| Segment::default()).collect();
        Segments { from, bytes, all, next: 0 }
    }

    /// Notes an object whose body begins at this offset.
    pub(super) fn enter(&mut self, at: u64, object: &Arc<Object>) {
        let index = ((at - self.from) / self.bytes) as usize;
        let Some(segment) = self.all.get_mut(index) else { return };
        if segment.objects.len() == segment.objects.capacity() {
            segment.objects.retain(|object| object.strong_count() > 0);
        }
        segment.objects.push(Arc::downgrade(object));
    }

    /// The next segment in turn: its offset, and the objects that must be removed.
    fn next(&mut self, gives_second_chance: bool) -> (u64, Vec<Arc<Object>>) {
        let index = self.next;
        self.next = (index + 1) % self.all.len().max(1);
        let Some(segment) = self.all.get_mut(index) else { return (self.from, Vec::new()) };
        let (mut going, mut seen) = (Vec::new(), segment.seen_use);
        let before = segment.seen_use;
        segment.objects.retain(|object| {
            let Some(object) = object.upgrade() else { return false };
            let used = object.last_use();
            let is_hot = object.hits() > 0 && before.is_none_or(|before| used.wrapping_sub(before).cast_signed() > 0);
            seen = Some(seen.filter(|seen| used.wrapping_sub(*seen).cast_signed() <= 0).unwrap_or(used));
            let stays = gives_second_chance && is_hot;
            if !stays {
                going.push(object);
            }
            // An object being read frees its room later; until then it is still here.
            true
        });
        segment.seen_use = seen;
        (self.from + index as u64 * self.bytes, going)
    }

    fn len(&self) -> u32 {
        self.all.len() as u32
    }
}

impl Tier {
    /// Sets the function that takes objects out of the index.
    pub(crate) fn set_reclaimer(&self, reclaimer: Box<Reclaimer>) {
        *self.reclaimer.write() = Some(Arc::from(reclaimer));
    }

    /// Takes objects out of the index.
    pub(super) fn reclaim(&self, going: &[Arc<Object>]) {
        let reclaimer = self.reclaimer.read().clone();
        if let Some(reclaimer) = reclaimer {
            reclaimer(going);
        }
    }

    /// Room in the file for up to `bytes`, at least for all of them or for a piece worth having;
    /// other objects are evicted for it.
    pub(crate) fn make_room(&self, bytes: u64) -> Option<Extent> {
        if bytes > self.capacity_bytes() {
            self.refuse();
            return None;
        }
        self.counts.usage.requested();
        let mut turns = 0;
        loop {
            if let Some(extent) = self.take(bytes) {
                return Some(extent);
            }
            let mut space = self.space.lock();
            let most = space.segments.len() * 2 + SECOND_CHANCE_TURNS_MAX;
            let (from, going) = space.segments.next(turns < SECOND_CHANCE_TURNS_MAX);
            space.runs.set_hand(from);
            drop(space);
            turns += 1;
            if turns > most {
                self.refuse();
                return None;
            }
            self.reclaim(&going);
        }
    }
}
