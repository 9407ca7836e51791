//! Tests of the compiler as a whole: its messages (`messages`), the effects of its programs
//! (`programs`), its limits (`limits`), usual requests (`usual`), the old dialects (`legacy`), and
//! texts without a version or a backend (`without_version`).

mod backend_tls;
mod formats;
mod legacy;
mod limits;
mod messages;
mod migrations;
mod programs;
mod usual;
mod without_version;

use crate::{CompileError, CompileOptions, Compiled, FileKind, ReadFile, Resolve, SourceText, compile};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The beginning of most tests' source, as its first line.
const HEAD: &str = "vcl 4.1; backend b { .host = \"192.0.2.1\"; }\n";

/// Files by path.
#[derive(Default)]
struct Files(BTreeMap<&'static str, &'static str>);

impl ReadFile for Files {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
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

struct Hosts;

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

fn compile_with(
    text: &[u8],
    files: &Files,
    change: impl FnOnce(&mut CompileOptions),
) -> Result<Compiled, CompileError> {
    let storages = ["s0".to_owned(), "Transient".to_owned()];
    let labels = ["label1".to_owned()];
    let path = [PathBuf::from("/etc/vcl")];
    let mut options = CompileOptions {
        vcl_path: &path,
        storages: &storages,
        labels: &labels,
        resolver: &Hosts,
        files,
        ..CompileOptions::default()
    };
    change(&mut options);
    compile(&SourceText { name: "/etc/vcl/test.vcl", text }, &options)
}

/// Compiles a text with the usual head.
fn compiled(text: &str) -> Result<Compiled, CompileError> {
    compile_with(format!("{HEAD}{text}").as_bytes(), &Files::default(), |_| {})
}
