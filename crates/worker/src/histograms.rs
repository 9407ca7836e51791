//! Published histograms: those of all event loops, added up, a segment for each listener and each
//! backend. A segment is published once there is something in it.
//!
//! A segment that cannot be written is tried again the next time. Next file: `statistics.rs`.

use backend::Backend;
use shm::histogram::{Histogram, HistogramSegment, LoopHistograms, Total};
use shm::vsm::VsmWriter;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use surface::histogram::HistogramFamily;
use surface::limits::HISTOGRAM_BACKENDS_MAX;

/// The segments of a worker.
pub struct Histograms {
    vsm: VsmWriter,
    /// By listener.
    requests: HashMap<Box<str>, HistogramSegment>,
    sizes: Option<HistogramSegment>,
    /// By address in memory: two backends of different VCLs can have the same name for a while.
    first_bytes: HashMap<usize, HistogramSegment>,
}

/// Cells of a family by place.
type Totals = BTreeMap<usize, Total>;

impl Histograms {
    /// No segments yet.
    pub fn new(vsm: &VsmWriter) -> Histograms {
        Histograms { vsm: vsm.clone(), requests: HashMap::new(), sizes: None, first_bytes: HashMap::new() }
    }

    /// Publishes the current sums of all loops.
    pub fn update_loops<'a>(&mut self, loops: impl Iterator<Item = &'a LoopHistograms>) {
        let mut requests: BTreeMap<&str, Totals> = BTreeMap::new();
        let mut sizes = Totals::new();
        for one in loops {
            for listener in one.listeners() {
                add(requests.entry(&listener.name).or_default(), listener.cells.in_use());
            }
            add(&mut sizes, one.sizes.in_use());
        }
        for (listener, totals) in requests.into_iter().filter(|(_, totals)| !totals.is_empty()) {
            if !self.requests.contains_key(listener)
                && let Ok(segment) = HistogramSegment::publish(&self.vsm, HistogramFamily::Request, listener)
            {
                self.requests.insert(listener.into(), segment);
            }
            set(self.requests.get(listener), &totals);
        }
        if self.sizes.is_none() && !sizes.is_empty() {
            self.sizes = HistogramSegment::publish(&self.vsm, HistogramFamily::Size, "").ok();
        }
        set(self.sizes.as_ref(), &sizes);
    }

    /// Publishes those of the backends, and withdraws those of backends that are gone.
    pub fn update_backends<'a>(&mut self, backends: impl Iterator<Item = &'a Arc<Backend>>) {
        let mut seen = HashSet::new();
        for backend in backends {
            let Some(cells) = backend.first_bytes() else { continue };
            let key = Arc::as_ptr(backend).addr();
            if !self.first_bytes.contains_key(&key)
                && self.first_bytes.len() < HISTOGRAM_BACKENDS_MAX
                && let Ok(segment) =
                    HistogramSegment::publish(&self.vsm, HistogramFamily::FirstByte, backend.display_name())
            {
                self.first_bytes.insert(key, segment);
            }
            let mut totals = Totals::new();
            add(&mut totals, cells.iter().enumerate());
            set(self.first_bytes.get(&key), &totals);
            seen.insert(key);
        }
        let gone = self.first_bytes.extract_if(|key, _| !seen.contains(key));
        for (_, segment) in gone {
            let _ = segment.withdraw(&self.vsm);
        }
    }
}

fn add<'a>(totals: &mut Totals, cells: impl Iterator<Item = (usize, &'a Histogram)>) {
    for (place, histogram) in cells {
        histogram.add_to(totals.entry(place).or_default());
    }
}

fn set(segment: Option<&HistogramSegment>, totals: &Totals) {
    if let Some(segment) = segment {
        totals.iter().for_each(|(place, total)| segment.set(*place, total));
    }
}
