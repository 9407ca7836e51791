//! Histograms of shared memory to families.
//!
//! If there would be too many series, the instances of the family with the most of them are added
//! up as `_other`. Their sums never fall: the counts of an instance that is gone stay in them.

use crate::exposition::cut;
use crate::family::Family;
use crate::selection::Selection;
use shm::histogram::Total;
use shm::read::histograms::HistogramReader;
use shm::read::vsm::Vsm;
use std::collections::{BTreeMap, HashMap};
use surface::histogram::{BUCKETS, HistogramFamily};
use surface::limits::OBSERVE_HISTOGRAM_SERIES_MAX;
use surface::metric::{self, OTHER_INSTANCES};

/// Series of one histogram: its buckets, count and sum.
pub(crate) const SERIES: usize = BUCKETS + 2;

/// Cells by place.
type Cells = BTreeMap<usize, Total>;

/// Reader of the histograms of one server.
#[derive(Default)]
pub(crate) struct Histograms {
    reader: HistogramReader,
    /// While the instances of a family are added up: the last counts of each of them by segment,
    /// and the counts of those that are gone.
    folds: HashMap<&'static str, (HashMap<u64, Cells>, Cells)>,
}

/// An instance as it was read.
struct Instance {
    serial: u64,
    name: String,
    cells: Cells,
}

impl Histograms {
    /// The wanted families. The second value is true if instances were added up.
    pub fn collect(&mut self, vsm: &Vsm, selection: &Selection) -> (Vec<Family>, bool) {
        let mut found: HashMap<&'static str, Vec<Instance>> = HashMap::new();
        self.reader.for_each(vsm, |block| {
            let (start, name) = block.ident.split_once('.').unwrap_or((block.ident, ""));
            if let Some(family) = HistogramFamily::ALL.into_iter().find(|family| family.name() == start) {
                let cells = block.cells().filter(|(place, _)| *place < family.cells()).collect();
                let instance = Instance { serial: block.serial, name: name.to_owned(), cells };
                found.entry(family.name()).or_default().push(instance);
            }
        });
        let too_many = too_many(&found);
        self.folds.retain(|name, _| too_many.contains(name));
        let mut families = Vec::new();
        for family in HistogramFamily::ALL {
            let instances = found.remove(family.name()).unwrap_or_default();
            let is_folded = too_many.contains(&family.name());
            let mut out = new_family(family);
            if is_folded {
                let cells = self.fold(family, instances);
                let other = vec![OTHER_INSTANCES; family.instance_labels().len()];
                add(&mut out, family, &other, &cells);
            } else {
                for instance in &instances {
                    let mut parts = instance.name.splitn(family.instance_labels().len().max(1), '.');
                    let values: Vec<&str> =
                        family.instance_labels().iter().map(|_| cut(parts.next().unwrap_or_default())).collect();
                    add(&mut out, family, &values, &instance.cells);
                }
            }
            let is_wanted = metric::row(family.metric()).is_some_and(|row| selection.scopes.contains(&row.scope));
            if is_wanted && selection.takes(family.metric()) {
                families.push(out);
            }
        }
        (families, !too_many.is_empty())
    }

    /// All counts of a family, now and before.
    fn fold(&mut self, family: HistogramFamily, instances: Vec<Instance>) -> Cells {
        let (last, gone) = self.folds.entry(family.name()).or_default();
        let before = std::mem::take(last);
        last.extend(instances.into_iter().map(|instance| (instance.serial, instance.cells)));
        for (_, cells) in before.iter().filter(|(serial, _)| !last.contains_key(serial)) {
            add_up(gone, cells);
        }
        let mut all = gone.clone();
        last.values().for_each(|cells| add_up(&mut all, cells));
        all
    }
}

fn add_up(sums: &mut Cells, cells: &Cells) {
    for (place, total) in cells {
        sums.entry(*place).or_default().add(total);
    }
}

fn new_family(family: HistogramFamily) -> Family {
    let help = metric::row(family.metric()).map_or("", |row| row.help);
    Family::new(family.metric(), metric::MetricKind::Histogram, help)
}

fn add(out: &mut Family, family: HistogramFamily, instance: &[&str], cells: &Cells) {
    for (place, total) in cells {
        let of_instance = family.instance_labels().iter().copied().zip(instance.iter().copied());
        let labels: Vec<_> = of_instance.chain(family.labels(*place)).collect();
        out.add_histogram(family.scale(), &labels, total);
    }
}

/// The families whose instances are to be added up, so that the series stay within their limit.
fn too_many(found: &HashMap<&'static str, Vec<Instance>>) -> Vec<&'static str> {
    let series = |instances: &Vec<Instance>| SERIES * instances.iter().map(|one| one.cells.len()).sum::<usize>();
    let mut sizes: Vec<(usize, &'static str)> = found.iter().map(|(name, all)| (series(all), *name)).collect();
    sizes.sort_unstable();
    let mut all: usize = sizes.iter().map(|(size, _)| size).sum();
    let mut chosen = Vec::new();
    while all > OBSERVE_HISTOGRAM_SERIES_MAX
        && let Some((size, name)) = sizes.pop()
    {
        all -= size;
        chosen.push(name);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::histogram::{Example, HistogramSegment};
    use shm::vsm::{VsmWriter, WORKER_DIRECTORY};

    fn total(count: u64) -> Total {
        let mut total = Total { sum: 1000 * count, ..Total::default() };
        total.buckets[3] = count;
        total.examples[3] = Some(Example { vxid: 7, value: 1000, time: 1.5 });
        total
    }

    #[test]
    fn ten_thousand_label_values_become_one_and_sums_never_fall() {
        let folder = tempfile::tempdir().unwrap();
        let vsm = VsmWriter::create(&folder.path().join(WORKER_DIRECTORY)).unwrap();
        let publish = |number: usize| {
            let name = format!("boot.b{number}");
            let segment = HistogramSegment::publish(&vsm, HistogramFamily::FirstByte, &name).unwrap();
            segment.set(2, &total(10));
            segment
        };
        let mut segments: Vec<_> = (0..10_000 / SERIES).map(publish).collect();
        let mut reader = Vsm::new(folder.path());
        let mut histograms = Histograms::default();
        let mut read = || {
            reader.poll();
            let (families, is_folded) = histograms.collect(&reader, &Selection::all());
            let family = families.into_iter().find(|family| family.name == metric::FIRST_BYTE).unwrap();
            (
                family.histograms.into_iter().map(|(labels, (_, total))| (labels, total.count())).collect::<Vec<_>>(),
                is_folded,
            )
        };
        let all = segments.len() as u64;
        let labels = ["_other", "_other", "2xx"].map(str::to_owned).to_vec();
        assert_eq!(read(), (vec![(labels.clone(), 10 * all)], true));
        segments.pop().unwrap().withdraw(&vsm).unwrap();
        segments[0].set(2, &total(12));
        assert_eq!(read(), (vec![(labels, 10 * all + 2)], true));
        for segment in segments.drain(2..) {
            segment.withdraw(&vsm).unwrap();
        }
        let (few, is_folded) = read();
        assert_eq!((few.len(), is_folded), (2, false));
        assert_eq!(few[0], (["boot", "b0", "2xx"].map(str::to_owned).to_vec(), 12));
    }
}
