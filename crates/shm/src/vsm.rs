//! The index of shared memory, writer side: a directory with one file per segment and a text file
//! that lists them.
//!
//! Order of publication: create the file, size it, fill it, then append its `+` line; removal:
//! append the `-` line, then unlink. Readers keep their mappings. After some removals the whole
//! index is rewritten under the same header and renamed into place.
//!
//! Owner: the manager writes `_.vsm_mgt`, each worker its own `_.vsm_child` (made anew by the
//! manager before each start). The list is under one mutex; segments are used without it. Next
//! file: `vsm/index.rs`.
//!
//! *Invariant:* folders in a worker's directory are never descended into.

mod index;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use parking_lot::Mutex;
use surface::limits::SHARED_FILES_MAX;

use crate::region::Region;
use index::{FILE_MODE, Index};

pub use index::INDEX_NAME;

/// The manager's directory within the work directory.
pub const MANAGER_DIRECTORY: &str = "_.vsm_mgt";
/// The worker's directory within the work directory.
pub const WORKER_DIRECTORY: &str = "_.vsm_child";
/// Longest index line in bytes; readers keep a line in a buffer of 8 KiB.
pub const INDEX_LINE_BYTES_MAX: usize = 4096;

const PAGE_BYTES: usize = 4096;

/// Makes `directory` anew: removes it like [`remove_directory`], and creates it empty with
/// permission bits `mode`.
///
/// # Errors
/// Errors of the file system, except a missing directory.
pub fn recreate_directory(directory: &Path, mode: u32) -> io::Result<Option<PathBuf>> {
    let aside = remove_directory(directory)?;
    fs::DirBuilder::new().mode(mode).create(directory)?;
    fs::set_permissions(directory, fs::Permissions::from_mode(mode))?;
    Ok(aside)
}

/// Removes `directory` with its files, so that readers see its owner gone. If it cannot be emptied,
/// because it contains entries that no writer of an index creates (directories, or far too many
/// files), it is renamed as a whole: its new path is returned. A compromised worker may have nested
/// directories without end, so this never descends.
///
/// # Errors
/// Errors of the file system, except a missing directory.
pub fn remove_directory(directory: &Path) -> io::Result<Option<PathBuf>> {
    match remove_flat(directory, SHARED_FILES_MAX) {
        Ok(()) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(_) => set_aside(directory).map(Some),
    }
}

fn remove_flat(directory: &Path, files_max: usize) -> io::Result<()> {
    // A link must not lead us to the files of others.
    if !fs::symlink_metadata(directory)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    for (count, entry) in fs::read_dir(directory)?.enumerate() {
        if count == files_max {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        match fs::remove_file(entry?.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::remove_dir(directory)
}

/// Renames a directory to an unused name next to it.
fn set_aside(directory: &Path) -> io::Result<PathBuf> {
    loop {
        let mut name = directory.as_os_str().to_owned();
        name.push(format!(".aside-{}", incarnation()));
        match renameat2(AT_FDCWD, directory, AT_FDCWD, Path::new(&name), RenameFlags::RENAME_NOREPLACE) {
            Ok(()) => return Ok(name.into()),
            Err(Errno::EEXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Writer of one index. Cloning gives another handle to the same index.
#[derive(Clone)]
pub struct VsmWriter(Arc<Writer>);

struct Writer {
    directory: PathBuf,
    state: Mutex<State>,
}

struct State {
    index: Index,
    next_file: u64,
}

impl VsmWriter {
    /// Starts an empty index in `directory`, which is created if missing; an index already there is
    /// replaced.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn create(directory: &Path) -> io::Result<VsmWriter> {
        if !directory.is_dir() {
            fs::DirBuilder::new().mode(0o755).create(directory)?;
        }
        // A worker may have access to its directory without access to all of its parents.
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let (process, incarnation) = (std::process::id(), incarnation());
        let index = Index::create(&directory, format!("# {process} {incarnation}\n"))?;
        // File names of one incarnation must differ from those that an earlier one may have left
        // behind.
        let first_file = (incarnation << 22 ^ u64::from(process)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let state = Mutex::new(State { index, next_file: first_file });
        Ok(VsmWriter(Arc::new(Writer { directory, state })))
    }

    /// Adds a zeroed segment of `bytes` bytes (rounded up to 8) and publishes it at once. If
    /// readers must not see it half-filled, use [`VsmWriter::add_filled`].
    ///
    /// # Errors
    /// `InvalidInput` for a class or ident that an index line cannot contain; else errors of the
    /// file system.
    pub fn add(&self, class: &str, ident: &str, bytes: usize) -> io::Result<Segment> {
        self.add_filled(class, ident, bytes, |_| {})
    }

    /// Adds a segment, lets `fill` write into its memory before it is visible, and then publishes
    /// it.
    ///
    /// # Errors
    /// As [`VsmWriter::add`].
    pub fn add_filled(
        &self,
        class: &str,
        ident: &str,
        bytes: usize,
        fill: impl FnOnce(&mut Region),
    ) -> io::Result<Segment> {
        check_word(class, false)?;
        check_word(ident, true)?;
        let length = bytes.max(1).next_multiple_of(8);
        let number = {
            let mut state = self.0.state.lock();
            state.next_file = state.next_file.wrapping_add(1);
            state.next_file
        };
        let name = format!("_.{}.{number:016x}", class.replace('/', "_"));
        let path = self.0.directory.join(&name);
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE).open(&path)?;
        let made = file
            .set_permissions(fs::Permissions::from_mode(FILE_MODE))
            .and_then(|()| allocate(&file, length.next_multiple_of(PAGE_BYTES)))
            .and_then(|()| Region::shared(&file, length));
        let mut region = match made {
            Ok(region) => region,
            Err(error) => {
                let _ = fs::remove_file(&path);
                return Err(error);
            }
        };
        let line = format!("{name} 0 {length} {class} {ident}\n");
        fill(&mut region);
        let listed = self.0.state.lock().index.add(&line);
        if let Err(error) = listed {
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        Ok(Segment { region, file_name: name, line })
    }

    /// Adds a segment that holds `text` and a NUL: clients find the CLI in such `Arg` segments.
    ///
    /// # Errors
    /// As [`VsmWriter::add`].
    pub fn add_text(&self, class: &str, ident: &str, text: &str) -> io::Result<Segment> {
        self.add_filled(class, ident, text.len() + 1, |memory| memory.fill(0, text.as_bytes()))
    }

    /// Removes a segment from the index and unlinks its file. Handles to the segment, ours and
    /// other processes', stay usable. Does nothing when it is not in the index.
    ///
    /// # Errors
    /// Errors of the file system. The file is gone then, if that is possible; its line is removed
    /// with the next one that can be written.
    pub fn remove(&self, segment: &Segment) -> io::Result<()> {
        let removed = self.0.state.lock().index.remove(&segment.line);
        let Some(written) = removed else { return Ok(()) };
        let unlinked = fs::remove_file(self.0.directory.join(&segment.file_name));
        // The unlink made room on a full file system.
        let written = written.or_else(|_| self.0.state.lock().index.settle());
        written.and(unlinked)
    }

    /// The directory of the index, absolute if possible.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.0.directory
    }
}

/// One segment of shared memory. This process has only one handle to it, so its holder decides how
/// its parts are used. Offsets are in bytes; accesses outside are ignored.
///
/// ```compile_fail,E0277
/// fn has_further_handles<T: Clone>() {}
/// has_further_handles::<shm::vsm::Segment>();
/// ```
pub struct Segment {
    region: Region,
    file_name: String,
    line: String,
}

impl Segment {
    /// A segment in private memory that no index lists.
    #[must_use]
    pub(crate) fn in_memory(region: Region) -> Segment {
        Segment { region, file_name: String::new(), line: String::new() }
    }

    /// Stores a 64-bit word (release); `offset` is a multiple of 8.
    #[inline]
    pub fn store_u64(&self, offset: usize, value: u64) {
        self.region.store_u64(offset, value, Ordering::Release);
    }

    /// Stores a 32-bit word (release); `offset` is a multiple of 4.
    #[inline]
    pub fn store_u32(&self, offset: usize, value: u32) {
        self.region.store_u32(offset, value, Ordering::Release);
    }

    /// Length in bytes, a multiple of 8.
    #[must_use]
    pub fn len(&self) -> usize {
        self.region.len()
    }

    /// Never true: a segment has at least 8 bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory itself.
    #[must_use]
    pub(crate) fn region(&self) -> &Region {
        &self.region
    }
}

/// Seconds since 1970, but never the same twice in one process: pid and this number identify an
/// index.
fn incarnation() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let before = LAST.fetch_max(now, Ordering::Relaxed);
    if before < now { now } else { LAST.fetch_add(1, Ordering::Relaxed) + 1 }
}

/// Index lines are split like CLI commands, so a field must be one plain word.
fn check_word(word: &str, may_be_empty: bool) -> io::Result<()> {
    let plain = word.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'));
    if !plain || (word.is_empty() && !may_be_empty) || word.len() > INDEX_LINE_BYTES_MAX / 2 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("not a name for a segment: {word:?}")));
    }
    Ok(())
}

/// Gives the file its blocks now: a full file system is an error here, where a sparse file would be
/// a SIGBUS later.
fn allocate(file: &File, bytes: usize) -> io::Result<()> {
    let length = i64::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    match nix::fcntl::posix_fallocate(file, 0, length) {
        Ok(()) => Ok(()),
        Err(nix::errno::Errno::EOPNOTSUPP | nix::errno::Errno::EINVAL) => file.set_len(bytes as u64),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(directory: &Path) -> Vec<String> {
        fs::read_to_string(directory.join(INDEX_NAME)).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_segment_is_listed_when_added_and_its_file_is_gone_when_removed() {
        let directory = tempfile::tempdir().unwrap();
        let writer = VsmWriter::create(directory.path()).unwrap();
        let segment = writer.add("Stat", "MAIN", 30).unwrap();
        assert_eq!(segment.len(), 32);
        writer.add("Params", "", 8).unwrap();
        let lines = index(directory.path());
        assert!(lines[0].starts_with(&format!("# {} ", std::process::id())));
        let line = lines[1].strip_prefix("+ ").unwrap();
        let (file, rest) = line.split_once(' ').unwrap();
        assert_eq!(rest, "0 32 Stat MAIN");
        assert!(lines[2].ends_with(" 0 8 Params "));
        assert_eq!(fs::metadata(directory.path().join(file)).unwrap().len(), 4096);
        writer.remove(&segment).unwrap();
        writer.remove(&segment).unwrap();
        assert!(!directory.path().join(file).exists());
        assert_eq!(index(directory.path())[3], format!("- {line}"));
    }

    #[test]
    fn many_removals_keep_the_index_short_and_the_order_of_the_survivors() {
        let directory = tempfile::tempdir().unwrap();
        let writer = VsmWriter::create(directory.path()).unwrap();
        let kept: Vec<_> = (0..3).map(|number| writer.add("Stat", &format!("K.{number}"), 8).unwrap()).collect();
        for number in 0..100 {
            let segment = writer.add("Stat", &format!("X.{number}"), 8).unwrap();
            writer.remove(&segment).unwrap();
        }
        let lines = index(directory.path());
        assert!(lines.iter().filter(|line| line.starts_with('-')).count() < 20);
        let names: Vec<_> = lines.iter().filter_map(|line| line.split_once("Stat K.")).map(|found| found.1).collect();
        assert_eq!(names, ["0", "1", "2"]);
        drop(kept);
    }

    #[test]
    fn files_left_behind_are_no_hindrance() {
        let directory = tempfile::tempdir().unwrap();
        for _ in 0..3 {
            let writer = VsmWriter::create(directory.path()).unwrap();
            writer.add("Log", "Log", 8).unwrap();
            writer.add("Stat", "MAIN", 8).unwrap();
        }
        assert_eq!(index(directory.path()).len(), 3);
    }

    #[test]
    fn directory_with_foreign_content_is_moved_away_at_any_depth() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join(WORKER_DIRECTORY);
        assert_eq!(remove_directory(&path).unwrap(), None);
        recreate_directory(&path, 0o755).unwrap();
        let _writer = VsmWriter::create(&path).unwrap();
        assert_eq!(recreate_directory(&path, 0o755).unwrap(), None);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        let mut asides = Vec::new();
        for _ in 0..2 {
            fs::create_dir_all(path.join("a/b")).unwrap();
            asides.push(recreate_directory(&path, 0o755).unwrap().unwrap());
            assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        }
        assert_ne!(asides[0], asides[1]);
        assert!(asides.iter().all(|aside| aside.join("a/b").is_dir() && aside.parent() == Some(base.path())));
        for number in 0..4 {
            File::create(path.join(number.to_string())).unwrap();
        }
        assert!(remove_flat(&path, 3).is_err() && remove_flat(&path, 3).is_ok());
    }

    #[test]
    fn a_link_in_the_place_of_a_directory_is_set_aside_and_not_followed() {
        let base = tempfile::tempdir().unwrap();
        let (path, other) = (base.path().join(WORKER_DIRECTORY), base.path().join("other"));
        fs::create_dir(&other).unwrap();
        fs::write(other.join("file"), "precious").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        recreate_directory(&path, 0o755).unwrap().unwrap();
        assert!(other.join("file").exists() && fs::symlink_metadata(&path).unwrap().is_dir());
    }

    #[test]
    fn two_incarnations_in_one_second_differ() {
        let directory = tempfile::tempdir().unwrap();
        let _first = VsmWriter::create(directory.path()).unwrap();
        let header = index(directory.path())[0].clone();
        let _second = VsmWriter::create(directory.path()).unwrap();
        assert_ne!(header, index(directory.path())[0]);
    }

    #[test]
    fn a_name_that_a_line_cannot_carry_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let writer = VsmWriter::create(directory.path()).unwrap();
        for name in ["a b", "a\"b", "a\\b", "a\nb", "é"] {
            assert_eq!(writer.add("Stat", name, 8).err().unwrap().kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        assert!(writer.add("", "x", 8).is_err());
    }
}
