//! Making room in the file: stretch by stretch, in its order.
//!
//! The file is divided into stretches. The one whose turn it is loses all its objects but those that were hit since its last turn
//! (a clock, in the sense of page replacement), so that long runs become free side by side and are written in one go. Bodies are
//! never moved. Whoever needs room skips few stretches for the sake of hits; then a stretch loses everything.

use super::runs::Extent;
use crate::arena::Inner;
use crate::object::Object;
use std::sync::{Arc, Weak};

const STRETCHES_MAX: u64 = 512;
const STRETCH_BYTES_MIN: u64 = 256 << 10;
/// So many stretches in a row keep what was hit.
const MERCIFUL_MAX: u32 = 8;

/// Called with objects that have to leave the index: so that there is room in the file, or, marked as removed, because they could
/// not be written to it.
pub type Sweeper = dyn Fn(&[Arc<Object>]) + Send + Sync;

#[derive(Default)]
struct Stretch {
    /// Objects whose bodies begin here; some may be gone.
    objects: Vec<Weak<Object>>,
    /// The newest time of use among them at the last turn, in the index's units.
    seen_use: Option<u32>,
}

/// The stretches of a file.
pub(super) struct Stretches {
    from: u64,
    bytes: u64,
    all: Vec<Stretch>,
    next: usize,
}

impl Stretches {
    pub(super) fn new(from: u64, to: u64, granularity: u64) -> Stretches {
        let bytes = ((to - from) / STRETCHES_MAX).max(STRETCH_BYTES_MIN).next_multiple_of(granularity);
        let all = (0..(to - from).div_ceil(bytes)).map(|_| Stretch::default()).collect();
        Stretches { from, bytes, all, next: 0 }
    }

    /// Notes whose body begins at this offset.
    pub(super) fn enter(&mut self, at: u64, object: &Arc<Object>) {
        let index = ((at - self.from) / self.bytes) as usize;
        let Some(stretch) = self.all.get_mut(index) else { return };
        if stretch.objects.len() == stretch.objects.capacity() {
            stretch.objects.retain(|object| object.strong_count() > 0);
        }
        stretch.objects.push(Arc::downgrade(object));
    }

    /// The next stretch in turn: where it begins, and which of its objects have to go.
    fn next(&mut self, is_merciful: bool) -> (u64, Vec<Arc<Object>>) {
        let index = self.next;
        self.next = (index + 1) % self.all.len().max(1);
        let Some(stretch) = self.all.get_mut(index) else { return (self.from, Vec::new()) };
        let (mut going, mut seen) = (Vec::new(), stretch.seen_use);
        let before = stretch.seen_use;
        stretch.objects.retain(|object| {
            let Some(object) = object.upgrade() else { return false };
            let used = object.last_use();
            let is_hot = object.hits() > 0 && before.is_none_or(|before| used.wrapping_sub(before).cast_signed() > 0);
            seen = Some(seen.filter(|seen| used.wrapping_sub(*seen).cast_signed() <= 0).unwrap_or(used));
            let stays = is_merciful && is_hot;
            if !stays {
                going.push(object);
            }
            // One that is being read lets go later; until then it is still here.
            true
        });
        stretch.seen_use = seen;
        (self.from + index as u64 * self.bytes, going)
    }

    fn len(&self) -> u32 {
        self.all.len() as u32
    }
}

impl Inner {
    /// Room in the file for up to `bytes`, at least for all of them or for a piece that is worth it; others go for it.
    pub(crate) fn take_in_file(&self, bytes: u64) -> Option<Extent> {
        let tier = self.tier.as_ref()?;
        if bytes > tier.capacity_bytes() {
            tier.refuse();
            return None;
        }
        tier.counts.usage.requested();
        let mut turns = 0;
        loop {
            if let Some(extent) = tier.take(bytes) {
                return Some(extent);
            }
            let mut space = tier.space.lock();
            let most = space.stretches.len() * 2 + MERCIFUL_MAX;
            let (from, going) = space.stretches.next(turns < MERCIFUL_MAX);
            space.runs.set_hand(from);
            drop(space);
            turns += 1;
            if turns > most {
                tier.refuse();
                return None;
            }
            let sweeper = self.sweeper.read().clone();
            if let Some(sweeper) = sweeper {
                sweeper(&going);
            }
        }
    }
}
