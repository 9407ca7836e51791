//! Slots: the objects of a shard by number. The number of an object does not change while it is in
//! the shard.
//!
//! A slot also links its object into the timer wheel. Empty ones are used again. *Lock*: the
//! shard's. Next file: `ranking.rs`.

use crate::wheel::{Links, NONE};
use std::ops::{Index, IndexMut};
use std::sync::Arc;
use store::Object;

#[derive(Clone)]
struct Slot {
    object: Option<Arc<Object>>,
    links: Links,
}

/// In [`Slots::owners`]: the slot is empty.
const NOBODY: u8 = u8::MAX;

/// The objects of a shard. Empty slots are chained through `links.next`.
pub(crate) struct Slots {
    slots: Vec<Slot>,
    /// The storage of the object in each slot, so that a search for one storage does not touch the
    /// objects of others. Empty while there is only one storage.
    owners: Vec<u8>,
    /// Number of objects of each storage in this shard.
    pub(crate) counts: Box<[u32]>,
    free: Option<u32>,
    pub(crate) live: usize,
}

impl Index<u32> for Slots {
    type Output = Links;
    fn index(&self, slot: u32) -> &Links {
        &self.slots[slot as usize].links
    }
}

impl IndexMut<u32> for Slots {
    fn index_mut(&mut self, slot: u32) -> &mut Links {
        &mut self.slots[slot as usize].links
    }
}

impl Slots {
    pub(crate) fn new(stores: usize) -> Slots {
        Slots { slots: Vec::new(), owners: Vec::new(), counts: vec![0; stores].into(), free: None, live: 0 }
    }

    /// Number of objects of a storage.
    pub(crate) fn live_of(&self, store: u8) -> usize {
        self.counts.get(usize::from(store)).map_or(0, |count| *count as usize)
    }

    /// The first slot from `from` on whose object is in that storage, else the first of all; with a
    /// single storage `from` itself, occupied or not.
    pub(crate) fn next_of(&self, store: u8, from: u32) -> Option<u32> {
        if self.owners.is_empty() {
            return Some(from);
        }
        let (before, behind) = self.owners.split_at((from as usize).min(self.owners.len()));
        let is_its = |owner: &u8| *owner == store;
        let found = behind.iter().position(is_its).map(|place| place + before.len());
        found.or_else(|| before.iter().position(is_its)).map(|slot| slot as u32)
    }

    /// All slots whose objects are in that storage; with a single storage all slots, occupied or
    /// not.
    pub(crate) fn all_of(&self, store: u8) -> impl Iterator<Item = u32> + '_ {
        (0..self.len()).filter(move |slot| self.owners.get(*slot as usize).is_none_or(|owner| *owner == store))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>() + self.owners.capacity()
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&Arc<Object>> {
        self.slots.get(slot as usize)?.object.as_ref()
    }

    /// The number of slots, occupied or not.
    pub(crate) fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Makes room for this many more objects.
    pub(crate) fn reserve(&mut self, objects: usize) {
        self.slots.reserve_exact(objects);
    }

    /// Puts an object into an empty slot; returns its number and records it in the object.
    pub(crate) fn put(&mut self, object: Arc<Object>) -> u32 {
        let store = object.store_number().unwrap_or(0);
        self.live += 1;
        self.counts[usize::from(store)] += 1;
        let slot = self.free.unwrap_or(self.slots.len() as u32);
        object.set_slot(slot);
        let entry = Slot { object: Some(object), links: Links::OUT };
        if self.free.is_some() {
            let next = self.slots[slot as usize].links.next;
            self.free = (next != NONE).then_some(next);
            self.slots[slot as usize] = entry;
            self.set_owner(slot, store);
            return slot;
        }
        if self.slots.len() == self.slots.capacity() {
            // Grows by an eighth: doubling could waste more than one slot's memory for every
            // object.
            self.slots.reserve_exact((self.slots.len() / 8).max(4));
        }
        self.slots.push(entry);
        if self.counts.len() > 1 {
            if self.owners.len() == self.owners.capacity() {
                self.owners.reserve_exact((self.owners.len() / 8).max(8));
            }
            self.owners.push(store);
        }
        slot
    }

    fn set_owner(&mut self, slot: u32, owner: u8) {
        if let Some(place) = self.owners.get_mut(slot as usize) {
            *place = owner;
        }
    }

    /// Replaces an object with another one; returns the old one.
    pub(crate) fn exchange(&mut self, slot: u32, object: Arc<Object>) -> Option<Arc<Object>> {
        let store = object.store_number().unwrap_or(0);
        let held = self.slots.get_mut(slot as usize)?.object.as_mut()?;
        object.set_slot(slot);
        let old = std::mem::replace(held, object);
        self.counts[usize::from(old.store_number().unwrap_or(0))] -= 1;
        self.counts[usize::from(store)] += 1;
        self.set_owner(slot, store);
        Some(old)
    }

    /// Empties a slot.
    pub(crate) fn take(&mut self, slot: u32) -> Option<Arc<Object>> {
        let object = self.slots.get_mut(slot as usize)?.object.take()?;
        self.live -= 1;
        self.counts[usize::from(object.store_number().unwrap_or(0))] -= 1;
        self.slots[slot as usize].links = Links { next: self.free.unwrap_or(NONE), previous: NONE };
        self.free = Some(slot);
        self.set_owner(slot, NOBODY);
        if self.live == 0 {
            *self = Slots::new(self.counts.len());
        }
        Some(object)
    }
}
