//! The values of the last transactions, counted in buckets on a logarithmic scale.

use std::collections::VecDeque;

/// Number of transactions that are remembered.
pub(super) const VALUES_MAX: usize = 2000;
/// Buckets between a number and ten times that number.
const BUCKETS_PER_POWER: i32 = 100;

/// The number of hits and of others.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Count {
    pub hits: u32,
    pub others: u32,
}

/// The buckets between two powers of ten.
pub(super) struct Buckets {
    low: i32,
    high: i32,
    counts: Vec<Count>,
    /// The contents of the buckets, oldest first.
    values: VecDeque<(u32, bool)>,
}

impl Buckets {
    /// Empty buckets from ten to the power of `low` to ten to the power of `high`, which is
    /// greater.
    pub fn new(low: i32, high: i32) -> Buckets {
        let number = high.saturating_sub(low).saturating_mul(BUCKETS_PER_POWER).max(1);
        let counts = vec![Count::default(); usize::try_from(number).unwrap_or(1)];
        Buckets { low, high, counts, values: VecDeque::with_capacity(VALUES_MAX) }
    }

    /// The limits as powers of ten.
    pub fn powers(&self) -> (i32, i32) {
        (self.low, self.high)
    }

    /// Counts a value above 0; a value beyond the limits is counted at the limit. If necessary the
    /// oldest value is dropped.
    pub fn count(&mut self, value: f64, hit: bool) {
        let place = (f64::from(BUCKETS_PER_POWER) * (value.log10() - f64::from(self.low))).round();
        let last = self.counts.len() - 1;
        // The cast turns NaN and values that are too small into 0.
        let index = (place as usize).min(last);
        if self.values.len() == VALUES_MAX
            && let Some((oldest, was_hit)) = self.values.pop_front()
        {
            *self.counter(oldest as usize, was_hit) -= 1;
        }
        *self.counter(index, hit) += 1;
        self.values.push_back((index as u32, hit));
    }

    fn counter(&mut self, index: usize, hit: bool) -> &mut u32 {
        let count = &mut self.counts[index];
        if hit { &mut count.hits } else { &mut count.others }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The buckets combined into `columns` columns.
    pub fn columns(&self, columns: usize) -> Vec<Count> {
        let mut gathered = vec![Count::default(); columns];
        if columns > 0 {
            for (index, count) in self.counts.iter().enumerate() {
                let column = &mut gathered[index * columns / self.counts.len()];
                column.hits += count.hits;
                column.others += count.others;
            }
        }
        gathered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_falls_into_the_bucket_of_its_logarithm() {
        let mut buckets = Buckets::new(-2, 2);
        for (value, hit) in [(0.01, true), (1.0, false), (1.001, true), (50.0, true)] {
            buckets.count(value, hit);
        }
        let columns = buckets.columns(4);
        let wanted = [(1, 0), (0, 0), (1, 1), (1, 0)].map(|(hits, others)| Count { hits, others });
        assert_eq!(columns, wanted);
        assert!(buckets.columns(0).is_empty());
    }

    #[test]
    fn out_of_range_values_count_in_the_edge_buckets() {
        let mut buckets = Buckets::new(1, 3);
        for value in [1e-300, 0.0, f64::NAN, 9.0] {
            buckets.count(value, false);
        }
        for value in [1e300, f64::INFINITY, 1000.0] {
            buckets.count(value, true);
        }
        let columns = buckets.columns(2);
        assert_eq!(columns, [Count { hits: 0, others: 4 }, Count { hits: 3, others: 0 }]);
    }

    #[test]
    fn only_the_last_values_are_remembered() {
        let mut buckets = Buckets::new(0, 1);
        for number in 0..VALUES_MAX + 500 {
            buckets.count(2.0, number < 700);
        }
        assert_eq!(buckets.len(), VALUES_MAX);
        assert_eq!(buckets.columns(1), [Count { hits: 200, others: VALUES_MAX as u32 - 200 }]);
    }
}
