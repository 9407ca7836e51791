//! Reader of a log ring while others write it.
//!
//! The reader follows the chain of records, tracks the segment it is in, and compares that with the
//! writer's: as soon as the writer is six segments ahead the reader has lost its place. After
//! copying, this is checked once more, so a chunk that was overwritten meanwhile is never returned,
//! and invalid data at the writer's present position does not count as damage. A reader far ahead
//! of the writer follows a chain that leads in a circle, which is damage: only a writer that moves
//! on causes an overrun.

use std::sync::atomic::{Ordering, fence};

use super::record::is_record;
use super::{Cursor, Next};
use crate::layout::Layout;
use crate::log::{BATCH_TAG, END_MARKER, HEAD_BYTES, SEGMENTS, WRAP_MARKER};
use crate::region::Region;

/// Segments that the writer may be ahead before the reader has lost its place.
const OVERRUN_SEGMENTS: i32 = 6;
/// Segments that the reader may be ahead of the writer, which publishes its number after the
/// records.
const AHEAD_SEGMENTS: i32 = 16;
/// Number of segments before the current one at which reading "from the head" starts.
const HEAD_SEGMENTS: u32 = 5;

/// Position to start reading at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// The oldest records.
    Head,
    /// Records that are written from now on.
    Tail,
}

/// A place in a ring.
pub struct RingCursor {
    region: Region,
    layout: Layout,
    /// Words of the last chunk as they are in the ring.
    raw: Vec<u32>,
    segment_words: usize,
    log_words: usize,
    at: usize,
    number: u32,
}

impl RingCursor {
    /// Starts reading in `region`; `None` when that is not a log ring.
    #[must_use]
    pub fn open(region: Region, start: Start) -> Option<RingCursor> {
        let layout = Layout::of_ring(region.load_u64(0, Ordering::Acquire).to_ne_bytes())?;
        let segment_words = usize::try_from(region.load_u64(8, Ordering::Relaxed)).ok()?;
        let log_words = segment_words.checked_mul(SEGMENTS)?;
        if segment_words == 0 || log_words > region.len().checked_sub(HEAD_BYTES)? / 4 {
            return None;
        }
        let mut cursor = RingCursor { region, layout, raw: Vec::new(), segment_words, log_words, at: 0, number: 0 };
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
        // An empty position, in case that no segment is recorded.
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
            // Each step moves ahead; if a writer keeps pace for several turns, the search gives up.
            // A chain without an end is found to be damaged before that.
            for _ in 0..2 * self.log_words {
                if self.next(&mut skipped) != Next::Chunk {
                    break;
                }
            }
        }
    }

    /// The layout of the ring.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// True if a record begins here, or the written data ends here.
    #[must_use]
    pub fn makes_sense(&self) -> bool {
        let first = self.word(self.at);
        self.at < self.log_words
            && (matches!(first, END_MARKER | WRAP_MARKER) || first >> 24 == BATCH_TAG || is_record(first))
    }

    fn writer_number(&self) -> u32 {
        self.region.load_u32(16, Ordering::Acquire)
    }

    /// Offset of segment `number`, if it is recorded and within the ring.
    fn offset(&self, number: u32) -> Option<usize> {
        let index = number as usize % SEGMENTS;
        let offset = usize::try_from(self.region.load_u64(24 + 8 * index, Ordering::Acquire)).ok()?;
        (offset < self.log_words).then_some(offset)
    }

    fn word(&self, at: usize) -> u32 {
        self.region.load_u32(HEAD_BYTES + 4 * at, Ordering::Acquire)
    }

    /// The reason not to read here: the writer has overtaken this place, or the chain of records
    /// has led too far ahead of the writer.
    fn lost(&self) -> Option<Next> {
        let ahead = self.writer_number().wrapping_sub(self.number).cast_signed();
        if ahead >= OVERRUN_SEGMENTS {
            Some(Next::Overrun)
        } else if ahead < -AHEAD_SEGMENTS {
            Some(Next::Damaged)
        } else {
            None
        }
    }

    /// Invalid data is damage, unless the writer has been here meanwhile.
    fn nonsense(&self) -> Next {
        self.lost().unwrap_or(Next::Damaged)
    }

    /// Copies `count` words from `at` and moves past them.
    fn take(&mut self, at: usize, count: usize, words: &mut Vec<u32>) -> Next {
        self.raw.clear();
        let load = |index| self.region.load_u32(HEAD_BYTES + 4 * index, Ordering::Relaxed);
        self.raw.extend((at..at + count).map(load));
        fence(Ordering::Acquire);
        if let Some(lost) = self.lost() {
            return lost;
        }
        self.layout.read(&self.raw, words);
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
            if let Some(lost) = self.lost() {
                return lost;
            }
            let first = self.word(self.at);
            match first {
                END_MARKER => return self.lost().unwrap_or(Next::Wait),
                WRAP_MARKER => {
                    self.at = 0;
                    self.number = (self.number | 7).wrapping_add(1);
                    continue;
                }
                _ => {}
            }
            let (start, count) = if first >> 24 == BATCH_TAG {
                let bytes = self.word(self.at + 1) as usize;
                (self.at + self.layout.head_words(), bytes.div_ceil(4))
            } else if is_record(first) {
                (self.at, self.layout.record_words(first))
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
