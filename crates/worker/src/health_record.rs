//! Backend health record, which a worker leaves to the next one: probe results, and
//! `backend.set_health`.
//!
//! ```text
//! every second, and at the end of a stop ──▶ record ──▶ the next worker, before it accepts clients
//! ```
//!
//! The record is stored in the file of the work directory lock ([`crate::directory_lock`]), in two
//! slots by turns, so that a death while one is written leaves the other. Only workers read it: an
//! invalid record is ignored.

use backend::health::AdminHealth;
use backend::listing;
use backend::{Finding, Findings};
use engine::loaded_vcl::VclTable;
use serde::{Deserialize, Serialize};
use std::hash::{DefaultHasher, Hasher};
use std::io;

/// Largest record, in bytes; a larger one is not written.
const RECORD_BYTES_MAX: usize = 1 << 20;
/// Largest age of a record, in seconds: probe results must be recent.
const AGE_MAX: f64 = 30.0;
const MAGIC: [u8; 8] = *b"copalN1\n";
/// Magic, number, length, checksum.
const HEAD_BYTES: usize = 32;

/// The backend health record.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct HealthRecord {
    /// Time of writing, seconds since 1970.
    written: f64,
    /// Backends that are healthy by their probes: the identity of the probe, the mask of good
    /// results, their average in seconds.
    found: Vec<(u64, u64, f64)>,
    /// `backend.set_health`: `vcl.name`, and true if it is healthy.
    set: Vec<(String, bool)>,
}

impl HealthRecord {
    /// The record of all VCLs at this time.
    #[must_use]
    pub fn of(table: &VclTable, now: f64) -> HealthRecord {
        let vcls: Vec<_> = table.loaded.values().map(|vcl| &vcl.directors).collect();
        let admins = listing::admins(&vcls);
        let set = admins.into_iter().map(|(name, admin)| (name, admin == AdminHealth::Healthy)).collect();
        let found = findings(table).into_iter().map(|(key, found)| (key, found.happy, found.average_seconds));
        HealthRecord { written: now, found: found.collect(), set }
    }

    /// The probe results of all VCLs, completed by those of this record.
    #[must_use]
    pub fn with(&self, table: &VclTable, now: f64) -> Findings {
        let mut all = self.found(now);
        for backend in table.loaded.values().flat_map(|vcl| vcl.all_backends()) {
            match backend.finding() {
                Some((key, found)) => drop(all.insert(key, found)),
                // It is sick now: the earlier result is no longer true.
                None if backend.is_checked() => drop(backend.check_key().and_then(|key| all.remove(&key))),
                None => {}
            }
        }
        all
    }

    /// The recorded probe results, unless they are too old.
    fn found(&self, now: f64) -> Findings {
        let is_recent = (now - self.written).abs() <= AGE_MAX;
        let found = self.found.iter().filter(|_| is_recent);
        found.map(|&(key, happy, average_seconds)| (key, Finding { happy, average_seconds })).collect()
    }

    /// The operator's settings for backends and directors of that VCL: their names, with the VCL's.
    pub fn set_for(&self, vcl: &str) -> impl Iterator<Item = (&str, AdminHealth)> {
        let of_vcl = move |name: &str| name.strip_prefix(vcl).is_some_and(|rest| rest.starts_with('.'));
        let word = |is_healthy| if is_healthy { AdminHealth::Healthy } else { AdminHealth::Sick };
        self.set
            .iter()
            .filter(move |(name, _)| of_vcl(name))
            .map(move |(name, is_healthy)| (name.as_str(), word(*is_healthy)))
    }

    /// True if the record is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty() && self.set.is_empty()
    }
}

/// Probe results of all VCLs' backends.
fn findings(table: &VclTable) -> Findings {
    table.loaded.values().flat_map(|vcl| vcl.all_backends()).filter_map(|backend| backend.finding()).collect()
}

/// Storage of the record.
pub trait Place {
    /// Fills the buffer from that offset on; a file that ends before is an error.
    fn read(&self, buffer: &mut [u8], at: u64) -> io::Result<()>;
    /// Writes all of it at that offset.
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()>;
}

/// The record in its storage.
#[derive(Debug, Default)]
pub struct RecordSlots {
    /// The number of the latest record; 0 = none.
    number: u64,
}

impl RecordSlots {
    /// Opens the storage, and reads the latest record.
    pub fn open(place: &impl Place) -> (RecordSlots, HealthRecord) {
        let both = [0, 1].into_iter().filter_map(|turn| read(place, turn));
        let latest = both.max_by_key(|(number, _)| *number);
        let (number, record) = latest.unwrap_or_default();
        (RecordSlots { number }, record)
    }

    /// Writes a record into the slot that does not hold the latest one. An empty record is written
    /// only after others.
    ///
    /// # Errors
    /// The system's error. The latest record is unchanged.
    pub fn write(&mut self, place: &impl Place, record: &HealthRecord) -> io::Result<()> {
        if record.is_empty() && self.number == 0 {
            return Ok(());
        }
        let body = postcard::to_stdvec(record).map_err(io::Error::other)?;
        if body.len() > RECORD_BYTES_MAX {
            return Ok(());
        }
        let number = self.number + 1;
        let mut bytes = MAGIC.to_vec();
        for part in [number, body.len() as u64, checksum(number, &body)] {
            bytes.extend_from_slice(&part.to_le_bytes());
        }
        bytes.extend_from_slice(&body);
        place.write(&bytes, place_of(number))?;
        self.number = number;
        Ok(())
    }
}

fn place_of(number: u64) -> u64 {
    number % 2 * (HEAD_BYTES + RECORD_BYTES_MAX) as u64
}

fn checksum(number: u64, body: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(number);
    hasher.write(body);
    hasher.finish()
}

fn read(place: &impl Place, turn: u64) -> Option<(u64, HealthRecord)> {
    let mut head = [0; HEAD_BYTES];
    place.read(&mut head, place_of(turn)).ok()?;
    let part = |at: usize| head[at..at + 8].first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let (number, length, sum) = (part(8)?, usize::try_from(part(16)?).ok()?, part(24)?);
    if head[..8] != MAGIC || length > RECORD_BYTES_MAX || place_of(number) != place_of(turn) {
        return None;
    }
    let mut body = vec![0; length];
    place.read(&mut body, place_of(turn) + HEAD_BYTES as u64).ok()?;
    let record = (checksum(number, &body) == sum).then(|| postcard::from_bytes(&body).ok()).flatten()?;
    Some((number, record))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[derive(Default)]
    struct Memory(RefCell<Vec<u8>>);

    impl Place for Memory {
        fn read(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
            let bytes = self.0.borrow();
            let there = bytes.get(at as usize..at as usize + buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
            buffer.copy_from_slice(there);
            Ok(())
        }

        fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
            let mut all = self.0.borrow_mut();
            let length = all.len().max(at as usize + bytes.len());
            all.resize(length, 0);
            all[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
            Ok(())
        }
    }

    fn record(written: f64) -> HealthRecord {
        let set = vec![("boot.a".to_owned(), false), ("boots.a".to_owned(), true), ("boot.d(x)".to_owned(), true)];
        HealthRecord { written, found: vec![(7, 0b111, 0.5)], set }
    }

    #[test]
    fn latest_record_is_read_or_the_previous_one_if_it_is_damaged() {
        let memory = Memory::default();
        let (mut book, nothing) = RecordSlots::open(&memory);
        assert!(nothing.is_empty());
        book.write(&memory, &nothing).unwrap();
        assert!(memory.0.borrow().is_empty(), "nothing was worth writing");
        book.write(&memory, &record(1.0)).unwrap();
        book.write(&memory, &record(2.0)).unwrap();
        book.write(&memory, &record(3.0)).unwrap();
        let (mut book, latest) = RecordSlots::open(&memory);
        assert_eq!(latest, record(3.0));
        let place = place_of(3) as usize;
        for at in [0, 9, 17, 25, HEAD_BYTES, HEAD_BYTES + 20] {
            let before = memory.0.borrow()[place + at];
            memory.0.borrow_mut()[place + at] ^= 0xff;
            assert_eq!(RecordSlots::open(&memory).1, record(2.0), "{at}");
            memory.0.borrow_mut()[place + at] = before;
        }
        book.write(&memory, &HealthRecord::default()).unwrap();
        assert!(RecordSlots::open(&memory).1.is_empty(), "what was set is taken back");
    }

    #[test]
    fn probe_results_expire_and_operator_settings_do_not() {
        let record = record(100.0);
        assert_eq!(record.found(129.0).get(&7), Some(&Finding { happy: 0b111, average_seconds: 0.5 }));
        assert!(record.found(131.0).is_empty() && record.found(60.0).is_empty());
        let set: Vec<_> = record.set_for("boot").collect();
        assert_eq!(set, [("boot.a", AdminHealth::Sick), ("boot.d(x)", AdminHealth::Healthy)]);
    }
}
