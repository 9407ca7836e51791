//! The index of shared memory, reader side: finds a server's work directory, follows its two
//! indexes, maps segments.
//!
//! A server announces itself by the directories `_.vsm_mgt` and `_.vsm_child` with an index in
//! each; there is no other sign that it is running. An index is read again from the start when its
//! directory or file has been replaced or has shrunk; otherwise only its new lines are read.
//! *Invariant:* a malformed line is skipped; a file name never leads out of the index's directory.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::region::Region;
use crate::vsm::{INDEX_NAME, MANAGER_DIRECTORY, WORKER_DIRECTORY};

/// Most bytes of one index that are read.
const INDEX_BYTES_MAX: u64 = 64 << 20;
/// Most entries of one index that are kept.
const ENTRIES_MAX: usize = 1 << 20;

pub use crate::place::of_reader as work_directory;

/// Process that published a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Publisher {
    /// The manager.
    Manager,
    /// The worker.
    Worker,
}

/// An entry of an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentEntry {
    /// Class: `Log`, `Stat`, `StatDoc`, `Arg`…
    pub class: String,
    /// Ident; may be empty.
    pub ident: String,
    /// The process that published it.
    pub publisher: Publisher,
    /// Different for every entry that a reader has ever seen.
    pub serial: u64,
    file: String,
    offset: u64,
    bytes: usize,
    line: String,
}

impl SegmentEntry {
    /// Its file, in the directory of the index.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Its line in the index, without the `+` before it.
    #[must_use]
    pub fn line(&self) -> &str {
        &self.line
    }
}

/// Reader of a server's two indexes.
pub struct Vsm {
    directory: PathBuf,
    manager: Index,
    worker: Index,
}

/// Result of a check of the indexes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// The manager's index is there.
    pub manager_running: bool,
    /// The worker's index is there.
    pub worker_running: bool,
    /// Entries came or went.
    pub changed: bool,
}

impl Vsm {
    /// A reader for the server in `directory`, which need not exist yet. Nothing is read before
    /// [`Vsm::poll`].
    #[must_use]
    pub fn new(directory: &Path) -> Vsm {
        Vsm {
            directory: directory.to_path_buf(),
            manager: Index::new(directory.join(MANAGER_DIRECTORY), Publisher::Manager),
            worker: Index::new(directory.join(WORKER_DIRECTORY), Publisher::Worker),
        }
    }

    /// The work directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Reads new lines of the indexes.
    pub fn poll(&mut self) -> Status {
        let (manager_changed, worker_changed) = (self.manager.poll(), self.worker.poll());
        Status {
            manager_running: self.manager.place.is_some(),
            worker_running: self.worker.place.is_some(),
            changed: manager_changed || worker_changed,
        }
    }

    /// All entries, the manager's first, in the order of their index.
    pub fn entries(&self) -> impl Iterator<Item = &SegmentEntry> {
        self.manager.entries.values().chain(self.worker.entries.values())
    }

    /// The first entry of a class, with the given ident if one is given.
    #[must_use]
    pub fn find(&self, class: &str, ident: Option<&str>) -> Option<&SegmentEntry> {
        self.entries().find(|entry| entry.class == class && ident.is_none_or(|ident| entry.ident == ident))
    }

    /// True while the index lists the entry with this serial.
    #[must_use]
    pub fn is_listed(&self, serial: u64) -> bool {
        self.entries().any(|entry| entry.serial == serial)
    }

    /// Maps an entry's memory.
    ///
    /// # Errors
    /// Errors of opening and mapping the file; `InvalidInput` if the entry contradicts its file.
    pub fn map(&self, entry: &SegmentEntry) -> io::Result<Region> {
        let directory = match entry.publisher {
            Publisher::Manager => &self.manager.directory,
            Publisher::Worker => &self.worker.directory,
        };
        // The name may lead to any kind of file: opening it must not block.
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(directory.join(&entry.file))?;
        Region::read_only(&file, entry.offset, entry.bytes)
    }

    /// The manager's published value of an option of its command line, such as `-T`. A worker may
    /// be compromised, and must not decide which address and secret its operator uses.
    ///
    /// # Errors
    /// As [`Vsm::map`]; `NotFound` if it was not published.
    pub fn argument(&self, option: &str) -> io::Result<String> {
        let is_asked_for = |entry: &&SegmentEntry| entry.class == "Arg" && entry.ident == option;
        let entry = self.manager.entries.values().find(is_asked_for).ok_or(io::ErrorKind::NotFound)?;
        let mut bytes = Vec::new();
        let region = self.map(entry)?;
        region.copy_out(0, region.len(), &mut bytes);
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

/// Identity of one incarnation of an index.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    directory: (u64, u64),
    file: (u64, u64),
}

struct Index {
    directory: PathBuf,
    publisher: Publisher,
    place: Option<Place>,
    header: String,
    file: Option<File>,
    consumed: u64,
    /// In the order of the index.
    entries: BTreeMap<u64, SegmentEntry>,
    /// Position of each line in that order: the index may have a hundred thousand backends that
    /// come and go with their VCL.
    places: HashMap<String, Vec<u64>>,
    next_place: u64,
    next_serial: u64,
}

impl Index {
    fn new(directory: PathBuf, publisher: Publisher) -> Index {
        // The serials of the two indexes must not overlap.
        let next_serial = if publisher == Publisher::Manager { 0 } else { 1 << 63 };
        Index {
            directory,
            publisher,
            place: None,
            header: String::new(),
            file: None,
            consumed: 0,
            entries: BTreeMap::new(),
            places: HashMap::new(),
            next_place: 0,
            next_serial,
        }
    }

    fn poll(&mut self) -> bool {
        let Some((place, length)) = self.look() else {
            let changed = !self.entries.is_empty();
            self.forget();
            return changed;
        };
        if self.place != Some(place) || length < self.consumed {
            let same_directory = self.place.is_some_and(|before| before.directory == place.directory);
            return self.read_again(place, same_directory);
        }
        match self.read_new_lines() {
            Some(text) if !text.is_empty() => {
                self.apply(&text);
                true
            }
            _ => false,
        }
    }

    fn look(&self) -> Option<(Place, u64)> {
        let directory = std::fs::metadata(&self.directory).ok()?;
        let file = std::fs::metadata(self.directory.join(INDEX_NAME)).ok()?;
        let place = Place { directory: (directory.dev(), directory.ino()), file: (file.dev(), file.ino()) };
        Some((place, file.len()))
    }

    fn forget(&mut self) {
        self.place = None;
        self.file = None;
        self.header.clear();
        self.consumed = 0;
        self.entries.clear();
        self.places.clear();
    }

    /// Reads a replaced index; entries that the same incarnation still lists keep their serial.
    fn read_again(&mut self, place: Place, same_directory: bool) -> bool {
        let before = std::mem::take(&mut self.entries);
        let header = std::mem::take(&mut self.header);
        self.forget();
        // As in `map`: opening must not block.
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(self.directory.join(INDEX_NAME));
        let Ok(file) = file else { return !before.is_empty() };
        self.file = Some(file);
        self.place = Some(place);
        if let Some(text) = self.read_new_lines() {
            self.apply(&text);
        }
        if same_directory && header == self.header {
            let mut serials = HashMap::with_capacity(before.len());
            for old in before.values() {
                serials.entry(old.line.as_str()).or_insert(old.serial);
            }
            for entry in self.entries.values_mut() {
                entry.serial = serials.get(entry.line.as_str()).copied().unwrap_or(entry.serial);
            }
        }
        true
    }

    /// The complete lines appended since the last call.
    fn read_new_lines(&mut self) -> Option<String> {
        let file = self.file.as_mut()?;
        file.seek(SeekFrom::Start(self.consumed)).ok()?;
        let mut bytes = Vec::new();
        file.take(INDEX_BYTES_MAX.saturating_sub(self.consumed)).read_to_end(&mut bytes).ok()?;
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes.truncate(end);
        self.consumed += end as u64;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn apply(&mut self, text: &str) {
        for line in text.lines() {
            if let Some(line) = line.strip_prefix("+ ") {
                self.add(line);
            } else if let Some(line) = line.strip_prefix("- ") {
                for place in self.places.remove(line).unwrap_or_default() {
                    self.entries.remove(&place);
                }
            } else if line.starts_with("# ") {
                self.header = line.to_owned();
            }
        }
    }

    fn add(&mut self, line: &str) {
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        let (Some(file), Some(offset), Some(bytes)) = (words.next(), words.next(), words.next()) else { return };
        // An entry without a class is a cluster; its members follow with entries of their own.
        let Some(class) = words.next() else { return };
        let ident = words.next().unwrap_or_default();
        let (Ok(offset), Ok(bytes)) = (offset.parse(), bytes.parse()) else { return };
        if file.contains('/') || file == ".." || self.entries.len() >= ENTRIES_MAX {
            return;
        }
        let entry = SegmentEntry {
            class: class.to_owned(),
            ident: ident.to_owned(),
            publisher: self.publisher,
            serial: self.next_serial,
            file: file.to_owned(),
            offset,
            bytes,
            line: line.to_owned(),
        };
        self.entries.insert(self.next_place, entry);
        self.places.entry(line.to_owned()).or_default().push(self.next_place);
        self.next_place += 1;
        self.next_serial += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{LogId, LogRing};
    use crate::read::ring::{RingCursor, Start};
    use crate::read::{Cursor, Next};
    use crate::vsm::{VsmWriter, recreate_directory, remove_directory};
    use surface::tag::Tag;

    fn worker(directory: &Path) -> VsmWriter {
        let path = directory.join(WORKER_DIRECTORY);
        recreate_directory(&path, 0o755).unwrap();
        VsmWriter::create(&path).unwrap()
    }

    #[test]
    fn entries_come_and_go_and_keep_their_serial_when_the_index_is_rewritten() {
        let directory = tempfile::tempdir().unwrap();
        let mut vsm = Vsm::new(directory.path());
        assert_eq!(vsm.poll(), Status::default());
        let writer = worker(directory.path());
        let _log = writer.add("Log", "Log", 64).unwrap();
        assert!(vsm.poll().worker_running);
        assert!(!vsm.poll().changed);
        let serial = vsm.find("Log", None).unwrap().serial;
        for number in 0..50 {
            let segment = writer.add("Stat", &format!("A.{number}"), 8).unwrap();
            assert!(vsm.poll().changed);
            assert!(vsm.find("Stat", Some(&format!("A.{number}"))).is_some());
            writer.remove(&segment).unwrap();
            vsm.poll();
            assert!(vsm.find("Stat", None).is_none());
            assert!(vsm.is_listed(serial));
        }
    }

    #[test]
    fn arguments_are_those_of_the_manager() {
        let directory = tempfile::tempdir().unwrap();
        let worker = worker(directory.path());
        let _forged = worker.add_text("Arg", "-T", "192.0.2.1 6082").unwrap();
        let mut vsm = Vsm::new(directory.path());
        vsm.poll();
        assert!(vsm.find("Arg", Some("-T")).is_some());
        assert_eq!(vsm.argument("-T").unwrap_err().kind(), io::ErrorKind::NotFound);
        let manager = VsmWriter::create(&directory.path().join(MANAGER_DIRECTORY)).unwrap();
        let _published = manager.add_text("Arg", "-T", "127.0.0.1 6082").unwrap();
        vsm.poll();
        assert_eq!(vsm.argument("-T").unwrap(), "127.0.0.1 6082");
    }

    #[test]
    fn an_index_of_a_hundred_thousand_lines_that_go_again_is_read_at_once() {
        let mut index = Index::new(PathBuf::from("/"), Publisher::Worker);
        let lines = |sign| (0..100_000).map(move |number| format!("{sign} f{number} 0 8 Stat VBE.v.b{number}\n"));
        let before = crate::thread_cpu_time();
        index.apply(&lines('+').chain(lines('-')).collect::<String>());
        assert!(index.entries.is_empty() && index.places.is_empty());
        // When every line was searched for among all others, this took minutes.
        let taken = crate::thread_cpu_time() - before;
        assert!(taken.as_secs() < 20, "{taken:?}");
    }

    #[test]
    fn a_restarted_worker_is_another_one() {
        let directory = tempfile::tempdir().unwrap();
        let mut vsm = Vsm::new(directory.path());
        let ring = LogRing::publish(&worker(directory.path()), 1 << 16, crate::layout::Layout::V71).unwrap();
        vsm.poll();
        let entry = vsm.find("Log", None).unwrap().clone();
        let mut cursor = RingCursor::open(vsm.map(&entry).unwrap(), Start::Head).unwrap();
        ring.write(Tag::CLI, LogId::NONE, b"Rd ping");
        let mut words = Vec::new();
        assert_eq!([cursor.next(&mut words), cursor.next(&mut words)], [Next::Chunk, Next::Wait]);
        let _next = LogRing::publish(&worker(directory.path()), 1 << 16, crate::layout::Layout::V71).unwrap();
        vsm.poll();
        assert!(!vsm.is_listed(entry.serial));
        assert!(vsm.find("Log", None).is_some());
        // Existing mappings stay readable.
        ring.write(Tag::CLI, LogId::NONE, b"Wr 200");
        assert_eq!(cursor.next(&mut words), Next::Chunk);
        remove_directory(&directory.path().join(WORKER_DIRECTORY)).unwrap();
        assert!(!vsm.poll().worker_running);
        assert!(vsm.find("Log", None).is_none());
    }
}
