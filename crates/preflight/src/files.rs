//! The files of an installation, perhaps below another root: bounded, and regular ones only.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use surface::limits::PREFLIGHT_FILE_BYTES_MAX;
use vcl::{FileKind, ReadFile, SystemFiles};

/// Root directory of the installation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Root(pub(crate) Option<PathBuf>);

impl Root {
    /// Path here of a path of the installation. Links in it are resolved within the installation,
    /// as on its own machine.
    pub(crate) fn at(&self, path: &Path) -> PathBuf {
        match (&self.0, path.strip_prefix("/")) {
            (Some(root), Ok(below)) => within(root, below),
            _ => path.to_owned(),
        }
    }

    /// True if that is another root than ours.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.0.is_some()
    }

    /// True if the file exists.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.at(path).is_file()
    }

    /// True if a file leads to /dev/null, which masks systemd's files.
    pub(crate) fn is_masked(&self, path: &Path) -> bool {
        let end = self.at(path);
        match &self.0 {
            Some(root) => end == root.join("dev/null"),
            None => std::fs::canonicalize(end).is_ok_and(|end| end == Path::new("/dev/null")),
        }
    }

    /// The text of a file; bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// The reason why it cannot be read, with its name.
    pub(crate) fn text(&self, path: &Path) -> Result<String, String> {
        let read = || -> io::Result<Vec<u8>> {
            let path = self.at(path);
            if !std::fs::metadata(&path)?.is_file() {
                return Err(io::Error::other("not a regular file"));
            }
            let mut bytes = Vec::new();
            File::open(&path)?.take(PREFLIGHT_FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
            if bytes.len() as u64 > PREFLIGHT_FILE_BYTES_MAX {
                return Err(io::Error::other("it is too large"));
            }
            Ok(bytes)
        };
        match read() {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => Err(format!("{}: {}", path.display(), manager::arguments::reason(&error))),
        }
    }

    /// The files in a directory whose names have this ending, by name; none if the directory does
    /// not exist.
    pub(crate) fn list(&self, directory: &Path, end: &str) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.at(directory)) else { return Vec::new() };
        let names = entries.flatten().map(|entry| entry.file_name());
        let mut names: Vec<_> = names.filter(|name| name.to_string_lossy().ends_with(end)).collect();
        names.sort_unstable();
        names.into_iter().map(|name| directory.join(name)).collect()
    }
}

/// Resolves links as if `root` were `/`. A path that does not exist is joined as it is written.
fn within(root: &Path, below: &Path) -> PathBuf {
    /// As many as the kernel follows.
    const LINKS_MAX: usize = 40;
    let mut pending = reversed(below);
    let mut found = PathBuf::new();
    let mut links = 0;
    while let Some(name) = pending.pop() {
        if name == ".." {
            found.pop();
            continue;
        }
        match std::fs::read_link(root.join(&found).join(&name)) {
            Ok(target) if links < LINKS_MAX => {
                links += 1;
                if target.is_absolute() {
                    found = PathBuf::new();
                }
                pending.extend(reversed(&target));
            }
            _ => found.push(name),
        }
    }
    root.join(found)
}

/// The names in a path, the last one first.
fn reversed(path: &Path) -> Vec<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    };
    path.components().rev().filter_map(name).collect()
}

impl ReadFile for Root {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        SystemFiles.read(&self.at(path))
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<PathBuf>> {
        let Some(root) = &self.0 else { return SystemFiles.glob(pattern) };
        let found = SystemFiles.glob(&self.at(Path::new(pattern)).to_string_lossy())?;
        let inside = |path: PathBuf| path.strip_prefix(root).map(|below| Path::new("/").join(below)).unwrap_or(path);
        Ok(found.into_iter().map(inside).collect())
    }

    fn kind(&self, path: &Path) -> io::Result<FileKind> {
        SystemFiles.kind(&self.at(path))
    }
}
