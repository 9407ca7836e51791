//! The manager that is replaced: [`begin`], for SIGUSR2 and the command `upgrade`.

use super::document::Document;
use super::talk::{Said, Told, hear};
use super::{DESCRIPTOR, MARK, leave, passing};
use crate::arguments::Mode;
use crate::background;
use crate::life;
use crate::report::Level;
use crate::state::{ChildState, Manager};
use crate::systemd;
use command_fds::{CommandFdExt, FdMapping};
use control::messages;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::Stdio;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::task::{spawn_blocking, spawn_local};

/// Time limit for writing the answer to the command before this process ends.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

/// Begins an upgrade. The receiver gets the successor's process number, or the reason why there is
/// none; this process ends when the answer made from it is written. If the receiver is dropped, it
/// ends at once.
pub fn begin(manager: &Rc<Manager>) -> oneshot::Receiver<Result<u32, String>> {
    let (answer, answered) = oneshot::channel();
    let manager = manager.clone();
    // A task of its own: it must not end because the client of the command does.
    spawn_local(async move {
        // Held until the end: a task that waits for it must not touch sockets that have another
        // owner by then.
        let _changes = manager.changes.lock().await;
        let result = upgrade(&manager).await;
        let is_done = result.is_ok();
        let is_wanted = answer.send(result).is_ok();
        if is_done {
            if is_wanted {
                let _ = tokio::time::timeout(ANSWER_PATIENCE, manager.upgrade_answered.notified()).await;
            }
            leave(0);
        }
    });
    answered
}

/// The caller must hold `changes`.
async fn upgrade(manager: &Rc<Manager>) -> Result<u32, String> {
    let result = match obstacle(manager) {
        Some(why) => Err(why),
        None => {
            let path = manager.program.path().display();
            manager.say(Level::Info, format!("Upgrade: starting {path}"));
            systemd::reloading();
            let result = hand_over(manager).await;
            manager.successor.set(None);
            if result.is_err() {
                systemd::ready();
            }
            result
        }
    };
    match &result {
        Ok(successor) => {
            systemd::succeeded_by(*successor);
            manager.say(Level::Info, format!("Upgrade: process {successor} goes on"));
        }
        Err(why) => manager.say(Level::Error, format!("Upgrade failed, and this process goes on: {why}")),
    }
    result
}

/// The reason why an upgrade is not possible now.
fn obstacle(manager: &Manager) -> Option<String> {
    if manager.is_debug_mode() {
        return Some("with -d the CLI is on standard input, which cannot be handed over".to_owned());
    }
    if std::process::id() == 1 {
        return Some("as process 1 (of a container) the daemon cannot be followed by another".to_owned());
    }
    if manager.ending.get() {
        return Some("the daemon is ending".to_owned());
    }
    match manager.state.get() {
        ChildState::Running | ChildState::Stopped => None,
        state => Some(format!("the worker is in state {}", state.word())),
    }
}

async fn hand_over(manager: &Rc<Manager>) -> Result<u32, String> {
    let (ours, theirs) = StdUnixStream::pair().map_err(|error| error.to_string())?;
    let mut child = start(manager, theirs)?;
    let pid = child.id().unwrap_or(0);
    manager.successor.set(Some(pid));
    let was_running = manager.state.get() == ChildState::Running;
    let Err(why) = converse(manager, ours).await else { return Ok(pid) };
    // End it, whatever it is doing.
    let _ = child.start_kill();
    let ended = child.wait().await;
    let why = match (why, ended) {
        (Failure::Said(text), _) => text,
        (Failure::Gone(when), Ok(status)) => format!("the new program ended {when} ({status})"),
        (Failure::Gone(when), Err(_)) => format!("the new program ended {when}"),
    };
    if let Err(error) = manager.directory.borrow().step_back() {
        manager.say(Level::Error, format!("The work directory could not be taken back: {error}"));
    }
    if was_running && manager.state.get() != ChildState::Running {
        life::resume(manager).await;
    }
    Err(why)
}

/// Starts the present program file.
fn start(manager: &Manager, theirs: StdUnixStream) -> Result<Child, String> {
    let marks: &[&str] = match manager.arguments.mode {
        Mode::Background => &[MARK, background::MARK],
        _ => &[MARK],
    };
    let mut command = manager.program.command(marks);
    let failed = |error: String| format!("{}: {error}", manager.program.path().display());
    // Variables that identify this process to its starter do not identify the next one.
    for name in ["WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
        .fd_mappings(vec![FdMapping { parent_fd: theirs.into(), child_fd: DESCRIPTOR }])
        .map_err(|error| failed(error.to_string()))?;
    Command::from(command).spawn().map_err(|error| failed(crate::arguments::reason(&error)))
}

/// Cause of a successor's failure to serve.
enum Failure {
    /// It sent this reason.
    Said(String),
    /// It ended, in this phase.
    Gone(&'static str),
}

impl From<String> for Failure {
    fn from(text: String) -> Failure {
        Failure::Said(text)
    }
}

async fn converse(manager: &Rc<Manager>, ours: StdUnixStream) -> Result<(), Failure> {
    let patience = manager.reply_timeout();
    let (document, descriptors) = Document::of(manager).map_err(|error| error.to_string())?;
    let bytes = serde_json::to_vec(&document).map_err(|error| error.to_string())?;
    let sending = spawn_blocking(move || {
        let sent = ours.set_write_timeout(Some(patience)).and_then(|()| passing::send(&ours, &bytes, &descriptors));
        let ready = ours.set_write_timeout(None).and_then(|()| ours.set_nonblocking(true));
        (ours, sent.and(ready))
    });
    let (ours, sent) = sending.await.map_err(|error| error.to_string())?;
    ours.set_nonblocking(true).map_err(|error| error.to_string())?;
    let mut stream = UnixStream::from_std(ours).map_err(|error| error.to_string())?;
    // Also if it refused the document: it may have sent the reason.
    match hear(&mut stream, patience).await? {
        Some(Said::Ready) => sent.map_err(|error| error.to_string())?,
        Some(Said::Failed(why)) => return Err(Failure::Said(why)),
        Some(said @ (Said::Serving | Said::Working)) => {
            return Err(Failure::Said(format!("it says {said:?} too early")));
        }
        None => return Err(Failure::Gone("before it was ready")),
    }
    life::rest(manager).await;
    if messages::send(&mut stream, &Told::Go).await.is_err() {
        return Err(Failure::Gone("when its turn came"));
    }
    // It has its own limits for a worker without progress; a large cache takes time.
    loop {
        match hear(&mut stream, patience).await? {
            Some(Said::Working) => {}
            Some(Said::Serving) => return Ok(()),
            Some(Said::Failed(why)) => return Err(Failure::Said(why)),
            Some(Said::Ready) => return Err(Failure::Said("it says Ready twice".to_owned())),
            None => return Err(Failure::Gone("before it served")),
        }
    }
}
