//! The log ring (VSL): reservation, writing and visibility of records.
//!
//! The ring is eight segments of 32-bit words behind a head of 88 bytes. A writer reserves words
//! under one short lock, which also stores the END marker behind the reservation; it fills them
//! without the lock and stores the first word last. Readers stop at the first END, so records of
//! several threads may be filled in any order.
//!
//! *Invariants:* the word at the write position is END; `offset[n]` is the first record that starts
//! in segment `n`; a record never crosses the end of the ring (WRAP means "go on at word 0"); all
//! records of a batch have the same vxid. Masked tags are dropped before anything is formatted. How
//! records of a transaction are collected: `log/buffer.rs`.

mod buffer;
pub mod decimal;
mod word;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use surface::parameter::Parameters;
use surface::tag::Tag;

pub use crate::layout::{LogId, VXID_BITS};
pub use buffer::LogBuffer;
pub use word::Word;

use crate::layout::{Layout, payload_bytes};
use crate::own_line::OwnLine;
use crate::region::Region;
use crate::vsm::{Segment, VsmWriter};

/// Segments in a ring.
pub const SEGMENTS: usize = 8;
/// Bytes before the first word of the ring.
pub const HEAD_BYTES: usize = 88;
/// Marks the place where the next record will begin.
pub const END_MARKER: u32 = 0xFE45_4545;
/// The word that sends the reader back to the start of the ring.
pub const WRAP_MARKER: u32 = 0xFE57_5757;
/// Tag number of a batch head.
pub const BATCH_TAG: u32 = 255;
/// Smallest ring; a smaller size is raised to this.
pub const RING_BYTES_MIN: usize = 4096;

const SEGMENT_WORDS_OFFSET: usize = 8;
const SEGMENT_NUMBER_OFFSET: usize = 16;
const OFFSETS_OFFSET: usize = 24;
/// Segment numbers start here, so that they soon overflow and the overflow is tested every day.
const FIRST_SEGMENT_NUMBER: u32 = u32::MAX - 7;

/// The run-time settings of a ring and its buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogConfiguration {
    /// Suppressed tags: byte `tag >> 3`, bit `0x80 >> (tag & 7)` (`vsl_mask`).
    pub mask: [u8; 32],
    /// Longest payload, its NUL included (`vsl_reclen`).
    pub reclen_bytes: usize,
    /// Size to which a transaction's buffer may grow (`vsl_buffer`).
    pub buffer_bytes: usize,
    /// Flush after every record (`debug=+syncvsl`).
    pub sync: bool,
}

impl From<&Parameters> for LogConfiguration {
    fn from(parameters: &Parameters) -> Self {
        LogConfiguration {
            mask: parameters.vsl_mask,
            reclen_bytes: usize::try_from(parameters.vsl_reclen).unwrap_or(usize::MAX),
            buffer_bytes: usize::try_from(parameters.vsl_buffer).unwrap_or(usize::MAX),
            sync: parameters.debug & surface::parameter::debug::SYNCVSL != 0,
        }
    }
}

impl Default for LogConfiguration {
    /// The parameters' defaults.
    fn default() -> Self {
        LogConfiguration::from(&Parameters::default())
    }
}

/// Totals since the ring was created.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogTotals {
    /// Records.
    pub shm_records: u64,
    /// Reservations: direct records and batches.
    pub shm_writes: u64,
    /// Flushes because a buffer was full.
    pub shm_flushes: u64,
    /// Times a writer had to wait for another.
    pub shm_cont: u64,
    /// Times the ring wrapped.
    pub shm_cycles: u64,
    /// Bytes reserved.
    pub shm_bytes: u64,
}

/// A place in a ring, between two records; by default its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogPlace {
    cycles: u64,
    next: usize,
}

/// A record copied out of a ring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnedRecord {
    /// Its tag.
    pub tag: Tag,
    /// Its transaction.
    pub id: LogId,
    /// Its payload without the NUL.
    pub payload: Vec<u8>,
}

/// The ring; cloning gives another handle. Any thread may write.
#[derive(Clone)]
pub struct LogRing(Arc<Ring>);

struct Ring {
    settings: LogSettings,
    layout: Layout,
    /// Belongs to this ring alone: a segment has one handle. A range returned by
    /// [`LogRing::reserve`], which locks, belongs to its caller; others read it only after its
    /// first word, an end marker until then, has been stored with release ordering. If a writer
    /// stopped between the two while others went once around the ring, it would overwrite their
    /// range, as in every program with a log of this format; readers therefore trust nothing in the
    /// ring.
    segment: Segment,
    segment_words: usize,
    log_words: usize,
    contended: AtomicU64,
    /// Written for every transaction, while every record reads the settings.
    position: OwnLine<Mutex<Position>>,
}

/// Read on every record, written when an operator changes a parameter.
struct LogSettings {
    /// Bit `tag & 63` of word `tag >> 6`.
    mask: [AtomicU64; 2],
    reclen_bytes: AtomicUsize,
    /// Text payloads shorter than this, in bytes, are neither cut nor written one by one:
    /// `reclen_bytes`, or 0.
    whole_below: AtomicUsize,
    buffer_words: AtomicUsize,
    sync: AtomicBool,
}

struct Position {
    next: usize,
    number: u32,
    wrapped_at: usize,
    totals: LogTotals,
}

impl LogRing {
    /// A ring of about `bytes` bytes in private memory, in the layout of 7.1.
    #[must_use]
    pub fn in_memory(bytes: usize) -> LogRing {
        LogRing::in_memory_as(bytes, Layout::V71)
    }

    /// A ring of about `bytes` bytes in private memory.
    #[must_use]
    pub fn in_memory_as(bytes: usize, layout: Layout) -> LogRing {
        let mut region = Region::heap(bytes.max(RING_BYTES_MIN));
        initialise(&mut region, layout);
        LogRing::over(Segment::in_memory(region), layout)
    }

    /// Adds the segment `Log` of `bytes` bytes to the index, initialised before a reader can see
    /// it.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn publish(vsm: &VsmWriter, bytes: usize, layout: Layout) -> io::Result<LogRing> {
        let segment = vsm.add_filled("Log", "Log", bytes.max(RING_BYTES_MIN), |region| initialise(region, layout))?;
        Ok(LogRing::over(segment, layout))
    }

    fn over(segment: Segment, layout: Layout) -> LogRing {
        let segment_words = segment_words(segment.len());
        let ring = LogRing(Arc::new(Ring {
            settings: LogSettings {
                mask: [AtomicU64::new(0), AtomicU64::new(0)],
                reclen_bytes: AtomicUsize::new(0),
                whole_below: AtomicUsize::new(0),
                buffer_words: AtomicUsize::new(0),
                sync: AtomicBool::new(false),
            },
            layout,
            log_words: segment_words * SEGMENTS,
            segment_words,
            segment,
            contended: AtomicU64::new(0),
            position: OwnLine(Mutex::new(Position {
                next: 0,
                number: FIRST_SEGMENT_NUMBER,
                wrapped_at: 0,
                totals: LogTotals::default(),
            })),
        }));
        ring.configure(&LogConfiguration::default());
        ring
    }

    /// Applies changed settings; records already collected stay as they are.
    pub fn configure(&self, configuration: &LogConfiguration) {
        let settings = &self.0.settings;
        let mut mask = [0u64; 2];
        for number in 0..128 {
            let is_gone = Tag::from_number(number as u8).is_some_and(|tag| !self.0.layout.has(tag));
            if is_gone || configuration.mask[number >> 3] & (0x80 >> (number & 7)) != 0 {
                mask[number >> 6] |= 1 << (number & 63);
            }
        }
        settings.mask[0].store(mask[0], Ordering::Relaxed);
        settings.mask[1].store(mask[1], Ordering::Relaxed);
        // A batch must be small compared with the ring, and a record must fit a buffer.
        let buffer_words = (configuration.buffer_bytes / 4).clamp(16, self.0.segment_words / 2);
        let reclen_bytes = configuration.reclen_bytes.clamp(2, (buffer_words - 4) * 4).min(usize::from(u16::MAX));
        settings.buffer_words.store(buffer_words, Ordering::Relaxed);
        settings.reclen_bytes.store(reclen_bytes, Ordering::Relaxed);
        settings.sync.store(configuration.sync, Ordering::Relaxed);
        settings.whole_below.store(if configuration.sync { 0 } else { reclen_bytes }, Ordering::Relaxed);
    }

    /// The layout of its records.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.0.layout
    }

    /// True when records of `tag` are dropped.
    #[inline]
    #[must_use]
    pub fn is_masked(&self, tag: Tag) -> bool {
        let number = tag as usize;
        self.0.settings.mask[(number >> 6) & 1].load(Ordering::Relaxed) >> (number & 63) & 1 != 0
    }

    /// Writes one record at once, cut to `vsl_reclen`; adds the NUL of a text payload.
    pub fn write(&self, tag: Tag, id: LogId, payload: &[u8]) {
        if self.is_masked(tag) {
            return;
        }
        let text = usize::from(!tag.is_binary());
        let cut = payload.len().min(self.reclen_bytes() - text);
        let length = cut + text;
        let layout = self.0.layout;
        let head = layout.head_words();
        let words = head + length.div_ceil(4);
        let Some(start) = self.reserve(words, 1, 0) else { return };
        let region = self.0.segment.region();
        let at = HEAD_BYTES + 4 * start;
        region.store_u32(at + 4 * (words - 1), 0, Ordering::Relaxed);
        // SAFETY: see `Ring::segment`.
        unsafe { region.copy_in(at + 4 * head, &payload[..cut]) };
        for (index, word) in layout.id_words(id).into_iter().take(head - 1).enumerate() {
            region.store_u32(at + 4 * (index + 1), word, Ordering::Relaxed);
        }
        region.store_u32(at, layout.first_words()[tag as usize & 127] | length as u32, Ordering::Release);
    }

    /// Like [`LogRing::write`] with a formatted payload; nothing is formatted when the tag is
    /// masked.
    pub fn write_fmt(&self, tag: Tag, id: LogId, args: fmt::Arguments) {
        if self.is_masked(tag) {
            return;
        }
        match args.as_str() {
            Some(text) => self.write(tag, id, text.as_bytes()),
            None => self.write(tag, id, fmt::format(args).as_bytes()),
        }
    }

    /// Totals so far.
    #[must_use]
    pub fn totals(&self) -> LogTotals {
        let mut totals = self.0.position.lock().totals;
        totals.shm_cont = self.0.contended.load(Ordering::Relaxed);
        totals
    }

    /// Copies of the records since a place, or of those that are left, oldest first. Moves the
    /// place behind them.
    pub fn take(&self, place: &mut LogPlace) -> Vec<OwnedRecord> {
        let position = self.0.position.lock();
        let mut records = Vec::new();
        let cycles = position.totals.shm_cycles;
        if place.cycles == cycles {
            self.walk(place.next, position.next, &mut records);
        } else {
            // If it was overtaken, what follows it is newer than what it has missed.
            if place.cycles + 1 == cycles && place.next >= position.next {
                self.walk(place.next, position.wrapped_at, &mut records);
            }
            self.walk(0, position.next, &mut records);
        }
        *place = LogPlace { cycles, next: position.next };
        records
    }

    /// Copies of all records still in the ring, oldest first, up to the first one that is still
    /// being filled.
    #[must_use]
    pub fn records(&self) -> Vec<OwnedRecord> {
        // The lock prevents reservations, so nothing before the first END changes.
        let position = self.0.position.lock();
        let mut records = Vec::new();
        let current = position.number as usize % SEGMENTS;
        let oldest = (current + 1..SEGMENTS)
            .filter_map(|index| {
                let offset = self.0.segment.region().load_u64(OFFSETS_OFFSET + 8 * index, Ordering::Relaxed);
                usize::try_from(offset).ok()
            })
            .find(|offset| *offset < position.wrapped_at);
        if let Some(start) = oldest {
            self.walk(start, position.wrapped_at, &mut records);
        }
        self.walk(0, position.next, &mut records);
        records
    }

    fn walk(&self, mut at: usize, end: usize, records: &mut Vec<OwnedRecord>) {
        let (region, layout) = (self.0.segment.region(), self.0.layout);
        while at < end {
            let offset = HEAD_BYTES + 4 * at;
            let first = region.load_u32(offset, Ordering::Acquire);
            if first == END_MARKER || first == WRAP_MARKER {
                return;
            }
            if first >> 24 == BATCH_TAG {
                at += layout.head_words();
                continue;
            }
            let count = layout.record_words(first);
            let raw: Vec<u32> =
                (0..count).map(|index| region.load_u32(offset + 4 * index, Ordering::Relaxed)).collect();
            at += count;
            let mut plain = Vec::new();
            layout.read(&raw, &mut plain);
            let [first, low, high, payload @ ..] = &plain[..] else { return };
            let Some(tag) = Tag::from_number((first >> 24) as u8) else { return };
            let length = payload_bytes(*first).saturating_sub(usize::from(!tag.is_binary()));
            let payload = words_as_bytes(payload)[..length].to_vec();
            records.push(OwnedRecord { tag, id: LogId::of_words(*low, *high), payload });
        }
    }

    #[inline]
    fn reclen_bytes(&self) -> usize {
        self.0.settings.reclen_bytes.load(Ordering::Relaxed)
    }

    #[inline]
    fn whole_below(&self) -> usize {
        self.0.settings.whole_below.load(Ordering::Relaxed)
    }

    #[inline]
    fn buffer_words(&self) -> usize {
        self.0.settings.buffer_words.load(Ordering::Relaxed)
    }

    #[inline]
    fn is_sync(&self) -> bool {
        self.0.settings.sync.load(Ordering::Relaxed)
    }

    /// Reserves `words` words and returns the index of the first; `None` if the ring could never
    /// hold that many.
    fn reserve(&self, words: usize, records: u64, flushes: u64) -> Option<usize> {
        let ring = &*self.0;
        if words >= ring.log_words {
            return None;
        }
        let region = ring.segment.region();
        let mut position = ring.position.try_lock().unwrap_or_else(|| {
            ring.contended.fetch_add(1, Ordering::Relaxed);
            ring.position.lock()
        });
        position.totals.shm_writes += 1;
        position.totals.shm_records += records;
        position.totals.shm_flushes += flushes;
        position.totals.shm_bytes += 4 * words as u64;
        if position.next + words >= ring.log_words {
            let end = position.next;
            position.number = (position.number / 8).wrapping_add(1).wrapping_mul(8);
            region.store_u64(OFFSETS_OFFSET, 0, Ordering::Relaxed);
            region.store_u32(HEAD_BYTES, END_MARKER, Ordering::Release);
            region.store_u32(HEAD_BYTES + 4 * end, WRAP_MARKER, Ordering::Release);
            position.wrapped_at = end;
            position.next = 0;
            position.totals.shm_cycles += 1;
            region.store_u32(SEGMENT_NUMBER_OFFSET, position.number, Ordering::Release);
        }
        let start = position.next;
        let next = start + words;
        position.next = next;
        region.store_u32(HEAD_BYTES + 4 * next, END_MARKER, Ordering::Release);
        let before = position.number;
        while next / ring.segment_words > position.number as usize % SEGMENTS {
            position.number = position.number.wrapping_add(1);
            let index = position.number as usize % SEGMENTS;
            region.store_u64(OFFSETS_OFFSET + 8 * index, next as u64, Ordering::Relaxed);
        }
        if position.number != before {
            region.store_u32(SEGMENT_NUMBER_OFFSET, position.number, Ordering::Release);
        }
        Some(start)
    }

    /// Writes complete records, already in ring format and all with the same id, as one batch;
    /// before it, a `notice`: one record of another id, or nothing.
    fn write_batch(&self, notice: &[u32], words: &[u32], records: u64, flushes: u64) {
        let (before, records) = (notice.len(), records + u64::from(!notice.is_empty()));
        let head = self.0.layout.head_words();
        let Some(start) = self.reserve(before + head + words.len(), records, flushes) else { return };
        let region = self.0.segment.region();
        let start = HEAD_BYTES + 4 * start;
        let at = start + 4 * before;
        // SAFETY: see `Ring::segment`.
        unsafe { region.copy_in(at + 4 * head, words_as_bytes(words)) };
        region.store_u32(at + 4, (words.len() * 4) as u32, Ordering::Relaxed);
        region.store_u32(at, BATCH_TAG << 24, Ordering::Release);
        if let [first, rest @ ..] = notice {
            // SAFETY: see `Ring::segment`.
            unsafe { region.copy_in(start + 4, words_as_bytes(rest)) };
            region.store_u32(start, *first, Ordering::Release);
        }
    }

    /// Writes one complete record in ring format.
    fn write_words(&self, record: &[u32]) {
        let [first, rest @ ..] = record else { return };
        let Some(start) = self.reserve(record.len(), 1, 0) else { return };
        let region = self.0.segment.region();
        let at = HEAD_BYTES + 4 * start;
        // SAFETY: see `Ring::segment`.
        unsafe { region.copy_in(at + 4, words_as_bytes(rest)) };
        region.store_u32(at, *first, Ordering::Release);
    }
}

/// Words per segment of a ring that occupies `bytes` bytes.
#[must_use]
pub fn segment_words(bytes: usize) -> usize {
    bytes.saturating_sub(HEAD_BYTES) / 4 / SEGMENTS
}

fn initialise(region: &mut Region, layout: Layout) {
    region.store_u64(SEGMENT_WORDS_OFFSET, segment_words(region.len()) as u64, Ordering::Release);
    region.store_u32(SEGMENT_NUMBER_OFFSET, FIRST_SEGMENT_NUMBER, Ordering::Release);
    region.store_u64(OFFSETS_OFFSET, 0, Ordering::Release);
    for index in 1..SEGMENTS {
        region.store_u64(OFFSETS_OFFSET + 8 * index, u64::MAX, Ordering::Release);
    }
    region.store_u32(HEAD_BYTES, END_MARKER, Ordering::Release);
    region.store_u64(0, u64::from_ne_bytes(*layout.ring_marker()), Ordering::SeqCst);
}

pub(crate) fn words_as_bytes(words: &[u32]) -> &[u8] {
    // SAFETY: any u32 is four valid bytes, and the borrow keeps the slice alive and unchanged.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() * 4) }
}

#[cfg(test)]
mod tests;
