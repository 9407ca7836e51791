//! The file of a Unix-domain socket: created by binding, removed when its owner is dropped.
//!
//! A path may belong to another program: to one that listens there, to one that took the place
//! while we served, or to a file that is not a socket. None of these is removed, neither to bind
//! nor at the end; only an unanswered socket is replaced. Varnish 7.1 removes any file there,
//! except for a folder. *Invariant:* a file that is removed at the end was created here, or by a
//! predecessor that is gone ([`SocketFile::own`]). As long as the socket is open no other file can
//! have its inode number, so a [`SocketFile`] is dropped before its socket.

use crate::arguments::listen::owner;
use nix::unistd::chown;
use socket2::{Domain, SockAddr, Socket, Type};
use std::cell::Cell;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The file that a socket is bound to; removed when this is dropped, unless something else has
/// taken its place.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    device: u64,
    number: u64,
    is_ours: Cell<bool>,
}

impl SocketFile {
    /// Path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file at a path, whose socket was passed to us. Another process removes it until
    /// [`SocketFile::own`] is called.
    ///
    /// # Errors
    /// The path has no socket.
    pub fn of(path: &Path) -> io::Result<SocketFile> {
        let found = fs::symlink_metadata(path)?;
        if !found.file_type().is_socket() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(SocketFile { path: path.to_owned(), device: found.dev(), number: found.ino(), is_ours: Cell::new(false) })
    }

    /// From now on the file is removed when this value is dropped.
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

/// Binds a socket, with owner, group and permission bits if given. A socket that a dead daemon left
/// behind is removed.
///
/// # Errors
/// `AddrInUse` if the path is taken, with the kind of file there; else the error of the system.
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

/// Kind of file at the path; `None` for an unanswered socket that a dead daemon left behind.
fn occupant(path: &Path, address: &SockAddr) -> Option<&'static str> {
    // If it has disappeared meanwhile, the path is free.
    let kind = fs::symlink_metadata(path).ok()?.file_type();
    if kind.is_socket() {
        return is_answered(address).then_some("another program listens there");
    }
    // These do not answer either, but they are not leftovers.
    Some(match (kind.is_symlink(), kind.is_dir()) {
        (true, _) => "a symbolic link is there",
        (_, true) => "a folder is there",
        _ => "a file that is no socket is there",
    })
}

/// True if a process has the socket open. A refusal because too many connections are waiting counts
/// as an answer.
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
