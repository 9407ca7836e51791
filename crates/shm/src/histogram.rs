//! Histograms in process memory, cheap enough for the path of a hit, and their segments.
//!
//! As with [`crate::counters`], an event loop counts in memory that it alone writes. Off the path
//! the histograms of all loops are added up, into a segment of class [`CLASS`], which readers of
//! libvarnishapi skip. A segment has a head (layout, cells, buckets) and then its cells: a word for
//! each bucket, the sum, three words for the exemplar of each bucket.
//!
//! *Invariant:* an exemplar is never mixed of two: its writer marks the slot as busy first, and a
//! reader accepts it only with the same transaction before and after. Transactions are unique.
//! Next file: `read/histograms.rs`.

use crate::counters::SharedCounters;
use crate::vsm::{Segment, VsmWriter};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use surface::histogram::{BUCKETS, HistogramFamily, REQUEST_CELLS, SIZE_CELLS};
use surface::limits::HISTOGRAM_LISTENERS_MAX;
use surface::metric::OTHER_INSTANCES;
use surface::reason::{REASONS, Reason};

/// Class of the segments.
pub const CLASS: &str = "Hist";
/// Layout of the segments.
pub(crate) const LAYOUT: u64 = 1;
/// Length of a segment's head, in words.
pub(crate) const HEAD_WORDS: usize = 3;
/// Length of a cell, in words.
pub(crate) const CELL_WORDS: usize = BUCKETS + 1 + 3 * BUCKETS;

/// State of an exemplar that is being written.
const BUSY: u64 = u64::MAX;
const NONE: u64 = 0;

/// A transaction whose value is in a bucket.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Example {
    /// Its number; neither 0 nor `u64::MAX`.
    pub vxid: u64,
    /// Its value.
    pub value: u64,
    /// Time of its end, seconds since 1970.
    pub time: f64,
}

#[derive(Default)]
struct ExampleSlot {
    vxid: AtomicU64,
    value: AtomicU64,
    time: AtomicU64,
}

impl ExampleSlot {
    /// Writes the slot; its state must be [`BUSY`], or only this thread writes it.
    #[inline]
    fn fill(&self, example: Example) {
        fence(Ordering::Release);
        self.value.store(example.value, Ordering::Relaxed);
        self.time.store(example.time.to_bits(), Ordering::Relaxed);
        self.vxid.store(example.vxid, Ordering::Release);
    }

    fn read(&self) -> Option<Example> {
        let word = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        let before = self.vxid.load(Ordering::Acquire);
        let (value, time) = (word(&self.value), f64::from_bits(word(&self.time)));
        fence(Ordering::Acquire);
        let is_whole = !matches!(before, NONE | BUSY) && before == word(&self.vxid);
        is_whole.then_some(Example { vxid: before, value, time })
    }
}

/// The counts of one combination of labels.
#[derive(Default)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum: AtomicU64,
    examples: [ExampleSlot; BUCKETS],
}

impl Histogram {
    /// Counts a value in its bucket. Only one thread may call this.
    #[inline]
    pub fn count_alone(&self, bucket: usize, example: Example) {
        let (Some(count), Some(slot)) = (self.buckets.get(bucket), self.examples.get(bucket)) else { return };
        let add = |cell: &AtomicU64, amount| {
            cell.store(cell.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
        };
        add(count, 1);
        add(&self.sum, example.value);
        slot.vxid.store(BUSY, Ordering::Relaxed);
        slot.fill(example);
    }

    /// As [`Histogram::count_alone`], for a histogram that several threads write.
    pub fn count(&self, bucket: usize, example: Example) {
        let (Some(count), Some(slot)) = (self.buckets.get(bucket), self.examples.get(bucket)) else { return };
        count.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(example.value, Ordering::Relaxed);
        // Another thread that is writing it leaves an example just as good.
        if slot.vxid.swap(BUSY, Ordering::Acquire) != BUSY {
            slot.fill(example);
        }
    }

    /// Adds the counts to a total; of two examples the later one stays.
    pub fn add_to(&self, total: &mut Total) {
        for (sum, count) in total.buckets.iter_mut().zip(&self.buckets) {
            *sum = sum.wrapping_add(count.load(Ordering::Relaxed));
        }
        total.sum = total.sum.wrapping_add(self.sum.load(Ordering::Relaxed));
        for (kept, slot) in total.examples.iter_mut().zip(&self.examples) {
            if let Some(example) = slot.read()
                && kept.is_none_or(|kept| kept.time < example.time)
            {
                *kept = Some(example);
            }
        }
    }
}

/// Counts added up, or read from a segment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Total {
    /// Number of values in each bucket.
    pub buckets: [u64; BUCKETS],
    /// Sum of the values.
    pub sum: u64,
    /// An example for each bucket.
    pub examples: [Option<Example>; BUCKETS],
}

impl Total {
    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, count| sum.wrapping_add(*count))
    }

    /// Adds another one.
    pub fn add(&mut self, other: &Total) {
        for (sum, count) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum = sum.wrapping_add(*count);
        }
        self.sum = self.sum.wrapping_add(other.sum);
        for (kept, example) in self.examples.iter_mut().zip(&other.examples) {
            *kept = kept.or(*example);
        }
    }
}

/// Cells of a family; a cell takes memory once it has counted.
pub struct Cells<const N: usize>([OnceLock<Box<Histogram>>; N]);

impl<const N: usize> Default for Cells<N> {
    fn default() -> Cells<N> {
        Cells(std::array::from_fn(|_| OnceLock::new()))
    }
}

impl<const N: usize> Cells<N> {
    /// The cell at a place; the last one if there is no such place.
    #[inline]
    pub fn at(&self, place: usize) -> &Histogram {
        let cell = &self.0[place.min(N - 1)];
        match cell.get() {
            Some(histogram) => histogram,
            None => begin(cell),
        }
    }

    /// The cells that have counted, with their places.
    pub fn in_use(&self) -> impl Iterator<Item = (usize, &Histogram)> {
        self.0.iter().enumerate().filter_map(|(place, cell)| Some((place, &**cell.get()?)))
    }
}

#[cold]
fn begin(cell: &OnceLock<Box<Histogram>>) -> &Histogram {
    cell.get_or_init(Box::default)
}

/// Requests of one listener on one event loop.
pub struct ListenerCells {
    /// The name of the listener.
    pub name: Box<str>,
    /// Durations.
    pub cells: Cells<REQUEST_CELLS>,
}

/// Number of reasons.
pub const REASON_COUNT: usize = REASONS.len();

/// Histograms of one event loop, and its counts of reasons. *Invariant:* only that loop writes
/// them; any thread may read.
#[derive(Default)]
pub struct LoopHistograms {
    listeners: [OnceLock<Box<ListenerCells>>; HISTOGRAM_LISTENERS_MAX],
    /// Sizes of response bodies.
    pub sizes: Cells<SIZE_CELLS>,
    reasons: SharedCounters<REASON_COUNT>,
}

impl LoopHistograms {
    /// The place of a listener, which is made if it is new. If there are too many, the last place
    /// is for all others.
    pub fn listener(&self, name: &str) -> usize {
        for (place, slot) in self.listeners.iter().enumerate() {
            let is_last = place + 1 == HISTOGRAM_LISTENERS_MAX;
            let found = slot.get_or_init(|| {
                let name = if is_last { OTHER_INSTANCES } else { name };
                Box::new(ListenerCells { name: name.into(), cells: Cells::default() })
            });
            if is_last || *found.name == *name {
                return place;
            }
        }
        HISTOGRAM_LISTENERS_MAX - 1
    }

    /// The durations of requests of a listener; `None` if it is unknown.
    #[inline]
    pub fn requests(&self, listener: usize) -> Option<&Cells<REQUEST_CELLS>> {
        Some(&self.listeners.get(listener)?.get()?.cells)
    }

    /// The listeners that have had sessions.
    pub fn listeners(&self) -> impl Iterator<Item = &ListenerCells> {
        self.listeners.iter().filter_map(|slot| slot.get().map(|cells| &**cells))
    }

    /// Counts a reason. Only the owning loop may call this.
    #[inline]
    pub fn count_reason(&self, reason: Reason) {
        self.reasons.change_alone(reason as usize, 1);
    }

    /// The number of times of each reason, in the order of [`REASONS`].
    #[must_use]
    pub fn reasons(&self) -> [u64; REASON_COUNT] {
        self.reasons.values()
    }
}

/// A published instance of a family.
pub struct HistogramSegment {
    segment: Segment,
    cells: usize,
}

impl HistogramSegment {
    /// Publishes an instance, all zero. Characters that an index cannot carry are replaced in its
    /// name.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn publish(vsm: &VsmWriter, family: HistogramFamily, instance: &str) -> io::Result<HistogramSegment> {
        let plain = |letter: char| letter.is_ascii_graphic() && !matches!(letter, '"' | '\\');
        let instance: String =
            instance.chars().take(200).map(|letter| if plain(letter) { letter } else { '_' }).collect();
        let cells = family.cells();
        let bytes = 8 * (HEAD_WORDS + cells * CELL_WORDS);
        let segment = vsm.add_filled(CLASS, &format!("{}.{instance}", family.name()), bytes, |memory| {
            memory.store_u64(8, cells as u64, Ordering::Release);
            memory.store_u64(16, BUCKETS as u64, Ordering::Release);
            memory.store_u64(0, LAYOUT, Ordering::Release);
        })?;
        Ok(HistogramSegment { segment, cells })
    }

    /// Removes it from the index.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn withdraw(self, vsm: &VsmWriter) -> io::Result<()> {
        vsm.remove(&self.segment)
    }

    /// Sets a cell; does nothing if it does not exist.
    pub fn set(&self, cell: usize, total: &Total) {
        if cell >= self.cells {
            return;
        }
        let first = HEAD_WORDS + cell * CELL_WORDS;
        let store = |place: usize, value: u64| self.segment.store_u64(8 * (first + place), value);
        for (place, count) in total.buckets.iter().chain([&total.sum]).enumerate() {
            store(place, *count);
        }
        for (bucket, example) in total.examples.iter().enumerate() {
            let Some(example) = example else { continue };
            let at = BUCKETS + 1 + 3 * bucket;
            store(at, BUSY);
            fence(Ordering::Release);
            store(at + 1, example.value);
            store(at + 2, example.time.to_bits());
            store(at, example.vxid);
        }
    }
}

/// An example in a segment whose three words were read by `word`; `None` if there is none, or it is
/// being written.
pub(crate) fn example(word: impl Fn(usize) -> u64) -> Option<Example> {
    let before = word(0);
    fence(Ordering::Acquire);
    let (value, time) = (word(1), f64::from_bits(word(2)));
    fence(Ordering::Acquire);
    let is_whole = !matches!(before, NONE | BUSY) && before == word(0) && time.is_finite();
    is_whole.then_some(Example { vxid: before, value, time })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::histograms::HistogramReader;
    use crate::read::vsm::Vsm;
    use crate::vsm::WORKER_DIRECTORY;
    use surface::histogram::Scale;

    fn example(vxid: u64, value: u64) -> Example {
        Example { vxid, value, time: vxid as f64 }
    }

    #[test]
    fn values_of_several_loops_are_read_back_from_the_segment() {
        let folder = tempfile::tempdir().unwrap();
        let vsm = VsmWriter::create(&folder.path().join(WORKER_DIRECTORY)).unwrap();
        let segment = HistogramSegment::publish(&vsm, HistogramFamily::Size, "a \"b").unwrap();
        let loops = [LoopHistograms::default(), LoopHistograms::default()];
        for (number, value) in [(1, 10), (2, 70), (3, 20)] {
            let bucket = Scale::Bytes.bucket(value);
            loops[usize::from(number == 2)].sizes.at(3).count_alone(bucket, example(number, value));
        }
        let mut total = Total::default();
        loops.iter().flat_map(|one| one.sizes.in_use()).for_each(|(_, histogram)| histogram.add_to(&mut total));
        segment.set(3, &total);
        segment.set(99, &total);
        let mut reader = Vsm::new(folder.path());
        reader.poll();
        let mut found = Vec::new();
        HistogramReader::default().for_each(&reader, |block| {
            found.push((block.ident.to_owned(), block.cells().collect::<Vec<_>>()));
        });
        let [(ident, cells)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(ident, "size.a__b");
        assert_eq!(cells.len(), 1);
        assert_eq!(cells[0], (3, total.clone()));
        assert_eq!((total.count(), total.sum), (3, 100));
        // The later one of the two in the first bucket.
        assert_eq!(total.examples[0], Some(example(3, 20)));
        assert_eq!(total.examples[1], Some(example(2, 70)));
    }

    #[test]
    fn listeners_beyond_the_limit_share_the_last_place() {
        let loops = LoopHistograms::default();
        let place = |number: usize| loops.listener(&format!("a{number}"));
        let places: Vec<usize> = (0..HISTOGRAM_LISTENERS_MAX + 5).map(place).collect();
        assert_eq!(places[..HISTOGRAM_LISTENERS_MAX - 1], (0..HISTOGRAM_LISTENERS_MAX - 1).collect::<Vec<_>>());
        assert!(places[HISTOGRAM_LISTENERS_MAX..].iter().all(|place| *place == HISTOGRAM_LISTENERS_MAX - 1));
        assert_eq!(place(1), 1);
        assert_eq!(&*loops.listeners().last().unwrap().name, OTHER_INSTANCES);
    }

    #[test]
    fn example_that_several_threads_write_is_never_mixed_of_two() {
        let histogram = Histogram::default();
        std::thread::scope(|scope| {
            for thread in 0..3u64 {
                let histogram = &histogram;
                scope.spawn(move || {
                    for step in 1..20_000 {
                        let vxid = 3 * step + thread;
                        histogram.count(0, Example { vxid, value: 2 * vxid, time: vxid as f64 });
                    }
                });
            }
            for _ in 0..20_000 {
                let mut total = Total::default();
                histogram.add_to(&mut total);
                if let Some(found) = total.examples[0] {
                    assert_eq!((found.value, found.time), (2 * found.vxid, found.vxid as f64));
                }
            }
        });
        let mut total = Total::default();
        histogram.add_to(&mut total);
        assert_eq!(total.count(), 3 * 19_999);
    }
}
