//! Path of a server's work directory: one rule for servers that create it and tools that look for
//! it.
//!
//! A path is taken as it is; a bare name is in the state directory; no name means the instance
//! `varnishd`. An ordinary user, who cannot write to the system's state directory, has one of their
//! own: `$XDG_RUNTIME_DIR/copal`, else `/tmp/copal-UID`. That user's tools look there first, and
//! then in the system's.

use crate::vsm::MANAGER_DIRECTORY;
use nix::unistd::{AccessFlags, access, geteuid};
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use surface::version::STATE_DIR;

/// The instance without a name.
const DEFAULT_NAME: &str = "varnishd";

/// The requesting user, and the directories of their files.
struct Asker {
    user: u32,
    system: PathBuf,
    /// State directories of an ordinary user, in the order in which they are tried; empty for root.
    own: Vec<PathBuf>,
}

/// The work directory of a server started with this `-n`.
#[must_use]
pub fn of_server(name: Option<&OsStr>) -> PathBuf {
    Asker::this_process().server(name)
}

/// The work directory of the server that `-n` names, for tools that read it.
#[must_use]
pub fn of_reader(name: Option<&OsStr>) -> PathBuf {
    Asker::this_process().reader(name)
}

/// Creates the state directory that holds a work directory, if it is one that this program creates.
///
/// # Errors
/// It cannot be created; or, in a directory that is writable for all users, it belongs to another
/// user.
pub fn prepare(work_directory: &Path) -> io::Result<()> {
    Asker::this_process().prepare(work_directory)
}

impl Asker {
    fn this_process() -> Asker {
        let user = geteuid().as_raw();
        let mut own = Vec::new();
        if user != 0 {
            let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
            let is_ours = |path: &PathBuf| path.is_absolute() && is_of(path, user);
            own.extend(runtime.filter(is_ours).map(|path| path.join("copal")));
            own.push(PathBuf::from(format!("/tmp/copal-{user}")));
        }
        Asker { user, system: PathBuf::from(STATE_DIR), own }
    }

    fn server(&self, name: Option<&OsStr>) -> PathBuf {
        let name = name.filter(|name| !name.is_empty()).unwrap_or(OsStr::new(DEFAULT_NAME));
        let of_system = self.system.join(name);
        let may_write = |path: &Path| access(path, AccessFlags::W_OK).is_ok();
        match self.own.first() {
            Some(own) if !Path::new(name).is_absolute() && !may_write(&of_system) && !may_write(&self.system) => {
                own.join(name)
            }
            _ => of_system,
        }
    }

    fn reader(&self, name: Option<&OsStr>) -> PathBuf {
        let name = name.filter(|name| !name.is_empty()).unwrap_or(OsStr::new(DEFAULT_NAME));
        let is_served = |path: &PathBuf| is_of(path, self.user) && path.join(MANAGER_DIRECTORY).is_dir();
        let own = self.own.iter().map(|state| state.join(name)).find(is_served);
        own.unwrap_or_else(|| self.system.join(name))
    }

    fn prepare(&self, work_directory: &Path) -> io::Result<()> {
        let Some(state) = work_directory.parent() else { return Ok(()) };
        if state == self.system {
            return if state.exists() { Ok(()) } else { fs::create_dir_all(state) };
        }
        if !self.own.iter().any(|own| own == state) {
            return Ok(());
        }
        match DirBuilder::new().mode(0o700).create(state) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            // If another user created it first, they must not be able to read it, or to redirect us
            // with a link.
            _ if !is_of(state, self.user) => Err(io::ErrorKind::PermissionDenied.into()),
            _ => Ok(()),
        }
    }
}

/// True if this is itself a directory (not a link) that belongs to the user and that no other user
/// may write to.
fn is_of(path: &Path, user: u32) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn bare_name_is_in_the_state_directory() {
        let root = Asker { user: 0, system: PathBuf::from(STATE_DIR), own: Vec::new() };
        for (name, expected) in [(None, "varnishd"), (Some(""), "varnishd"), (Some("x"), "x"), (Some("/x/y"), "/x/y")] {
            let expected = Path::new("/var/lib/varnish").join(expected);
            assert_eq!(root.server(name.map(OsStr::new)), expected);
            assert_eq!(root.reader(name.map(OsStr::new)), expected);
        }
    }

    #[test]
    fn an_ordinary_user_has_a_state_directory_that_their_tools_find() {
        let folder = tempfile::tempdir().unwrap();
        let user = geteuid().as_raw();
        let asker =
            Asker { user, system: PathBuf::from("/nonexistent/varnish"), own: vec![folder.path().join("copal")] };
        let place = asker.server(None);
        assert_eq!(place, folder.path().join("copal/varnishd"));
        assert_eq!(asker.reader(None), Path::new("/nonexistent/varnish/varnishd"), "nothing is served here yet");
        asker.prepare(&place).unwrap();
        asker.prepare(&place).unwrap();
        assert_eq!(fs::metadata(folder.path().join("copal")).unwrap().permissions().mode() & 0o777, 0o700);
        fs::create_dir_all(place.join(MANAGER_DIRECTORY)).unwrap();
        assert_eq!(asker.reader(None), place);
        assert_eq!(asker.server(Some(OsStr::new("/x/y"))), Path::new("/x/y"));
    }

    #[test]
    fn directory_of_another_user_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let (state, user) = (folder.path().join("copal"), geteuid().as_raw());
        let asker = |user| Asker { user, system: PathBuf::from("/nonexistent/varnish"), own: vec![state.clone()] };
        fs::create_dir(folder.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), &state).unwrap();
        let place = asker(user).server(None);
        assert!(asker(user).prepare(&place).is_err(), "a link");
        fs::remove_file(&state).unwrap();
        fs::create_dir(&state).unwrap();
        assert!(asker(user + 1).prepare(&place).is_err(), "another owner");
        fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(asker(user).prepare(&place).is_err(), "open to all");
        fs::create_dir_all(place.join(MANAGER_DIRECTORY)).unwrap();
        assert_eq!(asker(user + 1).reader(None), Path::new("/nonexistent/varnish/varnishd"));
    }
}
