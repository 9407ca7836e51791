//! The bytes of an arena: a mapping of a memory file, or heap memory where there are no files
//! (tests, Miri).
//!
//! All words that several threads or a later process read are atomics; all other bytes are written
//! once, before they are published, through raw pointers, so no `&mut` to shared bytes ever exists.
//! Offsets are checked here, and only here, before they become pointers.

use memmap2::{MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of a page for the purpose of giving memory back.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// Size of a CPU cache line.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE_BYTES: usize = 64;

enum Backing {
    File { file: File, _mapping: MmapRaw },
    Heap { layout: std::alloc::Layout },
}

/// A fixed range of shared bytes.
pub(crate) struct Memory {
    base: NonNull<u8>,
    bytes: u64,
    backing: Backing,
}

// SAFETY: the range is owned by this value for its whole life; access goes through atomics, or
// through the unsafe methods whose callers exclude conflicting access.
unsafe impl Send for Memory {}
// SAFETY: as above; no method hands out `&mut`.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps `bytes` of a file, which must be at least that long and must not be shortened while
    /// mapped.
    pub(crate) fn map(file: File, bytes: u64) -> io::Result<Memory> {
        let length = usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mapping = MmapOptions::new().len(length).map_raw(&file)?;
        let base = NonNull::new(mapping.as_mut_ptr()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Memory { base, bytes, backing: Backing::File { file, _mapping: mapping } })
    }

    /// Zeroed bytes on the heap.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(crate) fn on_heap(bytes: u64) -> io::Result<Memory> {
        let length = usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let layout = std::alloc::Layout::from_size_align(length.max(1), PAGE_BYTES as usize)
            .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        // SAFETY: the layout has a size of at least one byte.
        let base = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Memory { base, bytes, backing: Backing::Heap { layout } })
    }

    /// Length of the range.
    pub(crate) fn len(&self) -> u64 {
        self.bytes
    }

    /// The word at `offset`, a multiple of eight inside the range.
    #[inline]
    pub(crate) fn word(&self, offset: u64) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset <= self.bytes - 8, "word outside the arena");
        // SAFETY: inside the range and aligned (the base is page-aligned); words at fixed places of
        // blocks are only ever accessed as atomics while shared. The reference cannot outlive the
        // mapping.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset as usize).cast()) }
    }

    /// Loads a word that another thread may have published.
    #[inline]
    pub(crate) fn load(&self, offset: u64) -> u64 {
        self.word(offset).load(Ordering::Acquire)
    }

    /// Stores a word; a thread that sees it also sees everything written before, even after a kill.
    #[inline]
    pub(crate) fn store(&self, offset: u64, value: u64) {
        self.word(offset).store(value, Ordering::Release);
        self.crash_point();
    }

    /// Changes a word atomically and returns the new value.
    #[inline]
    pub(crate) fn update(&self, offset: u64, mut change: impl FnMut(u64) -> u64) -> u64 {
        let word = self.word(offset);
        let mut old = word.load(Ordering::Acquire);
        loop {
            let new = change(old);
            match word.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    self.crash_point();
                    return new;
                }
                Err(now) => old = now,
            }
        }
    }

    /// Prefetches the lines that begin at `offset`, if they are inside the range and the CPU
    /// supports it, without waiting for them.
    #[inline]
    pub(crate) fn prefetch(&self, offset: u64, lines: u64) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if self.contains(offset, lines as usize * LINE_BYTES) {
            for line in 0..lines as usize {
                // SAFETY: inside the range; the instruction reads nothing that the program could
                // see, and cannot fail.
                unsafe {
                    let at = self.base.as_ptr().add(offset as usize + line * LINE_BYTES);
                    std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
                }
            }
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = (offset, lines);
    }

    /// True if `len` bytes at `offset` are inside the range.
    fn contains(&self, offset: u64, len: usize) -> bool {
        offset <= self.bytes && len as u64 <= self.bytes - offset
    }

    /// Returns bytes as a slice.
    ///
    /// # Safety
    /// While the slice exists no thread writes these bytes, and the caller has synchronised with
    /// their writer.
    #[inline]
    pub(crate) unsafe fn bytes(&self, offset: u64, len: usize) -> &[u8] {
        assert!(self.contains(offset, len), "bytes outside the arena");
        // SAFETY: inside the range, initialised (the range begins zeroed); not written meanwhile,
        // by contract.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(offset as usize), len) }
    }

    /// Copies bytes in.
    ///
    /// # Safety
    /// During the call no other thread reads or writes these bytes.
    #[inline]
    pub(crate) unsafe fn write(&self, offset: u64, bytes: &[u8]) {
        assert!(self.contains(offset, bytes.len()), "bytes outside the arena");
        // SAFETY: inside the range; exclusive by contract; a caller's slice of the same bytes would
        // break that contract.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.as_ptr().add(offset as usize), bytes.len());
        }
    }

    /// Gives whole pages back to the kernel; they read as zero afterwards. Best effort: a failure
    /// costs memory, not correctness, so this returns `false` and the pages still count as
    /// resident.
    pub(crate) fn punch(&self, offset: u64, len: u64) -> bool {
        debug_assert!(offset.is_multiple_of(PAGE_BYTES) && len.is_multiple_of(PAGE_BYTES));
        match &self.backing {
            Backing::File { file, .. } => punch_hole(file, offset, len),
            Backing::Heap { .. } => true,
        }
    }

    /// A point where a kill is simulated: between any two stores that recovery could distinguish.
    #[inline]
    fn crash_point(&self) {
        #[cfg(test)]
        crate::crash_tests::crash_point(self);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Backing::Heap { layout } = self.backing {
            // SAFETY: allocated in `on_heap` with this layout and not freed since.
            unsafe { std::alloc::dealloc(self.base.as_ptr(), layout) };
        }
    }
}

/// Frees the blocks of part of a file without changing its length.
pub(crate) fn punch_hole(file: &File, offset: u64, len: u64) -> bool {
    use std::os::fd::AsRawFd;
    let (Ok(offset), Ok(len)) = (libc::off_t::try_from(offset), libc::off_t::try_from(len)) else {
        return false;
    };
    if cfg!(miri) {
        return false;
    }
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: a system call on a descriptor that `file` keeps open; no memory is passed.
    unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, len) == 0 }
}

/// A new, empty memory file.
pub(crate) fn memory_file(name: &std::ffi::CStr) -> io::Result<File> {
    use std::os::fd::FromRawFd;
    if cfg!(miri) {
        return unnamed_file();
    }
    // SAFETY: `name` is NUL-terminated; the call passes no other memory.
    let descriptor = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor just created, which has no other owner.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

/// A substitute for a memory file under Miri, which has none: a file that is removed at once. It
/// cannot be mapped.
fn unnamed_file() -> io::Result<File> {
    use std::sync::atomic::AtomicU32;
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("copal-miri-{}-{number}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
