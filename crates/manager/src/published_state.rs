//! State that the manager publishes as counters, for monitoring: its VCLs, the end of each
//! certificate, and the results of loading VCLs.
//!
//! Followed once a second. A segment that cannot be written is tried again. Next file: `state.rs`.

use crate::tls::registry::Certificate;
use crate::vcl_table::VclTable;
use shm::vsc::{CounterBlock, Publisher};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use surface::counter::{CERT, LOAD, Load, SectionRow, VCL};

/// Sections by full name, with the values of their counters.
type Wanted = BTreeMap<String, (&'static SectionRow, Vec<u64>)>;

/// The published sections.
pub struct PublishedState {
    publisher: Publisher,
    loads: CounterBlock,
    counts: RefCell<[u64; LOAD.counters.len()]>,
    /// By full name.
    blocks: RefCell<BTreeMap<String, CounterBlock>>,
}

impl PublishedState {
    /// Publishes the sections that always exist.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn new(publisher: Publisher) -> std::io::Result<PublishedState> {
        let loads = publisher.publish(&LOAD, "LOAD")?;
        Ok(PublishedState { publisher, loads, counts: RefCell::default(), blocks: RefCell::default() })
    }

    /// Counts an attempt to load a VCL, at `now` (seconds since 1970).
    pub fn count_load(&self, is_loaded: bool, now: u64) {
        let mut counts = self.counts.borrow_mut();
        let counter = if is_loaded { Load::VclOk } else { Load::VclFailed };
        counts[counter as usize] += 1;
        counts[Load::VclLastOk as usize] = u64::from(is_loaded);
        if is_loaded {
            counts[Load::VclLastTime as usize] = now;
        }
        self.loads.set_all(&*counts);
    }

    /// Publishes the present VCLs and certificates. Returns true if there are new files, which
    /// other users cannot read yet.
    pub fn follow(&self, vcls: &VclTable, certificates: &[Certificate]) -> bool {
        let mut wanted = Wanted::new();
        for entry in vcls.entries().iter().filter(|entry| !entry.is_label()) {
            let is_active = vcls.active() == Some(entry.name.as_str());
            let is_canary = vcls.canary() == Some(entry.name.as_str());
            wanted.insert(format!("VCL.{}", entry.name), (&VCL, vec![u64::from(is_active), u64::from(is_canary)]));
        }
        for certificate in certificates {
            let end = u64::try_from(certificate.loaded.facts.not_after).unwrap_or(0);
            wanted.insert(format!("CERT.{}", certificate.id), (&CERT, vec![end]));
        }
        self.settle(&wanted)
    }

    /// Publishes these sections and no others. Returns true if there are new ones.
    fn settle(&self, wanted: &Wanted) -> bool {
        let mut blocks = self.blocks.borrow_mut();
        let gone: BTreeSet<String> = blocks.keys().filter(|name| !wanted.contains_key(*name)).cloned().collect();
        for block in gone.iter().filter_map(|name| blocks.remove(name)) {
            let _ = self.publisher.withdraw(block);
        }
        let mut is_new = false;
        for (name, (section, values)) in wanted {
            if !blocks.contains_key(name)
                && let Ok(block) = self.publisher.publish(section, name)
            {
                blocks.insert(name.clone(), block);
                is_new = true;
            }
            if let Some(block) = blocks.get(name) {
                values.iter().enumerate().for_each(|(counter, value)| block.set(counter, *value));
            }
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::read::counters::CounterReader;
    use shm::read::vsm::Vsm;
    use shm::vsm::{MANAGER_DIRECTORY, VsmWriter};

    #[test]
    fn sections_follow_what_is_loaded_and_loads_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let index = VsmWriter::create(&folder.path().join(MANAGER_DIRECTORY)).unwrap();
        let state = PublishedState::new(Publisher::new(&index, 1)).unwrap();
        let mut vsm = Vsm::new(folder.path());
        let mut values = || {
            vsm.poll();
            let all = CounterReader::new().read(&vsm);
            all.into_iter().map(|counter| (counter.name, counter.value)).collect::<BTreeMap<_, _>>()
        };
        let wanted = |pairs: &[(&str, &'static SectionRow, u64)]| {
            pairs
                .iter()
                .map(|(name, row, value)| ((*name).to_owned(), (*row, vec![*value])))
                .collect::<BTreeMap<_, _>>()
        };
        assert!(state.settle(&wanted(&[("VCL.boot", &VCL, 1), ("CERT.a", &CERT, 5), ("VCL.bad name", &VCL, 0)])));
        let first = values();
        assert_eq!((first["VCL.boot.active"], first["CERT.a.not_after"]), (1, 5));
        assert!(!state.settle(&wanted(&[("VCL.boot", &VCL, 0)])));
        let second = values();
        assert_eq!((second["VCL.boot.active"], second.get("CERT.a.not_after")), (0, None));
        state.count_load(true, 9);
        state.count_load(false, 10);
        let third = values();
        let names = ["LOAD.vcl_ok", "LOAD.vcl_failed", "LOAD.vcl_last_ok", "LOAD.vcl_last_time"];
        assert_eq!(names.map(|name| third[name]), [1, 1, 0, 9]);
    }
}
