//! File access with the rights of the jail's user, since root's would reveal too much.
//!
//! Users who may load VCL must not be able to read root's files through it: not as VCL, not as an
//! include, not in a line that a message quotes, not by the difference between "no such file" and
//! "permission denied". So all code that follows a name given in VCL or on the CLI runs in
//! [`with`].
//!
//! The kernel keeps rights for each thread (the C library hides this by changing all of them at
//! once): a separate thread takes the user's rights and ends with them, while the others stay root.
//! Only the effective ids are changed, so that only root may signal or trace it. Compat: Varnish
//! reads `-f`, `vcl.load` and includes in this way; `-I` and `-S` are read as root.
//!
//! *Invariant:* files named in VCL or on the CLI are read with the rights of the jail's user, on a
//! separate thread.

use crate::arguments::jail::Reader;
use rustix::process::{Gid, Uid};
use rustix::thread::{self, CapabilitySet, CapabilitySets};
use std::fs::File;
use std::io;
use std::path::Path;
use std::thread::Builder;

/// Stack of the thread, in bytes: the size of a main thread's, since the compiler runs there.
const STACK_BYTES: usize = 8 << 20;

/// Runs `work` with the rights of `reader`; with our own if there is none.
///
/// # Errors
/// The rights could not be changed; then nothing was done.
pub fn with<T: Send>(reader: Option<&Reader>, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let Some(reader) = reader else { return Ok(work()) };
    std::thread::scope(|scope| {
        let limited = move || take(reader).map(|()| work());
        let thread = Builder::new().name("reader".to_owned()).stack_size(STACK_BYTES).spawn_scoped(scope, limited)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Starts a detached thread with the rights of `reader`, or with our own if it is `None`. Threads
/// that it starts have its rights. If the rights cannot be changed, `work` is dropped.
///
/// # Errors
/// The thread could not be started.
pub fn spawn(reader: Option<Reader>, name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let limited = move || match reader.as_ref().map(take) {
        None | Some(Ok(())) => work(),
        Some(Err(_)) => drop(work),
    };
    Builder::new().name(name.to_owned()).spawn(limited).map(drop)
}

/// True if a user may read a file.
#[must_use]
pub fn may_read(reader: &Reader, path: &Path) -> bool {
    with(Some(reader), || File::open(path).is_ok()).unwrap_or(false)
}

/// Gives this thread the rights of a user. The order matters: once it is not root any more it may
/// not change the rest.
fn take(reader: &Reader) -> io::Result<()> {
    let groups: Vec<Gid> = reader.groups.iter().copied().map(Gid::from_raw).collect();
    thread::set_thread_groups(&groups)?;
    thread::set_thread_res_gid(None::<Gid>, Gid::from_raw(reader.group), None::<Gid>)?;
    thread::set_thread_res_uid(None::<Uid>, Uid::from_raw(reader.user), None::<Uid>)?;
    if reader.user != 0 {
        // Capabilities are dropped with the user's id, unless our starter keeps them (securebits of
        // a unit).
        let sets = thread::capabilities(None)?;
        thread::set_capabilities(None, CapabilitySets { effective: CapabilitySet::empty(), ..sets })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::sync::mpsc::channel;

    #[test]
    fn files_of_root_are_closed_to_the_reader_thread_only() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: needs root");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let file = |name: &str, mode: u32| {
            let path = folder.path().join(name);
            fs::write(&path, name).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            path
        };
        let (private, public) = (file("private", 0o600), file("public", 0o644));
        let reader = Reader { user: 65_534, group: 65_534, groups: vec![65_533] };
        let (ask, asked) = channel::<()>();
        let (answer, answered) = channel();
        let of_root = private.clone();
        let other = std::thread::spawn(move || asked.recv().map(|()| answer.send(fs::read(of_root))));
        let (theirs, shared, status, ours) = with(Some(&reader), move || {
            let status = fs::read_to_string("/proc/thread-self/status").unwrap();
            // Shows the rights of another thread of the process, while this one has other rights.
            ask.send(()).unwrap();
            (fs::read(private), fs::read(public), status, answered.recv().unwrap())
        })
        .unwrap();
        other.join().unwrap().unwrap().unwrap();
        assert_eq!(theirs.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(shared.unwrap(), b"public");
        assert_eq!(ours.unwrap(), b"private");
        let line = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(line("CapEff:"), ["0000000000000000"]);
        assert_eq!(line("Groups:"), ["65533"]);
        assert_eq!((line("Uid:")[1].as_str(), line("Uid:")[3].as_str()), ("65534", "65534"));
        // Real and saved ids are root's, so that no process of that user may signal or trace the
        // thread.
        assert_eq!((line("Uid:")[0].as_str(), line("Uid:")[2].as_str()), ("0", "0"));
    }

    #[test]
    fn a_thread_of_its_own_and_what_it_starts_have_the_rights_of_the_reader() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: needs root");
            return;
        }
        let reader = Reader { user: 65_534, group: 65_534, groups: Vec::new() };
        let (answer, answered) = channel();
        spawn(Some(reader), "limited", move || {
            let status = || fs::read_to_string("/proc/thread-self/status").unwrap();
            let below = std::thread::spawn(status).join().unwrap();
            answer.send([status(), below]).unwrap();
        })
        .unwrap();
        for status in answered.recv().unwrap() {
            let user = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
            assert_eq!(user.split_whitespace().nth(2), Some("65534"), "{user}");
            assert!(status.contains("CapEff:\t0000000000000000"));
        }
    }

    #[test]
    fn without_a_reader_the_work_is_done_here() {
        let here = std::thread::current().id();
        assert_eq!(with(None, || std::thread::current().id()).unwrap(), here);
    }
}
