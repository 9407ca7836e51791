//! `-o vsl=…`: the layout of the log, which the programs that read it must know.

use super::ArgumentError;
use shm::layout::Layout;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use surface::option::{VSL, VSL_AUTO};

/// Where libraries are: in these folders, and in the folders in them.
const LIBRARY_FOLDERS: [&str; 4] = ["/usr/local/lib", "/usr/lib64", "/usr/lib", "/lib"];
/// Start of the library's file name.
const LIBRARY: &str = "libvarnishapi.so.";
/// Bytes of the library that are searched; it has a quarter of that.
const LIBRARY_BYTES_MAX: u64 = 1 << 20;
/// Entries of a folder that are looked at.
const ENTRIES_MAX: usize = 20_000;

/// Takes the layout out of the `-o` of a command line; the last one counts.
///
/// # Errors
/// One line that names the wrong value.
pub fn take(options: &mut Vec<String>) -> Result<Layout, ArgumentError> {
    let mut given = None;
    let mut others = Vec::new();
    for option in options.drain(..) {
        match option.split_once('=') {
            Some((VSL, value)) => given = Some(value.to_owned()),
            _ => others.push(option),
        }
    }
    *options = others;
    match given.as_deref() {
        None | Some(VSL_AUTO) => Ok(installed(&LIBRARY_FOLDERS.map(PathBuf::from))),
        Some(value) => Layout::from_name(value).ok_or_else(|| {
            let names = Layout::ALL.map(Layout::name).join(", ");
            format!("Unknown -o {VSL}={value}; there are {names}, {VSL_AUTO}").into()
        }),
    }
}

/// The layout that the library in one of these folders reads; the default if there is none.
fn installed(folders: &[PathBuf]) -> Layout {
    let nested = folders.iter().flat_map(|folder| entries(folder)).filter(|entry| entry.is_dir());
    let all: Vec<PathBuf> = folders.iter().cloned().chain(nested).collect();
    let libraries = all
        .iter()
        .flat_map(|folder| entries(folder))
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(LIBRARY)));
    libraries.filter_map(|path| layout_of(&path)).next().unwrap_or_default()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(found) = fs::read_dir(folder) else { return Vec::new() };
    found.take(ENTRIES_MAX).flatten().map(|entry| entry.path()).collect()
}

/// The layout whose marker is among the constants of a library. Version numbers do not tell: that
/// of 7.2 is the one of 7.3.
fn layout_of(library: &Path) -> Option<Layout> {
    let mut bytes = Vec::new();
    File::open(library).and_then(|file| file.take(LIBRARY_BYTES_MAX).read_to_end(&mut bytes)).ok()?;
    // A compiler may split the marker of eight bytes, but not the head of a file, which is an array
    // since 7.3.
    let contains = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    let is_new = contains(Layout::V73.ring_marker()) || contains(Layout::V73.file_head());
    Some(if is_new { Layout::V73 } else { Layout::V71 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(options: &[&str]) -> Result<Layout, String> {
        let mut options = options.iter().map(|&option| option.to_owned()).collect();
        take(&mut options).map_err(|error| error.shown(surface::program::Called::Stock))
    }

    #[test]
    fn layout_is_named_by_the_version_that_has_it() {
        assert_eq!(taken(&["vsl=7.1"]).unwrap(), Layout::V71);
        assert_eq!(taken(&["vsl=auto", "vsl=7.3"]).unwrap(), Layout::V73);
        let refused = taken(&["vsl=8"]).unwrap_err();
        assert!(refused.contains("Unknown -o vsl=8; there are 7.1, 7.3, auto"), "{refused}");
        let mut options = vec!["acme=none".to_owned(), "vsl=7.1".to_owned()];
        take(&mut options).unwrap();
        assert_eq!(options, ["acme=none"]);
    }

    #[test]
    fn installed_library_decides() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_owned()];
        assert_eq!(installed(&folders), Layout::V71, "there is none");
        let nested = folder.path().join("x86_64-linux-gnu");
        fs::create_dir(&nested).unwrap();
        fs::write(nested.join("libvarnishapi.so.3"), b"\x7fELF VSL2").unwrap();
        assert_eq!(installed(&folders), Layout::V73);
        fs::write(nested.join("libvarnishapi.so.3"), b"\x7fELF VSLHEAD1 VSL").unwrap();
        assert_eq!(installed(&folders), Layout::V71);
        fs::write(folder.path().join("libvarnishapi.so.3.1.0"), b"\x7fELF VSLHEAD2").unwrap();
        assert_eq!(installed(&folders), Layout::V73, "the first folder counts");
    }
}
