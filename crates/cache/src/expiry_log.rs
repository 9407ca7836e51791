//! What `ExpKill` records say of an object's life, for those who have unmasked them: when it will die, that this has changed, and
//! why it went.
//!
//! Compat: texts and order are those of Varnish 7.1.1, whose expiry thread gets a letter (`EXP_Inbox`) for each change; the
//! flags are those that it has then. Its waking up for each next object (`EXP_expire`) has nothing here that it could stand
//! for. Nothing is formatted while the tag is masked.

use crate::{Inner, removal};
use std::fmt::Arguments;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use store::Object;
use surface::tag::Tag;

/// Flags of a letter and of the object after it: a new object, a changed one; and of a letter about one that goes.
const ARRIVAL: u32 = 0x1e;
const CHANGE: u32 = 0xe;
const REMOVAL: u32 = 0x26;

impl Inner {
    fn tell(&self, payload: Arguments<'_>) {
        if self.parameters.logs_expiry.load(Relaxed) {
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
        self.letter(object, ARRIVAL, 0.0, 0);
        self.when(object, ARRIVAL);
    }

    /// Its life, which was to end at `died_at`, has another end now.
    pub(crate) fn log_change(&self, object: &Arc<Object>, died_at: f64) {
        let dies_at = removal::dies_at(object);
        self.tell(format_args!("EXP_Rearm p={:p} E={died_at:.6} e={dies_at:.6} f=0x0", Arc::as_ptr(object)));
        self.letter(object, CHANGE, died_at, 0);
        self.when(object, CHANGE);
    }

    /// It was banned, or something newer has taken its place.
    pub(crate) fn log_removal(&self, object: &Arc<Object>) {
        self.letter(object, REMOVAL, removal::dies_at(object), 0x80);
    }

    /// Its life is over: it ended `left` seconds ago, as a negative number.
    pub(crate) fn log_expiry(&self, object: &Object, left: f64) {
        self.tell(format_args!("EXP_Expired x={} t={left:.0}", object.xid()));
    }

    /// It made room for others.
    pub(crate) fn log_eviction(&self, object: &Object) {
        self.tell(format_args!("LRU x={}", object.xid()));
    }
}
