//! What a worker leaves to the next one about backends: which of them are healthy by their probes, and what an operator has set.
//!
//! ```text
//! every second, and at the end of a stop ──▶ notes, on the seat ──▶ the next worker, before it accepts anything
//! ```
//!
//! The notes lie in the file that is the seat ([`crate::seat`]), in two places by turns, so that a death while one is written leaves
//! the other. Only workers read them: what makes no sense is as if nothing had been there.

use backend::health::AdminHealth;
use backend::listing;
use backend::{Finding, Findings};
use engine::loaded_vcl::VclTable;
use serde::{Deserialize, Serialize};
use std::hash::{DefaultHasher, Hasher};
use std::io;

/// The largest notes, in bytes; more is not written.
const NOTES_BYTES_MAX: usize = 1 << 20;
/// How old notes may be: what probes found has happened just before, seconds.
const AGE_MAX: f64 = 30.0;
const MAGIC: [u8; 8] = *b"copalN1\n";
/// Magic, number, length, checksum.
const HEAD_BYTES: usize = 32;

/// The notes.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Notes {
    /// When they were written, seconds since 1970.
    written: f64,
    /// Of backends that are healthy by their probes: the number of the check, the mask of good ones, their average in seconds.
    found: Vec<(u64, u64, f64)>,
    /// `backend.set_health`: what is called `vcl.name`, and whether it is healthy.
    set: Vec<(String, bool)>,
}

impl Notes {
    /// What is to be noted of all VCLs, at this time.
    #[must_use]
    pub fn of(table: &VclTable, now: f64) -> Notes {
        let vcls: Vec<_> = table.loaded.values().map(|vcl| &vcl.directors).collect();
        let admins = listing::admins(&vcls);
        let set = admins.into_iter().map(|(name, admin)| (name, admin == AdminHealth::Healthy)).collect();
        let found = findings(table).into_iter().map(|(key, found)| (key, found.happy, found.average_seconds));
        Notes { written: now, found: found.collect(), set }
    }

    /// What the probes of all VCLs have found, and what was found when these notes were written.
    #[must_use]
    pub fn with(&self, table: &VclTable, now: f64) -> Findings {
        let mut all = self.found(now);
        for backend in table.loaded.values().flat_map(|vcl| vcl.all_backends()) {
            match backend.finding() {
                Some((key, found)) => drop(all.insert(key, found)),
                // It is sick now: what was found before is no longer true.
                None if backend.is_checked() => drop(backend.check_key().and_then(|key| all.remove(&key))),
                None => {}
            }
        }
        all
    }

    /// What was found, unless that is too long ago.
    fn found(&self, now: f64) -> Findings {
        let is_recent = (now - self.written).abs() <= AGE_MAX;
        let found = self.found.iter().filter(|_| is_recent);
        found.map(|&(key, happy, average_seconds)| (key, Finding { happy, average_seconds })).collect()
    }

    /// What the operator has set for backends and directors of that VCL: their names, with the VCL's.
    pub fn set_for(&self, vcl: &str) -> impl Iterator<Item = (&str, AdminHealth)> {
        let of_vcl = move |name: &str| name.strip_prefix(vcl).is_some_and(|rest| rest.starts_with('.'));
        let word = |is_healthy| if is_healthy { AdminHealth::Healthy } else { AdminHealth::Sick };
        self.set
            .iter()
            .filter(move |(name, _)| of_vcl(name))
            .map(move |(name, is_healthy)| (name.as_str(), word(*is_healthy)))
    }

    /// Whether there is nothing in them.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty() && self.set.is_empty()
    }
}

/// What is known of the backends of all VCLs.
fn findings(table: &VclTable) -> Findings {
    table.loaded.values().flat_map(|vcl| vcl.all_backends()).filter_map(|backend| backend.finding()).collect()
}

/// Where notes lie.
pub trait Place {
    /// Fills the buffer from there on; a file that ends before is an error.
    fn read(&self, buffer: &mut [u8], at: u64) -> io::Result<()>;
    /// Writes all of it there.
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()>;
}

/// The notes in a place.
#[derive(Debug, Default)]
pub struct Notebook {
    /// The number of the latest notes; 0 = there are none.
    number: u64,
}

impl Notebook {
    /// Opens the place, and reads what is there.
    pub fn open(place: &impl Place) -> (Notebook, Notes) {
        let both = [0, 1].into_iter().filter_map(|turn| read(place, turn));
        let latest = both.max_by_key(|(number, _)| *number);
        let (number, notes) = latest.unwrap_or_default();
        (Notebook { number }, notes)
    }

    /// Writes notes beside the latest ones. Those that are empty are written only after others.
    ///
    /// # Errors
    /// The system's. The latest notes are what they were.
    pub fn write(&mut self, place: &impl Place, notes: &Notes) -> io::Result<()> {
        if notes.is_empty() && self.number == 0 {
            return Ok(());
        }
        let body = postcard::to_stdvec(notes).map_err(io::Error::other)?;
        if body.len() > NOTES_BYTES_MAX {
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
    number % 2 * (HEAD_BYTES + NOTES_BYTES_MAX) as u64
}

fn checksum(number: u64, body: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(number);
    hasher.write(body);
    hasher.finish()
}

fn read(place: &impl Place, turn: u64) -> Option<(u64, Notes)> {
    let mut head = [0; HEAD_BYTES];
    place.read(&mut head, place_of(turn)).ok()?;
    let part = |at: usize| head[at..at + 8].first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let (number, length, sum) = (part(8)?, usize::try_from(part(16)?).ok()?, part(24)?);
    if head[..8] != MAGIC || length > NOTES_BYTES_MAX || place_of(number) != place_of(turn) {
        return None;
    }
    let mut body = vec![0; length];
    place.read(&mut body, place_of(turn) + HEAD_BYTES as u64).ok()?;
    let notes = (checksum(number, &body) == sum).then(|| postcard::from_bytes(&body).ok()).flatten()?;
    Some((number, notes))
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

    fn notes(written: f64) -> Notes {
        let set = vec![("boot.a".to_owned(), false), ("boots.a".to_owned(), true), ("boot.d(x)".to_owned(), true)];
        Notes { written, found: vec![(7, 0b111, 0.5)], set }
    }

    #[test]
    fn the_latest_notes_are_read_and_those_before_them_if_they_are_damaged() {
        let memory = Memory::default();
        let (mut book, nothing) = Notebook::open(&memory);
        assert!(nothing.is_empty());
        book.write(&memory, &nothing).unwrap();
        assert!(memory.0.borrow().is_empty(), "nothing was worth writing");
        book.write(&memory, &notes(1.0)).unwrap();
        book.write(&memory, &notes(2.0)).unwrap();
        book.write(&memory, &notes(3.0)).unwrap();
        let (mut book, latest) = Notebook::open(&memory);
        assert_eq!(latest, notes(3.0));
        let place = place_of(3) as usize;
        for at in [0, 9, 17, 25, HEAD_BYTES, HEAD_BYTES + 20] {
            let before = memory.0.borrow()[place + at];
            memory.0.borrow_mut()[place + at] ^= 0xff;
            assert_eq!(Notebook::open(&memory).1, notes(2.0), "{at}");
            memory.0.borrow_mut()[place + at] = before;
        }
        book.write(&memory, &Notes::default()).unwrap();
        assert!(Notebook::open(&memory).1.is_empty(), "what was set is taken back");
    }

    #[test]
    fn what_probes_found_is_believed_for_a_short_time_and_what_was_set_for_ever() {
        let notes = notes(100.0);
        assert_eq!(notes.found(129.0).get(&7), Some(&Finding { happy: 0b111, average_seconds: 0.5 }));
        assert!(notes.found(131.0).is_empty() && notes.found(60.0).is_empty());
        let set: Vec<_> = notes.set_for("boot").collect();
        assert_eq!(set, [("boot.a", AdminHealth::Sick), ("boot.d(x)", AdminHealth::Healthy)]);
    }
}
