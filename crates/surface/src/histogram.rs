//! Histograms: their scales, the families of them, and the labels of each cell.
//!
//! A family has a fixed number of cells (combinations of closed sets), for each of its instances
//! (listener, backend). The bounds of a scale double from one bucket to the next, so that the
//! bucket of a value is found without a search. Next file: `metric.rs`.

use crate::reason::HANDLINGS;

/// Number of bounds; one more bucket takes the values above the last bound.
pub const BOUNDS: usize = 24;
/// Number of buckets.
pub const BUCKETS: usize = BOUNDS + 1;

/// Unit of the values of a histogram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Durations, counted in nanoseconds: 10 µs to 84 s. A hit takes less than 50 µs.
    Seconds,
    /// Sizes: 64 B to 512 MiB.
    Bytes,
}

impl Scale {
    /// The first bound, in the unit in which values are counted.
    #[must_use]
    pub const fn first(self) -> u64 {
        match self {
            Scale::Seconds => 10_000,
            Scale::Bytes => 64,
        }
    }

    /// The bucket of a value: the first one whose bound is not below it.
    #[inline]
    #[must_use]
    pub const fn bucket(self, value: u64) -> usize {
        // One division for each scale, by a constant.
        let steps = match self {
            Scale::Seconds => value.div_ceil(Scale::Seconds.first()),
            Scale::Bytes => value.div_ceil(Scale::Bytes.first()),
        };
        let bucket = (u64::BITS - steps.saturating_sub(1).leading_zeros()) as usize;
        if bucket < BOUNDS { bucket } else { BOUNDS }
    }

    /// The bound of a bucket in the base unit; `None` for the last one.
    #[must_use]
    pub fn bound(self, bucket: usize) -> Option<f64> {
        (bucket < BOUNDS).then(|| self.base(self.first() << bucket))
    }

    /// A counted value in the base unit.
    #[must_use]
    pub fn base(self, value: u64) -> f64 {
        match self {
            Scale::Seconds => value as f64 / 1e9,
            Scale::Bytes => value as f64,
        }
    }
}

/// Protocols of requests, as a label has them.
pub const PROTOCOLS: [&str; 3] = ["h1", "h2", "h3"];
/// Classes of a status, as a label has them. `none`: no status was sent (a pipe, or a client that
/// left before the answer).
pub const STATUS_CLASSES: [&str; 7] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx", "other"];

/// The place of a status in [`STATUS_CLASSES`]; 0 = none.
#[inline]
#[must_use]
pub const fn status_class(status: u16) -> usize {
    let class = (status / 100) as usize;
    if class < STATUS_CLASSES.len() { class } else { STATUS_CLASSES.len() - 1 }
}

/// Kind of histogram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HistogramFamily {
    /// Duration of client requests; one instance for each listener.
    Request,
    /// Size of response bodies; one instance.
    Size,
    /// Time until the head of an origin's response; one instance for each backend.
    FirstByte,
}

/// Number of cells of [`HistogramFamily::Request`].
pub const REQUEST_CELLS: usize = PROTOCOLS.len() * HANDLINGS.len() * STATUS_CLASSES.len();
/// Number of cells of [`HistogramFamily::Size`].
pub const SIZE_CELLS: usize = HANDLINGS.len();
/// Number of cells of [`HistogramFamily::FirstByte`].
pub const FIRST_BYTE_CELLS: usize = STATUS_CLASSES.len();

/// The cell of a request; each number is the place in its set.
#[inline]
#[must_use]
pub const fn request_cell(protocol: usize, handling: usize, class: usize) -> usize {
    (protocol * HANDLINGS.len() + handling) * STATUS_CLASSES.len() + class
}

impl HistogramFamily {
    /// All families.
    pub const ALL: [HistogramFamily; 3] = [HistogramFamily::Request, HistogramFamily::Size, HistogramFamily::FirstByte];

    /// First part of the names of its segments.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            HistogramFamily::Request => "request",
            HistogramFamily::Size => "size",
            HistogramFamily::FirstByte => "first_byte",
        }
    }

    /// The metric.
    #[must_use]
    pub const fn metric(self) -> &'static str {
        match self {
            HistogramFamily::Request => crate::metric::REQUEST_DURATION,
            HistogramFamily::Size => crate::metric::RESPONSE_SIZE,
            HistogramFamily::FirstByte => crate::metric::FIRST_BYTE,
        }
    }

    /// Unit of its values.
    #[must_use]
    pub const fn scale(self) -> Scale {
        match self {
            HistogramFamily::Request | HistogramFamily::FirstByte => Scale::Seconds,
            HistogramFamily::Size => Scale::Bytes,
        }
    }

    /// Number of cells.
    #[must_use]
    pub const fn cells(self) -> usize {
        match self {
            HistogramFamily::Request => REQUEST_CELLS,
            HistogramFamily::Size => SIZE_CELLS,
            HistogramFamily::FirstByte => FIRST_BYTE_CELLS,
        }
    }

    /// Names of the labels whose values are the parts of an instance's name.
    #[must_use]
    pub const fn instance_labels(self) -> &'static [&'static str] {
        match self {
            HistogramFamily::Request => &["listener"],
            HistogramFamily::Size => &[],
            HistogramFamily::FirstByte => &["vcl", "backend"],
        }
    }

    /// Labels of a cell in addition to those of its instance.
    #[must_use]
    pub fn labels(self, cell: usize) -> Vec<(&'static str, &'static str)> {
        let classes = STATUS_CLASSES.len();
        let class = ("status", STATUS_CLASSES[cell % classes]);
        let result = |handling: usize| ("result", HANDLINGS[handling % HANDLINGS.len()].1);
        match self {
            HistogramFamily::Request => {
                let protocol = PROTOCOLS[cell / classes / HANDLINGS.len() % PROTOCOLS.len()];
                vec![("protocol", protocol), result(cell / classes), class]
            }
            HistogramFamily::Size => vec![result(cell)],
            HistogramFamily::FirstByte => vec![class],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::Handling;
    use std::collections::BTreeSet;

    #[test]
    fn bucket_of_a_value_is_the_first_whose_bound_is_not_below_it() {
        for scale in [Scale::Seconds, Scale::Bytes] {
            for value in (0..40).flat_map(|power| [(1u64 << power) - 1, 1 << power, 5 * (1 << power) + 1]) {
                let bounds = (0..BOUNDS).map(|bucket| scale.bound(bucket).unwrap());
                let expected = bounds.clone().take_while(|bound| *bound < scale.base(value)).count();
                assert_eq!(scale.bucket(value), expected, "{scale:?} {value}");
            }
            assert_eq!((scale.bucket(0), scale.bucket(u64::MAX), scale.bound(BOUNDS)), (0, BOUNDS, None));
        }
        let shown = [0, 4, 23].map(|bucket| Scale::Seconds.bound(bucket).unwrap().to_string());
        assert_eq!(shown, ["0.00001", "0.00016", "83.88608"]);
    }

    #[test]
    fn every_cell_has_its_own_labels() {
        for family in HistogramFamily::ALL {
            let labels: BTreeSet<_> = (0..family.cells()).map(|cell| family.labels(cell)).collect();
            assert_eq!(labels.len(), family.cells());
        }
        let cell = request_cell(1, Handling::Miss as usize, status_class(503));
        let expected = vec![("protocol", "h2"), ("result", "miss"), ("status", "5xx")];
        assert_eq!(HistogramFamily::Request.labels(cell), expected);
        assert_eq!([0, 99, 200, 699, 999].map(status_class), [0, 0, 2, 6, 6]);
    }
}
