//! Reads a log ring while others write it.
//!
//! The reader follows the chain of records, tracks the segment it is in, and compares that with the writer's: as soon as
//! the writer is six segments ahead the reader has lost its place. After copying, this is checked once more, so a chunk
//! that was overwritten meanwhile is never returned, and nonsense that was found where the writer is now is no damage.

use std::sync::atomic::{Ordering, fence};

use super::record::{is_record, record_words};
use super::{Cursor, Next};
use crate::log::{BATCH_TAG, END_MARKER, HEAD_BYTES, HEAD_MARKER, SEGMENTS, WRAP_MARKER};
use crate::region::Region;

/// Segments that the writer may be ahead before the reader has lost its place.
const OVERRUN_SEGMENTS: u32 = 6;
/// How many segments before the current one reading "from the head" starts.
const HEAD_SEGMENTS: u32 = 5;

/// Where to start reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// The oldest records.
    Head,
    /// Whatever is written from now on.
    Tail,
}

/// A place in a ring.
pub struct RingCursor {
    region: Region,
    segment_words: usize,
    log_words: usize,
    at: usize,
    number: u32,
}

impl RingCursor {
    /// Starts reading in `region`; `None` when that is not a log ring.
    #[must_use]
    pub fn open(region: Region, start: Start) -> Option<RingCursor> {
        if region.load_u64(0, Ordering::Acquire) != u64::from_ne_bytes(*HEAD_MARKER) {
            return None;
        }
        let segment_words = usize::try_from(region.load_u64(8, Ordering::Relaxed)).ok()?;
        let log_words = segment_words.checked_mul(SEGMENTS)?;
        if segment_words == 0 || log_words > region.len().checked_sub(HEAD_BYTES)? / 4 {
            return None;
        }
        let mut cursor = RingCursor { region, segment_words, log_words, at: 0, number: 0 };
        cursor.reset(start);
        Some(cursor)
    }

    /// Goes to the oldest or the newest records.
    pub fn reset(&mut self, start: Start) {
        let current = self.writer_number();
        let first = match start {
            Start::Head => current.wrapping_sub(HEAD_SEGMENTS),
            Start::Tail => current,
        };
        // Where nothing is, in case that no segment is recorded.
        (self.at, self.number) = (self.log_words, current);
        for step in 0..=current.wrapping_sub(first) {
            let number = first.wrapping_add(step);
            if let Some(offset) = self.offset(number) {
                (self.at, self.number) = (offset, number);
                break;
            }
        }
        if start == Start::Tail {
            let mut skipped = Vec::new();
            // Each step moves ahead; if a writer keeps pace for a whole ring's worth of records, the search gives up.
            for _ in 0..self.log_words {
                if self.next(&mut skipped) != Next::Chunk {
                    break;
                }
            }
        }
    }

    /// Whether a record begins at this place, or what was written ends there.
    #[must_use]
    pub fn makes_sense(&self) -> bool {
        let first = self.word(self.at);
        self.at < self.log_words
            && (matches!(first, END_MARKER | WRAP_MARKER) || first >> 24 == BATCH_TAG || is_record(first))
    }

    fn writer_number(&self) -> u32 {
        self.region.load_u32(16, Ordering::Acquire)
    }

    /// Where segment `number` starts, if that is recorded and lies within the ring.
    fn offset(&self, number: u32) -> Option<usize> {
        let index = number as usize % SEGMENTS;
        let offset = usize::try_from(self.region.load_u64(24 + 8 * index, Ordering::Acquire)).ok()?;
        (offset < self.log_words).then_some(offset)
    }

    fn word(&self, at: usize) -> u32 {
        self.region.load_u32(HEAD_BYTES + 4 * at, Ordering::Acquire)
    }

    fn is_overrun(&self) -> bool {
        let ahead = self.writer_number().wrapping_sub(self.number);
        // The writer publishes its number after the records, so the reader may briefly be ahead of it.
        (OVERRUN_SEGMENTS..u32::MAX - 16).contains(&ahead)
    }

    /// What cannot be right is damage, unless the writer has been here meanwhile.
    fn nonsense(&self) -> Next {
        if self.is_overrun() { Next::Overrun } else { Next::Damaged }
    }

    /// Copies `count` words from `at` and moves past them.
    fn take(&mut self, at: usize, count: usize, words: &mut Vec<u32>) -> Next {
        words.extend((at..at + count).map(|index| self.region.load_u32(HEAD_BYTES + 4 * index, Ordering::Relaxed)));
        fence(Ordering::Acquire);
        if self.is_overrun() {
            return Next::Overrun;
        }
        self.at = at + count;
        while self.at / self.segment_words > self.number as usize % SEGMENTS {
            self.number = self.number.wrapping_add(1);
        }
        Next::Chunk
    }
}

impl Cursor for RingCursor {
    fn next(&mut self, words: &mut Vec<u32>) -> Next {
        words.clear();
        for _ in 0..2 {
            if self.at >= self.log_words {
                return Next::Damaged;
            }
            if self.is_overrun() {
                return Next::Overrun;
            }
            let first = self.word(self.at);
            match first {
                END_MARKER => return if self.is_overrun() { Next::Overrun } else { Next::Wait },
                WRAP_MARKER => {
                    self.at = 0;
                    self.number = (self.number | 7).wrapping_add(1);
                    continue;
                }
                _ => {}
            }
            let (start, count) = if first >> 24 == BATCH_TAG {
                let bytes = self.word(self.at + 1) as usize;
                (self.at + 2, bytes.div_ceil(4))
            } else if is_record(first) {
                (self.at, record_words(first))
            } else {
                return self.nonsense();
            };
            // A record ends before the END word that follows it.
            if start + count >= self.log_words {
                return self.nonsense();
            }
            if count == 0 {
                self.at = start;
                return Next::Wait;
            }
            return self.take(start, count, words);
        }
        self.nonsense()
    }
}
