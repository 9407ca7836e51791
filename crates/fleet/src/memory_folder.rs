//! A folder in memory, for tests: it can fail at any write, and lose what was not made durable.

use crate::folder::Folder;
use std::collections::BTreeMap;
use std::io;

/// Files in memory.
#[derive(Clone, Default, Debug)]
pub struct MemoryFolder {
    files: BTreeMap<String, File>,
    /// Number of changes until the process is killed; `None` = it is not.
    changes_left: Option<u64>,
}

#[derive(Clone, Default, Debug)]
struct File {
    bytes: Vec<u8>,
    durable_bytes: usize,
}

impl MemoryFolder {
    /// Kills the process in the middle of a change, after `changes` others: that change and all
    /// later ones fail.
    pub fn kill_after(&mut self, changes: u64) {
        self.changes_left = Some(changes);
    }

    /// True if the process was killed.
    #[must_use]
    pub fn is_killed(&self) -> bool {
        self.changes_left == Some(0)
    }

    /// Starts the process again: changes succeed.
    pub fn restart(&mut self) {
        self.changes_left = None;
    }

    /// The machine loses power: of the bytes of each file that are not durable, `kept` are kept
    /// (called with their number).
    pub fn lose_power(&mut self, mut kept: impl FnMut(usize) -> usize) {
        for file in self.files.values_mut() {
            let volatile = file.bytes.len().saturating_sub(file.durable_bytes);
            file.bytes.truncate(file.durable_bytes + kept(volatile).min(volatile));
        }
    }

    /// The names of all files with their contents, which can be altered.
    pub fn files(&mut self) -> impl Iterator<Item = (&str, &mut Vec<u8>)> {
        self.files.iter_mut().map(|(name, file)| (name.as_str(), &mut file.bytes))
    }

    /// Adds a file.
    pub fn insert(&mut self, name: &str, bytes: Vec<u8>) {
        self.files.insert(name.to_owned(), File { durable_bytes: bytes.len(), bytes });
    }

    /// One change: how it ends.
    fn change(&mut self) -> io::Result<()> {
        match &mut self.changes_left {
            None => Ok(()),
            Some(0) => Err(io::Error::other("killed")),
            Some(left) => {
                *left -= 1;
                if *left == 0 { Err(io::Error::other("killed")) } else { Ok(()) }
            }
        }
    }

    fn file(&self, name: &str) -> io::Result<&File> {
        self.files.get(name).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Folder for MemoryFolder {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.files.keys().cloned().collect())
    }

    fn read(&self, name: &str, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let bytes = &self.file(name)?.bytes;
        let from = bytes.len().min(at as usize);
        Ok(bytes[from..bytes.len().min(from.saturating_add(length))].to_vec())
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let was_killed = self.is_killed();
        let result = self.change();
        if !was_killed {
            // A kill in the middle leaves a part.
            let written = if result.is_ok() { bytes.len() } else { bytes.len() / 2 };
            self.files.entry(name.to_owned()).or_default().bytes.extend_from_slice(&bytes[..written]);
        }
        result
    }

    fn cut(&mut self, name: &str, length: u64) -> io::Result<()> {
        self.file(name)?;
        self.change()?;
        if let Some(file) = self.files.get_mut(name) {
            file.bytes.truncate(length as usize);
            file.durable_bytes = file.durable_bytes.min(file.bytes.len());
        }
        Ok(())
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.file(name)?;
        self.change()?;
        if let Some(file) = self.files.get_mut(name) {
            file.durable_bytes = file.bytes.len();
        }
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.file(from)?;
        self.change()?;
        if let Some(file) = self.files.remove(from) {
            self.files.insert(to.to_owned(), file);
        }
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.change()?;
        self.files.remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
