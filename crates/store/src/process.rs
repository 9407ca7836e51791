//! The private memory of the process: gives memory that the allocator holds free back to the system, and says how much is in use.
//!
//! The system allocator keeps freed memory inside its heaps for ever, unless it lies at their very end. See
//! `docs/decisions/memory-is-given-back.md`.

/// Gives free pages of all heaps back. Holds each heap's lock while working on that heap (0.1 ms to several ms), so call
/// it only now and then, when much was freed. False when there was nothing to give back, or the allocator cannot.
pub fn give_back_free_memory() -> bool {
    #[cfg(target_env = "gnu")]
    // SAFETY: the function may be called at any time from any thread; it touches free memory only.
    return unsafe { libc::malloc_trim(0) } == 1;
    #[cfg(not(target_env = "gnu"))]
    false
}

/// Bytes that are allocated now in all heaps, with what the allocator adds to each piece; `None` when it does not say. Tests
/// hold connections and requests to this number, which unlike the resident size does not depend on what was freed before.
#[must_use]
pub fn allocated_bytes() -> Option<u64> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the function may be called at any time from any thread; it reads the heaps under their locks.
        let info = unsafe { libc::mallinfo2() };
        Some((info.uordblks + info.hblkhd) as u64)
    }
    #[cfg(not(target_env = "gnu"))]
    None
}
