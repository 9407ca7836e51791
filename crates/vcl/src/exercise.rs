//! The entry of the fuzz target: arbitrary bytes through the compiler, with no files and no name server around it.
//!
//! A violated promise panics, which is what a fuzzer looks for; nothing else calls this.

use crate::{CompileOptions, FileKind, ReadFile, Resolve, SourceText, compile};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use vcl_run::link::LinkedProgram;

/// Every include finds the same small text; deeper ones find nothing, so that includes end.
struct OneFile;

impl ReadFile for OneFile {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path.ends_with("other.vcl") {
            return Ok(b"sub vcl_deliver { set resp.http.x = \"y\"; }\n".to_vec());
        }
        Err(io::ErrorKind::NotFound.into())
    }

    fn glob(&self, _pattern: &str) -> io::Result<Vec<PathBuf>> {
        Ok(vec![PathBuf::from("other.vcl")])
    }

    fn kind(&self, _path: &Path) -> io::Result<FileKind> {
        Ok(FileKind::Socket)
    }
}

struct OneHost;

impl Resolve for OneHost {
    fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        if host == "localhost" { Ok(vec![Ipv4Addr::LOCALHOST.into()]) } else { Err("no such host".to_owned()) }
    }

    fn port(&self, service: &str) -> Option<u16> {
        (service == "http").then_some(80)
    }
}

/// Compiles `bytes`.
///
/// # Panics
/// When a text is refused without a message, or accepted and then not fit to run.
pub fn exercise(bytes: &[u8]) {
    let source = SourceText { name: "fuzz", text: bytes };
    let storages = ["s0".to_owned(), "Transient".to_owned()];
    let options = CompileOptions {
        err_unref: false,
        storages: &storages,
        labels: &["label".to_owned()],
        resolver: &OneHost,
        files: &OneFile,
        ..CompileOptions::default()
    };
    match compile(&source, &options) {
        Ok(compiled) => {
            if let Err(error) = LinkedProgram::link(compiled.program) {
                panic!("an accepted program does not link: {error}");
            }
        }
        Err(error) => assert!(!error.text.is_empty(), "a refusal has a message"),
    }
}
