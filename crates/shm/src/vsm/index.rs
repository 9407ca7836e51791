//! Text file of an index: whole lines, each of which is either present or absent.
//!
//! Readers follow the file while it grows, and those of Varnish end with an assertion at a line
//! without an end. So room is requested from the file system in advance, and the part of a line
//! that was written before an error is truncated again; until then a reader may see it.
//! *Invariants:* a line, once written, never changes; surviving lines keep their relative order. A
//! removal that could not be written is pending: it is written before the next line.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{FallocateFlags, fallocate};

/// Name of the index in its directory.
pub const INDEX_NAME: &str = "_.index";
/// Permission bits of the shared files: readers are of the group.
pub(super) const FILE_MODE: u32 = 0o640;
/// Removals after which the index is rewritten, unless more than twice as many entries remain.
const REMOVALS_MAX: usize = 10;
/// The file's room ahead ends at a multiple of this.
const ROOM_BYTES: u64 = 1 << 16;

/// The index of one directory.
pub(super) struct Index {
    directory: PathBuf,
    header: String,
    file: File,
    /// Length of its whole lines.
    bytes: u64,
    /// Length up to which the file system has reserved room.
    room_bytes: u64,
    lines: Vec<String>,
    removals: usize,
    owed: String,
    /// A partial line could not be truncated: only a new file helps.
    is_broken: bool,
}

impl Index {
    /// Starts an empty index; one already there is replaced.
    pub fn create(directory: &Path, header: String) -> io::Result<Index> {
        let (file, bytes) = write_anew(directory, &header, &[])?;
        let directory = directory.to_owned();
        let (lines, owed) = (Vec::new(), String::new());
        Ok(Index { directory, header, file, bytes, room_bytes: 0, lines, removals: 0, owed, is_broken: false })
    }

    /// Lists a segment, or fails and does not.
    pub fn add(&mut self, line: &str) -> io::Result<()> {
        if self.is_broken {
            self.rewrite()?;
        }
        self.append(&format!("+ {line}"))?;
        self.lines.push(line.to_owned());
        Ok(())
    }

    /// Takes a segment off the list; `None` if it is not in it. After a failure the removal is
    /// pending.
    pub fn remove(&mut self, line: &str) -> Option<io::Result<()>> {
        // The latest lines are usually removed first, and a VCL may have many backends.
        let position = self.lines.iter().rposition(|listed| *listed == line)?;
        let line = self.lines.remove(position);
        self.removals += 1;
        if self.is_broken || self.removals > REMOVALS_MAX.max(self.lines.len() / 2) {
            self.removals = 0;
            let rewritten = self.rewrite();
            // Without room for another file there may be some for a line.
            if rewritten.is_ok() || self.is_broken {
                return Some(rewritten);
            }
        }
        let text = format!("- {line}");
        let written = self.append(&text);
        if written.is_err() {
            self.owed.push_str(&text);
        }
        Some(written)
    }

    /// Tries once more to write the pending removals.
    pub fn settle(&mut self) -> io::Result<()> {
        if self.is_broken { self.rewrite() } else { self.append("") }
    }

    /// Writes the pending removals and `text`, or nothing.
    fn append(&mut self, text: &str) -> io::Result<()> {
        let all = [self.owed.as_str(), text].concat();
        self.reserve(all.len() as u64);
        match self.file.write_all(all.as_bytes()) {
            Ok(()) => {
                self.bytes += all.len() as u64;
                self.owed.clear();
                Ok(())
            }
            Err(error) => {
                self.is_broken = self.file.set_len(self.bytes).is_err();
                self.room_bytes = self.bytes;
                Err(error)
            }
        }
    }

    /// Requests room for `bytes` more bytes. If there is none, or the file system cannot reserve
    /// it, the write will fail.
    fn reserve(&mut self, bytes: u64) {
        let end = self.bytes + bytes;
        if end > self.room_bytes {
            let room = end.next_multiple_of(ROOM_BYTES);
            let (from, length) = (self.bytes as i64, (room - self.bytes) as i64);
            if fallocate(&self.file, FallocateFlags::FALLOC_FL_KEEP_SIZE, from, length).is_ok() {
                self.room_bytes = room;
            }
        }
    }

    fn rewrite(&mut self) -> io::Result<()> {
        (self.file, self.bytes) = write_anew(&self.directory, &self.header, &self.lines)?;
        self.room_bytes = 0;
        self.owed.clear();
        self.is_broken = false;
        Ok(())
    }
}

/// Writes a complete index next to the old one, renames it into place and returns it open for
/// appending, with its length.
fn write_anew(directory: &Path, header: &str, lines: &[String]) -> io::Result<(File, u64)> {
    let temporary = directory.join("_.index.new");
    let _ = fs::remove_file(&temporary);
    let mut file = OpenOptions::new().append(true).create_new(true).mode(FILE_MODE).open(&temporary)?;
    let mut text = String::from(header);
    for line in lines {
        text.push_str("+ ");
        text.push_str(line);
    }
    let written = file
        .set_permissions(fs::Permissions::from_mode(FILE_MODE))
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&temporary, directory.join(INDEX_NAME)));
    if let Err(error) = written {
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    Ok((file, text.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::super::VsmWriter;
    use super::*;
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    use std::process::Command;

    /// Names the folder to a process that runs this test alone, with a limit on the length of
    /// files.
    const ALONE: &str = "SHM_TEST_FULL_FOLDER";
    const NAME: &str = "vsm::index::tests::a_full_file_system_leaves_whole_lines";

    #[test]
    fn an_index_with_half_a_line_that_could_not_be_cut_off_is_written_anew() {
        let directory = tempfile::tempdir().unwrap();
        let mut index = Index::create(directory.path(), "# 1 2\n".to_owned()).unwrap();
        for line in ["a\n", "b\n"] {
            index.add(line).unwrap();
        }
        for (change, after) in [("remove", "# 1 2\n+ b\n"), ("add", "# 1 2\n+ b\n+ c\n")] {
            index.file.write_all(b"+ ha").unwrap();
            index.is_broken = true;
            match change {
                "remove" => index.remove("a\n").unwrap().unwrap(),
                _ => index.add("c\n").unwrap(),
            }
            assert_eq!(fs::read_to_string(directory.path().join(INDEX_NAME)).unwrap(), after);
        }
    }

    #[test]
    fn a_full_file_system_leaves_whole_lines() {
        let Some(folder) = std::env::var_os(ALONE) else {
            let folder = tempfile::tempdir().unwrap();
            let mut shell = Command::new("sh");
            shell
                .args(["-c", "trap '' XFSZ; exec \"$0\" --exact \"$1\""])
                .arg(std::env::current_exe().unwrap())
                .arg(NAME);
            let output = shell.env(ALONE, folder.path()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("1 passed"), "{said}");
            return;
        };
        let folder = Path::new(&folder);
        let (_, hard) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
        let limit = |bytes| setrlimit(Resource::RLIMIT_FSIZE, bytes, hard).unwrap();
        let (writer, mut segments) = (VsmWriter::create(folder).unwrap(), Vec::new());
        let lines = || fs::read_to_string(folder.join(INDEX_NAME)).unwrap();
        let files = || fs::read_dir(folder).unwrap().count();

        // Segments of a page fit, the index ends in the middle of a line.
        limit(3 * 4096 + 50);
        while let Ok(segment) = writer.add("Stat", &format!("X.{}", segments.len()), 8) {
            segments.push(segment);
        }
        let full = lines();
        assert!(full.ends_with('\n') && full.lines().count() == 1 + segments.len(), "{full}");
        assert_eq!(files(), 1 + segments.len(), "the file of the one that failed is gone");
        // This line does not fit either, but the segment is removed.
        limit(full.len() as u64 + 5);
        let removed = segments.remove(1);
        assert!(writer.remove(&removed).is_err());
        assert_eq!((lines(), files()), (full.clone(), 1 + segments.len()));

        limit(hard);
        segments.push(writer.add("Stat", "LAST", 8).unwrap());
        let text = lines();
        let [.., first, second] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
        assert!(text.starts_with(&full) && first.starts_with("- ") && first.ends_with(" Stat X.1"), "{text}");
        assert!(second.starts_with("+ ") && second.ends_with(" Stat LAST"), "{text}");
        assert_eq!(files(), 1 + segments.len());
    }
}
