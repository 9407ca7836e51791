//! The writer thread: bodies in the order of the file, then the log.
//!
//! It takes the queued work, writes the bodies with as few calls as possible into the page cache,
//! and after each interval, or when a task waits, the log with one call that waits for the disk.
//! When the area of the log is nearly full, the live entries are copied to the other area, a step
//! at a time between other work (*snapshot*). Entries that arrive during that are written to both.

use super::disk_write::{DiskWrite, Owner, Part};
use super::log::{Header, frame};
use super::queue::{LOG_INTERVAL, Work};
use super::{Tier, device::SLICES_MAX};
use crate::arena::Inner;
use crate::journal::new_identity;
use std::io::{self, IoSlice};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Bytes of a snapshot that are written at a time.
const SNAPSHOT_STEP_BYTES: usize = 1 << 20;
/// Number of blocks of the arena that are examined under its lock.
const SNAPSHOT_STEP_BLOCKS: usize = 512;
/// Kept free in an area, so that a snapshot can be made in time; a part of it.
const RESERVE: u64 = 4;
/// A write that failed is tried again after this.
const RETRY: Duration = Duration::from_secs(1);
/// Entries that cannot be written are kept up to this; then the next snapshot has to replace them.
const UNWRITTEN_LOG_BYTES_MAX: usize = 16 << 20;
/// No zeros behind a body are longer.
static ZEROS: [u8; 1 << 20] = [0; 1 << 20];

/// A copy of the live entries, being written to the other area.
struct Snapshot {
    area: u64,
    generation: u64,
    position: u64,
    /// All blocks of the arena were visited.
    is_whole: bool,
    buffer: Vec<u8>,
}

/// The state of the thread.
pub(super) struct Writer {
    tier: Arc<Tier>,
    store: Weak<Inner>,
    header: Header,
    /// Current end of the area in use; `None` = it is not in use until the snapshot is complete.
    position: Option<u64>,
    /// Entries that are not yet in the area.
    unwritten: Vec<u8>,
    snapshot: Option<Snapshot>,
    /// Length of the last snapshot in bytes.
    snapshot_bytes: u64,
    waiting: Vec<oneshot::Sender<bool>>,
    flush_at: Option<Instant>,
}

impl Writer {
    /// `position` is where the log continues; `None` begins with a snapshot.
    pub(super) fn new(tier: &Arc<Tier>, store: &Arc<Inner>, header: Header, position: Option<u64>) -> Writer {
        let mut writer = Writer {
            tier: Arc::clone(tier),
            store: Arc::downgrade(store),
            header,
            position,
            unwritten: Vec::new(),
            snapshot: None,
            snapshot_bytes: position.unwrap_or(0),
            waiting: Vec::new(),
            flush_at: None,
        };
        if position.is_none() {
            writer.begin_snapshot();
        }
        writer
    }

    pub(super) fn run(mut self) {
        loop {
            let now = Instant::now();
            let idle = now + Duration::from_secs(3600);
            let until = if self.snapshot.is_some() { now } else { self.flush_at.unwrap_or(idle) };
            let work = self.tier.queue.take(until);
            let is_over = work.is_over;
            self.accept(work);
            let is_due = self.flush_at.is_some_and(|at| Instant::now() >= at);
            if is_over || is_due || !self.waiting.is_empty() {
                self.flush();
            }
            if self.snapshot.is_some() {
                self.go_on_with_snapshot();
            }
            if is_over {
                return self.end();
            }
        }
    }

    /// Ends the thread when the storage is closed: work queued since is written too, and no task is
    /// left waiting.
    fn end(mut self) {
        let rest = self.tier.queue.close();
        self.accept(rest);
        self.flush();
        let failed = self.tier.counts.write_errors.load(Relaxed);
        while self.snapshot.is_some() && self.tier.counts.write_errors.load(Relaxed) == failed {
            self.go_on_with_snapshot();
        }
        let succeeded = self.tier.device.sync().is_ok();
        for waiting in std::mem::take(&mut self.waiting) {
            let _ = waiting.send(succeeded && self.unwritten.is_empty());
        }
    }

    fn accept(&mut self, work: Work) {
        self.waiting.extend(work.waiting);
        for payload in work.entries {
            self.note(payload);
        }
        if !work.disk_writes.is_empty() {
            self.write_bodies(&work.disk_writes);
        }
    }

    fn note(&mut self, payload: Vec<u8>) {
        if let Some(snapshot) = &mut self.snapshot {
            frame(&mut snapshot.buffer, snapshot.generation, &payload);
        }
        if self.position.is_none() {
            return;
        }
        frame(&mut self.unwritten, self.header.generation, &payload);
        self.flush_at.get_or_insert_with(|| Instant::now() + LOG_INTERVAL);
        if self.unwritten.len() > UNWRITTEN_LOG_BYTES_MAX {
            // The disk refuses it. The live entries are known anyway.
            self.give_up_area();
        }
    }

    /// The area in use cannot be continued; a snapshot must follow.
    fn give_up_area(&mut self) {
        self.position = None;
        self.unwritten.clear();
        if self.snapshot.is_none() {
            self.begin_snapshot();
        }
    }

    fn write_bodies(&mut self, disk_writes: &[Arc<DiskWrite>]) {
        let (mut parts, mut ends): (Vec<(Part, usize)>, Vec<u64>) = (Vec::new(), Vec::new());
        for (index, disk_write) in disk_writes.iter().enumerate() {
            let (found, upto) = disk_write.parts();
            parts.extend(found.into_iter().map(|part| (part, index)));
            ends.push(upto);
        }
        parts.sort_by_key(|(part, _)| part.at);
        let mut failed = vec![false; disk_writes.len()];
        let mut rest = &parts[..];
        while !rest.is_empty() {
            let joined = adjoining(rest);
            let (now, later) = rest.split_at(joined);
            if self.write_run(now).is_err() {
                self.count_error();
                now.iter().for_each(|(_, index)| failed[*index] = true);
            }
            rest = later;
        }
        for ((disk_write, upto), has_failed) in disk_writes.iter().zip(ends).zip(failed) {
            if disk_write.wrote(upto, !has_failed) {
                self.settle(disk_write);
            } else if has_failed && let Some(owner) = disk_write.owner() {
                owner.unwritable();
            }
        }
    }

    /// Parts that adjoin, with one call.
    fn write_run(&self, parts: &[(Part, usize)]) -> io::Result<()> {
        let Some((first, _)) = parts.first() else { return Ok(()) };
        let mut slices = Vec::with_capacity(parts.len() + 1);
        let (mut bytes, mut padding) = (0, 0);
        for (part, _) in parts {
            slices.push(IoSlice::new(&part.bytes[part.range.clone()]));
            bytes += part.range.len() as u64;
            if part.padding > 0 {
                slices.push(IoSlice::new(&ZEROS[..part.padding.min(ZEROS.len())]));
                padding += part.padding as u64;
            }
        }
        self.tier.device.write(&mut slices, first.at, false)?;
        self.tier.counts.stored_bytes.fetch_add(bytes, Relaxed);
        self.tier.counts.written_bytes.fetch_add(bytes + padding, Relaxed);
        Ok(())
    }

    /// All of a body is in the file.
    fn settle(&mut self, disk_write: &Arc<DiskWrite>) {
        let Some(owner) = disk_write.owner() else { return };
        disk_write.settle();
        if let Some(payload) = Arc::clone(&owner).written() {
            self.note(payload);
        }
        // The last handle may be this one.
        drop::<Arc<dyn Owner>>(owner);
    }

    fn count_error(&self) {
        self.tier.counts.write_errors.fetch_add(1, Relaxed);
    }

    /// Writes the log, and notifies the waiting tasks.
    fn flush(&mut self) {
        self.flush_at = None;
        let Some(position) = self.position else {
            // Nothing is durable before the snapshot is complete; the tasks wait for that.
            return;
        };
        if position + self.unwritten.len() as u64 > self.header.area_bytes {
            self.give_up_area();
            return;
        }
        let at = self.header.area_at(self.header.area) + position;
        let written = self.write_log(&self.unwritten, at);
        match written {
            Ok(()) => {
                self.position = Some(position + self.unwritten.len() as u64);
                self.unwritten.clear();
            }
            Err(_) => {
                self.count_error();
                self.flush_at = Some(Instant::now() + RETRY);
            }
        }
        let succeeded = self.unwritten.is_empty();
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(succeeded);
        }
        let used = self.position.unwrap_or(0);
        let is_nearly_full = used > self.header.area_bytes - self.header.area_bytes / RESERVE;
        let is_mostly_old = used > self.header.area_bytes / 2 && used / 4 > self.snapshot_bytes;
        if (is_nearly_full || is_mostly_old) && self.snapshot.is_none() {
            self.begin_snapshot();
        }
    }

    fn write_log(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.tier.device.write(&mut [IoSlice::new(bytes)], at, true)?;
        self.tier.counts.written_bytes.fetch_add(bytes.len() as u64, Relaxed);
        Ok(())
    }

    fn begin_snapshot(&mut self) {
        if let Some(store) = self.store.upgrade() {
            store.begin_walk();
        }
        self.snapshot = Some(Snapshot {
            area: 1 - self.header.area,
            // Entries that an earlier attempt left in the area must not be taken for this one's.
            generation: new_identity(),
            position: 0,
            is_whole: false,
            buffer: Vec::new(),
        });
    }

    /// One step: some blocks of the arena, or the end.
    fn go_on_with_snapshot(&mut self) {
        let Some(snapshot) = &mut self.snapshot else { return };
        let Some(store) = self.store.upgrade() else {
            // The storage was dropped; an incomplete snapshot is useless.
            self.snapshot = None;
            return;
        };
        while !snapshot.is_whole && snapshot.buffer.len() < SNAPSHOT_STEP_BYTES {
            match store.next_living(SNAPSHOT_STEP_BLOCKS) {
                Some(payloads) => {
                    payloads.iter().for_each(|payload| frame(&mut snapshot.buffer, snapshot.generation, payload));
                }
                None => snapshot.is_whole = true,
            }
        }
        drop(store);
        let is_whole = snapshot.is_whole;
        let (at, fits) = (
            self.header.area_at(snapshot.area) + snapshot.position,
            snapshot.position + snapshot.buffer.len() as u64 <= self.header.area_bytes,
        );
        let buffer = std::mem::take(&mut snapshot.buffer);
        let new = Header { area: snapshot.area, generation: snapshot.generation, ..self.header };
        let position = snapshot.position + buffer.len() as u64;
        snapshot.position = position;
        let written = if !fits { Err(io::ErrorKind::StorageFull.into()) } else { self.write_log(&buffer, at) };
        let written = written.and_then(|()| {
            if !is_whole {
                return Ok(());
            }
            let mut header = new;
            header.write(&*self.tier.device)?;
            self.header = header;
            (self.position, self.snapshot_bytes) = (Some(position), position);
            self.snapshot = None;
            // They are in the snapshot, or behind it in the same area.
            self.unwritten.clear();
            Ok(())
        });
        if written.is_err() {
            self.count_error();
            self.snapshot = None;
            if self.position.is_none() {
                for waiting in self.waiting.drain(..) {
                    let _ = waiting.send(false);
                }
                // Not at once: the disk may be full, or gone.
                std::thread::sleep(Duration::from_millis(100));
                self.begin_snapshot();
            }
        } else if self.snapshot.is_none() {
            self.flush();
        }
    }
}

/// Number of parts, from the first on, that are adjacent in the file and fit into one call.
fn adjoining(parts: &[(Part, usize)]) -> usize {
    let mut count = 1;
    while count < parts.len() && count < SLICES_MAX / 2 {
        let (before, _) = &parts[count - 1];
        let end = before.at + (before.range.len() + before.padding) as u64;
        if parts[count].0.at != end {
            break;
        }
        count += 1;
    }
    count
}
