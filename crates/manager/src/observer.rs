//! `copal observe` as a process of this daemon: its start and its end.
//!
//! It is started with the first worker, and again after a pause whenever it ends.
//! Nothing waits for it. *Invariant:* it ends with this process, which alone holds the other end of
//! its standard input. Next file: `observe/src/inherited.rs`.

use crate::arguments::jail::Jail;
use crate::arguments::reason;
use crate::handover::passing::send_group;
use crate::life::report_output;
use crate::metrics_sockets::MetricsSocket;
use crate::orders::obey;
use crate::report::Level;
use crate::state::Manager;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::rc::Rc;
use std::time::{Duration, Instant};
use surface::access_log::{AccessLog, Destination};
use surface::option::{OBSERVE_ACCESS_LOG, OBSERVE_INHERITED};
use tokio::process::{Child, Command};
use tokio::task::spawn_local;

/// First and longest pause before the process is started again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// A process that lived longer than this had no trouble at its start.
const LONG_LIFE: Duration = Duration::from_secs(60);

/// Starts the process, and keeps it running until the manager ends. Does nothing if there is no
/// work for it.
pub fn begin(manager: &Rc<Manager>) {
    let arguments = &manager.arguments;
    let has_sockets = !manager.metrics.is_empty() || !manager.dash.is_empty();
    if !has_sockets && arguments.access_logs.is_empty() && arguments.traces.is_empty() {
        return;
    }
    for address in manager.dash.iter().filter_map(MetricsSocket::address) {
        manager.say(Level::Info, format!("Dashboard: http://{address}/"));
    }
    for socket in &manager.metrics {
        manager.say(Level::Info, format!("Metrics: {}", socket.shown()));
    }
    spawn_local(keep(manager.clone()));
}

async fn keep(manager: Rc<Manager>) {
    let mut pause = PAUSES.0;
    loop {
        let begun = Instant::now();
        let end = match spawn(&manager) {
            Ok((child, lifeline)) => live(&manager, child, lifeline).await,
            Err(error) => format!("could not be started: {}", reason(&error)),
        };
        if manager.ending.get() {
            return;
        }
        if begun.elapsed() > LONG_LIFE {
            pause = PAUSES.0;
        }
        let shown = pause.as_secs_f64();
        manager.say(Level::Warning, format!("copal observe {end}; it is started again in {shown} s"));
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// Waits for the end of the process; returns a description of it. `lifeline` is closed then.
async fn live(manager: &Rc<Manager>, mut child: Child, lifeline: UnixStream) -> String {
    let pid = child.id().unwrap_or(0);
    if let Some(pipe) = child.stderr.take() {
        spawn_local(report_output(manager.clone(), format!("Observe ({pid})"), pipe));
    }
    let status = child.wait().await;
    drop(lifeline);
    match status {
        Ok(status) => format!("({pid}) ended: {status}"),
        Err(error) => format!("({pid}) could not be waited for: {}", reason(&error)),
    }
}

fn spawn(manager: &Rc<Manager>) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let (orders, of_observe) = UnixStream::pair()?;
    let mut sockets: Vec<BorrowedFd<'_>> = manager.metrics.iter().chain(&manager.dash).map(AsFd::as_fd).collect();
    if !manager.dash.is_empty() {
        sockets.push(of_observe.as_fd());
        orders.set_nonblocking(true)?;
        spawn_local(obey(manager.clone(), tokio::net::UnixStream::from_std(orders)?));
    }
    match sockets.is_empty() {
        true => (&ours).write_all(b"+")?,
        false => send_group(&ours, b"+", &sockets)?,
    }
    let jail = &manager.arguments.jail;
    let mut command = std::process::Command::new("/proc/self/exe");
    command.arg0("copal").args(["observe", OBSERVE_INHERITED]);
    // The work directory, where this process is: its path may lead through directories that the
    // other user may not enter.
    command.arg(".");
    command.arg(jail.observer().map_or("-".to_owned(), |(user, group)| format!("{user}:{group}")));
    command.arg(if *jail == (Jail::None { asked: true }) { "-" } else { "sandbox" });
    for log in &manager.arguments.access_logs {
        command.args([OBSERVE_ACCESS_LOG, log]);
    }
    command.args(&manager.arguments.traces);
    command.args(manager.arguments.dash.of_observe(manager.dash.len()));
    command.env_remove("NOTIFY_SOCKET");
    let is_stdout = |log: &String| AccessLog::parse(log).is_ok_and(|log| log.destination == Destination::Stdout);
    let writes_to_stdout = manager.arguments.access_logs.iter().any(is_stdout);
    let stdout = if writes_to_stdout { Stdio::inherit() } else { Stdio::null() };
    command.stdin(OwnedFd::from(theirs)).stdout(stdout).stderr(Stdio::piped());
    // Signals to our group (an interrupt at the terminal) are for us: it ends when we have.
    command.process_group(0);
    Ok((Command::from(command).spawn()?, ours))
}
