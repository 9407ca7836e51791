//! The worker's life hangs on the manager's: when the manager is gone, killed too, the worker ends at once and lets go of the
//! listening sockets, so that the next manager can open them.
//!
//! Two lines hold it. The control connection closes, which the main thread sees when it gets to it; and the kernel kills this
//! process when its parent dies, however busy or stuck it is. The kernel forgets the second one when a process becomes
//! another user, so it is tied again then. Source: prctl(2), PR_SET_PDEATHSIG.

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};
use tokio::net::UnixStream;

/// Who this worker's manager is.
#[derive(Clone, Copy, Debug)]
pub struct Lifeline {
    manager: Pid,
}

impl Lifeline {
    /// To the process that made the control connection.
    ///
    /// # Errors
    /// When the kernel does not say who that is.
    pub fn of(control: &UnixStream) -> Result<Lifeline, String> {
        let peer = control.peer_cred().map_err(|error| format!("control socket: {error}"))?;
        let manager = peer.pid().ok_or("control socket: nobody made it")?;
        Ok(Lifeline { manager: Pid::from_raw(manager) })
    }

    /// From now on the kernel kills this process when the manager dies.
    ///
    /// # Errors
    /// When the manager is dead already.
    pub fn tie(self) -> Result<(), String> {
        set_pdeathsig(Signal::SIGKILL).map_err(|error| format!("tying the worker to its manager: {error}"))?;
        // Whoever lost its parent before that hears nothing any more.
        if getppid() == self.manager { Ok(()) } else { Err("the manager is gone".to_owned()) }
    }
}
