//! An allocator that counts, for tests that are a process of their own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Passes everything on, and counts on each thread.
pub struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Number of allocations by this thread, including reallocations.
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}

// SAFETY: every call is the system allocator's; counting allocates nothing, since the counter needs
// no initialisation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: guaranteed by the caller of this function.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is passed on.
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller of this function.
        unsafe { System.dealloc(place, layout) }
    }

    // SAFETY: as above.
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: guaranteed by the caller of this function.
        unsafe { System.realloc(place, layout, size) }
    }
}
