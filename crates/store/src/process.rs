//! The private memory of the process: what the allocator holds free, given back to the system.
//!
//! The allocator of the system keeps what was freed inside its heaps for ever, unless it lies at their very end. See
//! `docs/decisions/memory-is-given-back.md`.

/// Gives free pages of all heaps back. Takes each heap's lock for as long as that one takes (0.1 ms to some ms): for now and
/// then, when much was freed. False when there was nothing to give back, or the allocator cannot.
pub fn give_back_free_memory() -> bool {
    #[cfg(target_env = "gnu")]
    // SAFETY: the function may be called at any time from any thread; it touches free memory only.
    return unsafe { libc::malloc_trim(0) } == 1;
    #[cfg(not(target_env = "gnu"))]
    false
}
