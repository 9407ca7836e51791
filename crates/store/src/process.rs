//! The private memory of the process: gives memory that the allocator holds free back to the system.
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
