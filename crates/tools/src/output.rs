//! Where a log tool's result goes: a stream, or a file that can be reopened when it is rotated.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file to write to, `-w`.
pub(crate) struct OutputFile {
    path: PathBuf,
    /// Written at the start of every new file.
    head: &'static [u8],
    file: BufWriter<File>,
}

impl OutputFile {
    /// Opens `path`, either empty or for appending.
    pub fn open(path: &Path, append: bool, head: &'static [u8]) -> io::Result<OutputFile> {
        // A daemon changes its directory, and must still find the file when it is rotated.
        let path = std::path::absolute(path)?;
        let file = open(&path, append, head)?;
        Ok(OutputFile { path, head, file })
    }

    /// Closes the file, which may have been renamed, and opens its name again. Existing content stays: a signal without
    /// a rename must not destroy the log.
    pub fn rotate(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file = open(&self.path, true, self.head)?;
        Ok(())
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

fn open(path: &Path, append: bool, head: &'static [u8]) -> io::Result<BufWriter<File>> {
    let file = OpenOptions::new().create(true).write(true).append(append).truncate(!append).open(path)?;
    let is_new = !append || file.metadata()?.len() == 0;
    let mut file = BufWriter::with_capacity(1 << 16, file);
    if is_new {
        file.write_all(head)?;
    }
    Ok(file)
}
