//! Start by a manager: its command line and its sockets.
//!
//! ```text
//! copal observe --inherited <work directory> <user>:<group>|- sandbox|- [--access-log <log>]… [--otlp <url>]
//! ```
//! Standard input is a Unix-domain socket, over which the listening sockets come in one message of
//! one byte (unix(7), SCM_RIGHTS). Its other end belongs to the manager alone: when it is closed,
//! the manager is gone and this process ends. Before anything is read from a client, this process
//! becomes another user and enters the sandbox.

use crate::dash::Socket;
use crate::listener::Listener;
use crate::service::{DashPort, Plan};
use nix::sys::prctl;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use sandbox::{Access, Grants, confine};
use std::ffi::OsString;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use surface::limits::OBSERVE_SOCKETS_MAX;
pub(crate) use surface::option::OBSERVE_INHERITED as MARK;

/// Serves until the manager is gone.
///
/// # Errors
/// Serving is impossible, with the reason.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), String> {
    let start = Start::parse(arguments).ok_or("copal observe: only the server starts it so")?;
    let _ = prctl::set_name(c"copal-observe");
    let stdin = io::stdin();
    let sockets = receive(stdin.as_fd()).map_err(|error| format!("no sockets came: {error}"))?;
    let (sockets, dash) = divided(sockets, start.plan.dash.sockets).ok_or("there are too few sockets")?;
    let inherit = |sockets: Vec<OwnedFd>| {
        let listeners = sockets.into_iter().map(Listener::inherit).collect::<io::Result<Vec<_>>>();
        listeners.map_err(|error| format!("a socket is of no use: {error}"))
    };
    let listeners = inherit(sockets)?;
    let dash = match dash {
        None => None,
        Some((sockets, orders)) => {
            let operator = Box::new(Socket::new(UnixStream::from(orders)));
            Some(DashPort { listeners: inherit(sockets)?, operator })
        }
    };
    let prepared = start.plan.prepare()?;
    let (writable, readable) = (start.plan.writable(), start.plan.readable());
    let ports = start.plan.ports();
    let grants = Grants { writable: &writable, readable: &readable, ports: &ports };
    let sandbox = confine(&start.work_directory, start.run_as, start.is_sandboxed, Access::Read(grants))?;
    for remark in sandbox.remarks {
        eprintln!("sandbox: {remark}");
    }
    prepared.run(&start.work_directory, &listeners, dash, Some(stdin.as_fd()))
}

/// The sockets for metrics, and those of the dashboard with the one to the manager: the last ones.
type Divided = (Vec<OwnedFd>, Option<(Vec<OwnedFd>, OwnedFd)>);

/// Divides the sockets, of which `dash` are for the dashboard. `None` if they are too few.
fn divided(mut sockets: Vec<OwnedFd>, dash: usize) -> Option<Divided> {
    if dash == 0 {
        return Some((sockets, None));
    }
    let orders = sockets.pop()?;
    let of_dash = sockets.split_off(sockets.len().checked_sub(dash)?);
    Some((sockets, Some((of_dash, orders))))
}

/// The command line.
#[derive(PartialEq, Debug)]
struct Start {
    work_directory: PathBuf,
    run_as: Option<(u32, u32)>,
    is_sandboxed: bool,
    plan: Plan,
}

impl Start {
    fn parse(arguments: &[OsString]) -> Option<Start> {
        let [directory, run_as, sandbox, options @ ..] = arguments else { return None };
        let run_as = match run_as.to_str()? {
            "-" => None,
            ids => {
                let (user, group) = ids.split_once(':')?;
                Some((user.parse().ok()?, group.parse().ok()?))
            }
        };
        let is_sandboxed = match sandbox.to_str()? {
            "-" => false,
            "sandbox" => true,
            _ => return None,
        };
        let mut plan = Plan::default();
        for pair in options.chunks(2) {
            let [option, value] = pair else { return None };
            let is_known = plan.take(option.to_str()?.strip_prefix("--")?, || Ok(value.clone())).ok()?;
            is_known.then_some(())?;
        }
        Some(Start { work_directory: Path::new(directory).to_owned(), run_as, is_sandboxed, plan })
    }
}

fn receive(stream: BorrowedFd<'_>) -> io::Result<Vec<OwnedFd>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(OBSERVE_SOCKETS_MAX + 1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    loop {
        match recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(message) if message.bytes == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => break,
        }
    }
    let mut sockets = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            sockets.extend(descriptors);
        }
    }
    Ok(sockets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_of_a_manager_is_complete_or_refused() {
        let parse = |line: &[&str]| Start::parse(&line.iter().map(OsString::from).collect::<Vec<_>>());
        let start = |run_as, is_sandboxed| {
            Some(Start { work_directory: ".".into(), run_as, is_sandboxed, plan: Plan::default() })
        };
        assert_eq!(parse(&[".", "102:105", "sandbox"]), start(Some((102, 105)), true));
        assert_eq!(parse(&[".", "-", "-"]), start(None, false));
        let with_log = parse(&[".", "-", "-", "--access-log", "stdout"]).unwrap();
        assert_eq!(with_log.plan.access_logs.len(), 1);
        assert_eq!(parse(&[".", "-", "-", "--access-log"]), None);
        for wrong in [&[][..], &["."], &[".", "-"], &[".", "a:b", "-"], &[".", "1", "-"], &[".", "-", "x"]] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }
}
