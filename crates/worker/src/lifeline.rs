//! The worker's life depends on the manager's: when the manager is gone, even if killed, the worker ends at once and
//! releases the listening sockets, so that the next manager can open them.
//!
//! There are two mechanisms. The control connection closes, which the main thread notices when it gets to it; and the
//! kernel kills this process when its parent dies, however busy or stuck it is. The kernel drops the second one when the
//! process changes its user, so it is set up again then. Source: prctl(2), PR_SET_PDEATHSIG.

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};
use tokio::net::UnixStream;

/// Identifies this worker's manager.
#[derive(Clone, Copy, Debug)]
pub struct Lifeline {
    manager: Pid,
}

impl Lifeline {
    /// The lifeline to the process that created the control connection.
    ///
    /// # Errors
    /// When the kernel does not tell which process that is.
    pub fn of(control: &UnixStream) -> Result<Lifeline, String> {
        let peer = control.peer_cred().map_err(|error| format!("control socket: {error}"))?;
        let manager = peer.pid().ok_or("control socket: nobody made it")?;
        Ok(Lifeline { manager: Pid::from_raw(manager) })
    }

    /// Makes the kernel kill this process when the manager dies.
    ///
    /// # Errors
    /// When the manager is already dead.
    pub fn tie(self) -> Result<(), String> {
        set_pdeathsig(Signal::SIGKILL).map_err(|error| format!("tying the worker to its manager: {error}"))?;
        // If the parent died before that call, the kernel sends no signal.
        if getppid() == self.manager { Ok(()) } else { Err("the manager is gone".to_owned()) }
    }
}
