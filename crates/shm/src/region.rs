//! A range of memory shared with other processes: the only place of this crate that touches raw
//! memory.
//!
//! A region is a shared file mapping or, for tests and simulation, a heap block. Every access is
//! checked against the region's length; outside it a write does nothing and a read returns zero, so
//! a damaged head is harmless. Single words are atomic. The sole owner of a region fills it with
//! [`Region::fill`]. [`Region::copy_in`] is a plain copy into a shared region, and unsafe: its
//! caller has reserved the range, and readers see it only after a word that is stored afterwards
//! with release ordering.

use std::fs::File;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

/// Memory addressed by byte offset.
pub struct Region {
    base: *mut u8,
    bytes: usize,
    writable: bool,
    _owner: Owner,
}

enum Owner {
    Mapping(#[allow(dead_code)] MmapRaw),
    Heap(#[allow(dead_code)] HeapBlock),
}

/// A block from a box, kept as a pointer: a box that is moved would claim the memory for itself
/// again.
struct HeapBlock(NonNull<[u64]>);

impl Drop for HeapBlock {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw` in `Region::heap`, and freed here alone.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

// SAFETY: the memory is owned by `_owner` for the life of the value and is only reached through
// atomic accesses, through `&mut`, or through `copy_in` whose contract makes the target range
// exclusive to the caller.
unsafe impl Send for Region {}
// SAFETY: see `Send`.
unsafe impl Sync for Region {}

impl Region {
    /// A zeroed block of private memory, rounded up to whole 64-bit words.
    #[must_use]
    pub fn heap(bytes: usize) -> Region {
        let words = bytes.div_ceil(8);
        let block = NonNull::from(Box::leak(vec![0u64; words].into_boxed_slice()));
        let base = block.as_ptr().cast::<u8>();
        Region { base, bytes: words * 8, writable: true, _owner: Owner::Heap(HeapBlock(block)) }
    }

    /// The first `bytes` bytes of a file, shared and writable. The file must be at least that long.
    ///
    /// # Errors
    /// Errors of `mmap`; `InvalidInput` if the file is too short.
    pub fn shared(file: &File, bytes: usize) -> io::Result<Region> {
        check_length(file, 0, bytes)?;
        let map = MmapOptions::new().len(bytes).map_raw(file)?;
        Ok(Region { base: map.as_mut_ptr(), bytes, writable: true, _owner: Owner::Mapping(map) })
    }

    /// `bytes` bytes of a file from `offset`, shared and read-only.
    ///
    /// # Errors
    /// Errors of `mmap`; `InvalidInput` if the file ends before the range does, or `offset` is not
    /// a multiple of 8.
    pub fn read_only(file: &File, offset: u64, bytes: usize) -> io::Result<Region> {
        check_length(file, offset, bytes)?;
        if !offset.is_multiple_of(8) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "segment starts within a word"));
        }
        let map = MmapOptions::new().offset(offset).len(bytes).map_raw_read_only(file)?;
        Ok(Region { base: map.as_mut_ptr(), bytes, writable: false, _owner: Owner::Mapping(map) })
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// True for a region of no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The 32-bit word at byte `offset`; 0 when that is outside or unaligned.
    #[inline]
    #[must_use]
    pub fn load_u32(&self, offset: usize, order: Ordering) -> u32 {
        self.word32(offset).map_or(0, |word| word.load(order))
    }

    /// Stores a 32-bit word at byte `offset`; nothing happens when that is outside, unaligned or
    /// read-only.
    #[inline]
    pub fn store_u32(&self, offset: usize, value: u32, order: Ordering) {
        if !self.writable {
            return;
        }
        if let Some(word) = self.word32(offset) {
            word.store(value, order);
        }
    }

    /// The 64-bit word at byte `offset`; 0 when that is outside or unaligned.
    #[inline]
    #[must_use]
    pub fn load_u64(&self, offset: usize, order: Ordering) -> u64 {
        self.word64(offset).map_or(0, |word| word.load(order))
    }

    /// Stores a 64-bit word at byte `offset`; nothing happens when that is outside, unaligned or
    /// read-only.
    #[inline]
    pub fn store_u64(&self, offset: usize, value: u64, order: Ordering) {
        if !self.writable {
            return;
        }
        if let Some(word) = self.word64(offset) {
            word.store(value, order);
        }
    }

    /// Copies `bytes` to byte `offset` of a region in exclusive use; bytes that would be outside
    /// are left out.
    pub fn fill(&mut self, offset: usize, bytes: &[u8]) {
        // SAFETY: `&mut self`: no other thread of this process reaches the memory meanwhile.
        unsafe { self.copy_in(offset, bytes) }
    }

    /// Copies `bytes` to byte `offset`; bytes that would be outside are left out.
    ///
    /// ```compile_fail,E0133
    /// shm::region::Region::heap(8).copy_in(0, b"x");
    /// ```
    ///
    /// # Safety
    /// The caller owns the range: no other thread of this process reads or writes it, not even by
    /// single words, until a later release store has published it. Other processes may look at any
    /// time and see anything in between.
    #[inline]
    pub unsafe fn copy_in(&self, offset: usize, bytes: &[u8]) {
        if !self.writable || offset >= self.bytes {
            return;
        }
        let count = bytes.len().min(self.bytes - offset);
        // SAFETY: offset + count <= self.bytes, the block is writable and alive, the range is the
        // caller's by contract, and the source is a distinct allocation (slices of a region's
        // memory are never handed out).
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.add(offset), count) };
    }

    /// Appends `count` bytes from byte `offset` (a multiple of 4) to `out`, read word by word;
    /// bytes outside are left out.
    pub fn copy_out(&self, offset: usize, count: usize, out: &mut Vec<u8>) {
        let end = offset.saturating_add(count).min(self.bytes);
        let mut at = offset;
        while at < end {
            let room = end - at;
            if at + 4 <= self.bytes {
                let word = self.load_u32(at, Ordering::Relaxed).to_ne_bytes();
                out.extend_from_slice(&word[..room.min(4)]);
                at += 4;
            } else {
                // SAFETY: at < end <= self.bytes; the last one to three bytes of an odd-sized
                // region.
                out.push(unsafe { self.base.add(at).read_volatile() });
                at += 1;
            }
        }
    }

    #[inline]
    fn word32(&self, offset: usize) -> Option<&AtomicU32> {
        if !offset.is_multiple_of(4) || offset.checked_add(4)? > self.bytes {
            return None;
        }
        // SAFETY: in bounds and aligned (mappings are 8-aligned, heap blocks 8-aligned); lives as
        // long as self.
        Some(unsafe { AtomicU32::from_ptr(self.base.add(offset).cast()) })
    }

    #[inline]
    fn word64(&self, offset: usize) -> Option<&AtomicU64> {
        if !offset.is_multiple_of(8) || offset.checked_add(8)? > self.bytes {
            return None;
        }
        // SAFETY: in bounds and aligned (mappings are 8-aligned, heap blocks 8-aligned); lives as
        // long as self.
        Some(unsafe { AtomicU64::from_ptr(self.base.add(offset).cast()) })
    }
}

fn check_length(file: &File, offset: u64, bytes: usize) -> io::Result<()> {
    let end = offset.checked_add(bytes as u64);
    if bytes == 0 || end.is_none_or(|end| file.metadata().map_or(true, |found| found.len() < end)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "file is shorter than its segment"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_outside_do_nothing_and_read_zero() {
        let mut region = Region::heap(16);
        region.store_u64(8, 7, Ordering::Relaxed);
        region.store_u64(16, 9, Ordering::Relaxed);
        region.store_u32(usize::MAX - 3, 9, Ordering::Relaxed);
        region.store_u32(2, 9, Ordering::Relaxed);
        region.fill(12, &[1; 40]);
        region.fill(usize::MAX, &[1; 40]);
        assert_eq!(region.load_u64(8, Ordering::Relaxed), 0x0101_0101_0000_0007);
        assert_eq!(region.load_u64(16, Ordering::Relaxed), 0);
        assert_eq!(region.load_u32(usize::MAX - 3, Ordering::Relaxed), 0);
        let mut out = Vec::new();
        region.copy_out(12, 100, &mut out);
        assert_eq!(out, [1; 4]);
    }

    #[test]
    fn a_file_shorter_than_its_segment_is_refused() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(100).unwrap();
        assert!(Region::read_only(&file, 0, 101).is_err());
        assert!(Region::read_only(&file, u64::MAX, 2).is_err());
        assert!(Region::shared(&file, 0).is_err());
        assert!(Region::shared(&file, 100).is_ok());
    }
}
