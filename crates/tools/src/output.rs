//! Output of a log tool: a stream, or a file that can be reopened when it is rotated.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use shm::layout::Layout;

/// A file to write to, `-w`.
pub(crate) struct OutputFile {
    path: PathBuf,
    /// Written at the start of every new file.
    head: &'static [u8],
    file: BufWriter<File>,
    is_new: bool,
}

impl OutputFile {
    /// Opens `path`, either empty or for appending.
    pub fn open(path: &Path, append: bool) -> io::Result<OutputFile> {
        // A daemon changes its directory, and must still find the file when it is rotated.
        let path = std::path::absolute(path)?;
        let (file, is_new) = open(&path, append)?;
        Ok(OutputFile { path, head: b"", file, is_new })
    }

    /// The layout of the records that the file has already, if it is a log file.
    pub fn layout(&self) -> Option<Layout> {
        let mut head = [0; 4];
        if self.is_new || !self.file.get_ref().metadata().is_ok_and(|found| found.is_file()) {
            return None;
        }
        File::open(&self.path).and_then(|mut file| file.read_exact(&mut head)).ok()?;
        Layout::of_file(head)
    }

    /// Writes `head` at the start of the file if it is new, and of every new file from now on.
    pub fn begin(&mut self, head: &'static [u8]) -> io::Result<()> {
        self.head = head;
        if std::mem::take(&mut self.is_new) { self.file.write_all(head) } else { Ok(()) }
    }

    /// Closes the file, which may have been renamed, and opens its name again. Existing content
    /// stays: a signal without a rename must not destroy the log.
    pub fn rotate(&mut self) -> io::Result<()> {
        self.file.flush()?;
        (self.file, self.is_new) = open(&self.path, true)?;
        self.begin(self.head)
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn open(path: &Path, append: bool) -> io::Result<(BufWriter<File>, bool)> {
    let file = OpenOptions::new().create(true).write(true).append(append).truncate(!append).open(path)?;
    let is_new = !append || file.metadata()?.len() == 0;
    Ok((BufWriter::with_capacity(1 << 16, file), is_new))
}
