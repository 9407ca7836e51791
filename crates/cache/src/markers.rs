//! The markers of a shard, in the order in which they are evicted: a marker evicts markers only, so
//! it must not search all objects for one.
//!
//! A queue with the time of last use. Use does not change the queue: when the oldest entry has been
//! used since, it moves to the end with its new time (second chance). An entry whose marker has
//! left is dropped when it reaches the front, or when such entries outnumber the markers. *Lock*:
//! the shard's. Next file: `eviction.rs`.

use crate::slots::Slots;
use std::collections::VecDeque;
use std::sync::Arc;
use store::Object;

/// Number of entries below which the queue is not cleaned.
const CLEANED_MIN: usize = 32;

struct Entry {
    slot: u32,
    xid: u32,
    last_use: u32,
}

impl Entry {
    fn object<'a>(&self, slots: &'a Slots) -> Option<&'a Arc<Object>> {
        slots.get(self.slot).filter(|object| object.xid() == self.xid && object.flags().is_marker())
    }
}

/// A marker that may be evicted.
pub(crate) struct OldMarker {
    pub(crate) slot: u32,
    pub(crate) xid: u32,
    pub(crate) last_use: u32,
}

/// The queue; see the module header.
#[derive(Default)]
pub(crate) struct Markers {
    queue: VecDeque<Entry>,
    live: usize,
}

impl Markers {
    /// Notes that an object was put into a slot.
    pub(crate) fn inserted(&mut self, slot: u32, slots: &Slots) {
        let Some(object) = slots.get(slot).filter(|object| object.flags().is_marker()) else { return };
        self.live += 1;
        if self.queue.len() >= CLEANED_MIN.max(2 * self.live) {
            self.queue.retain(|entry| entry.object(slots).is_some());
        }
        self.queue.push_back(Entry { slot, xid: object.xid(), last_use: object.last_use() });
    }

    /// Notes that an object leaves its slot.
    pub(crate) fn removed(&mut self, object: &Object) {
        if object.flags().is_marker() {
            self.live -= 1;
        }
        if self.live == 0 {
            self.queue = VecDeque::new();
        }
    }

    /// The marker to evict next; `None` if there is none, or all are in use.
    pub(crate) fn oldest(&mut self, slots: &Slots) -> Option<OldMarker> {
        for _ in 0..self.queue.len() {
            let entry = self.queue.pop_front()?;
            let Some(object) = entry.object(slots) else { continue };
            let Entry { slot, xid, last_use } = entry;
            if object.last_use() == last_use && Arc::strong_count(object) == 1 {
                self.queue.push_front(entry);
                return Some(OldMarker { slot, xid, last_use });
            }
            self.queue.push_back(Entry { slot, xid, last_use: object.last_use() });
        }
        None
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.queue.capacity() * size_of::<Entry>()
    }
}
