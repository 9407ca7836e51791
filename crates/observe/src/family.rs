//! Metrics with their samples, as they are written.

use shm::histogram::Total;
use std::collections::BTreeMap;
use surface::histogram::Scale;
use surface::metric::{MetricKind, unit};

/// One metric and its samples. Samples with equal labels are added up: a series must not occur
/// twice.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Family {
    /// Name, with `_total` for a counter.
    pub name: String,
    /// Counter, gauge or info.
    pub kind: MetricKind,
    /// One line of explanation.
    pub help: String,
    /// Names of the labels.
    pub labels: Vec<&'static str>,
    /// Values by the values of the labels, as many as there are names.
    pub samples: BTreeMap<Vec<String>, u64>,
    /// Histograms in the same way, with the unit of their values.
    pub histograms: BTreeMap<Vec<String>, (Scale, Total)>,
}

impl Family {
    pub fn new(name: &str, kind: MetricKind, help: &str) -> Family {
        Family {
            name: name.to_owned(),
            kind,
            help: help.to_owned(),
            labels: Vec::new(),
            samples: BTreeMap::new(),
            histograms: BTreeMap::new(),
        }
    }

    /// As [`Family::add`], for a histogram.
    pub fn add_histogram(&mut self, scale: Scale, labels: &[(&'static str, &str)], total: &Total) {
        self.labels = labels.iter().map(|(name, _)| *name).collect();
        let values = labels.iter().map(|(_, value)| (*value).to_owned()).collect();
        let (_, sum) = self.histograms.entry(values).or_insert_with(|| (scale, Total::default()));
        sum.add(total);
    }

    /// True if there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty() && self.histograms.is_empty()
    }

    /// Adds to the sample with these labels, which must be the same ones in each call.
    pub fn add(&mut self, labels: &[(&'static str, &str)], value: u64) {
        if self.samples.is_empty() {
            self.labels = labels.iter().map(|(name, _)| *name).collect();
        }
        let values = labels.iter().map(|(_, value)| (*value).to_owned()).collect();
        let sum = self.samples.entry(values).or_default();
        *sum = sum.wrapping_add(value);
    }

    /// The base unit that the name ends with.
    pub fn unit(&self) -> Option<&'static str> {
        unit(&self.name)
    }
}
