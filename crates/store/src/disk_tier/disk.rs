//! A disk for tests: it separates written bytes from those that would survive a power failure, and
//! fails on demand.

use super::device::Device;
use parking_lot::Mutex;
use rand::RngExt;
use rand::rngs::SmallRng;
use std::collections::BTreeSet;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

const SECTOR: usize = 512;

#[derive(Clone)]
struct Content {
    /// The bytes that a read returns.
    current: Vec<u8>,
    /// The bytes at the last completed sync.
    durable: Vec<u8>,
    /// Sectors that differ.
    dirty: BTreeSet<usize>,
}

/// Clones share it.
#[derive(Clone)]
pub(super) struct Disk(Arc<Shared>);

struct Shared {
    content: Mutex<Content>,
    pub(super) is_cold: AtomicBool,
    pub(super) fails_reads: AtomicBool,
    pub(super) fails_writes: AtomicBool,
    writes: AtomicU64,
}

impl Disk {
    pub(super) fn new(bytes: usize) -> Disk {
        Disk::with(vec![0; bytes])
    }

    fn with(bytes: Vec<u8>) -> Disk {
        let content = Content { current: bytes.clone(), durable: bytes, dirty: BTreeSet::new() };
        Disk(Arc::new(Shared {
            content: Mutex::new(content),
            is_cold: AtomicBool::new(false),
            fails_reads: AtomicBool::new(false),
            fails_writes: AtomicBool::new(false),
            writes: AtomicU64::new(0),
        }))
    }

    /// Nothing is in the page cache.
    pub(super) fn be_cold(&self, is_cold: bool) {
        self.0.is_cold.store(is_cold, Relaxed);
    }

    pub(super) fn fail_reads(&self, fails: bool) {
        self.0.fails_reads.store(fails, Relaxed);
    }

    pub(super) fn fail_writes(&self, fails: bool) {
        self.0.fails_writes.store(fails, Relaxed);
    }

    pub(super) fn writes(&self) -> u64 {
        self.0.writes.load(Relaxed)
    }

    /// Changes a byte wherever this pattern is found; returns the number of changes.
    pub(super) fn damage(&self, pattern: &[u8]) -> usize {
        let mut content = self.0.content.lock();
        let places: Vec<usize> = content
            .current
            .windows(pattern.len())
            .enumerate()
            .filter(|(_, bytes)| *bytes == pattern)
            .map(|(at, _)| at)
            .collect();
        places.iter().for_each(|at| content.current[*at] ^= 1);
        places.len()
    }

    /// Changes the file without the knowledge of the storage.
    pub(super) fn change(&self, change: impl FnOnce(&mut [u8])) {
        change(&mut self.0.content.lock().current);
    }

    /// The file gets another length, durably.
    pub(super) fn resize(&self, bytes: usize) {
        let mut content = self.0.content.lock();
        content.current.resize(bytes, 0);
        content.durable.resize(bytes, 0);
        content.dirty.retain(|sector| sector * SECTOR < bytes);
    }

    /// The file is cut.
    pub(super) fn shrink(&self, bytes: usize) {
        self.0.content.lock().current.truncate(bytes);
    }

    /// The disk as the next process finds it after this one was killed.
    pub(super) fn after_kill(&self) -> Disk {
        Disk::with(self.0.content.lock().current.clone())
    }

    /// The disk after a power failure: of the bytes not synced, some sectors are written, others
    /// not.
    pub(super) fn after_power_loss(&self, random: &mut SmallRng) -> Disk {
        let content = self.0.content.lock();
        let mut bytes = content.durable.clone();
        for sector in &content.dirty {
            if random.random_bool(0.5) {
                let end = ((sector + 1) * SECTOR).min(bytes.len());
                bytes[sector * SECTOR..end].copy_from_slice(&content.current[sector * SECTOR..end]);
            }
        }
        Disk::with(bytes)
    }

    fn get(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if self.0.fails_reads.load(Relaxed) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        let content = self.0.content.lock();
        let found = content.current.get(offset as usize..offset as usize + buffer.len());
        buffer.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl Device for Disk {
    fn read_cached(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if self.0.is_cold.load(Relaxed) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.get(buffer, offset)
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.get(buffer, offset)
    }

    fn write(&self, slices: &mut [IoSlice<'_>], offset: u64, durable: bool) -> io::Result<()> {
        if self.0.fails_writes.load(Relaxed) {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        self.0.writes.fetch_add(1, Relaxed);
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        let mut content = self.0.content.lock();
        let (from, to) = (offset as usize, offset as usize + bytes.len());
        if to > content.current.len() {
            return Err(io::Error::from_raw_os_error(libc::EFBIG));
        }
        content.current[from..to].copy_from_slice(&bytes);
        for sector in from / SECTOR..to.div_ceil(SECTOR) {
            if durable {
                let end = ((sector + 1) * SECTOR).min(content.current.len());
                let now = content.current[sector * SECTOR..end].to_vec();
                content.durable[sector * SECTOR..end].copy_from_slice(&now);
                content.dirty.remove(&sector);
            } else {
                content.dirty.insert(sector);
            }
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut content = self.0.content.lock();
        content.durable = content.current.clone();
        content.dirty.clear();
        Ok(())
    }

    fn will_need(&self, _offset: u64, _bytes: u64) {}
}
