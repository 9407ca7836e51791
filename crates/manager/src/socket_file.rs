//! The file of a Unix-domain socket: created by binding, removed when its owner is dropped.
//!
//! A path may belong to somebody else: to a program that listens there, to one that took the place while we served, or
//! to a file that is not a socket. None of these is removed, neither to bind nor at the end; only a socket that nobody
//! answers is replaced. Varnish 7.1 removes whatever is there, except for a folder. *Invariant:* what is removed at the
//! end is what was created here, or by a predecessor that is gone ([`SocketFile::own`]). As long as the socket is open no other file can have its inode number, so a
//! [`SocketFile`] is dropped before its socket.

use crate::arguments::listen::owner;
use nix::unistd::chown;
use socket2::{Domain, SockAddr, Socket, Type};
use std::cell::Cell;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The file that a socket is bound to; removed when this is dropped, unless something else has taken its place.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    device: u64,
    number: u64,
    is_ours: Cell<bool>,
}

impl SocketFile {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that is at a path, whose socket was handed to us. Another process removes it until it is told to be ours.
    ///
    /// # Errors
    /// There is no socket.
    pub fn of(path: &Path) -> io::Result<SocketFile> {
        let found = fs::symlink_metadata(path)?;
        if !found.file_type().is_socket() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(SocketFile { path: path.to_owned(), device: found.dev(), number: found.ino(), is_ours: Cell::new(false) })
    }

    /// From now on the file is removed with this value.
    pub fn own(&self) {
        self.is_ours.set(true);
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_there = self.is_ours.get()
            && fs::symlink_metadata(&self.path)
                .is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.number));
        if is_there {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Binds a socket, with owner, group and permission bits if given. A socket that a dead daemon left behind is removed.
///
/// # Errors
/// `AddrInUse` when somebody has the path, saying what is there; else whatever the system reports.
pub(crate) fn bind(
    path: &Path,
    user: Option<u32>,
    group: Option<u32>,
    mode: Option<u32>,
) -> io::Result<(SocketFile, Socket)> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    let address = SockAddr::unix(path)?;
    if let Err(error) = socket.bind(&address) {
        if error.kind() != io::ErrorKind::AddrInUse {
            return Err(error);
        }
        if let Some(whose) = occupant(path, &address) {
            let text = format!("{}: {whose}", nix::errno::Errno::EADDRINUSE.desc());
            return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
        }
        fs::remove_file(path)?;
        socket.bind(&address)?;
    }
    let file = SocketFile::of(path)?;
    file.own();
    if user.is_some() || group.is_some() {
        let (user, group) = owner(user, group);
        chown(path, user, group)?;
    }
    if let Some(mode) = mode {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    }
    Ok((file, socket))
}

/// What is at the path; `None` when it is a socket that nobody answers, left behind by a dead daemon.
fn occupant(path: &Path, address: &SockAddr) -> Option<&'static str> {
    // If it has gone meanwhile, nobody has it.
    let kind = fs::symlink_metadata(path).ok()?.file_type();
    if kind.is_socket() {
        return is_answered(address).then_some("another program listens there");
    }
    // Nobody answers at these either, but they belong to somebody.
    Some(match (kind.is_symlink(), kind.is_dir()) {
        (true, _) => "a symbolic link is there",
        (_, true) => "a folder is there",
        _ => "a file that is no socket is there",
    })
}

/// Whether somebody has the socket open. A refusal because too many connections are waiting counts as an answer.
fn is_answered(address: &SockAddr) -> bool {
    let Ok(probe) = Socket::new(Domain::UNIX, Type::STREAM, None) else { return true };
    let _ = probe.set_nonblocking(true);
    !probe.connect(address).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

    fn refused(path: &Path) -> String {
        let error = bind(path, None, None, None).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        error.to_string()
    }

    #[test]
    fn socket_left_behind_gives_way_and_nothing_else_does() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        drop(UnixListener::bind(path("left")).unwrap());
        assert!(bind(&path("left"), None, None, None).is_ok());

        let live = UnixListener::bind(path("live")).unwrap();
        assert_eq!(refused(&path("live")), "Address already in use: another program listens there");
        assert!(UnixStream::connect(path("live")).is_ok(), "its owner still has it");
        drop(live);
        let _other = UnixDatagram::bind(path("other")).unwrap();
        assert_eq!(refused(&path("other")), "Address already in use: another program listens there");

        fs::write(path("file"), "mine").unwrap();
        assert_eq!(refused(&path("file")), "Address already in use: a file that is no socket is there");
        assert_eq!(fs::read_to_string(path("file")).unwrap(), "mine");
        fs::create_dir(path("folder")).unwrap();
        assert_eq!(refused(&path("folder")), "Address already in use: a folder is there");
        std::os::unix::fs::symlink(path("nowhere"), path("link")).unwrap();
        assert_eq!(refused(&path("link")), "Address already in use: a symbolic link is there");
        assert!(fs::symlink_metadata(path("link")).is_ok() && fs::symlink_metadata(path("nowhere")).is_err());
    }

    #[test]
    fn file_is_removed_at_the_end_unless_another_has_come_into_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let (file, socket) = bind(&path, None, None, None).unwrap();
        drop((file, socket));
        assert!(!path.exists());

        let (file, socket) = bind(&path, None, None, None).unwrap();
        fs::remove_file(&path).unwrap();
        let successor = UnixListener::bind(&path).unwrap();
        drop((file, socket));
        assert!(UnixStream::connect(&path).is_ok());
        drop(successor);
    }
}
