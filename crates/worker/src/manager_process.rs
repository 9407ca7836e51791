//! The worker's life depends on the manager's: when the manager is gone, even if killed, the worker
//! ends at once and releases the listening sockets, so that the next manager can open them.
//!
//! There are two mechanisms. The control connection closes, which the main thread notices at its
//! next turn; and the kernel kills this process when its parent dies, even if it is busy or stuck.
//! The kernel drops the second mechanism when the process changes its user, so it is set up again
//! then. Source: prctl(2), PR_SET_PDEATHSIG.
//!
//! *Invariant:* the worker ends with the manager.

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};
use tokio::net::UnixStream;

/// Identifies this worker's manager.
#[derive(Clone, Copy, Debug)]
pub struct ManagerProcess {
    manager: Pid,
}

impl ManagerProcess {
    /// The process that created the control connection.
    ///
    /// # Errors
    /// The kernel does not report the manager's process.
    pub fn of(control: &UnixStream) -> Result<ManagerProcess, String> {
        let peer = control.peer_cred().map_err(|error| format!("control socket: {error}"))?;
        let manager = peer.pid().ok_or("control socket: nobody made it")?;
        Ok(ManagerProcess { manager: Pid::from_raw(manager) })
    }

    /// Makes the kernel kill this process when the manager dies.
    ///
    /// # Errors
    /// The manager is already dead.
    pub fn set_death_signal(self) -> Result<(), String> {
        set_pdeathsig(Signal::SIGKILL).map_err(|error| format!("tying the worker to its manager: {error}"))?;
        // If the parent died before that call, the kernel sends no signal.
        if getppid() == self.manager { Ok(()) } else { Err("the manager is gone".to_owned()) }
    }
}
