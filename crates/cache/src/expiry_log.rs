//! The `ExpKill` records of an object's life, written if the tag is unmasked: the time at which it
//! expires, changes of that time, and the reason for its removal.
//!
//! Compat: texts, order and flags are those of Varnish 7.1.1. Its expiry thread receives a letter
//! (`EXP_Inbox`) for each change, and writes `EXP_expire` about the object that expires next
//! whenever it wakes up or has worked: before the letter, after it, and before that object leaves.
//! There is no such thread here, so the object is found in a [`Timeline`]. Nothing is formatted or
//! kept while the tag is masked.

use crate::{Inner, removal};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt::Arguments;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use store::{Object, ObjectFlags};
use surface::limits::EXPIRY_LOG_OBJECTS_MAX;
use surface::tag::Tag;

/// Flags of a letter and of the object after it: for a new object and a changed one; and of the
/// letter about a removed one.
const ARRIVAL: u32 = 0x1e;
const CHANGE: u32 = 0xe;
const REMOVAL: u32 = 0x26;
/// Flags of an object: those of markers, of one that its first client no longer needs (here: a
/// marker once its fetch has ended), and of a removed one.
const HIT_FOR_MISS: u32 = 0x4;
const HIT_FOR_PASS: u32 = 0xc;
const CANCELLED: u32 = 0x10;
const DYING: u32 = 0x80;
/// Time in seconds after which an entry of the timeline that has expired is dropped unseen.
const OVERDUE_SECONDS: f64 = 10.0;
/// Least delay with which an expiry is logged, in seconds: the thread of Varnish is always late,
/// and scripts wait for a negative number.
const LATE_SECONDS: f64 = 1e-6;

/// The flags of an object when it enters the index.
fn flags_of(object: &Object) -> u32 {
    let flags = object.flags();
    if flags.has(ObjectFlags::HIT_FOR_PASS) {
        HIT_FOR_PASS
    } else if flags.has(ObjectFlags::HIT_FOR_MISS) {
        HIT_FOR_MISS
    } else {
        0
    }
}

/// The flags of an object later on.
fn later_flags_of(object: &Object) -> u32 {
    match flags_of(object) {
        0 => 0,
        marker => marker | CANCELLED,
    }
}

fn address(object: &Object) -> usize {
    std::ptr::from_ref(object).addr()
}

/// The flags of the objects that have entered since the tag was unmasked, by the time at which they
/// expire (the bits of a non-negative `f64`) and address.
type Entries = BTreeMap<(u64, usize), u32>;

/// The objects that expire next, at most [`EXPIRY_LOG_OBJECTS_MAX`]; empty while the tag is masked.
#[derive(Default)]
pub(crate) struct Timeline(Mutex<Entries>);

impl Timeline {
    /// Frees the memory.
    pub(crate) fn clear(&self) {
        *self.0.lock() = Entries::new();
    }
}

fn key(object: &Object, dies_at: f64) -> (u64, usize) {
    (dies_at.max(0.0).to_bits(), address(object))
}

fn add(entries: &mut Entries, object: &Object) {
    entries.insert(key(object, removal::dies_at(object)), later_flags_of(object));
    if entries.len() > EXPIRY_LOG_OBJECTS_MAX {
        entries.pop_last();
    }
}

impl Inner {
    /// True if the records are wanted. Examined before an object is: that takes longer than the
    /// rest of these functions when millions come at once.
    pub(crate) fn is_told(&self) -> bool {
        self.parameters.logs_expiry.load(Relaxed)
    }

    fn tell(&self, payload: Arguments<'_>) {
        if self.is_told() {
            self.log(Tag::ExpKill, payload);
        }
    }

    fn letter(&self, object: &Object, letter: u32, dies_at: f64, flags: u32) {
        let at = std::ptr::from_ref(object);
        self.tell(format_args!("EXP_Inbox flg={letter:x} p={at:p} e={dies_at:.6} f={flags:#x}"));
    }

    fn when(&self, object: &Object, dies_at: f64, flags: u32) {
        let at = std::ptr::from_ref(object);
        self.tell(format_args!("EXP_When p={at:p} e={dies_at:.6} f={flags:#x}"));
    }

    fn rearm(&self, object: &Object, died_at: f64, dies_at: f64, flags: u32) {
        let at = std::ptr::from_ref(object);
        self.tell(format_args!("EXP_Rearm p={at:p} E={died_at:.6} e={dies_at:.6} f={flags:#x}"));
    }

    fn due(&self, address: usize, left: f64, flags: u32) {
        self.tell(format_args!("EXP_expire p={address:#x} e={left:.6} f={flags:#x}"));
    }

    /// Writes the record about the object that expires next; `flags` for this object if it is that
    /// one.
    fn next_due(&self, entries: &mut Entries, now: f64, flags: Option<(&Object, u32)>) {
        while let Some(entry) = entries.first_entry() {
            let ((bits, at), flags_now) = (*entry.key(), *entry.get());
            let left = f64::from_bits(bits) - now;
            if left < -OVERDUE_SECONDS {
                entry.remove();
                continue;
            }
            let shown = flags.filter(|(object, _)| address(object) == at).map_or(flags_now, |(_, flags)| flags);
            self.due(at, left, shown);
            break;
        }
    }

    /// An object enters the index.
    pub(crate) fn log_arrival(&self, object: &Arc<Object>) {
        if !self.is_told() {
            return;
        }
        let mut entries = self.timeline.0.lock();
        let (now, flags) = (self.recent(), flags_of(object));
        self.next_due(&mut entries, now, None);
        self.letter(object, ARRIVAL, 0.0, flags);
        self.when(object, removal::dies_at(object), ARRIVAL);
        add(&mut entries, object);
        self.next_due(&mut entries, now, Some((object, flags)));
    }

    /// An object of an earlier process enters the index, one of many at once.
    pub(crate) fn log_adoption(&self, object: &Arc<Object>) {
        if self.is_told() {
            self.letter(object, ARRIVAL, 0.0, flags_of(object));
            self.when(object, removal::dies_at(object), ARRIVAL);
            add(&mut self.timeline.0.lock(), object);
        }
    }

    /// The end of the object's life has changed; it was `died_at`.
    pub(crate) fn log_change(&self, object: &Arc<Object>, died_at: f64) {
        if !self.is_told() {
            return;
        }
        let mut entries = self.timeline.0.lock();
        let (now, flags, dies_at) = (self.recent(), later_flags_of(object), removal::dies_at(object));
        self.rearm(object, died_at, dies_at, flags);
        self.next_due(&mut entries, now, None);
        self.letter(object, CHANGE, died_at, flags);
        self.when(object, dies_at, CHANGE);
        entries.remove(&key(object, died_at));
        add(&mut entries, object);
        self.next_due(&mut entries, now, None);
    }

    /// The object was banned, evicted or replaced by a newer one.
    pub(crate) fn log_removal(&self, object: &Arc<Object>) {
        if !self.is_told() {
            return;
        }
        let mut entries = self.timeline.0.lock();
        let (now, flags, dies_at) = (self.recent(), later_flags_of(object) | DYING, removal::dies_at(object));
        self.next_due(&mut entries, now, Some((object, flags)));
        self.letter(object, REMOVAL, dies_at, flags);
        entries.remove(&key(object, dies_at));
        self.next_due(&mut entries, now, None);
    }

    /// The object has expired at `now` or before.
    pub(crate) fn log_expiry(&self, object: &Object, now: f64) {
        if !self.is_told() {
            return;
        }
        let mut entries = self.timeline.0.lock();
        let (dies_at, left) = (removal::dies_at(object), (object.origin() + object.ttl() - now).min(-LATE_SECONDS));
        self.due(address(object), (dies_at - now).min(-LATE_SECONDS), later_flags_of(object));
        entries.remove(&key(object, dies_at));
        self.tell(format_args!("EXP_Expired x={} t={left:.0}", object.vxid()));
        // Others that are due have a record of their own soon.
        if entries.first_key_value().is_some_and(|((bits, _), _)| f64::from_bits(*bits) > now) {
            self.next_due(&mut entries, now, None);
        }
    }

    /// The object was purged; `left` is the rest of its time to live that is logged. Compat: the
    /// purge makes the object expire at `now`.
    pub(crate) fn log_purge(&self, object: &Object, now: f64, left: f64) {
        if !self.is_told() {
            return;
        }
        let mut entries = self.timeline.0.lock();
        let (flags, died_at) = (later_flags_of(object), removal::dies_at(object));
        self.rearm(object, died_at, now, flags);
        self.next_due(&mut entries, now, None);
        self.letter(object, CHANGE, died_at, flags);
        self.when(object, now, CHANGE);
        self.due(address(object), -LATE_SECONDS, flags);
        entries.remove(&key(object, died_at));
        self.tell(format_args!("EXP_Expired x={} t={left:.0}", object.vxid()));
        self.next_due(&mut entries, now, None);
    }

    /// The object was evicted to make room.
    pub(crate) fn log_eviction(&self, object: &Arc<Object>) {
        if self.is_told() {
            let (at, flags) = (std::ptr::from_ref::<Object>(object), later_flags_of(object));
            self.tell(format_args!("LRU_Cand p={at:p} f={flags:#x} r=1"));
            self.tell(format_args!("LRU x={}", object.vxid()));
            self.log_removal(object);
        }
    }

    /// There was nothing to evict.
    pub(crate) fn log_full(&self) {
        self.tell(format_args!("LRU_Fail"));
    }
}
