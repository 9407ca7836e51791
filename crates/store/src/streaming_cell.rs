//! [`StreamingCell`]: the place in an object's handle for its [`Streaming`], set at creation and
//! emptied once.
//!
//! One word, since there is a handle for every object in the index: the lowest bit of the pointer
//! is a lock, held for the few instructions that read the pointer and count the new reference. An
//! empty cell takes no lock, and that is the state of every complete object.
//!
//! Measured alternative: `arc_swap::ArcSwapOption` visits the debt list of every thread that ever
//! loaded one when a value is replaced or dropped, which is 11 × (event loops + 1) locked
//! instructions for each pass or miss. Here the number does not depend on other threads.

use crate::streaming::Streaming;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

const LOCKED: usize = 1;
const _: () = assert!(align_of::<Streaming>() > LOCKED);

/// An `Option<Arc<Streaming>>` that several threads read and one of them empties.
///
/// The pointer is null, or comes from `Arc::into_raw` and carries one count of that `Arc`.
pub(crate) struct StreamingCell(AtomicPtr<Streaming>);

impl StreamingCell {
    pub(crate) const fn empty() -> StreamingCell {
        StreamingCell(AtomicPtr::new(null_mut()))
    }

    pub(crate) fn new(streaming: Streaming) -> StreamingCell {
        StreamingCell(AtomicPtr::new(Arc::into_raw(Arc::new(streaming)).cast_mut()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Acquire).is_null()
    }

    /// A reference of the caller's own; `None` once the cell is empty.
    pub(crate) fn get(&self) -> Option<Arc<Streaming>> {
        let pointer = self.lock()?;
        // SAFETY: the cell is not empty, so its pointer comes from `Arc::into_raw` and holds a
        // count. No thread takes that count while this thread holds the lock.
        unsafe { Arc::increment_strong_count(pointer) };
        self.0.store(pointer, Release);
        // SAFETY: the count that was just added belongs to this `Arc`.
        Some(unsafe { Arc::from_raw(pointer) })
    }

    /// Empties the cell. Exactly one of several callers gets the content.
    pub(crate) fn take(&self) -> Option<Arc<Streaming>> {
        let pointer = self.lock()?;
        self.0.store(null_mut(), Release);
        // SAFETY: the pointer comes from `Arc::into_raw`. Its count was the cell's, which no longer
        // has it.
        Some(unsafe { Arc::from_raw(pointer) })
    }

    /// Like [`StreamingCell::take`], without a lock: for a handle that only its owner can still
    /// reach.
    pub(crate) fn take_mut(&mut self) -> Option<Arc<Streaming>> {
        let pointer = std::mem::replace(self.0.get_mut(), null_mut());
        // SAFETY: as in `take`. No lock is held: a lock ends before its borrow of the cell does.
        (!pointer.is_null()).then(|| unsafe { Arc::from_raw(pointer) })
    }

    /// Locks a cell that is not empty and returns its pointer. The caller stores a pointer without
    /// the lock bit, at once and without a panic in between.
    fn lock(&self) -> Option<*mut Streaming> {
        let mut tries = 0_u32;
        loop {
            let pointer = self.0.load(Acquire);
            if pointer.is_null() {
                return None;
            }
            let is_locked = pointer.addr() & LOCKED != 0;
            let locked = pointer.map_addr(|address| address | LOCKED);
            if !is_locked && self.0.compare_exchange_weak(pointer, locked, Acquire, Relaxed).is_ok() {
                return Some(pointer);
            }
            // The holder may have lost its core.
            tries += 1;
            if tries.is_multiple_of(64) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

impl Drop for StreamingCell {
    fn drop(&mut self) {
        drop(self.take_mut());
    }
}

#[cfg(test)]
mod tests {
    use crate::Store;
    use crate::attributes::ObjectAttributes;
    use std::sync::Barrier;

    #[test]
    fn one_of_several_threads_empties_a_cell_and_every_reference_is_counted() {
        let store = Store::in_memory(1 << 20).unwrap();
        for round in 0..if cfg!(miri) { 5 } else { 500 } {
            let attributes = ObjectAttributes { xid: round, ..ObjectAttributes::default() };
            let object = store.create(&attributes, b"the head").unwrap();
            let kept = object.streaming.get().unwrap();
            let barrier = Barrier::new(3);
            let taken: usize = std::thread::scope(|scope| {
                let threads = [false, true, true].map(|takes| {
                    let (object, barrier) = (&object, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        if takes {
                            return usize::from(object.streaming.take().is_some());
                        }
                        let _references: Vec<_> = (0..50).map_while(|_| object.streaming.get()).collect();
                        0
                    })
                });
                threads.into_iter().map(|thread| thread.join().unwrap()).sum()
            });
            assert_eq!(taken, 1);
            assert!(object.streaming.is_empty() && object.streaming.get().is_none());
            assert_eq!(std::sync::Arc::strong_count(&kept), 1);
        }
    }
}
