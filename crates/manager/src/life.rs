//! The life of the worker: start, ping, death, restart, stop.
//!
//! ```text
//! stopped ──start──▶ starting ──▶ running ──stop──▶ stopping ──▶ stopped
//!    ▲                  │            │
//!    └──────failed──────┘            └──▶ died ──(auto_restart)──▶ starting
//! ```
//! A restart touches neither the listening sockets nor the arena: new connections wait in the
//! kernel, and the cache is still there. Only `stop` turns connections away. Under debug bit
//! `vtc_mode` a start after a `stop` begins with an empty cache, as the tests of Varnish expect;
//! otherwise the cache is kept. Invariant: each process is reaped by one task, and only that task
//! reports its end.

use crate::canary::Running;
use crate::canary_end;
use crate::clock::now;
use crate::directory::quarantine_text;
use crate::fd_store;
use crate::fleet::Fleet;
use crate::link::{Link, LinkError};
use crate::memory::{Kernel, Overhead, Size as Shown, grows_to};
use crate::recovery::SetAside;
use crate::report::Level;
use crate::shortage::{Holding, Sign, shrunk};
use crate::state::{ChildState, Manager, Worker};
use crate::systemd;
use crate::vcl_table::Kind;
use cli_proto::response::Response;
use command_fds::{CommandFdExt, FdMapping};
use control::messages::{Configuration, FileConfiguration, ListenerConfiguration, Request, Step, StorageConfiguration};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use socket2::Socket;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};
use surface::counter::Mgt;
use surface::limits::{RECOVERY_FAILURES_MAX, SIGKILLS_MAX, SIGKILLS_SECONDS};
use surface::parameter::debug;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::spawn_local;

use crate::arguments::Mode;
use crate::arguments::jail::Jail;
use crate::arguments::storage::Size;
use surface::program::Called;

/// The first descriptor of a worker after the standard ones: its control connection.
const CONTROL_DESCRIPTOR: i32 = 3;
/// A worker that dies sooner than this has died young.
const SHORT_LIFE: Duration = Duration::from_secs(1);
/// This many young deaths in a row lead to an immediate restart, further ones to a pause. A start
/// survives as many kills.
const SHORT_LIVES_FREE: u32 = 3;
/// Longest pause before a restart.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Time limit for a worker to die of `SIGQUIT`: normally it dies at once, stopped or stuck it never
/// does.
const QUIT_PATIENCE: Duration = Duration::from_millis(250);
/// Time limit for a worker to end when requested, or to write its core dump.
const DYING_PATIENCE: Duration = Duration::from_secs(5);
/// Longest time until a worker that failed to start is gone and the next one gets a request.
const GIVING_UP: Duration = Duration::from_secs(15);
/// Time limit for a worker that must end at once to report the requests that it cuts off.
const HURRIED_PATIENCE: Duration = Duration::from_secs(1);
/// Interval between attempts to signal that.
const HURRIED_RETRY: Duration = Duration::from_millis(2);
/// Longest line of a worker's output that is reported in one piece, in bytes.
const SAID_BYTES_MAX: u64 = 8192;

/// Starts a worker. The caller must hold `changes`.
///
/// # Errors
/// The reason why there is none; the state is then `Stopped`, and connections are turned away.
pub async fn start(manager: &Rc<Manager>) -> Result<(), String> {
    let started = begin(manager).await;
    if started.is_err() {
        manager.listeners.borrow_mut().iter_mut().for_each(crate::listeners::Listener::refuse);
        manager.state.set(ChildState::Stopped);
    }
    started
}

/// Starts a worker; if that fails, connections wait: another process has the sockets too. The
/// caller must hold `changes`.
///
/// # Errors
/// The reason why there is none.
pub async fn begin(manager: &Rc<Manager>) -> Result<(), String> {
    let mut kills = 0;
    loop {
        let Err(failure) = attempt(manager).await else { return Ok(()) };
        let is_killed_again =
            failure.was_killed && kills < SHORT_LIVES_FREE && manager.parameters.borrow().auto_restart;
        kills += u32::from(failure.was_killed);
        // Content that cannot be taken over is eventually dropped, and kills are counted: this loop
        // ends.
        if (hold_against_storage(manager, &failure) || is_killed_again) && !manager.ending.get() {
            manager.say(Level::Error, failure.text);
            continue;
        }
        return Err(failure.text);
    }
}

/// Failure of a worker before it serves.
struct Failure {
    text: String,
    /// The step at which its configuration failed, if that was its own fault.
    step: Option<Step>,
    /// Another process ended it.
    was_killed: bool,
}

impl Failure {
    /// A failure that has nothing to do with the stored content.
    fn other(text: String) -> Failure {
        Failure { text, step: None, was_killed: false }
    }
}

/// One attempt to start a worker. After a failure no worker is left, and the caller sets the state.
async fn attempt(manager: &Rc<Manager>) -> Result<(), Failure> {
    manager.state.set(ChildState::Starting);
    manager.last_end.set(None);
    manager.memory_ran_out.set(false);
    manager.killed_by_us.set(false);
    manager.deaths.borrow_mut().begin(Kernel::here().kills());
    let launched = launch(manager).await;
    conclude(manager, launched).await
}

async fn conclude(manager: &Rc<Manager>, launched: Result<u32, Failure>) -> Result<(), Failure> {
    let Err(mut failure) = launched.and_then(|pid| still_there(manager, pid)) else {
        manager.state.set(ChildState::Running);
        manager.fleet.iter().for_each(Fleet::worker_changed);
        manager.failures.borrow_mut().forget();
        // The report of a start in the background says more.
        if manager.arguments.called == Called::Stock || manager.arguments.mode != Mode::Background {
            manager.reporter.say_plain("Child launched OK");
        }
        return Ok(());
    };
    if let Some(worker) = manager.worker() {
        dismiss(manager, &worker).await;
    }
    let signal = manager.last_end.get().and_then(|end| end.signal());
    if is_from_outside(signal, manager.killed_by_us.get(), manager.memory_ran_out.get()) {
        failure.step = None;
    }
    // Also when memory ran out: the next attempt has smaller storages.
    failure.was_killed = is_from_outside(signal, manager.killed_by_us.get(), false);
    Err(failure)
}

/// A worker may be gone before its last reply is read: no other task starts the next one, since it
/// was not running yet.
fn still_there(manager: &Manager, pid: u32) -> Result<(), Failure> {
    match manager.worker() {
        Some(_) => Ok(()),
        None => Err(Failure::other(format!("Child ({pid}) died as soon as it had started"))),
    }
}

/// True if a worker was ended from outside, so that its failure is not due to the stored content. A
/// hanging worker gets its SIGKILL from us. A worker that ran out of memory does not count either:
/// the stored content may have been too large, and if it cannot shrink it is dropped too.
fn is_from_outside(signal: Option<i32>, killed_by_us: bool, memory_ran_out: bool) -> bool {
    let killing = [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].map(|signal| Some(signal as i32));
    killing.contains(&signal) && !killed_by_us && !memory_ran_out
}

/// Counts a failure to take over stored content, and drops the content after too many. Returns true
/// if the failure was of that kind.
fn hold_against_storage(manager: &Manager, failure: &Failure) -> bool {
    let Some(step) = failure.step.filter(|step| *step != Step::Surroundings) else { return false };
    let counted = {
        let memory = manager.memory.borrow();
        manager.failures.borrow_mut().count(step, |place| memory.files().has(place))
    };
    let Some(set_aside) = counted else { return true };
    let name = |place: usize| {
        manager.arguments.storages.cache.get(place).map_or("", |storage| storage.name.as_str()).to_owned()
    };
    let what = match set_aside {
        SetAside::Metadata(place) => {
            let name = name(place);
            format!(
                "Storage {name} could not be taken over {RECOVERY_FAILURES_MAX} times: it is read anew from its file"
            )
        }
        SetAside::Storage(place) => {
            format!("Storage {} could not be taken over {RECOVERY_FAILURES_MAX} times: it begins empty", name(place))
        }
        SetAside::All if step == Step::Bans => {
            format!("The bans could not be read {RECOVERY_FAILURES_MAX} times: all storages begin empty")
        }
        SetAside::All => {
            format!("What is stored could not be taken over {RECOVERY_FAILURES_MAX} times: all storages begin empty")
        }
    };
    // Its borrow of the memory must not last.
    let done = set_aside.carry_out(&mut manager.memory.borrow_mut());
    match done {
        Ok(()) => {
            manager.say(Level::Error, what);
            tell_keeper(manager);
        }
        Err(error) => manager.say(Level::Error, format!("{what}, but no memory can be had for that: {error}")),
    }
    true
}

/// Gives systemd the new memory files, if it keeps them for us.
fn tell_keeper(manager: &Manager) {
    if manager.arguments.mode != Mode::Foreground {
        return;
    }
    if let Err(error) = fd_store::renew(&manager.memory.borrow(), &manager.arguments.storages) {
        manager.say(Level::Warning, format!("systemd does not keep the storages: {error}"));
    }
}

/// Starts a worker, up to its last reply. Returns its process number.
async fn launch(manager: &Rc<Manager>) -> Result<u32, Failure> {
    let worker = spawn(manager).map_err(|error| Failure::other(format!("Could not start the worker: {error}")))?;
    let pid = worker.pid;
    manager.count(Mgt::ChildStart);
    manager.say(Level::Debug, format!("Child ({pid}) Started"));
    let ask = async |request: Request| -> Result<Response, String> {
        let reply = worker.link.ask(request, manager.reply_timeout());
        tokio::pin!(reply);
        let mut steps = worker.link.steps();
        loop {
            ask_for_time(manager);
            tokio::select! {
                reply = &mut reply => return reply.map_err(|error| format!("Child ({pid}) {}", link_text(error))),
                Ok(()) = steps.changed() => {}
            }
        }
    };
    let configuration = configuration(manager);
    let of_configuration = |text: String| Failure { text, step: Some(worker.link.step()), was_killed: false };
    let reply = ask(Request::Configure(Box::new(configuration))).await.map_err(of_configuration)?;
    if reply.status != 200 {
        return Err(of_configuration(format!("Child ({pid}) refused its configuration:\n{}", reply.body)));
    }
    for request in vcl_requests(manager) {
        let reply = ask(request).await.map_err(Failure::other)?;
        if reply.status != 200 {
            return Err(Failure::other(format!("Child ({pid}) Pushing vcls failed:\n{}", reply.body)));
        }
    }
    let canary = manager.trials.borrow().running.as_ref().map(Running::configuration);
    if let Some(canary) = canary {
        let reply = ask(Request::VclCanary(Some(Box::new(canary)))).await.map_err(Failure::other)?;
        if reply.status != 200 {
            // The active VCL can serve without it.
            canary_end::ended(manager, Level::Error, "went back", &format!("the child refuses it: {}", reply.body));
        }
    }
    if let Some(fleet) = &manager.fleet {
        let serving = fleet.serving();
        let reply = ask(Request::FleetServe(serving)).await.map_err(Failure::other)?;
        if reply.status != 200 {
            return Err(Failure::other(format!("Child ({pid}) refused the conditions of the fleet:\n{}", reply.body)));
        }
        fleet.carried(pid, serving);
    }
    let reply = ask(Request::Start).await.map_err(Failure::other)?;
    if reply.status != 200 {
        return Err(Failure::other(format!("Child ({pid}) Acceptor start failed:\n{}", reply.body)));
    }
    Ok(pid)
}

/// Extends systemd's timeouts to the worker's own, for the start and for its end.
fn ask_for_time(manager: &Manager) {
    if manager.is_awaited.get() {
        systemd::starting(manager.reply_timeout() + GIVING_UP);
    }
}

/// Everything that a new worker must load, ordered so that each request follows those that it
/// depends on.
fn vcl_requests(manager: &Manager) -> Vec<Request> {
    let table = manager.vcls.borrow();
    let mut requests = Vec::new();
    let mut sent: Vec<&str> = Vec::new();
    let mut waiting: Vec<_> = table.entries().iter().collect();
    while !waiting.is_empty() {
        let before = waiting.len();
        waiting.retain(|entry| {
            if !entry.needs().iter().all(|need| sent.contains(&need.as_str())) {
                return true;
            }
            sent.push(&entry.name);
            requests.push(match &entry.kind {
                Kind::Program(loaded) => {
                    Request::VclLoad { name: entry.name.clone(), program: loaded.program.clone(), state: entry.state }
                }
                Kind::Label(target) => Request::VclLabel { label: entry.name.clone(), vcl: target.clone() },
            });
            false
        });
        if waiting.len() == before {
            break;
        }
    }
    if let Some(name) = table.active() {
        requests.push(Request::VclUse { name: name.to_owned() });
    }
    requests
}

/// The descriptors that a worker inherits, numbered from [`CONTROL_DESCRIPTOR`] in this order:
/// control, journal, panic text, the work directory lock, the arena of each storage, the file of
/// each that has one, the sockets of each listener, those of TCP before those of UDP.
const JOURNAL_DESCRIPTOR: i32 = CONTROL_DESCRIPTOR + 1;
const PANIC_DESCRIPTOR: i32 = CONTROL_DESCRIPTOR + 2;
const DIRECTORY_LOCK_DESCRIPTOR: i32 = CONTROL_DESCRIPTOR + 3;
const FIRST_ARENA_DESCRIPTOR: i32 = CONTROL_DESCRIPTOR + 4;

fn configuration(manager: &Manager) -> Configuration {
    let storages = &manager.arguments.storages;
    let machine_bytes = Kernel::here().machine_bytes();
    let mut arenas = Vec::with_capacity(storages.cache.len());
    let mut next = FIRST_ARENA_DESCRIPTOR + i32::try_from(storages.cache.len()).unwrap_or(0);
    let file_bytes = manager.memory.borrow().files().bytes();
    let limits = manager.limits_now_bytes.borrow();
    let of_storages = storages.cache.iter().zip(limits.iter()).zip(file_bytes);
    for (descriptor, ((storage, limit_bytes), bytes)) in (FIRST_ARENA_DESCRIPTOR..).zip(of_storages) {
        let file = storage.file.as_ref().map(|file| {
            let descriptor = next;
            next += 1;
            FileConfiguration { descriptor, bytes, granularity_bytes: file.granularity_bytes, advice: file.advice }
        });
        arenas.push(StorageConfiguration {
            name: storage.name.clone(),
            limit_bytes: *limit_bytes,
            grows_to_bytes: match file {
                // Another size would mean another layout and so another file.
                Some(_) => storage.size.beside(bytes),
                None => grows_to(storage.size, *limit_bytes, machine_bytes),
            },
            is_limit_given: storage.size != Size::Rest,
            policy: storage.policy,
            descriptor,
            file,
        });
    }
    let listeners = manager.listeners.borrow();
    let mut numbers = |sockets: &[Socket]| -> Vec<i32> {
        let first = next;
        next += i32::try_from(sockets.len()).unwrap_or(0);
        (first..next).collect()
    };
    let listeners = listeners.iter().map(|listener| ListenerConfiguration {
        name: listener.name.clone(),
        endpoint: listener.endpoint.clone(),
        proxy: listener.proxy,
        path: listener.path().map(ToOwned::to_owned),
        descriptors: numbers(listener.sockets()),
        tls: listener.tls,
        redirect_port: listener.redirect_port,
        udp_descriptors: numbers(listener.datagram_sockets()),
    });
    let tls = manager.tls.borrow();
    Configuration {
        work_directory: manager.directory.borrow().path_for_worker(),
        identity: manager.identity.clone(),
        hostname: crate::platform::host_name(),
        name: manager.arguments.called,
        listeners: listeners.collect(),
        storages: arenas,
        directory_lock_descriptor: DIRECTORY_LOCK_DESCRIPTOR,
        journal_descriptor: JOURNAL_DESCRIPTOR,
        transient_limit_bytes: storages.transient.size.given_bytes(),
        event_loops: manager.event_loops(),
        parameters: manager.parameters.borrow().clone(),
        log_layout: manager.arguments.log_layout,
        run_as: manager.arguments.jail.worker(),
        is_sandboxed: manager.arguments.jail != Jail::None { asked: true },
        panic_descriptor: PANIC_DESCRIPTOR,
        tls: tls.is_configured().then(|| tls.table()),
        quic_secret: tls.quic_secret(),
    }
}

/// Prepares memory, sockets and directory, and starts the process.
fn spawn(manager: &Rc<Manager>) -> io::Result<Worker> {
    if manager.was_stopped.replace(false) && manager.debug(debug::VTC_MODE) {
        manager.memory.borrow_mut().renew_storage()?;
        tell_keeper(manager);
    }
    let _ = manager.memory.borrow().take_panic();
    let quarantined = manager.directory.borrow().make_worker_directory()?;
    report_quarantined(manager, quarantined);
    let (depth, loops) = (manager.parameters.borrow().listen_depth, manager.event_loops());
    let fast_open = manager.parameters.borrow().tcp_fastopen;
    for listener in manager.listeners.borrow_mut().iter_mut() {
        listener.resize(loops)?;
        listener.listen(depth)?;
        if fast_open && let Err(error) = listener.enable_fast_open(depth) {
            manager.say(Level::Error, format!("No TCP Fast Open on {}: {error}", listener.endpoint));
        }
    }
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    let mut descriptors: Vec<OwnedFd> = vec![theirs.into()];
    descriptors.extend(manager.memory.borrow().handles()?);
    for listener in manager.listeners.borrow().iter() {
        for socket in listener.sockets().iter().chain(listener.datagram_sockets()) {
            descriptors.push(socket.try_clone()?.into());
        }
    }
    let mut command = std::process::Command::new("/proc/self/exe");
    command.arg0("copal").arg("worker").arg("--control").arg(CONTROL_DESCRIPTOR.to_string());
    // Shows in the process list which instance this worker belongs to.
    command.arg("-n").arg(manager.directory.borrow().path());
    // Only we talk to the service manager.
    command.env_remove("NOTIFY_SOCKET");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // We handle signals to our group (an interrupt at the terminal): the worker is stopped in an
    // orderly way.
    command.process_group(0);
    let mapping = |(number, parent_fd)| FdMapping { parent_fd, child_fd: number };
    command.fd_mappings((CONTROL_DESCRIPTOR..).zip(descriptors).map(mapping).collect()).map_err(io::Error::other)?;
    let mut child = Command::from(command).spawn()?;
    let pid = child.id().unwrap_or(0);
    ours.set_nonblocking(true)?;
    let (gone, gone_receiver) = watch::channel(false);
    let worker =
        Worker { pid, link: Link::new(UnixStream::from_std(ours)?), since: Instant::now(), gone: gone_receiver };
    let outputs = [
        child.stdout.take().map(|pipe| spawn_local(report_output(manager.clone(), format!("Child ({pid})"), pipe))),
        child.stderr.take().map(|pipe| spawn_local(report_output(manager.clone(), format!("Child ({pid})"), pipe))),
    ];
    *manager.worker.borrow_mut() = Some(worker.clone());
    spawn_local(reap(manager.clone(), worker.clone(), child, outputs, gone));
    spawn_local(ping(manager.clone(), worker.clone()));
    Ok(worker)
}

/// Reports the worker's output, line by line.
/// Reports each line that a process writes.
pub(crate) async fn report_output(manager: Rc<Manager>, process: String, pipe: impl AsyncRead + Unpin) {
    use tokio::io::AsyncReadExt;
    let mut reader = BufReader::new(pipe);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader).take(SAID_BYTES_MAX).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                manager.say(Level::Info, format!("{process} said {}", text.trim_end()));
            }
        }
    }
}

type Output = Option<tokio::task::JoinHandle<()>>;

/// Waits for the end of a worker, reports it, and starts the next one if one should run.
async fn reap(manager: Rc<Manager>, worker: Worker, mut child: Child, outputs: [Output; 2], gone: watch::Sender<bool>) {
    let status = child.wait().await;
    // Its last output is reported before its end; a descendant that keeps the pipe open must not
    // delay us.
    for output in outputs.into_iter().flatten() {
        let _ = tokio::time::timeout(Duration::from_millis(500), output).await;
    }
    manager.last_end.set(status.as_ref().ok().copied());
    match status {
        Ok(status) => {
            obituary(&manager, worker.pid, status);
            if status.signal() == Some(Signal::SIGKILL as i32) && !manager.killed_by_us.get() {
                make_room(&manager, worker.pid);
            }
        }
        Err(error) => manager.say(Level::Error, format!("Child ({}) could not be waited for: {error}", worker.pid)),
    }
    report_panic(&manager, worker.pid);
    if !manager.keeps_memory() {
        let quarantined = manager.directory.borrow().remove_worker_directory();
        report_quarantined(&manager, quarantined);
    }
    *manager.worker.borrow_mut() = None;
    manager.fleet.iter().for_each(Fleet::worker_changed);
    let ran = manager.state.get() == ChildState::Running;
    if ran {
        manager.state.set(ChildState::Died);
    }
    manager.say(Level::Debug, "Child cleanup complete");
    let _ = gone.send(true);
    if ran {
        let young = worker.since.elapsed() < SHORT_LIFE;
        let signal = manager.last_end.get().and_then(|end| end.signal());
        if !is_from_outside(signal, manager.killed_by_us.get(), manager.memory_ran_out.get()) {
            canary_end::worker_died(&manager);
        }
        manager.short_lives.set(if young { manager.short_lives.get().saturating_add(1) } else { 0 });
        restart(&manager).await;
    }
}

/// After a death: starts workers until one runs, or none should run any more.
async fn restart(manager: &Rc<Manager>) {
    loop {
        let wanted = manager.parameters.borrow().auto_restart && !manager.ending.get();
        if !wanted {
            let _changes = manager.changes.lock().await;
            if manager.state.get() == ChildState::Died {
                become_stopped(manager);
            }
            return;
        }
        let pause = pause(manager.short_lives.get());
        if !pause.is_zero() {
            let (count, seconds) = (manager.short_lives.get(), pause.as_secs());
            let text = format!("Child died young {count} times in a row; the next one starts in {seconds} s");
            manager.say(Level::Error, text);
            tokio::time::sleep(pause).await;
        }
        let _changes = manager.changes.lock().await;
        if manager.state.get() != ChildState::Died || manager.ending.get() {
            return;
        }
        let Err(failure) = attempt(manager).await else { return };
        // Not `Stopped`, and the sockets stay open: there will be another attempt.
        manager.state.set(ChildState::Died);
        manager.say(Level::Error, &failure.text);
        hold_against_storage(manager, &failure);
        manager.short_lives.set(manager.short_lives.get().saturating_add(1));
    }
}

/// The pause before the next start.
fn pause(short_lives: u32) -> Duration {
    match short_lives.checked_sub(SHORT_LIVES_FREE) {
        None => Duration::ZERO,
        Some(steps) => Duration::from_secs(1 << steps.min(3)).min(PAUSE_MAX),
    }
}

/// After a SIGKILL from elsewhere: if memory was short, the next worker gets smaller storages.
fn make_room(manager: &Manager, pid: u32) {
    let kernel = Kernel::here();
    let sign = manager.deaths.borrow_mut().killed(Instant::now(), kernel.kills());
    let Some(sign) = sign else { return };
    manager.memory_ran_out.set(true);
    let overhead = Overhead::of(manager.directory.borrow().path(), manager.parameters.borrow().vsl_space);
    let mut limits = manager.limits_now_bytes.borrow_mut();
    let held = manager.memory.borrow().held_bytes();
    let storages: Vec<Holding> = manager
        .storage_limits_bytes
        .borrow()
        .iter()
        .zip(limits.iter())
        .zip(held)
        .map(|((given, limit), held)| Holding { given: *given, limit: *limit, held })
        .collect();
    let next = shrunk(&storages, overhead.leaves_at_least(kernel.usable_within(manager.arguments.memory_bytes)));
    let why = match sign {
        Sign::Counted => "was killed by the kernel for lack of memory".to_owned(),
        Sign::Repeated => {
            format!("is the last of {SIGKILLS_MAX} killed within {SIGKILLS_SECONDS} s, as happens when memory runs out")
        }
    };
    let (before, after) = (limits.iter().sum(), next.iter().sum());
    let what = if after < before {
        format!("storages shrink from {} to {} until it is stopped and started", Shown(before), Shown(after))
    } else {
        "storages are as small as they get".to_owned()
    };
    manager.say(Level::Error, format!("Child ({pid}) {why}: {what}; give -s less, or the daemon more memory"));
    *limits = next;
}

/// Reports in one line how a worker ended, and counts it, also in our own exit status.
fn obituary(manager: &Manager, pid: u32, status: ExitStatus) {
    if status.success() {
        manager.say(Level::Info, format!("Child ({pid}) ended"));
        return;
    }
    let mut text = format!("Child ({pid}) died");
    let mut bits = 0;
    if let Some(code) = status.code() {
        text.push_str(&format!(" status={code}"));
        bits |= 0x20;
        manager.count(if code == 1 { Mgt::ChildExit } else { Mgt::ChildStop });
    }
    if let Some(signal) = status.signal() {
        text.push_str(&format!(" signal={signal}"));
        bits |= 0x40;
        manager.count(Mgt::ChildDied);
    }
    if status.core_dumped() {
        text.push_str(" (core dumped)");
        bits |= 0x80;
        manager.count(Mgt::ChildDump);
    }
    manager.exit_status.set(manager.exit_status.get() | bits);
    manager.say(Level::Error, text);
}

fn report_quarantined(manager: &Manager, quarantined: Option<PathBuf>) {
    if let Some(quarantined) = quarantined {
        manager.say(Level::Error, quarantine_text(&quarantined));
    }
}

/// Takes the text of a panic, reports it and keeps it for `panic.show`.
pub fn report_panic(manager: &Manager, pid: u32) {
    let Some(text) = manager.memory.borrow().take_panic() else { return };
    let text = format!("Panic at: {}\n{text}", semantics::date::text(now()));
    manager.say(Level::Error, format!("Child ({pid}) {text}"));
    *manager.panic.borrow_mut() = Some(text);
    manager.count(Mgt::ChildPanic);
}

/// Pings the worker at intervals, and kills it if it does not answer.
async fn ping(manager: Rc<Manager>, worker: Worker) {
    let mut gone = worker.gone.clone();
    loop {
        let interval = manager.parameters.borrow().ping_interval;
        let sleep = tokio::time::sleep(Duration::from_secs(interval.max(1)));
        tokio::select! {
            () = sleep => {}
            _ = gone.changed() => return,
        }
        if interval == 0 || manager.state.get() != ChildState::Running {
            continue;
        }
        match worker.link.ask(Request::Ping, manager.reply_timeout()).await {
            Ok(reply) if reply.status == 200 => {}
            Ok(reply) => {
                let text = format!("Unexpected reply from ping: {} {}", reply.status, reply.body);
                manager.say(Level::Error, text);
            }
            Err(error) => return unresponsive(&manager, &worker, error).await,
        }
    }
}

/// Handles a worker whose connection is no longer usable.
pub async fn unresponsive(manager: &Rc<Manager>, worker: &Worker, error: LinkError) {
    let mut gone = worker.gone.clone();
    // A worker that closed the connection is usually already dying.
    let grace = if error == LinkError::Closed { Duration::from_secs(1) } else { Duration::ZERO };
    if tokio::time::timeout(grace, gone.wait_for(|gone| *gone)).await.is_ok() {
        return;
    }
    manager.say(Level::Error, format!("Child ({}) not responding to CLI, killed it.", worker.pid));
    kill_and_wait(manager, worker).await;
}

fn signal(manager: &Manager, worker: &Worker, signal: Signal) {
    let pid = i32::try_from(worker.pid).unwrap_or(0);
    // Between its end and our wait for it, its number may go to another process.
    let is_ours = || has_status(pid, "PPid:", &std::process::id().to_string());
    // A dead worker that is not reaped yet must not count as killed by us.
    let is_dead = || has_status(pid, "State:", "Z (zombie)");
    if pid > 1 && !*worker.gone.borrow() && is_ours() && !is_dead() {
        manager.killed_by_us.set(manager.killed_by_us.get() || signal == Signal::SIGKILL);
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

async fn kill_and_wait(manager: &Rc<Manager>, worker: &Worker) {
    let mut gone = worker.gone.clone();
    signal(manager, worker, Signal::SIGQUIT);
    if tokio::time::timeout(QUIT_PATIENCE, gone.wait_for(|gone| *gone)).await.is_ok() {
        return;
    }
    // A core dump takes its time.
    if has_status(worker.pid, "CoreDumping:", "1")
        && tokio::time::timeout(DYING_PATIENCE, gone.wait_for(|gone| *gone)).await.is_ok()
    {
        return;
    }
    manager.say(Level::Error, format!("Child ({}) not dying, killing", worker.pid));
    signal(manager, worker, Signal::SIGKILL);
    let _ = gone.wait_for(|gone| *gone).await;
}

/// True if a line of `/proc/PID/status` has that value. Source: proc(5).
fn has_status(pid: impl std::fmt::Display, name: &str, value: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.strip_prefix(name).is_some_and(|rest| rest.trim() == value))
}

/// Ends a worker whose start failed: with a request to stop while it still answers, since then its
/// death is not a crash.
async fn dismiss(manager: &Rc<Manager>, worker: &Worker) {
    let mut gone = worker.gone.clone();
    let ended = async {
        worker.link.ask(Request::Stop, DYING_PATIENCE).await.is_ok() && gone.wait_for(|gone| *gone).await.is_ok()
    };
    if !tokio::time::timeout(DYING_PATIENCE, ended).await.unwrap_or(false) {
        kill_and_wait(manager, worker).await;
    }
}

/// Stops the worker, at first with a request; from then on connections are turned away. The caller
/// must hold `changes`.
pub async fn stop(manager: &Rc<Manager>) {
    rest(manager).await;
    become_stopped(manager);
}

/// Ends the worker like [`stop`], but lets connections wait: another worker will serve them. The
/// caller must hold `changes`.
pub async fn rest(manager: &Rc<Manager>) {
    if manager.state.get() == ChildState::Died {
        return;
    }
    let Some(worker) = manager.worker() else { return };
    let was_ready = manager.state.get() == ChildState::Running;
    manager.state.set(ChildState::Stopping);
    manager.say(Level::Debug, "Stopping Child");
    if !was_ready {
        // The worker is in the middle of something else and would not listen.
        kill_and_wait(manager, &worker).await;
        return;
    }
    let mut gone = worker.gone.clone();
    let patience = manager.reply_timeout() + manager.drain();
    let ended = async {
        if let Ok(reply) = worker.link.ask(Request::Stop, patience).await
            && !reply.body.is_empty()
        {
            manager.say(Level::Warning, format!("Child ({}) {}", worker.pid, reply.body));
        }
        gone.wait_for(|gone| *gone).await.is_ok()
    };
    // When an operator requests an immediate end the worker is informed too, so that it can report
    // the requests that it cuts off.
    let hurried = async {
        manager.hurry.notified().await;
        // Before it handles the signal, the worker would silently die of it.
        let _ = tokio::time::timeout(HURRIED_PATIENCE, async {
            while worker.link.step() != Step::Draining {
                tokio::time::sleep(HURRIED_RETRY).await;
            }
        })
        .await;
        signal(manager, &worker, Signal::SIGUSR1);
        tokio::time::sleep(HURRIED_PATIENCE).await;
    };
    let in_time = tokio::select! {
        ended = tokio::time::timeout(patience, ended) => ended.is_ok(),
        () = hurried => {
            signal(manager, &worker, Signal::SIGKILL);
            let mut gone = worker.gone.clone();
            gone.wait_for(|gone| *gone).await.is_ok()
        }
    };
    if !in_time {
        manager.say(Level::Error, format!("Child ({}) not dying, killing", worker.pid));
        kill_and_wait(manager, &worker).await;
    }
}

/// Starts a worker again after a [`rest`], and keeps trying as after a death. The caller must hold
/// `changes`.
pub async fn resume(manager: &Rc<Manager>) {
    if manager.ending.get() {
        return become_stopped(manager);
    }
    if let Err(failure) = attempt(manager).await {
        manager.state.set(ChildState::Died);
        manager.say(Level::Error, &failure.text);
        hold_against_storage(manager, &failure);
        let manager = manager.clone();
        spawn_local(async move { restart(&manager).await });
    }
}

fn become_stopped(manager: &Manager) {
    manager.listeners.borrow_mut().iter_mut().for_each(crate::listeners::Listener::refuse);
    manager.was_stopped.set(true);
    manager.short_lives.set(0);
    manager.limits_now_bytes.borrow_mut().clone_from(&manager.storage_limits_bytes.borrow());
    manager.state.set(ChildState::Stopped);
}

/// The message for an operator when the worker does not answer.
#[must_use]
pub fn link_text(error: LinkError) -> &'static str {
    match error {
        LinkError::Closed => "CLI communication error (hdr)",
        LinkError::Late => "CLI communication error (timeout)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_death_of_its_own_is_held_against_what_is_stored() {
        let kill = Some(Signal::SIGKILL as i32);
        assert!(is_from_outside(kill, false, false) && is_from_outside(Some(Signal::SIGTERM as i32), false, false));
        assert!(!is_from_outside(kill, true, false), "it hung");
        assert!(!is_from_outside(kill, false, true), "what is stored is too large");
        for own in [None, Some(Signal::SIGABRT as i32), Some(Signal::SIGSEGV as i32), Some(Signal::SIGBUS as i32)] {
            assert!(!is_from_outside(own, false, false));
        }
    }

    #[test]
    fn a_worker_that_is_gone_when_its_last_reply_is_read_does_not_run() {
        let bench = crate::commands::tests::Bench::new(&[]);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        bench.manager.state.set(ChildState::Starting);
        let failure = runtime.block_on(conclude(&bench.manager, Ok(7))).unwrap_err();
        assert_eq!((failure.text.as_str(), failure.step), ("Child (7) died as soon as it had started", None));
        assert_ne!(bench.manager.state.get(), ChildState::Running);
    }

    #[test]
    fn a_worker_that_dies_young_again_and_again_is_given_pauses() {
        let pauses: Vec<u64> = (0..9).map(|lives| pause(lives).as_secs()).collect();
        assert_eq!(pauses, [0, 0, 0, 1, 2, 4, 5, 5, 5]);
        assert_eq!(pause(u32::MAX), PAUSE_MAX);
    }
}
