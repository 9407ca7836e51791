//! `copal fleet-agent` as a process of this daemon: its start, its messages, its end.
//!
//! *Invariant:* it ends with this process, which alone holds the other end of its standard input. A
//! message that is not one ends it; it is started again after a pause.

use super::{FOLDER, Fleet, settings};
use crate::arguments::jail::Jail;
use crate::arguments::reason;
use crate::life::report_output;
use crate::report::Level;
use crate::state::Manager;
use fleet::NodeId;
use fleet::link::{self, ToAgent, ToManager};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::rc::Rc;
use std::time::{Duration, Instant};
use surface::limits::{FLEET_APPLIES_MAX, FLEET_LINK_BYTES_MAX};
use surface::option::{FLEET_AGENT, OBSERVE_INHERITED};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::spawn_local;

/// First and longest pause before the process is started again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// A process that lived longer than this had no trouble at its start.
const LONG_LIFE: Duration = Duration::from_secs(60);
/// Most messages to the agent that it has not read; half of it for commands.
const MESSAGES_MAX: usize = 4 * FLEET_APPLIES_MAX;

/// Keeps the agent running until the manager ends.
pub async fn keep(manager: Rc<Manager>, node: NodeId) {
    let mut pause = PAUSES.0;
    loop {
        let begun = Instant::now();
        let end = match spawn(&manager, &node) {
            Ok((child, stream)) => live(&manager, child, stream).await,
            Err(error) => format!("could not be started: {}", reason(&error)),
        };
        if manager.ending.get() {
            return;
        }
        if begun.elapsed() > LONG_LIFE {
            pause = PAUSES.0;
        }
        let shown = pause.as_secs_f64();
        manager.say(Level::Warning, format!("copal {FLEET_AGENT} {end}; it is started again in {shown} s"));
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// Talks with the agent until it ends; returns a description of its end.
async fn live(manager: &Rc<Manager>, mut child: Child, stream: UnixStream) -> String {
    let pid = child.id().unwrap_or(0);
    if let Some(pipe) = child.stderr.take() {
        spawn_local(report_output(manager.clone(), format!("Fleet ({pid})"), pipe));
    }
    let Some(fleet) = &manager.fleet else { return "has no fleet".to_owned() };
    let said = tokio::select! {
        said = converse(manager, fleet, stream) => said.err(),
        status = child.wait() => return match status {
            Ok(status) => format!("({pid}) ended: {status}"),
            Err(error) => format!("({pid}) could not be waited for: {}", reason(&error)),
        },
    };
    // It has closed the link, or broken its rules.
    let _ = child.start_kill();
    let status = child.wait().await.map_or_else(|error| reason(&error), |status| status.to_string());
    match said {
        Some(error) => format!("({pid}) sent {error}, and was ended"),
        None => format!("({pid}) ended: {status}"),
    }
}

/// Exchanges messages with an agent until the link ends.
///
/// # Errors
/// Bytes that are not a message.
pub(super) async fn converse(manager: &Rc<Manager>, fleet: &Fleet, stream: UnixStream) -> io::Result<()> {
    let (mut from, to) = stream.into_split();
    let (sender, receiver) = mpsc::channel(MESSAGES_MAX);
    let settings = settings(manager, &fleet.argument);
    let _ = sender.try_send(ToAgent::Settings(settings.clone()));
    {
        let mut state = fleet.state.borrow_mut();
        state.agents += 1;
        state.agent = Some(sender);
        state.settings = Some(settings);
    }
    let _end = End { fleet };
    fleet.work.notify_one();
    let reads = async {
        while let Some(message) = read(&mut from).await? {
            let mut message = message;
            while let Err(again) = fleet.take(manager, message) {
                message = again;
                fleet.room.notified().await;
            }
        }
        Ok(())
    };
    tokio::select! {
        read = reads => read,
        () = write(to, receiver) => Ok(()),
        () = fleet.broken.notified() => {
            Err(io::Error::other("orders without reading the answers"))
        }
    }
}

/// The state after the end of an agent.
struct End<'a> {
    fleet: &'a Fleet,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        let mut state = self.fleet.state.borrow_mut();
        state.agent = None;
        state.known = state.told.take();
        state.is_cut = state.queue.iter().any(|item| matches!(item, super::Item::Serve(_)));
        // Orders that are not answered are given again by the next one.
        state.queue.clear();
        state.commands.clear();
        state.silent_since.get_or_insert_with(Instant::now);
        self.fleet.work.notify_one();
    }
}

/// The next message; `None` at the end of the stream.
async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<ToManager>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let count = u32::from_be_bytes(length) as usize;
    if count > FLEET_LINK_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message longer than allowed"));
    }
    let mut bytes = vec![0; length.len() + count];
    let (head, body) = bytes.split_at_mut(length.len());
    head.copy_from_slice(&length);
    from.read_exact(body).await?;
    link::read(&mut &bytes[..])
}

/// Writes messages until the link ends.
async fn write(mut to: impl AsyncWrite + Unpin, mut messages: mpsc::Receiver<ToAgent>) {
    let mut bytes = Vec::new();
    while let Some(message) = messages.recv().await {
        bytes.clear();
        // One that is too long is that of a command, which then has no answer.
        if link::write(&mut bytes, &message).is_ok() && to.write_all(&bytes).await.is_err() {
            break;
        }
    }
    // The reader has the last word: the agent may have said why it ends.
    std::future::pending::<()>().await;
}

fn spawn(manager: &Rc<Manager>, node: &NodeId) -> io::Result<(Child, UnixStream)> {
    let Some(fleet) = &manager.fleet else { return Err(io::ErrorKind::NotFound.into()) };
    let (ours, theirs) = StdStream::pair()?;
    ours.set_nonblocking(true)?;
    let (argument, jail) = (&fleet.argument, &manager.arguments.jail);
    let mut command = std::process::Command::new("/proc/self/exe");
    command.arg0("copal").args([FLEET_AGENT, OBSERVE_INHERITED]);
    command.arg(jail.observer().map_or("-".to_owned(), |(user, group)| format!("{user}:{group}")));
    command.arg(if *jail == (Jail::None { asked: true }) { "-" } else { "sandbox" });
    // Below the current directory: the path to it may lead through directories that the other user
    // may not enter.
    command.args(["--folder", FOLDER, "--servers", &argument.servers, "--fleet", &argument.name]);
    command.args(["--node", node.as_str()]);
    if !argument.zone.is_empty() {
        command.args(["--zone", &argument.zone]);
    }
    let files =
        [("--creds", &argument.credentials), ("--nkey", &argument.nkey), ("--tls-ca", &argument.tls_authorities)];
    for (name, path) in files {
        if let Some(path) = path {
            command.arg(name).arg(path);
        }
    }
    command.env_remove("NOTIFY_SOCKET");
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::piped());
    // Signals to our group (an interrupt at the terminal) are for us: it ends when we have.
    command.process_group(0);
    let child = Command::from(command).kill_on_drop(true).spawn()?;
    Ok((child, UnixStream::from_std(ours)?))
}
