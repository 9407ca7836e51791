//! The files that a VCL refers to: includes, and the sockets in `.path`.
//!
//! Behind a trait, so that tests and fuzzers can compile without a file system.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use surface::limits::{VCL_GLOB_ENTRIES_MAX, VCL_GLOB_PATTERN_BYTES_MAX, VCL_SOURCE_BYTES_MAX, VCL_SOURCES_MAX};

/// The kind of file at a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// A Unix-domain socket.
    Socket,
    /// Something else.
    Other,
}

/// Reads files for the compiler.
pub trait ReadFile {
    /// The whole file.
    ///
    /// # Errors
    /// As reported by the file system.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// The files that match a shell pattern (`*`, `?`, `[…]` in the last part of the path), sorted.
    ///
    /// # Errors
    /// As reported by the file system; no match is not an error.
    fn glob(&self, pattern: &str) -> io::Result<Vec<PathBuf>>;
    /// Kind of the file at a path.
    ///
    /// # Errors
    /// As reported by the file system.
    fn kind(&self, path: &Path) -> io::Result<FileKind>;
}

/// The message of a file system error, without its number.
pub(crate) fn error_text(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Rule of the shell: `*` does not match names that begin with a period.
const HIDDEN_APART: pattern::Flags = pattern::Flags { pathname: false, noescape: false, period: true };

/// The real file system.
#[derive(Clone, Copy, Debug)]
pub struct SystemFiles;

impl ReadFile for SystemFiles {
    /// Compat: regular files only. Varnish hangs on a named pipe: pipes and devices may never end,
    /// and the manager would wait for them. Reads at most one byte more than the maximum size of a
    /// VCL.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let about = std::fs::metadata(path)?;
        // Reading a directory fails with its own error.
        if !about.is_file() && !about.is_dir() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "Not a regular file"));
        }
        let bytes_max = VCL_SOURCE_BYTES_MAX as u64 + 1;
        let mut text = Vec::with_capacity(about.len().min(bytes_max) as usize);
        File::open(path)?.take(bytes_max).read_to_end(&mut text)?;
        Ok(text)
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<PathBuf>> {
        if pattern.len() > VCL_GLOB_PATTERN_BYTES_MAX {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        let mut entries = VCL_GLOB_ENTRIES_MAX;
        let mut found = matching(pattern, &mut entries)?;
        found.sort();
        Ok(found)
    }

    fn kind(&self, path: &Path) -> io::Result<FileKind> {
        let file_type = std::fs::metadata(path)?.file_type();
        Ok(if file_type.is_socket() { FileKind::Socket } else { FileKind::Other })
    }
}

/// The matching paths, in no particular order; stops after more than [`VCL_SOURCES_MAX`]. `entries`
/// counts down the directory entries that may still be examined.
fn matching(pattern: &str, entries: &mut usize) -> io::Result<Vec<PathBuf>> {
    let (directory, last) = pattern
        .rsplit_once('/')
        .map_or((".", pattern), |(directory, last)| (if directory.is_empty() { "/" } else { directory }, last));
    // Directories with wildcards are expanded first; the length of the pattern is bounded, so the
    // recursion is not deep.
    let directories = if directory.contains(['*', '?', '[']) {
        matching(directory, entries)?
    } else {
        vec![PathBuf::from(directory)]
    };
    let mut found = Vec::new();
    for directory in directories {
        let Ok(listed) = std::fs::read_dir(&directory) else { continue };
        for entry in listed {
            *entries =
                entries.checked_sub(1).ok_or_else(|| io::Error::other("too many directory entries to look at"))?;
            let name = entry?.file_name();
            let bytes = name.as_encoded_bytes();
            if pattern::matches(last.as_bytes(), bytes, HIDDEN_APART) {
                found.push(if pattern.contains('/') { directory.join(&name) } else { PathBuf::from(&name) });
            }
            if found.len() > VCL_SOURCES_MAX {
                return Ok(found);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_are_not_regular_files_are_refused_at_once() {
        let refusal = |path: &str| SystemFiles.read(Path::new(path)).unwrap_err();
        assert_eq!(refusal("/dev/zero").to_string(), "Not a regular file");
        assert_eq!(refusal("/").kind(), io::ErrorKind::IsADirectory);
        assert_eq!(refusal("/no/such/file").kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_pattern_without_end_or_over_everything_there_is_ends() {
        assert!(SystemFiles.glob(&"/*".repeat(1_000_000)).is_err());
        assert!(matching("/proc/*/*", &mut 50).is_err());
        assert!(matching("/proc/*", &mut 100_000).is_ok());
    }
}
