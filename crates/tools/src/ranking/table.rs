//! The entries of `varnishtop` with their decaying counts.
//!
//! If the period has N seconds, every count loses 1/N each second, so an entry that occurs at a
//! steady rate has a count near the number of times that it occurs in a period. Entries that have
//! decayed away are dropped. Compat: entries with the same count are in the order of the stock 7.1
//! tool: by the sum of their bytes, tag, length and text.
//!
//! *Invariant:* never more than [`ENTRIES_MAX`] entries and [`TEXT_BYTES_MAX`] bytes of text:
//! beyond that the rarer half is dropped.

use std::cmp::Ordering;
use std::collections::HashMap;

use surface::tag::Tag;

/// Largest number of different entries.
pub(crate) const ENTRIES_MAX: usize = 1 << 18;
/// Most bytes of text in all entries together.
pub(crate) const TEXT_BYTES_MAX: usize = 128 << 20;
/// An entry with a smaller count is dropped.
const COUNT_MIN: f64 = 0.05;

/// The key of a count: a tag and a text.
type Name = (Tag, Box<[u8]>);

/// One line of the ranking.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Entry<'a> {
    /// Number of occurrences, after decay.
    pub count: f64,
    /// The record's tag.
    pub tag: Tag,
    /// The record's text, or its first field.
    pub text: &'a [u8],
}

/// The counts.
pub(crate) struct Table {
    counts: HashMap<Name, f64>,
    text_bytes: usize,
    entries_max: usize,
    period_seconds: f64,
}

impl Table {
    /// An empty table whose counts decay over `period_seconds`.
    pub fn new(period_seconds: f64) -> Table {
        Table { counts: HashMap::new(), text_bytes: 0, entries_max: ENTRIES_MAX, period_seconds }
    }

    /// Counts one record.
    pub fn count(&mut self, tag: Tag, text: &[u8]) {
        let name = (tag, Box::from(text));
        if let Some(count) = self.counts.get_mut(&name) {
            *count += 1.0;
            return;
        }
        if self.counts.len() >= self.entries_max || self.text_bytes + text.len() > TEXT_BYTES_MAX {
            self.keep(self.counts.len() / 2);
        }
        self.text_bytes += text.len();
        self.counts.insert(name, 1.0);
    }

    /// Decays the counts by `seconds`.
    pub fn fade(&mut self, seconds: f64) {
        let factor = (1.0 - 1.0 / self.period_seconds.max(1.0)).max(0.0).powf(seconds.max(0.0));
        let mut text_bytes = 0;
        self.counts.retain(|(_, text), count| {
            *count *= factor;
            let stays = *count >= COUNT_MIN;
            text_bytes += if stays { text.len() } else { 0 };
            stays
        });
        self.text_bytes = text_bytes;
    }

    /// Number of different entries.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// All entries, the most frequent first.
    pub fn ranking(&self) -> Vec<Entry<'_>> {
        let mut entries: Vec<(Entry, u32)> = self
            .counts
            .iter()
            .map(|((tag, text), count)| (Entry { count: *count, tag: *tag, text }, byte_sum(text)))
            .collect();
        entries.sort_unstable_by(compare);
        entries.into_iter().map(|(entry, _)| entry).collect()
    }

    /// Drops all but the `count` most frequent entries.
    fn keep(&mut self, count: usize) {
        let mut counts: Vec<f64> = self.counts.values().copied().collect();
        if counts.len() <= count {
            return;
        }
        let at = counts.len() - 1 - count;
        let (_, threshold, _) = counts.select_nth_unstable_by(at, f64::total_cmp);
        let threshold = *threshold;
        // Of entries as frequent as the last one that stays, those that come first are dropped.
        let mut room = count.saturating_sub(self.counts.values().filter(|count| **count > threshold).count());
        let mut text_bytes = 0;
        self.counts.retain(|(_, text), count| {
            let stays = *count > threshold || *count == threshold && room > 0;
            if stays && *count == threshold {
                room -= 1;
            }
            text_bytes += if stays { text.len() } else { 0 };
            stays
        });
        self.text_bytes = text_bytes;
    }
}

fn byte_sum(text: &[u8]) -> u32 {
    // The stock tool adds the bytes as signed characters.
    text.iter().fold(0, |sum, byte| sum.wrapping_add_signed(i32::from(*byte as i8)))
}

fn compare((one, one_sum): &(Entry, u32), (other, other_sum): &(Entry, u32)) -> Ordering {
    let by_count = other.count.total_cmp(&one.count);
    by_count
        .then(one_sum.cmp(other_sum))
        .then((one.tag as u8).cmp(&(other.tag as u8)))
        .then(one.text.len().cmp(&other.text.len()))
        .then(one.text.cmp(other.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(table: &Table) -> Vec<String> {
        table.ranking().iter().map(|entry| String::from_utf8_lossy(entry.text).into_owned()).collect()
    }

    #[test]
    fn the_most_frequent_comes_first_and_equals_keep_an_order() {
        let mut table = Table::new(60.0);
        for (text, times) in [("b", 2), ("a", 2), ("often", 5), ("ba", 1)] {
            for _ in 0..times {
                table.count(Tag::ReqURL, text.as_bytes());
            }
        }
        table.count(Tag::Debug, b"ba");
        assert_eq!(names(&table), ["often", "a", "b", "ba", "ba"]);
        let ranking = table.ranking();
        assert_eq!((ranking[0].count, ranking[3].tag, ranking[4].tag), (5.0, Tag::Debug, Tag::ReqURL));
    }

    #[test]
    fn steady_rate_converges_to_the_count_per_period() {
        let mut table = Table::new(60.0);
        for _ in 0..1000 {
            for _ in 0..5 {
                table.count(Tag::ReqURL, b"/");
            }
            table.fade(1.0);
        }
        let count = table.ranking()[0].count;
        assert!((290.0..=300.0).contains(&count), "{count}");
    }

    #[test]
    fn entries_without_new_counts_fade_and_are_dropped() {
        let mut table = Table::new(10.0);
        for _ in 0..100 {
            table.count(Tag::ReqURL, b"/once");
        }
        table.fade(10.0);
        let after_a_period = table.ranking()[0].count;
        assert!((30.0..40.0).contains(&after_a_period), "{after_a_period}");
        table.fade(100.0);
        assert_eq!((table.len(), table.text_bytes), (0, 0));
        let mut shortest = Table::new(1.0);
        shortest.count(Tag::ReqURL, b"/");
        shortest.fade(1.0);
        assert_eq!(shortest.len(), 0);
    }

    #[test]
    fn a_full_table_loses_the_rarer_half() {
        let mut table = Table { entries_max: 100, ..Table::new(60.0) };
        for _ in 0..3 {
            table.count(Tag::ReqURL, b"frequent");
        }
        for number in 0..1000 {
            table.count(Tag::ReqURL, format!("{number}").as_bytes());
            assert!(table.len() <= 100);
        }
        assert_eq!(names(&table)[0], "frequent");
        assert_eq!(table.text_bytes, table.counts.keys().map(|(_, text)| text.len()).sum::<usize>());
    }
}
