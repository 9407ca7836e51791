//! The histograms, reader side. Cells that have counted nothing are skipped.

use super::vsm::Vsm;
use crate::histogram::{CELL_WORDS, CLASS, HEAD_WORDS, LAYOUT, Total, example};
use crate::region::Region;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use surface::histogram::BUCKETS;

/// Reads all histograms that a server publishes; keeps mappings from one time to the next.
#[derive(Default)]
pub struct HistogramReader {
    regions: HashMap<u64, Region>,
}

/// An instance of a family.
pub struct HistogramBlock<'a> {
    /// Its name: `request.a0`.
    pub ident: &'a str,
    /// The serial number of its segment; a different one after a restart.
    pub serial: u64,
    region: &'a Region,
    cells: usize,
}

impl HistogramReader {
    /// Passes every instance to `take`, in the order of the index. Those of another layout are
    /// skipped.
    pub fn for_each(&mut self, vsm: &Vsm, mut take: impl FnMut(HistogramBlock<'_>)) {
        let listed: HashSet<u64> = vsm.entries().map(|entry| entry.serial).collect();
        self.regions.retain(|serial, _| listed.contains(serial));
        for entry in vsm.entries().filter(|entry| entry.class == CLASS) {
            if !self.regions.contains_key(&entry.serial)
                && let Ok(region) = vsm.map(entry)
            {
                self.regions.insert(entry.serial, region);
            }
            let Some(region) = self.regions.get(&entry.serial) else { continue };
            if let Some(cells) = cells(region) {
                take(HistogramBlock { ident: &entry.ident, serial: entry.serial, region, cells });
            }
        }
    }
}

/// The number of cells in a segment of the known layout.
fn cells(region: &Region) -> Option<usize> {
    let word = |place: usize| region.load_u64(8 * place, Ordering::Acquire);
    let is_known = word(0) == LAYOUT && word(2) == BUCKETS as u64;
    let room = (region.len() / 8).checked_sub(HEAD_WORDS)? / CELL_WORDS;
    let cells = usize::try_from(word(1)).ok()?;
    (is_known && cells <= room).then_some(cells)
}

impl HistogramBlock<'_> {
    /// The cells that have counted, with their places.
    pub fn cells(&self) -> impl Iterator<Item = (usize, Total)> {
        (0..self.cells).filter_map(|cell| Some((cell, self.cell(cell)?)))
    }

    fn cell(&self, cell: usize) -> Option<Total> {
        let first = HEAD_WORDS + cell * CELL_WORDS;
        let word = |place: usize| self.region.load_u64(8 * (first + place), Ordering::Relaxed);
        let mut total = Total { buckets: std::array::from_fn(word), sum: word(BUCKETS), ..Total::default() };
        if total.count() == 0 {
            return None;
        }
        for (bucket, kept) in total.examples.iter_mut().enumerate() {
            *kept = example(|place| word(BUCKETS + 1 + 3 * bucket + place));
        }
        Some(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vsm::{VsmWriter, WORKER_DIRECTORY};

    #[test]
    fn segments_of_another_layout_or_a_false_size_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let writer = VsmWriter::create(&folder.path().join(WORKER_DIRECTORY)).unwrap();
        let head = |layout: u64, cells: u64, buckets: u64| {
            writer
                .add_filled(CLASS, "size.x", 8 * (HEAD_WORDS + CELL_WORDS), |memory| {
                    for (place, value) in [layout, cells, buckets, 1].into_iter().enumerate() {
                        memory.store_u64(8 * place, value, Ordering::Release);
                    }
                })
                .unwrap()
        };
        let buckets = BUCKETS as u64;
        let wrong = [(LAYOUT + 1, 1, buckets), (LAYOUT, 2, buckets), (LAYOUT, u64::MAX, buckets), (LAYOUT, 1, 3)];
        let _wrong = wrong.map(|(layout, cells, buckets)| head(layout, cells, buckets));
        let _short = writer.add(CLASS, "size.y", 8).unwrap();
        let _right = head(LAYOUT, 1, buckets);
        let mut vsm = Vsm::new(folder.path());
        vsm.poll();
        let mut counts = Vec::new();
        HistogramReader::default().for_each(&vsm, |block| counts.extend(block.cells().map(|(_, total)| total.count())));
        assert_eq!(counts, [1]);
    }
}
