//! The `ExpKill` records of an object's life, for those who have unmasked them: when it will die, that this has changed,
//! and why it was removed.
//!
//! Compat: texts and order are those of Varnish 7.1.1, whose expiry thread gets a letter (`EXP_Inbox`) for each change;
//! so are the flags. Its record about waking up for the next object (`EXP_expire`) has no counterpart here. Nothing is
//! formatted while the tag is masked.

use crate::{Inner, removal};
use std::fmt::Arguments;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use store::Object;
use surface::tag::Tag;

/// Flags of a letter and of the object after it: for a new object and a changed one; and of the letter about a removed
/// one.
const ARRIVAL: u32 = 0x1e;
const CHANGE: u32 = 0xe;
const REMOVAL: u32 = 0x26;

impl Inner {
    /// Whether anybody wants to know. Asked before an object is looked at: that takes longer than all else of these records when
    /// millions come at once.
    fn is_told(&self) -> bool {
        self.parameters.logs_expiry.load(Relaxed)
    }

    fn tell(&self, payload: Arguments<'_>) {
        if self.is_told() {
            self.log(Tag::ExpKill, payload);
        }
    }

    fn letter(&self, object: &Arc<Object>, letter: u32, dies_at: f64, flags: u32) {
        let at = Arc::as_ptr(object);
        self.tell(format_args!("EXP_Inbox flg={letter:x} p={at:p} e={dies_at:.6} f={flags:#x}"));
    }

    fn when(&self, object: &Arc<Object>, flags: u32) {
        let dies_at = removal::dies_at(object);
        self.tell(format_args!("EXP_When p={:p} e={dies_at:.6} f={flags:#x}", Arc::as_ptr(object)));
    }

    /// An object enters the index.
    pub(crate) fn log_arrival(&self, object: &Arc<Object>) {
        if self.is_told() {
            self.letter(object, ARRIVAL, 0.0, 0);
            self.when(object, ARRIVAL);
        }
    }

    /// The end of the object's life has changed; it was `died_at`.
    pub(crate) fn log_change(&self, object: &Arc<Object>, died_at: f64) {
        let dies_at = removal::dies_at(object);
        self.tell(format_args!("EXP_Rearm p={:p} E={died_at:.6} e={dies_at:.6} f=0x0", Arc::as_ptr(object)));
        self.letter(object, CHANGE, died_at, 0);
        self.when(object, CHANGE);
    }

    /// The object was banned or replaced by a newer one.
    pub(crate) fn log_removal(&self, object: &Arc<Object>) {
        self.letter(object, REMOVAL, removal::dies_at(object), 0x80);
    }

    /// The object has expired, `left` seconds ago (a negative number).
    pub(crate) fn log_expiry(&self, object: &Object, left: f64) {
        self.tell(format_args!("EXP_Expired x={} t={left:.0}", object.xid()));
    }

    /// The object was evicted to make room.
    pub(crate) fn log_eviction(&self, object: &Object) {
        self.tell(format_args!("LRU x={}", object.xid()));
    }
}
