//! `copal fleet-agent`: connects a [`fleet::Node`] to NATS, to its disk and to the manager.
//!
//! ```text
//! manager ──link (standard input)──▶ link ─┐                  ┌─▶ disk: thread of the Keeper
//! servers ──subjects─▶ session ────────────┼─▶ agent: Node ───┼─▶ session: publish, send, ask
//!         ──stream───▶ consumer ───────────┘                  └─▶ link: Apply, Serve, Answer, Say
//! ```
//!
//! A process of its own, without rights and in a sandbox: the code that parses NATS is neither in
//! the manager nor in the worker, and its end harms no request. The manager starts it again.
//!
//! *Invariants*: all queues are bounded. While the disk, the manager or the machine is behind,
//! nothing more is read from the stream, and messages that are not stored are dropped: `fleet`
//! repairs both. One thread runs the machine and the connection; writes and reads of the disk, and
//! the link, have threads of their own.
//!
//! Reading order: `start` (command line) → `trust` (credentials, TLS) → `agent` (the loop) →
//! `transport` (connections, one after another) → `session` (one connection) → `stream` → `disk` →
//! `link` → `lines` (texts for the operator).

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod agent;
mod disk;
mod lines;
mod link;
mod queue;
mod session;
mod start;
mod stream;
mod transport;
mod trust;

use nix::sys::prctl;
use sandbox::{Access, Grants, confine};
use start::Start;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use trust::Trust;

/// `copal fleet-agent`: runs until the manager is gone; returns the exit status: 0 the manager is
/// gone, 1 it cannot run, 2 the command line is wrong. Only the server starts it.
#[must_use]
pub fn run(arguments: &[OsString]) -> i32 {
    let start = match Start::parse(arguments) {
        Ok(start) => start,
        Err(error) => {
            eprintln!("copal fleet-agent: only the server starts this: {error}");
            return 2;
        }
    };
    match serve(start) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{error}");
            1
        }
    }
}

fn serve(start: Start) -> Result<(), String> {
    let _ = prctl::set_name(c"copal-fleet");
    let descriptor = io::stdin().as_fd().try_clone_to_owned().map_err(|error| format!("standard input: {error}"))?;
    let socket = UnixStream::from(descriptor);
    let trust = Trust::read(&start)?;
    let writable = [start.folder.clone()];
    let readable: Vec<_> = start::READABLE.iter().map(|path| Path::new(path).to_owned()).collect();
    let ports = start.ports();
    let grants = Grants { writable: &writable, readable: &readable, ports: &ports };
    let sandbox = confine(&start.folder, start.run_as, start.is_sandboxed, Access::Read(grants))?;
    for remark in sandbox.remarks {
        eprintln!("sandbox: {remark}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no event loop: {error}"))?;
    let end = tokio::task::LocalSet::new().block_on(&runtime, agent::run(start, trust, socket));
    // A look-up of a name may take long, and nothing depends on its end.
    runtime.shutdown_background();
    end
}
