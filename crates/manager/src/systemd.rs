//! Interaction with systemd: sockets and memory files passed at the start, readiness, the watchdog,
//! the file descriptor store.
//!
//! Only a daemon in the foreground (`-F`, as units start it) accepts sockets: they are meant for
//! one process id. Each belongs to the `-a` with its address, and a socket that no `-a` names is a
//! mistake; without any `-a` only the passed ones are listened on. Source: sd_listen_fds(3),
//! sd_notify(3), sd_watchdog_enabled(3).

use crate::handover::passing::send_group;
use control::inheritance::{inherited, take_over};
use nix::libc;
use nix::sys::stat::fstat;
use sd_notify::NotifyState;
use socket2::Socket;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Prefix of the names under which systemd keeps our files.
pub const KEPT_PREFIX: &str = "copal-";

/// A socket that systemd opened for us.
#[derive(Debug)]
pub struct PassedSocket {
    /// `FileDescriptorName=` of the socket unit, or the unit's name.
    pub name: String,
    /// The socket.
    pub socket: Socket,
}

/// Descriptors that were passed to this process.
#[derive(Debug, Default)]
pub struct Passed {
    /// Sockets of a socket unit.
    pub sockets: Vec<PassedSocket>,
    /// Stored descriptors, with the names that we gave.
    pub kept: Vec<(String, OwnedFd)>,
}

/// The descriptors that were passed to this process; call it once, before anything else opens or
/// closes descriptors.
#[must_use]
pub fn passed() -> Passed {
    // Before the library sets `FD_CLOEXEC` on them.
    take_over();
    let Ok(all) = sd_notify::listen_fds_with_names() else { return Passed::default() };
    let mut passed = Passed::default();
    for (number, name) in all {
        let Ok(descriptor) = inherited(number) else { continue };
        let is_socket = fstat(&descriptor).is_ok_and(|found| found.st_mode & libc::S_IFMT == libc::S_IFSOCK);
        if name.starts_with(KEPT_PREFIX) && !is_socket {
            passed.kept.push((name, descriptor));
            continue;
        }
        let socket = Socket::from(descriptor);
        if socket.set_nonblocking(true).is_ok() {
            passed.sockets.push(PassedSocket { name, socket });
        }
    }
    passed
}

/// Makes systemd keep a descriptor, which it passes to the next process of this unit. Without
/// systemd this function and those below do nothing.
///
/// # Errors
/// systemd cannot be reached.
pub fn keep(name: &str, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let Some(socket) = connected()? else { return Ok(()) };
    send_group(&socket, format!("FDSTORE=1\nFDNAME={name}\n").as_bytes(), &[descriptor])
}

/// Makes systemd drop the descriptors that it keeps under that name.
///
/// # Errors
/// systemd cannot be reached.
pub fn forget(name: &str) -> io::Result<()> {
    let Some(socket) = connected()? else { return Ok(()) };
    socket.send(format!("FDSTOREREMOVE=1\nFDNAME={name}\n").as_bytes()).map(drop)
}

/// The socket on which systemd listens; the library for the other messages cannot send descriptors.
fn connected() -> io::Result<Option<UnixDatagram>> {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return Ok(None) };
    let socket = UnixDatagram::unbound()?;
    match path.as_bytes() {
        [b'@', name @ ..] => socket.connect_addr(&SocketAddr::from_abstract_name(name)?)?,
        _ => socket.connect(&path)?,
    }
    Ok(Some(socket))
}

/// Notifies systemd that clients are served.
pub fn ready() {
    let pid = NotifyState::MainPid(std::process::id());
    let _ = sd_notify::notify(&[NotifyState::Ready, pid, NotifyState::Status("serving")]);
}

/// Notifies systemd that the daemon is about to be replaced; [`ready`] or [`succeeded_by`] ends
/// that.
pub fn reloading() {
    let status = NotifyState::Status("upgrading");
    let _ = match NotifyState::monotonic_usec_now() {
        Ok(now) => sd_notify::notify(&[NotifyState::Reloading, now, status]),
        Err(_) => sd_notify::notify(&[NotifyState::Reloading, status]),
    };
}

/// Notifies systemd of the daemon's next main process. It accepts this from the present one only
/// (`NotifyAccess=main`).
pub fn succeeded_by(process: u32) {
    let _ = sd_notify::notify(&[NotifyState::MainPid(process), NotifyState::Ready, NotifyState::Status("serving")]);
}

/// Notifies systemd that the start continues, and of the longest time until the next such message
/// or [`ready`]. The start may then take longer than `TimeoutStartSec=`.
pub fn starting(at_most: Duration) {
    let _ = sd_notify::notify(&[NotifyState::ExtendTimeoutUsec(microseconds(at_most))]);
}

/// Notifies systemd that no worker is serving, with the reason.
pub fn waiting(why: &str) {
    let _ = sd_notify::notify(&[NotifyState::Status(why)]);
}

/// Notifies systemd that the end has begun, and of its longest time, which may exceed systemd's own
/// timeout.
pub fn stopping(at_most: Duration) {
    let status = NotifyState::Status("stopping: requests in flight come to their end");
    let _ = sd_notify::notify(&[NotifyState::Stopping, NotifyState::ExtendTimeoutUsec(microseconds(at_most)), status]);
}

fn microseconds(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

/// Interval between signs of life for the watchdog: half of its timeout. `None` = there is no
/// watchdog.
#[must_use]
pub fn watchdog_interval() -> Option<Duration> {
    Some(sd_notify::watchdog_enabled()? / 2)
}

/// Gives the watchdog a sign of life.
pub fn alive() {
    let _ = sd_notify::notify(&[NotifyState::Watchdog]);
}
