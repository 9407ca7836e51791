//! Source files of a compiled VCL: a successor compiles it from them again, even if they have
//! changed on disk.
//!
//! [`Recorder`] reads for the compiler and keeps the sources; [`VclFiles`] holds them, and has
//! precedence over the file system when it is given to a recorder. Files that are not sources, such
//! as certificates towards origins, are not kept: they are read from their path each time.

use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use vcl::{FileKind, ReadFile, SystemFiles};

/// Sources by path, and the matches of include patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VclFiles {
    /// The main source; it may not be in a file.
    pub main: Octets,
    included: BTreeMap<PathBuf, Octets>,
    matches: BTreeMap<String, Vec<PathBuf>>,
}

/// A text, which is nearly always UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Octets {
    /// Valid UTF-8.
    Text(String),
    /// Other bytes.
    Bytes(Vec<u8>),
}

impl Default for Octets {
    fn default() -> Octets {
        Octets::Text(String::new())
    }
}

impl From<Vec<u8>> for Octets {
    fn from(bytes: Vec<u8>) -> Octets {
        String::from_utf8(bytes).map_or_else(|error| Octets::Bytes(error.into_bytes()), Octets::Text)
    }
}

impl Octets {
    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Octets::Text(text) => text.as_bytes(),
            Octets::Bytes(bytes) => bytes,
        }
    }
}

/// Reads for the compiler, and keeps the text.
#[derive(Debug)]
pub struct Recorder<'a> {
    before: &'a VclFiles,
    read: RefCell<BTreeMap<PathBuf, Vec<u8>>>,
    matches: RefCell<BTreeMap<String, Vec<PathBuf>>>,
}

impl Recorder<'_> {
    /// A reader of files; those in `before` are taken from there.
    #[must_use]
    pub fn new(before: &VclFiles) -> Recorder<'_> {
        Recorder { before, read: RefCell::default(), matches: RefCell::default() }
    }

    /// The files that were read: the main source, and those with these names.
    #[must_use]
    pub fn finish<'n>(self, main: &[u8], names: impl Iterator<Item = &'n str>) -> VclFiles {
        let names: Vec<&str> = names.collect();
        let is_source = |path: &Path| names.iter().any(|name| Path::new(name) == path);
        let read = self.read.into_inner().into_iter();
        VclFiles {
            main: Octets::from(main.to_vec()),
            included: read.filter(|(path, _)| is_source(path)).map(|(path, bytes)| (path, bytes.into())).collect(),
            matches: self.matches.into_inner(),
        }
    }
}

impl ReadFile for Recorder<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let bytes = match self.before.included.get(path) {
            Some(kept) => kept.bytes().to_vec(),
            None => SystemFiles.read(path)?,
        };
        self.read.borrow_mut().insert(path.to_owned(), bytes.clone());
        Ok(bytes)
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<PathBuf>> {
        let found = match self.before.matches.get(pattern) {
            Some(kept) => kept.clone(),
            None => SystemFiles.glob(pattern)?,
        };
        self.matches.borrow_mut().insert(pattern.to_owned(), found.clone());
        Ok(found)
    }

    fn kind(&self, path: &Path) -> io::Result<FileKind> {
        SystemFiles.kind(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vcl::{CompileOptions, SourceText};

    fn compiled(main: &[u8], before: &VclFiles) -> Result<(Vec<u8>, VclFiles), String> {
        let recorder = Recorder::new(before);
        let options = CompileOptions { files: &recorder, ..CompileOptions::default() };
        let source = SourceText { name: "<vcl.inline>", text: main };
        let done = vcl::compile(&source, &options).map_err(|error| error.report())?;
        let program = postcard::to_stdvec(&done.program).unwrap();
        let names: Vec<String> = done.program.sources.iter().map(|source| source.name.clone()).collect();
        Ok((program, recorder.finish(main, names.iter().map(String::as_str))))
    }

    #[test]
    fn program_is_the_same_when_its_files_have_changed_or_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("one.vcl"), b"sub vcl_recv { set req.http.X = \"b\xe4r\"; }").unwrap();
        std::fs::create_dir(path("all")).unwrap();
        std::fs::write(path("all/a.vcl"), "sub vcl_recv { set req.http.A = \"a\"; }").unwrap();
        let main = format!(
            "vcl 4.1; backend default none; include \"{0}/one.vcl\"; include +glob \"{0}/all/*.vcl\";",
            folder.path().display()
        );
        let (program, kept) = compiled(main.as_bytes(), &VclFiles::default()).unwrap();
        let kept: VclFiles = serde_json::from_str(&serde_json::to_string(&kept).unwrap()).unwrap();
        std::fs::remove_file(path("one.vcl")).unwrap();
        std::fs::write(path("all/a.vcl"), "sub vcl_recv { set req.http.A = \"other\"; }").unwrap();
        std::fs::write(path("all/b.vcl"), "nonsense").unwrap();
        assert!(compiled(kept.main.bytes(), &VclFiles::default()).is_err());
        let (again, kept_again) = compiled(kept.main.bytes(), &kept).unwrap();
        assert!(again == program);
        assert_eq!(kept_again, kept, "so it can be handed on again");
    }

    #[test]
    fn files_that_are_not_sources_are_not_recorded() {
        let before = VclFiles::default();
        let recorder = Recorder::new(&before);
        recorder.read(Path::new("/proc/self/status")).unwrap();
        assert_eq!(
            recorder.finish(b"x", ["/other"].into_iter()),
            VclFiles { main: Octets::Text("x".into()), ..before.clone() }
        );
    }
}
