//! The private memory of the process: gives memory that the allocator holds free back to the
//! system, and reports the amount in use.
//!
//! The system allocator keeps freed memory inside its heaps for ever, unless it is at their very
//! end. See `docs/decisions/memory-is-given-back.md`.

/// Gives free pages of all heaps back. Holds each heap's lock while working on that heap (0.1 ms to
/// several ms), so call it only now and then, when much was freed. Returns false if there was
/// nothing to give back, or the allocator has no such function.
pub fn give_back_free_memory() -> bool {
    #[cfg(target_env = "gnu")]
    // SAFETY: the function may be called at any time from any thread; it touches free memory only.
    return unsafe { libc::malloc_trim(0) } == 1;
    #[cfg(not(target_env = "gnu"))]
    false
}

/// Bytes that are allocated now in all heaps, including the allocator's overhead for each piece;
/// `None` if the allocator does not report it. Tests limit connections and requests by this number,
/// which unlike the resident size does not depend on memory freed before.
#[must_use]
pub fn allocated_bytes() -> Option<u64> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the function may be called at any time from any thread; it reads the heaps under
        // their locks.
        let info = unsafe { libc::mallinfo2() };
        Some((info.uordblks + info.hblkhd) as u64)
    }
    #[cfg(not(target_env = "gnu"))]
    None
}
