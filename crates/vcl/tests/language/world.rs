//! Files and host names for test compilations, independent of the machine they run on.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use surface::limits::VCL_SOURCE_BYTES_MAX;
use vcl::{CompileError, CompileOptions, Compiled, FileKind, ReadFile, Resolve, SourceText};

/// The name of the main text.
pub const MAIN: &str = "/vcl/main.vcl";

/// Files by path; in addition `/vcl/huge.vcl`, larger than the maximum size of a VCL, and the
/// socket `/run/socket`.
#[derive(Default)]
pub struct Files(pub BTreeMap<String, String>);

impl ReadFile for Files {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path == Path::new("/vcl/huge.vcl") {
            return Ok(vec![b' '; VCL_SOURCE_BYTES_MAX]);
        }
        let found = path.to_str().and_then(|path| self.0.get(path));
        found.map(|text| text.as_bytes().to_vec()).ok_or_else(|| io::Error::from_raw_os_error(2))
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<PathBuf>> {
        let (before, after) = pattern.split_once('*').unwrap_or((pattern, ""));
        Ok(self.0.keys().filter(|path| path.starts_with(before) && path.ends_with(after)).map(PathBuf::from).collect())
    }

    fn kind(&self, path: &Path) -> io::Result<FileKind> {
        match path.to_str() {
            Some("/run/socket") => Ok(FileKind::Socket),
            Some("/run/file") => Ok(FileKind::Other),
            _ => Err(io::Error::from_raw_os_error(2)),
        }
    }
}

/// A name server with four example names.
pub struct Hosts;

impl Resolve for Hosts {
    fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        let found: &[&str] = match host {
            "one.example" => &["192.0.2.10"],
            "both.example" => &["192.0.2.11", "2001:db8::11"],
            "many.example" => &["192.0.2.12", "192.0.2.13"],
            _ => return Err("Name or service not known".into()),
        };
        Ok(found.iter().map(|address| address.parse().unwrap()).collect())
    }

    fn port(&self, service: &str) -> Option<u16> {
        (service == "http").then_some(80)
    }
}

/// Compiles a text as [`MAIN`], with storages `s0` and `Transient` and a label `label`.
pub fn compile(text: &[u8], files: &Files, change: impl FnOnce(&mut CompileOptions)) -> Result<Compiled, CompileError> {
    compile_as(MAIN, text, files, change)
}

/// Compiles a text under a name.
pub fn compile_as(
    name: &str,
    text: &[u8],
    files: &Files,
    change: impl FnOnce(&mut CompileOptions),
) -> Result<Compiled, CompileError> {
    let storages = ["s0".to_owned(), "Transient".to_owned()];
    let labels = ["label".to_owned()];
    let path = [PathBuf::from("/vcl")];
    let mut options = CompileOptions {
        vcl_path: &path,
        storages: &storages,
        labels: &labels,
        resolver: &Hosts,
        files,
        ..CompileOptions::default()
    };
    change(&mut options);
    vcl::compile(&SourceText { name, text }, &options)
}
