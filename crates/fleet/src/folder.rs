//! The folder in which a node keeps its files, as a trait, so that the simulation can kill a node
//! in the middle of any write.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;

/// Files by name, appended to and read. All calls block.
pub trait Folder {
    /// The names of all files.
    ///
    /// # Errors
    /// The folder could not be read.
    fn names(&self) -> io::Result<Vec<String>>;

    /// `length` bytes from offset `at`, or less at the end of the file.
    ///
    /// # Errors
    /// The file does not exist, or reading failed.
    fn read(&self, name: &str, at: u64, length: usize) -> io::Result<Vec<u8>>;

    /// Appends to a file, which is created if it does not exist. After an error, any part of the
    /// bytes may be in the file.
    ///
    /// # Errors
    /// Writing failed.
    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Cuts a file off behind its first `length` bytes.
    ///
    /// # Errors
    /// The file does not exist, or writing failed.
    fn cut(&mut self, name: &str, length: u64) -> io::Result<()>;

    /// Waits until the content of a file, and its name, are on the disk.
    ///
    /// # Errors
    /// Any that the disk reports. The content is unknown then.
    fn sync(&mut self, name: &str) -> io::Result<()>;

    /// Renames a file over another one, and waits until that is on the disk.
    ///
    /// # Errors
    /// Writing failed.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// Writing failed.
    fn remove(&mut self, name: &str) -> io::Result<()>;
}

/// A folder on a disk. It must belong to this process alone.
pub struct DiskFolder {
    path: PathBuf,
    /// Files that were written to, and whether their names are on the disk.
    open: HashMap<String, (File, bool)>,
}

impl DiskFolder {
    /// The folder, which must exist.
    #[must_use]
    pub fn new(path: PathBuf) -> DiskFolder {
        DiskFolder { path, open: HashMap::new() }
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn opened(&mut self, name: &str) -> io::Result<&mut (File, bool)> {
        if !self.open.contains_key(name) {
            let path = self.path.join(name);
            let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
            self.open.insert(name.to_owned(), (file, false));
        }
        self.open.get_mut(name).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Folder for DiskFolder {
    fn names(&self) -> io::Result<Vec<String>> {
        let entries = std::fs::read_dir(&self.path)?;
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn read(&self, name: &str, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let other;
        let file = match self.open.get(name) {
            Some((file, _)) => file,
            None => {
                other = File::open(self.path.join(name))?;
                &other
            }
        };
        let rest = file.metadata()?.len().saturating_sub(at);
        let mut bytes = vec![0; rest.min(length as u64) as usize];
        file.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        io::Write::write_all(&mut self.opened(name)?.0, bytes)
    }

    fn cut(&mut self, name: &str, length: u64) -> io::Result<()> {
        self.opened(name)?.0.set_len(length)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        let (file, is_named) = self.opened(name)?;
        file.sync_data()?;
        if !std::mem::replace(is_named, true) {
            self.sync_names()?;
        }
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.open.remove(to);
        std::fs::rename(self.path.join(from), self.path.join(to))?;
        if let Some(file) = self.open.remove(from) {
            self.open.insert(to.to_owned(), file);
        }
        self.sync_names()
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.open.remove(name);
        std::fs::remove_file(self.path.join(name))
    }
}
