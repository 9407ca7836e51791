//! Interaction with systemd: sockets passed at the start, readiness, the watchdog.
//!
//! Only a daemon in the foreground (`-F`, as units start it) accepts sockets: they are meant for one process id. Each
//! belongs to the `-a` with its address, and a socket that no `-a` names is a mistake; without any `-a` only the passed
//! ones are listened on. Source: sd_listen_fds(3), sd_notify(3), sd_watchdog_enabled(3).

use net::inheritance::{inherited, take_over};
use sd_notify::NotifyState;
use socket2::Socket;
use std::time::Duration;

/// A socket that systemd opened for us.
#[derive(Debug)]
pub struct PassedSocket {
    /// `FileDescriptorName=` of the socket unit, or the unit's name.
    pub name: String,
    /// The socket.
    pub socket: Socket,
}

/// The sockets passed to this process; call it once, before anything else opens or closes descriptors.
#[must_use]
pub fn passed_sockets() -> Vec<PassedSocket> {
    // Before the library sets `FD_CLOEXEC` on them.
    take_over();
    let Ok(passed) = sd_notify::listen_fds_with_names() else { return Vec::new() };
    passed
        .filter_map(|(descriptor, name)| {
            let socket = Socket::from(inherited(descriptor).ok()?);
            socket.set_nonblocking(true).ok().map(|()| PassedSocket { name, socket })
        })
        .collect()
}

/// Tells systemd that clients are served. Without systemd this function and those below do nothing.
pub fn ready() {
    let pid = NotifyState::MainPid(std::process::id());
    let _ = sd_notify::notify(&[NotifyState::Ready, pid, NotifyState::Status("serving")]);
}

/// Tells systemd that the daemon is about to be followed by another; [`ready`] or [`succeeded_by`] ends that.
pub fn reloading() {
    let status = NotifyState::Status("upgrading");
    let _ = match NotifyState::monotonic_usec_now() {
        Ok(now) => sd_notify::notify(&[NotifyState::Reloading, now, status]),
        Err(_) => sd_notify::notify(&[NotifyState::Reloading, status]),
    };
}

/// Tells systemd which process is the daemon from now on. It believes the present one only (`NotifyAccess=main`).
pub fn succeeded_by(process: u32) {
    let _ = sd_notify::notify(&[NotifyState::MainPid(process), NotifyState::Ready, NotifyState::Status("serving")]);
}

/// Tells systemd that no worker is serving, and why.
pub fn waiting(why: &str) {
    let _ = sd_notify::notify(&[NotifyState::Status(why)]);
}

/// Tells systemd that the end has begun, and how long it may take, which may be longer than systemd's own timeout.
pub fn stopping(at_most: Duration) {
    let microseconds = u32::try_from(at_most.as_micros()).unwrap_or(u32::MAX);
    let status = NotifyState::Status("stopping: requests in flight come to their end");
    let _ = sd_notify::notify(&[NotifyState::Stopping, NotifyState::ExtendTimeoutUsec(microseconds), status]);
}

/// How often the watchdog needs a sign of life: half of its timeout. `None` = there is no watchdog.
#[must_use]
pub fn watchdog_interval() -> Option<Duration> {
    Some(sd_notify::watchdog_enabled()? / 2)
}

/// Gives the watchdog a sign of life.
pub fn alive() {
    let _ = sd_notify::notify(&[NotifyState::Watchdog]);
}
