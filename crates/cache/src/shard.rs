//! One shard of the index: a table from key to object, or to a head where one object is not enough.
//!
//! Most keys have one object and no waiting request: their table entry is the object's slot, four
//! bytes. A key with variants, a fetch under way or waiting requests has a [`Head`], created when
//! needed and dissolved afterwards. Objects are in slots. Keys are not kept here: they are read
//! from the object in the arena. *Lock*: the shard's mutex around everything. Next file:
//! `lookup.rs`.

use crate::digest::{Digest, KEY_BYTES, hash_of};
use crate::markers::{Markers, OldMarker};
use crate::ranking::Ranking;
use crate::removal_history::RemovalHistory;
use crate::slots::Slots;
use crate::waiting::Waiting;
use crate::wheel::Wheel;
use eviction::{EvictionPolicy, Pressure};
use hashbrown::HashTable;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;
use store::{Object, Store};

/// With this bit set a table entry is the number of a head, otherwise that of a slot.
const HEAD: u32 = 1 << 31;

/// A fetch under way.
#[derive(Debug)]
pub(crate) struct BusyMark {
    pub(crate) number: u64,
    /// The request headers that the response is expected to vary on; empty = unknown.
    pub(crate) vary: Vec<u8>,
    /// The Range that the fetch sends, because its request needs no more; empty = it fetches the
    /// whole.
    pub(crate) range: Box<[u8]>,
    /// The key was invalidated since: the response may be older than the change that invalidated
    /// it.
    pub(crate) is_outdated: bool,
}

/// A variant key that matches no request.
pub(crate) const UNOWNED: [u8; 1] = [1];

/// The state of a key that needs more than one object.
#[derive(Debug)]
pub(crate) struct Head {
    key: [u8; KEY_BYTES],
    /// Slots, newest last.
    variants: SmallVec<[u32; 4]>,
    pub(crate) busy: SmallVec<[BusyMark; 1]>,
    pub(crate) waiting: VecDeque<Arc<Waiting>>,
    /// Waiters with a lower number may be woken: they were waiting when a fetch last ended.
    pub(crate) woken_below: u64,
    /// The object with which a fetch last ended (`lookup_conditions::identity`); 0 = none.
    pub(crate) granted: u64,
}

impl Head {
    /// The oldest object of a key that has at least `count` objects.
    pub(crate) fn oldest_of(&self, count: usize) -> Option<u32> {
        self.variants.first().copied().filter(|_| self.variants.len() >= count)
    }

    /// True if there is no fetch that requests can wait for.
    pub(crate) fn is_without_fetch(&self) -> bool {
        self.busy.iter().all(|mark| mark.vary == UNOWNED)
    }

    /// True if the key has any objects, rather than only fetches and waiters.
    pub(crate) fn has_variants(&self) -> bool {
        !self.variants.is_empty()
    }
}

/// Memory of a head: the box, and the overhead of a heap allocation.
const HEAD_BYTES: usize = size_of::<Head>() + 8;

/// Memory of a list of variants that no longer fits its head.
fn spilled_bytes(head: &Head) -> usize {
    if head.variants.spilled() { head.variants.capacity() * 4 } else { 0 }
}

/// A table entry: a slot, or the number of a head with [`HEAD`] set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// One object.
    One(u32),
    /// A head.
    Head(u32),
}

/// The hash of a table entry's key.
fn hash_of_entry(slots: &Slots, heads: &[Option<Box<Head>>], entry: u32, seed: &[u64; 2]) -> u64 {
    if entry & HEAD == 0 {
        slots.get(entry).map_or(0, |object| Digest::new(object.key(), seed).hash)
    } else {
        heads[(entry & !HEAD) as usize].as_ref().map_or(0, |head| hash_of(&head.key, seed))
    }
}

/// The shard; see the module header.
pub(crate) struct Shard {
    table: HashTable<u32>,
    pub(crate) slots: Slots,
    heads: Vec<Option<Box<Head>>>,
    free_heads: Vec<u32>,
    /// Memory of all heads; the waiting requests are not charged here.
    heads_bytes: usize,
    wheel: Wheel,
    /// The order of eviction.
    ranking: Ranking,
    /// The order in which markers make room for markers.
    markers: Markers,
    seed: [u64; 2],
    /// The amount charged to each storage.
    charged_bytes: Box<[i64]>,
    /// The removal history; of fixed size, so not charged to objects.
    pub(crate) removal_history: RemovalHistory,
}

impl Shard {
    /// An empty shard for objects in `stores` storages: at least 1, fewer than 256.
    pub(crate) fn new(seed: [u64; 2], stores: usize, now: f64) -> Shard {
        Shard {
            table: HashTable::new(),
            slots: Slots::new(stores),
            heads: Vec::new(),
            free_heads: Vec::new(),
            heads_bytes: 0,
            wheel: Wheel::new(),
            ranking: Ranking::new(stores),
            markers: Markers::default(),
            seed,
            charged_bytes: vec![0; stores].into(),
            removal_history: RemovalHistory::new(now),
        }
    }

    /// Charges the storages for the growth of the shard, or gives back: each in proportion to its
    /// objects, or the first one while there are none. The fixed part of the index is not charged
    /// to objects.
    pub(crate) fn settle(&mut self, stores: &[Store]) {
        let bytes = self.table.allocation_size()
            + self.slots.memory_bytes()
            + self.ranking.memory_bytes()
            + self.markers.memory_bytes()
            + self.heads.capacity() * 8
            + self.free_heads.capacity() * 4
            + self.heads_bytes;
        let (mut bytes, mut objects) = (bytes as u64, self.slots.live as u64);
        for ((store, charged), count) in stores.iter().zip(&mut self.charged_bytes).zip(&self.slots.counts) {
            // The last storage with objects takes the remainder, so that rounding loses nothing.
            let share = (bytes * u64::from(*count)).checked_div(objects).unwrap_or(bytes);
            (bytes, objects) = (bytes - share, objects - u64::from(*count));
            if share as i64 != *charged {
                store.charge(share as i64 - *charged);
                *charged = share as i64;
            }
        }
    }

    fn key_is(slots: &Slots, heads: &[Option<Box<Head>>], entry: u32, key: &[u8]) -> bool {
        if entry & HEAD == 0 {
            slots.get(entry).is_some_and(|object| object.key() == key)
        } else {
            heads[(entry & !HEAD) as usize].as_ref().is_some_and(|head| head.key == key)
        }
    }

    pub(crate) fn find(&self, digest: &Digest) -> Option<Found> {
        let entry =
            *self.table.find(digest.hash, |entry| Self::key_is(&self.slots, &self.heads, *entry, &digest.key))?;
        Some(if entry & HEAD == 0 { Found::One(entry) } else { Found::Head(entry & !HEAD) })
    }

    fn entry_mut(&mut self, digest: &Digest) -> Option<&mut u32> {
        let Shard { table, slots, heads, .. } = self;
        table.find_mut(digest.hash, |entry| Self::key_is(slots, heads, *entry, &digest.key))
    }

    fn add_entry(&mut self, digest: &Digest, entry: u32) {
        let Shard { table, slots, heads, seed, .. } = self;
        table.insert_unique(digest.hash, entry, |entry| hash_of_entry(slots, heads, *entry, seed));
    }

    fn remove_entry(&mut self, digest: &Digest) {
        let Shard { table, slots, heads, .. } = self;
        let found = table.find_entry(digest.hash, |entry| Self::key_is(slots, heads, *entry, &digest.key));
        if let Ok(entry) = found {
            entry.remove();
        }
        if self.table.is_empty() {
            self.table = HashTable::new();
        }
    }

    pub(crate) fn head(&self, number: u32) -> Option<&Head> {
        self.heads.get(number as usize)?.as_deref()
    }

    /// The head of a key, if it has one.
    pub(crate) fn existing_head(&mut self, digest: &Digest) -> Option<&mut Head> {
        match self.find(digest)? {
            Found::One(_) => None,
            Found::Head(number) => self.heads[number as usize].as_deref_mut(),
        }
    }

    /// The head of a key, created if there is none; returns true if the key is new.
    pub(crate) fn make_head(&mut self, digest: &Digest) -> (&mut Head, bool) {
        let found = self.find(digest);
        let number = match found {
            Some(Found::Head(number)) => number,
            Some(Found::One(_)) | None => {
                let mut head = Head {
                    key: digest.key,
                    variants: SmallVec::new(),
                    busy: SmallVec::new(),
                    waiting: VecDeque::new(),
                    woken_below: 0,
                    granted: 0,
                };
                let number = self.free_heads.pop().unwrap_or_else(|| {
                    self.heads.push(None);
                    self.heads.len() as u32 - 1
                });
                self.heads_bytes += HEAD_BYTES;
                if let Some(Found::One(slot)) = found {
                    head.variants.push(slot);
                    if let Some(entry) = self.entry_mut(digest) {
                        *entry = HEAD | number;
                    }
                    self.heads[number as usize] = Some(Box::new(head));
                } else {
                    self.heads[number as usize] = Some(Box::new(head));
                    self.add_entry(digest, HEAD | number);
                }
                number
            }
        };
        let head = self.heads[number as usize].as_deref_mut();
        (head.expect("made above, or found in the table"), found.is_none())
    }

    /// Dissolves the head of a key when it has one object or none left; returns true if the key is
    /// gone altogether.
    pub(crate) fn simplify(&mut self, digest: &Digest) -> bool {
        let Some(Found::Head(number)) = self.find(digest) else { return false };
        let Some(head) = self.head(number) else { return false };
        if !head.busy.is_empty() || !head.waiting.is_empty() || head.variants.len() > 1 {
            return false;
        }
        let last = head.variants.first().copied();
        match last {
            Some(slot) => {
                if let Some(entry) = self.entry_mut(digest) {
                    *entry = slot;
                }
            }
            None => self.remove_entry(digest),
        }
        if let Some(head) = self.heads[number as usize].take() {
            self.heads_bytes -= HEAD_BYTES + spilled_bytes(&head);
        }
        self.free_heads.push(number);
        if self.free_heads.len() == self.heads.len() {
            self.heads = Vec::new();
            self.free_heads = Vec::new();
        }
        last.is_none()
    }

    /// The slots of a key, newest first; at most one when it has no head.
    pub(crate) fn variants(&self, found: Option<Found>) -> impl Iterator<Item = u32> + '_ {
        let (one, many): (Option<u32>, &[u32]) = match found {
            None => (None, &[]),
            Some(Found::One(slot)) => (Some(slot), &[]),
            Some(Found::Head(number)) => (None, self.head(number).map_or(&[][..], |head| &head.variants)),
        };
        one.into_iter().chain(many.iter().rev().copied())
    }

    /// Adds an object as the newest of its key; returns true if the key is new. `due`: the tick at
    /// which it expires.
    pub(crate) fn insert(&mut self, digest: &Digest, object: Arc<Object>, due: u32) -> bool {
        let found = self.find(digest);
        let slot = self.slots.put(object);
        if found.is_none() {
            self.add_entry(digest, slot);
        } else {
            let head = self.make_head(digest).0;
            let before = spilled_bytes(head);
            head.variants.push(slot);
            let grown = spilled_bytes(head) - before;
            self.heads_bytes += grown;
        }
        self.wheel.add(&mut self.slots, slot, due);
        self.ranking.inserted(slot, &self.slots, &self.seed);
        self.markers.inserted(slot, &self.slots);
        found.is_none()
    }

    /// Prefetches the table positions of several keys: these reads do not wait for each other, as
    /// insertions do.
    pub(crate) fn fetch_places<'a>(&self, keys: impl Iterator<Item = &'a Digest>) {
        for key in keys {
            std::hint::black_box(self.table.find(key.hash, |_| false));
        }
    }

    /// Makes room for about this many more objects under keys of their own, which are ranked when
    /// all have entered ([`Shard::rank_expected`]).
    pub(crate) fn expect(&mut self, objects: usize) {
        let Shard { table, slots, heads, seed, ranking, .. } = self;
        // A little more, since keys are not spread evenly.
        let objects = objects + objects / 16;
        table.reserve(objects, |entry| hash_of_entry(slots, heads, *entry, seed));
        slots.reserve(objects);
        ranking.expect();
    }

    /// Sorts the variants of every key by their origin, the youngest last: lookups see that one
    /// first.
    pub(crate) fn order_variants(&mut self) {
        let Shard { heads, slots, .. } = self;
        for head in heads.iter_mut().flatten() {
            let origin = |slot: &u32| slots.get(*slot).map_or(0.0, |object| object.origin());
            head.variants.sort_by(|one, other| origin(one).total_cmp(&origin(other)));
        }
    }

    /// True if this very object is in the index.
    pub(crate) fn holds(&self, object: &Arc<Object>) -> bool {
        self.slots.get(object.slot()).is_some_and(|held| Arc::ptr_eq(held, object))
    }

    /// The object in a slot, if it has that number and the index holds the only handle.
    pub(crate) fn unused(&self, slot: u32, xid: u32) -> Option<&Arc<Object>> {
        self.slots.get(slot).filter(|object| object.xid() == xid && Arc::strong_count(object) == 1)
    }

    /// Takes an object out. `None` when the slot is empty; else the object, and true if its key is
    /// gone altogether.
    pub(crate) fn remove(&mut self, digest: &Digest, slot: u32) -> Option<(Arc<Object>, bool)> {
        self.slots.get(slot)?;
        let key_is_gone = match self.find(digest) {
            Some(Found::One(found)) if found == slot => {
                self.remove_entry(digest);
                true
            }
            Some(Found::Head(number)) => {
                if let Some(head) = self.heads[number as usize].as_deref_mut() {
                    head.variants.retain(|variant| *variant != slot);
                }
                self.simplify(digest)
            }
            _ => false,
        };
        self.wheel.remove(&mut self.slots, slot);
        self.ranking.removed(slot, &self.slots, &self.seed);
        let object = self.slots.take(slot)?;
        self.markers.removed(&object);
        Some((object, key_is_gone))
    }

    /// Replaces an object with another one that has the same key and lifetime; returns the old one.
    pub(crate) fn exchange(&mut self, slot: u32, object: Arc<Object>) -> Option<Arc<Object>> {
        self.ranking.removed(slot, &self.slots, &self.seed);
        let old = self.slots.exchange(slot, object);
        self.ranking.inserted(slot, &self.slots, &self.seed);
        old
    }

    /// Informs the wheel that an object's lifetime has changed.
    pub(crate) fn reschedule(&mut self, slot: u32, due: u32) {
        self.wheel.remove(&mut self.slots, slot);
        self.wheel.add(&mut self.slots, slot, due);
    }

    /// Advances the time; the slots of expired objects are appended to `dead`.
    pub(crate) fn advance(&mut self, now: u32, due_of: impl Fn(&Object) -> u32, dead: &mut Vec<u32>) {
        let due = |slots: &Slots, slot| slots.get(slot).map_or(0, |object| due_of(object));
        self.wheel.advance(&mut self.slots, now, due, |slot| dead.push(slot));
    }

    /// The time at which the wheel needs to be advanced next.
    pub(crate) fn next_tick(&self) -> Option<u32> {
        self.wheel.next_tick()
    }

    /// Ranks the objects of a storage anew, by this policy.
    pub(crate) fn rank_by(&mut self, store: u8, policy: EvictionPolicy) {
        self.ranking.choose(store, policy, &self.slots, &self.seed);
    }

    /// Ranks the objects that were expected.
    pub(crate) fn rank_expected(&mut self) {
        self.ranking.rank_expected();
    }

    /// Urgency with which the shard should give an object of a storage; `None` if only the time of
    /// last use ranks them.
    pub(crate) fn pressure(&self, store: u8) -> Option<Pressure> {
        self.ranking.pressure(store)
    }

    /// The marker that a new marker would displace next.
    pub(crate) fn oldest_marker(&mut self) -> Option<OldMarker> {
        self.markers.oldest(&self.slots)
    }

    /// The object of a storage that its policy would evict next.
    pub(crate) fn victim(&mut self, store: u8) -> Option<u32> {
        self.ranking.victim(store, &self.slots, &self.seed)
    }
}
