//! Rankings: what occurs most in the log, in bounded memory.
//!
//! A ranking is a space-saving sketch: it keeps a fixed number of entries, and a new one takes the
//! place and the count of the smallest, which is its possible error. An entry with a share above
//! 1 / entries is never missed, and its true count lies between `count - error` and `count`. Counts
//! are halved every five minutes, so that rankings show the present. Source: Metwally, Agrawal and
//! El Abbadi, "Efficient computation of frequent and top-k elements in data streams", 2005.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use surface::limits::DASH_TOPS_ENTRIES_MAX;

/// Dimension and measure of a ranking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    /// URLs by requests.
    Requests,
    /// URLs by requests that needed an origin.
    Misses,
    /// URLs by bytes sent.
    Bytes,
    /// URLs by time spent waiting for origins, in microseconds.
    OriginTime,
    /// URLs by failed requests.
    Errors,
    /// Hosts by requests.
    Hosts,
    /// Status codes by requests.
    Status,
    /// Clients by requests.
    Clients,
}

impl By {
    pub const ALL: [By; 8] =
        [By::Requests, By::Misses, By::Bytes, By::OriginTime, By::Errors, By::Hosts, By::Status, By::Clients];

    /// The word in the address of the API.
    pub const fn word(self) -> &'static str {
        match self {
            By::Requests => "requests",
            By::Misses => "misses",
            By::Bytes => "bytes",
            By::OriginTime => "origin-time",
            By::Errors => "errors",
            By::Hosts => "hosts",
            By::Status => "status",
            By::Clients => "clients",
        }
    }
}

/// An entry of a ranking.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Top {
    pub text: Arc<str>,
    /// At least the true count.
    pub count: u64,
    /// The true count is at least `count - error`.
    pub error: u64,
}

/// One ranking.
#[derive(Default)]
pub(crate) struct Sketch {
    entries: Vec<Top>,
    places: HashMap<Arc<str>, usize>,
    /// Counts with their places, the smallest first.
    order: BTreeSet<(u64, usize)>,
    /// Sum of everything that was added.
    total: u64,
}

impl Sketch {
    pub fn add(&mut self, text: &str, weight: u64) {
        if weight == 0 {
            return;
        }
        self.total = self.total.saturating_add(weight);
        let place = match self.places.get(text) {
            Some(place) => *place,
            None if self.entries.len() < DASH_TOPS_ENTRIES_MAX => {
                self.insert(Top { text: text.into(), count: 0, error: 0 }, self.entries.len())
            }
            None => {
                let Some((least, place)) = self.order.first().copied() else { return };
                self.order.remove(&(least, place));
                let old = std::mem::replace(&mut self.entries[place].text, "".into());
                self.places.remove(&old);
                self.insert(Top { text: text.into(), count: least, error: least }, place)
            }
        };
        let entry = &mut self.entries[place];
        self.order.remove(&(entry.count, place));
        entry.count = entry.count.saturating_add(weight);
        self.order.insert((entry.count, place));
    }

    fn insert(&mut self, top: Top, place: usize) -> usize {
        self.places.insert(Arc::clone(&top.text), place);
        self.order.insert((top.count, place));
        match self.entries.get_mut(place) {
            Some(entry) => *entry = top,
            None => self.entries.push(top),
        }
        place
    }

    /// Halves all counts; entries that vanish make room.
    pub fn age(&mut self) {
        let old = std::mem::take(&mut self.entries);
        (self.places, self.order, self.total) = (HashMap::new(), BTreeSet::new(), self.total / 2);
        for entry in old.into_iter().filter(|entry| entry.count >= 2) {
            let place = self.entries.len();
            self.insert(Top { count: entry.count / 2, error: entry.error / 2, ..entry }, place);
        }
    }

    /// The greatest entries that contain `filter`, and the sum of all.
    pub fn greatest(&self, most: usize, filter: &str) -> (Vec<Top>, u64) {
        let places = self.order.iter().rev().map(|(_, place)| &self.entries[*place]);
        (places.filter(|entry| entry.text.contains(filter)).take(most).cloned().collect(), self.total)
    }
}

/// All rankings.
#[derive(Default)]
pub(crate) struct Tops([Sketch; By::ALL.len()]);

impl Tops {
    pub fn add(&mut self, by: By, text: &str, weight: u64) {
        self.0[by as usize].add(text, weight);
    }

    pub fn sketch(&self, by: By) -> &Sketch {
        &self.0[by as usize]
    }

    pub fn age(&mut self) {
        self.0.iter_mut().for_each(Sketch::age);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_exact_while_everything_has_a_place() {
        let mut sketch = Sketch::default();
        for number in 0..10_000u64 {
            sketch.add(&format!("/{}", number % 100), 1 + number % 100);
        }
        let (top, total) = sketch.greatest(2, "");
        assert_eq!((&*top[0].text, top[0].count, top[0].error), ("/99", 100 * 100, 0));
        assert_eq!((&*top[1].text, top[1].count), ("/98", 100 * 99));
        assert_eq!(total, 100 * 5050);
        assert_eq!(sketch.greatest(5, "/7").0.len(), 5);
        sketch.age();
        assert_eq!(sketch.greatest(1, "").0[0].count, 50 * 100);
    }

    #[test]
    fn flood_of_addresses_takes_bounded_memory_and_the_frequent_ones_stay_within_their_bounds() {
        let mut sketch = Sketch::default();
        for number in 0..100_000u64 {
            sketch.add(&format!("/flood/{number}"), 1);
            if number % 10 == 0 {
                sketch.add("/often", 1);
            }
        }
        assert_eq!((sketch.entries.len(), sketch.places.len(), sketch.order.len()), {
            let most = DASH_TOPS_ENTRIES_MAX;
            (most, most, most)
        });
        let (top, total) = sketch.greatest(1, "");
        assert_eq!((&*top[0].text, total), ("/often", 110_000));
        assert!(top[0].count >= 10_000 && top[0].count - top[0].error <= 10_000, "{top:?}");
        assert!(top[0].error <= total / DASH_TOPS_ENTRIES_MAX as u64);
    }

    #[test]
    fn ageing_forgets_what_no_longer_comes() {
        let mut sketch = Sketch::default();
        sketch.add("/once", 1);
        sketch.age();
        assert_eq!(sketch.greatest(1, ""), (vec![], 0));
        sketch.add("/once", 3);
        assert_eq!(sketch.greatest(1, "").0[0].count, 3);
    }
}
