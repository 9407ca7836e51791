//! Slices: a resource whose body is stored in several other objects.
//!
//! ```text
//! key of the resource ──▶ head object: a note, no body
//! note, n             ──▶ key of slice n ──▶ slice n
//! ```
//!
//! Like a compressed copy, a slice is stored under a key that no request can look up, so only a
//! lookup of the head leads to it, and a purge, a ban or the expiry of the head hides all of them
//! at once, even after a restart of the worker. The note (`message::stored_notes`) is in the slices
//! too, as a tag: when a head has left the index, is no longer being read, and no newer head has
//! its note, its slices are removed by the next [`Cache::tick`]. Slices whose head left in an
//! earlier process are not taken over (`adoption.rs`). Bans are not tested on slices at a lookup:
//! the head has just passed all of them.
//!
//! *Invariant:* a removal of the head removes its slices. A worker takes over no slice without its
//! head.

use crate::removal::dies_at;
use crate::removal_history::RemovalCause;
use crate::{Busy, Cache, Inner, USE_UNITS, Waiter};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::HashSet;
use std::sync::Arc;
use store::{Object, ObjectFlags};
use surface::limits::SLICE_ORPHANS_MAX;
use surface::reason::RemovalReason;

/// Number of slices examined while a shard may be locked.
const BATCH: usize = 64;

/// A note with its mark, as a tag.
type Note = [u8; message::NOTE_BYTES];

/// Heads that have left the index.
#[derive(Default)]
pub(crate) struct Orphans(Mutex<Vec<Arc<Object>>>);

/// Heads and slices of an earlier process.
#[derive(Default)]
pub(crate) struct Families {
    heads: HashSet<Note>,
    slices: Vec<(Note, Arc<Object>)>,
}

impl Families {
    /// Keeps a slice until all heads have been seen, and returns any other object.
    pub(crate) fn takes_apart(&mut self, object: Arc<Object>, now: f64) -> Option<Arc<Object>> {
        let flags = object.flags();
        if flags.is_sliced() {
            // A slice whose head has expired has no use.
            self.heads.extend(note_of(&object).filter(|_| dies_at(&object) > now));
        } else if flags.has(ObjectFlags::PARTIAL)
            && let Some(note) = note_of_slice(&object)
        {
            self.slices.push((note, object));
            return None;
        }
        Some(object)
    }

    /// Adds the families of another part.
    pub(crate) fn join(&mut self, other: Families) {
        self.heads.extend(other.heads);
        self.slices.extend(other.slices);
    }

    /// The slices that have heads; the others are removed.
    pub(crate) fn slices_with_heads(self) -> Vec<Arc<Object>> {
        let (kept, orphans): (Vec<_>, Vec<_>) =
            self.slices.into_iter().partition(|(note, _)| self.heads.contains(note));
        orphans.iter().for_each(|(_, slice)| slice.remove());
        kept.into_iter().map(|(_, slice)| slice).collect()
    }
}

/// Result of a lookup of a slice.
#[derive(Debug)]
pub enum SliceLookup {
    /// It is stored, or being fetched.
    Found(Arc<Object>),
    /// It is not being fetched: the caller has promised to fetch it.
    Miss(Busy),
    /// Another request fetches it and has published nothing yet.
    Wait(Waiter),
}

impl Cache {
    /// Looks for the slice under a derived key at `now`, seconds since 1970. `lives_until`: the
    /// least expiry time that a slice found is given. An object that an earlier process stored may
    /// have to be checked first, as after a lookup.
    #[must_use]
    pub fn slice(&self, key: &[u8; 32], now: f64, lives_until: f64) -> SliceLookup {
        let inner = &*self.inner;
        inner.see(now);
        let digest = inner.digest(key);
        let mut shard = inner.lock(&digest);
        let slots: SmallVec<[u32; 4]> = shard.variants(shard.find(&digest)).collect();
        let mut removed = SmallVec::<[Arc<Object>; 4]>::new();
        let mut found = None;
        for slot in slots {
            match shard.slots.get(slot).map(|object| object.is_usable() && dies_at(object) > now) {
                Some(true) => found = shard.slots.get(slot).map(Arc::clone),
                Some(false) => {
                    removed.extend(inner.discard(
                        &mut shard,
                        &digest,
                        slot,
                        RemovalCause::Other(RemovalReason::Dropped),
                    ));
                    continue;
                }
                None => continue,
            }
            break;
        }
        let answer = match found {
            Some(object) => {
                inner.bans.pass(&object);
                let interval = (inner.parameters.lru_interval.get() * USE_UNITS) as u32;
                object.touch(inner.use_units(now), 1, interval.max(1));
                if dies_at(&object) + 1.0 < lives_until {
                    object.set_lifetime(lives_until - object.origin(), 0.0, 0.0);
                    let due = inner.tick_of(dies_at(&object));
                    shard.reschedule(object.slot(), due);
                }
                SliceLookup::Found(object)
            }
            None if shard.existing_head(&digest).is_some_and(|head| !head.busy.is_empty()) => {
                SliceLookup::Wait(Waiter::new(self, &mut shard, &digest, None))
            }
            None => SliceLookup::Miss(Busy::new(self, &mut shard, &digest, Vec::new()).bounded(true)),
        };
        shard.settle(&inner.stores);
        drop(shard);
        for removed in removed {
            inner.log_removal(&removed);
        }
        answer
    }

    /// Removes the slices of heads that have left the index and have no readers.
    pub(crate) fn remove_orphaned_slices(&self, now: f64) {
        let mut orphans = std::mem::take(&mut *self.inner.orphans.0.lock());
        orphans.retain(|head| {
            let is_read = Arc::strong_count(head) > 1;
            if let Some(note) = note_of(head).filter(|_| !is_read)
                && !self.inner.has_head(&note)
            {
                let mut purge = self.purge_orphans(Arc::from(&note[..]), now);
                while !purge.step(BATCH) {}
            }
            is_read
        });
        self.inner.orphans.0.lock().append(&mut orphans);
    }
}

/// The last note of a head, which names its slices.
fn note_of(head: &Object) -> Option<Note> {
    message::stored_notes(head.head()).last()?.try_into().ok()
}

/// The note of a slice; `None` for a part of another kind, whose head is that of a response.
fn note_of_slice(object: &Object) -> Option<Note> {
    let (mut headers, mut notes) = (message::stored_headers(object.head()), message::stored_notes(object.head()));
    let is_bare = headers.next()?.is("Content-Range") && headers.next().is_none();
    let note = notes.next().filter(|_| is_bare && notes.next().is_none())?;
    note.try_into().ok()
}

impl Inner {
    /// Records a head that leaves the index. The shard's lock is held.
    pub(crate) fn orphan(&self, head: &Arc<Object>) {
        let mut orphans = self.orphans.0.lock();
        if orphans.len() < SLICE_ORPHANS_MAX {
            orphans.push(Arc::clone(head));
        }
    }

    /// True if a head with this note is in the index.
    fn has_head(&self, note: &Note) -> bool {
        self.any_tagged(note, BATCH, |object| object.flags().is_sliced() && !object.is_removed())
    }
}
