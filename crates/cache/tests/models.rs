//! The index between threads, tried in every order that the memory model allows: lookup, insertion,
//! removal and eviction, and the waiting list.
//!
//! Models, written out with the locks and atomics of the sources (`shard.rs`, `removal.rs`,
//! `busy.rs`); loom runs them in all orders. The memory of an object is a cell that is written when
//! it is freed, as the arena's bytes are when the next object gets them: loom fails if it can still
//! be read then.

use loom::cell::UnsafeCell;
use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use loom::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize};
use loom::sync::{Arc, Mutex};
use loom::thread;
use std::collections::VecDeque;

const REMOVED: u64 = 1;
const BODY: u64 = 42;
const REUSED: u64 = 13;

/// An object: its flags and its bytes.
struct Object {
    flags: AtomicU64,
    bytes: Arc<UnsafeCell<u64>>,
}

impl Object {
    fn new(bytes: &Arc<UnsafeCell<u64>>) -> Arc<Object> {
        Arc::new(Object { flags: AtomicU64::new(0), bytes: Arc::clone(bytes) })
    }

    /// The bytes sent to a client after the lock was released.
    fn read(&self) -> u64 {
        // SAFETY: loom checks that no thread writes it meanwhile.
        self.bytes.with(|bytes| unsafe { *bytes })
    }
}

impl Drop for Object {
    /// With the last handle the memory is reused, if the object was removed.
    fn drop(&mut self) {
        if self.flags.load(Acquire) & REMOVED != 0 {
            // SAFETY: loom checks that no thread reads or writes it meanwhile.
            self.bytes.with_mut(|bytes| unsafe { *bytes = REUSED });
        }
    }
}

/// A shard with room for one object.
#[derive(Default)]
struct Shard {
    object: Option<Arc<Object>>,
}

/// `Cache::lookup`: the handle is taken under the lock, the bytes are read without it.
fn look(shard: &Mutex<Shard>) -> Option<Arc<Object>> {
    let shard = shard.lock().unwrap();
    shard.object.as_ref().filter(|object| object.flags.load(Acquire) & REMOVED == 0).cloned()
}

/// `Inner::discard`: first the mark, then the index; the handle is dropped after the lock.
fn discard(shard: &Mutex<Shard>) {
    let mut locked = shard.lock().unwrap();
    if let Some(object) = &locked.object {
        object.flags.fetch_or(REMOVED, AcqRel);
    }
    let object = locked.object.take();
    drop(locked);
    drop(object);
}

#[test]
fn reader_keeps_its_object_after_a_removal() {
    loom::model(|| {
        let bytes = Arc::new(UnsafeCell::new(BODY));
        let shard = Arc::new(Mutex::new(Shard { object: Some(Object::new(&bytes)) }));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let shard = Arc::clone(&shard);
                thread::spawn(move || {
                    if let Some(object) = look(&shard) {
                        assert_eq!(object.read(), BODY);
                    }
                })
            })
            .collect();
        discard(&shard);
        assert!(look(&shard).is_none(), "what was removed is found again");
        for reader in readers {
            reader.join().unwrap();
        }
        // No handle is left, so its memory belongs to the next object.
        // SAFETY: loom checks that no thread writes it meanwhile.
        assert_eq!(bytes.with(|bytes| unsafe { *bytes }), REUSED);
    });
}

/// A purge removes the present object and not later ones; a lookup that follows the purge sees only
/// a later one.
#[test]
fn an_insert_a_removal_and_a_lookup_agree_on_what_is_there() {
    loom::model(|| {
        let (old, new) = (Arc::new(UnsafeCell::new(BODY)), Arc::new(UnsafeCell::new(BODY)));
        let shard = Arc::new(Mutex::new(Shard { object: Some(Object::new(&old)) }));
        let inserted = Arc::new(AtomicUsize::new(0));
        let insert = {
            let (shard, inserted, new) = (Arc::clone(&shard), Arc::clone(&inserted), Arc::clone(&new));
            thread::spawn(move || {
                let object = Object::new(&new);
                let before = {
                    let mut shard = shard.lock().unwrap();
                    inserted.store(1, Release);
                    if let Some(before) = &shard.object {
                        before.flags.fetch_or(REMOVED, AcqRel);
                    }
                    shard.object.replace(object)
                };
                drop(before);
            })
        };
        let remover = {
            let shard = Arc::clone(&shard);
            thread::spawn(move || discard(&shard))
        };
        if let Some(object) = look(&shard) {
            assert_eq!(object.read(), BODY);
        }
        insert.join().unwrap();
        remover.join().unwrap();
        let left = shard.lock().unwrap().object.take();
        if let Some(left) = &left {
            assert_eq!((left.read(), left.flags.load(Acquire)), (BODY, 0), "half removed");
        }
        // The old one is gone in any case; the new one only if the removal came after it.
        // SAFETY: loom checks that no thread writes it meanwhile.
        assert_eq!(old.with(|bytes| unsafe { *bytes }), REUSED);
        assert_eq!(inserted.load(Acquire), 1);
    });
}

/// The word of use (hits together with the time of the last one) is changed without a
/// read-modify-write, under the lock; the evictor reads it without the lock, and sees both halves
/// of one change.
#[test]
fn uses_that_are_counted_under_the_lock_are_all_counted() {
    loom::model(|| {
        let shard = Arc::new((Mutex::new(()), AtomicU64::new(0)));
        let touch = |shard: &(Mutex<()>, AtomicU64)| {
            let _locked = shard.0.lock().unwrap();
            let old = shard.1.load(Relaxed);
            let hits = (old & 0xffff_ffff) + 1;
            shard.1.store(hits | hits << 32, Relaxed);
        };
        let other = {
            let shard = Arc::clone(&shard);
            thread::spawn(move || touch(&shard))
        };
        let evictor = {
            let shard = Arc::clone(&shard);
            thread::spawn(move || {
                let word = shard.1.load(Acquire);
                assert_eq!(word >> 32, word & 0xffff_ffff, "half of a change");
            })
        };
        touch(&shard);
        other.join().unwrap();
        evictor.join().unwrap();
        assert_eq!(shard.1.load(Relaxed), 2 | 2 << 32);
    });
}

const PARKED: u8 = 0;
const WOKEN: u8 = 1;
const GONE: u8 = 2;

/// The waiting list of one key, from which one waiter is woken at a time.
#[derive(Default)]
struct Waiting {
    queue: VecDeque<Arc<AtomicU8>>,
}

/// `Inner::rush`.
fn rush(list: &mut Waiting) {
    while let Some(waiting) = list.queue.pop_front() {
        if waiting.compare_exchange(PARKED, WOKEN, AcqRel, Acquire).is_ok() {
            return;
        }
    }
}

/// `Waiter::drop`: one that has been woken passes the wake on.
fn leave(list: &Mutex<Waiting>, waiting: &AtomicU8) {
    if waiting.compare_exchange(PARKED, GONE, AcqRel, Acquire).is_ok() {
        return;
    }
    rush(&mut list.lock().unwrap());
}

/// Two of three waiters give up at any moment while the fetch ends: the third is woken.
#[test]
fn a_wake_is_not_lost_with_those_who_give_up() {
    loom::model(|| {
        let places: Vec<_> = (0..3).map(|_| Arc::new(AtomicU8::new(PARKED))).collect();
        let list = Arc::new(Mutex::new(Waiting { queue: places.iter().map(Arc::clone).collect() }));
        let cause: Vec<_> = places[..2]
            .iter()
            .map(|waiting| {
                let (list, waiting) = (Arc::clone(&list), Arc::clone(waiting));
                thread::spawn(move || leave(&list, &waiting))
            })
            .collect();
        rush(&mut list.lock().unwrap());
        for thread in cause {
            thread.join().unwrap();
        }
        assert_eq!(places[2].load(Acquire), WOKEN, "somebody waits and nobody will wake it");
    });
}

/// A self-test of the models: a removal that frees the memory while readers may have it is
/// detected.
#[test]
#[should_panic(expected = "Causality violation")]
fn memory_that_is_reused_too_early_is_found_out() {
    loom::model(|| {
        let bytes = Arc::new(UnsafeCell::new(BODY));
        let shard = Arc::new(Mutex::new(Shard { object: Some(Object::new(&bytes)) }));
        let reader = {
            let shard = Arc::clone(&shard);
            thread::spawn(move || look(&shard).map(|object| object.read()))
        };
        discard(&shard);
        // SAFETY: this does not hold; loom must detect that.
        bytes.with_mut(|bytes| unsafe { *bytes = REUSED });
        reader.join().unwrap();
    });
}
