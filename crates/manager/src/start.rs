//! The start of the daemon, its one loop, and its end.
//!
//! Order of the start: options → (second process) → work directory and pid files → sockets → shared
//! memory → VCLs of the command line → CLI → `-I` file → worker → ready. Any failure before the
//! worker runs gives one message and status 2. A successor (`handover.rs`) receives most of that
//! from its predecessor, and is visible only once its worker serves.

use crate::acme::keeper;
use crate::acme::table::Acme;
use crate::arguments::jail::{self, Reader};
use crate::arguments::{self, ArgumentError, Arguments, Mode, Parsed, SecretArgument, reason};
use crate::background;
use crate::cli_connections::{self, CliListener};
use crate::cli_server;
use crate::commands;
use crate::compile::Job;
use crate::directory::WorkDirectory;
use crate::fd_store;
use crate::fleet;
use crate::handover;
use crate::handover::document::Inheritance;
use crate::handover::predecessor;
use crate::handover::successor::Successor;
use crate::life;
use crate::listeners::{self, Listener};
use crate::memory::{Kernel, Overhead};
use crate::memory_files::MemoryFiles;
use crate::memory_limits;
use crate::metrics_sockets::{self, MetricsSocket};
use crate::observer;
use crate::program::Program;
use crate::report::{Level, LogFormat, Reporter};
use crate::rights;
use crate::start_report;
use crate::state::{ChildState, Manager, Parts, event_loops};
use crate::storage_files;
use crate::systemd::{self, Passed};
use crate::tls;
use crate::tls::registry::Registry;
use crate::tls::tickets::ROTATION;
use control::inheritance::close_unclaimed;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal as KillSignal, kill};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use surface::option::{DASH, METRICS};
use surface::parameter::debug;
use surface::program::Called;
use surface::version::VARNISH_BANNER;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{LocalSet, spawn_local};

/// Exit status for a start that failed.
const FAILED: i32 = 2;
/// Time limit of the end for a change under way.
const CHANGE_PATIENCE: Duration = Duration::from_secs(5);
/// Time limit for the worker of a killed daemon to release the listening sockets: it dies with its
/// manager, but frees its memory before its sockets.
const PREDECESSOR_PATIENCE: Duration = Duration::from_secs(5);

/// Runs the daemon with its arguments (without the program's name). Returns the exit status.
#[must_use]
pub fn daemon(called: Called, arguments: &[OsString]) -> i32 {
    let (is_successor, rest) = marked(arguments, handover::MARK);
    let (in_background, options) = marked(rest, background::MARK);
    let successor = match is_successor.then(Successor::claim).transpose() {
        Ok(successor) => successor,
        Err(error) => {
            return fail(called, &ArgumentError::of_start(format!("only a daemon starts its successor: {error}")));
        }
    };
    let program = Program::of_process(arguments.len() - options.len(), options);
    let parse = if is_successor { arguments::parse_as_successor } else { arguments::parse };
    let parsed = match parse(called, options) {
        Ok(Parsed::Run(parsed)) => *parsed,
        Ok(Parsed::Print { text, status }) => {
            print(&text);
            return status;
        }
        Err(error) => return give_up(called, successor.as_ref(), &error),
    };
    match parsed.mode {
        Mode::Compile => return compile_and_print(&parsed),
        Mode::Background if !in_background => {
            // The passed sockets are meant for this process, which does not serve: without a
            // message their clients would wait for ever.
            if let Some(passed) = systemd::passed().sockets.first() {
                return fail(called, &ArgumentError::new(listeners::only_in_foreground(passed)));
            }
            return background::start_again(&program);
        }
        Mode::Background => background::leave_session(),
        Mode::Foreground | Mode::Debug => {}
    }
    let passed = if in_background || is_successor { Passed::default() } else { systemd::passed() };
    raise_descriptor_limit();
    // Descriptors that our starter left open must not stay open in us or in a worker.
    close_unclaimed();
    let _ = match called {
        Called::Stock => prctl::set_name(c"varnishd"),
        Called::Copal => prctl::set_name(c"copal"),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let error = ArgumentError::of_start(format!("no event loop: {error}"));
            return give_up(called, successor.as_ref(), &error);
        }
    };
    let format = log_format(&parsed);
    let status = match successor {
        None => LocalSet::new().block_on(&runtime, run(parsed, passed, program)),
        Some(successor) => LocalSet::new().block_on(&runtime, run_as_successor(parsed, program, successor)),
    };
    // A compilation under way must not delay us.
    runtime.shutdown_background();
    match status {
        Ok(status) => status,
        Err(error) => fail_as(called, format, &error),
    }
}

/// True if the first argument is that mark; and the arguments after it.
fn marked<'a>(arguments: &'a [OsString], mark: &str) -> (bool, &'a [OsString]) {
    match arguments.split_first() {
        Some((first, rest)) if first == mark => (true, rest),
        _ => (false, arguments),
    }
}

/// A start that failed before anything was begun; this is reported to the predecessor too.
fn give_up(called: Called, successor: Option<&Successor>, error: &ArgumentError) -> i32 {
    let status = fail(called, error);
    match successor {
        Some(successor) => successor.give_up(&error.text),
        None => status,
    }
}

fn log_format(arguments: &Arguments) -> LogFormat {
    let is_test = arguments.parameters.debug & debug::VTC_MODE != 0;
    arguments.log_format.for_reader(is_test || arguments.mode == Mode::Background)
}

/// Reports a failed start: in JSON if that format is used, otherwise in the form of varnishd.
fn fail_as(called: Called, format: LogFormat, error: &ArgumentError) -> i32 {
    if format == LogFormat::Json {
        eprint!("{}", format.line(crate::clock::now(), Level::Error, "", error.text.trim()));
        return FAILED;
    }
    fail(called, error)
}

fn fail(called: Called, error: &ArgumentError) -> i32 {
    eprintln!("Error:{}", surface::legible::lines(error.shown(called).as_bytes()));
    FAILED
}

/// Prints to standard output; the reader may close it early.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// `-C`: prints the programs in readable form.
fn compile_and_print(arguments: &Arguments) -> i32 {
    for vcl in &arguments.vcls {
        let job = Job::of_parameters(&arguments.parameters, arguments, vcl.source_name.clone(), vcl.text.clone());
        match job.run(true) {
            Ok(done) => {
                eprint!("{}", done.warnings);
                print(&done.listing);
            }
            Err(report) => return fail(arguments.called, &ArgumentError::of_part(report)),
        }
    }
    0
}

/// Raises the limit of file descriptors to the maximum allowed, so that connections do not fail
/// because of an arbitrary limit: the soft limit is 1024 almost everywhere, for programs that use
/// select(2). The worker inherits it.
fn raise_descriptor_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

async fn run(arguments: Arguments, passed: Passed, program: Program) -> Result<i32, ArgumentError> {
    let signals = Signals::listen().map_err(|error| ArgumentError::of_start(format!("no signals: {error}")))?;
    let (manager, cli_sockets) = prepare(arguments, passed, program)?;
    spawn_local(signals.obey(manager.clone()));
    manager.is_awaited.set(true);
    let result = lead(&manager, cli_sockets).await;
    if result.is_ok() {
        serve(&manager).await;
    }
    end(&manager).await;
    if result.is_ok() {
        manager.say(Level::Info, "manager dies");
    }
    result.map(|()| manager.exit_status.get())
}

/// Runs a manager with the resources of a predecessor. Until a worker serves, every failure ends
/// this process without a trace.
async fn run_as_successor(arguments: Arguments, program: Program, successor: Successor) -> Result<i32, ArgumentError> {
    let reporter = Reporter::new(arguments.called, arguments.mode != Mode::Background, log_format(&arguments));
    let refused = |why: &str| -> ! {
        eprintln!("Error: {}", surface::legible::lines(why.as_bytes()));
        successor.give_up(why)
    };
    let signals = Signals::listen().unwrap_or_else(|error| refused(&format!("no signals: {error}")));
    let patience = Duration::try_from_secs_f64(arguments.parameters.cli_timeout.max(0.1)).unwrap_or(CHANGE_PATIENCE);
    let inheritance = successor.receive(&arguments, patience).unwrap_or_else(|why| refused(&why));
    inheritance.remarks.iter().for_each(|remark| reporter.say(Level::Warning, remark));
    let mut heir = match successor.wait().await {
        Ok(heir) => heir,
        Err(why) => {
            eprintln!("Error: {}", surface::legible::lines(why.as_bytes()));
            handover::leave(FAILED)
        }
    };
    match heir.while_working(succeed(arguments, reporter, program, inheritance, signals)).await {
        Ok(manager) => {
            heir.serves().await;
            manager.directory.borrow().forget_other();
            announce(&manager);
            serve(&manager).await;
            end(&manager).await;
            manager.say(Level::Info, "manager dies");
            Ok(manager.exit_status.get())
        }
        Err(why) => {
            eprintln!("Error: {}", surface::legible::lines(why.as_bytes()));
            heir.give_up(&why).await
        }
    }
}

/// Builds a manager from the received resources, starts its worker, and makes it visible.
async fn succeed(
    arguments: Arguments,
    reporter: Reporter,
    program: Program,
    inheritance: Inheritance,
    signals: Signals,
) -> Result<Rc<Manager>, String> {
    let Inheritance { mut directory, memory, limits_bytes, listeners, cli_sockets, metrics, dash, vcls, tls, .. } =
        inheritance;
    let built = assemble(
        arguments,
        reporter,
        &mut directory,
        Existing { listeners, memory, tls, program, cli_sockets, metrics, dash },
    );
    let (manager, cli_sockets) = built.map_err(|error| error.text.trim().to_owned())?;
    // Those of the command line stay, so that a later upgrade passes the difference again.
    *manager.parameters.borrow_mut() = inheritance.parameters;
    *manager.vcls.borrow_mut() = vcls;
    *manager.history.borrow_mut() = inheritance.history;
    manager.trials.borrow_mut().running = inheritance.canary;
    *manager.panic.borrow_mut() = inheritance.panic;
    manager.exit_status.set(inheritance.exit_status);
    if let Some(limits) = limits_bytes {
        let mut now = manager.limits_now_bytes.borrow_mut();
        now.iter_mut().zip(limits).for_each(|(now, limit)| *now = limit.min(*now));
    }
    spawn_local(signals.obey(manager.clone()));
    spawn_local(tick(manager.clone()));
    spawn_local(commands::watch_canary(manager.clone()));
    spawn_local(memory_limits::follow(manager.clone()));
    spawn_local(storage_files::watch(manager.clone()));
    keeper::begin(&manager).await?;
    if manager.tls.borrow().is_configured() {
        spawn_local(tls::reload::watch(manager.clone(), ROTATION));
    }
    if inheritance.is_serving {
        let _changes = manager.changes.lock().await;
        tokio::select! {
            started = life::begin(&manager) => started?,
            () = manager.end.notified() => return Err("it was told to end".to_owned()),
        }
    }
    if let Some(acme) = &manager.acme {
        acme.wake.notify_one();
    }
    manager.directory.borrow_mut().come_forward().map_err(|error| format!("the work directory: {error}"))?;
    manager.listeners.borrow().iter().for_each(Listener::own);
    cli_sockets.iter().for_each(CliListener::own);
    manager.metrics.iter().chain(&manager.dash).for_each(MetricsSocket::own);
    converse(&manager, cli_sockets);
    observer::begin(&manager);
    fleet::begin(&manager)?;
    manager.reporter.detach();
    Ok(manager)
}

/// Opens the CLI.
fn converse(manager: &Rc<Manager>, cli_sockets: Vec<CliListener>) {
    for socket in cli_sockets {
        spawn_local(cli_server::accept(manager.clone(), socket));
    }
    for master in &manager.arguments.cli_masters {
        spawn_local(cli_server::connect(manager.clone(), master.clone()));
    }
}

/// From the first VCL to the first worker.
async fn lead(manager: &Rc<Manager>, cli_sockets: Vec<CliListener>) -> Result<(), ArgumentError> {
    for vcl in &manager.arguments.vcls {
        commands::load_at_start(manager, &vcl.name, &vcl.source_name, &vcl.text).map_err(ArgumentError::of_part)?;
    }
    if manager.arguments.called == Called::Stock {
        // Copal reports what it serves once it does.
        manager.say(Level::Debug, format!("Version: {VARNISH_BANNER}"));
        manager.say(Level::Debug, format!("Platform: {}", manager.identification));
        manager.say(Level::Debug, format!("Work directory: {}", manager.directory.borrow().path().display()));
    }
    converse(manager, cli_sockets);
    spawn_local(tick(manager.clone()));
    spawn_local(commands::watch_canary(manager.clone()));
    spawn_local(memory_limits::follow(manager.clone()));
    spawn_local(storage_files::watch(manager.clone()));
    keeper::begin(manager).await.map_err(ArgumentError::of_start)?;
    if manager.tls.borrow().is_configured() {
        spawn_local(tls::reload::watch(manager.clone(), ROTATION));
    }
    first_start(manager).await?;
    fleet::begin(manager).map_err(ArgumentError::of_start)?;
    if let Some(acme) = &manager.acme {
        acme.wake.notify_one();
    }
    observer::begin(manager);
    let report = start_report::of(manager);
    if manager.arguments.mode == Mode::Background {
        background::report_ready(report.as_deref());
    } else if let Some(report) = &report {
        manager.reporter.say_plain(report);
    }
    manager.reporter.detach();
    announce(manager);
    Ok(())
}

/// Everything that needs no event loop, in the order in which it may fail.
fn prepare(
    arguments: Arguments,
    passed: Passed,
    program: Program,
) -> Result<(Rc<Manager>, Vec<CliListener>), ArgumentError> {
    let reporter = Reporter::new(arguments.called, arguments.mode != Mode::Background, log_format(&arguments));
    if arguments.parameters.debug & debug::VTC_MODE != 0 {
        reporter.disable_syslog();
    }
    let mut directory = WorkDirectory::open(&arguments.work_directory, &arguments.jail, &arguments.pid_files)?;
    let built = open(&arguments, &reporter, &directory, passed, program)
        .and_then(|existing| assemble(arguments, reporter, &mut directory, existing));
    built.inspect_err(|_| directory.clean(false))
}

/// Resources that exist before the manager: opened at the start, or received from the predecessor.
struct Existing {
    listeners: Vec<Listener>,
    memory: MemoryFiles,
    tls: Registry,
    cli_sockets: Vec<CliListener>,
    metrics: Vec<MetricsSocket>,
    dash: Vec<MetricsSocket>,
    program: Program,
}

fn open(
    arguments: &Arguments,
    reporter: &Reporter,
    directory: &WorkDirectory,
    passed: Passed,
    program: Program,
) -> Result<Existing, ArgumentError> {
    let patience = if directory.has_dead_predecessor() { PREDECESSOR_PATIENCE } else { Duration::ZERO };
    let tls = tls::open::open(arguments, reporter).map_err(ArgumentError::of_start)?;
    let listeners =
        listeners::open(&arguments.listeners, event_loops(&arguments.parameters), passed.sockets, patience)?;
    let cli_sockets = cli_connections::listen(&arguments.cli_listeners, arguments.jail.administrators())?;
    let metrics = metrics_sockets::listen(METRICS, &arguments.metrics, &arguments.jail)?;
    let dash = metrics_sockets::listen(DASH, &arguments.dash.addresses, &arguments.jail)?;
    let memory = memory(arguments, reporter, directory, passed.kept, patience)?;
    Ok(Existing { listeners, memory, tls, cli_sockets, metrics, dash, program })
}

/// The memory files that systemd kept, and new ones for the others; and the files of storages on
/// disks.
fn memory(
    arguments: &Arguments,
    reporter: &Reporter,
    directory: &WorkDirectory,
    kept: Vec<(String, OwnedFd)>,
    patience: Duration,
) -> Result<MemoryFiles, ArgumentError> {
    let storages = &arguments.storages;
    if let Some(remark) = storages.remark() {
        reporter.say(Level::Warning, remark);
    }
    let back = fd_store::take_back(kept, storages, |files, wanted| {
        files.open(wanted, &arguments.jail, patience, &mut |text| reporter.say(Level::Warning, &text))?;
        Ok(memory_limits::of(arguments, &files.bytes(), directory.path(), &Kernel::here()))
    })
    .map_err(ArgumentError::of_start)?;
    for (name, why) in &back.refused {
        reporter.say(Level::Warning, &format!("What systemd kept as {name} is not used: {why}"));
    }
    if back.storages > 0 {
        reporter.say(Level::Info, &format!("systemd kept {} storages, which are taken over", back.storages));
    }
    // Only a daemon in the foreground gets kept files back.
    let is_kept = arguments.mode == Mode::Foreground;
    if let Some(Err(error)) = is_kept.then(|| back.settle(storages)) {
        reporter.say(Level::Warning, &format!("systemd does not keep the storages: {error}"));
    }
    Ok(back.memory)
}

fn no_memory(error: &std::io::Error) -> ArgumentError {
    ArgumentError::of_start(format!("Cannot set up shared memory: {}", reason(error)))
}

fn assemble(
    arguments: Arguments,
    reporter: Reporter,
    directory: &mut WorkDirectory,
    existing: Existing,
) -> Result<(Rc<Manager>, Vec<CliListener>), ArgumentError> {
    let Existing { listeners, memory, tls, cli_sockets, metrics, dash, program } = existing;
    if let Some(remark) = jail::remark(&arguments.jail) {
        reporter.say(Level::Warning, &remark);
    }
    let secret = match &arguments.secret {
        SecretArgument::Generated => Some(directory.secret()?),
        SecretArgument::File(path) => {
            if let Some((user, group)) = arguments.jail.worker()
                && rights::may_read(&Reader { user, group, groups: Vec::new() }, path)
            {
                let shown = path.display();
                reporter.say(Level::Warning, &format!("the worker can read the secret of the CLI ({shown})."));
            }
            Some(path.clone())
        }
        SecretArgument::None => {
            reporter.say(Level::Warning, "CLI authentication disabled.");
            None
        }
    };
    let usable = Kernel::here().usable_within(arguments.memory_bytes);
    let overhead = Overhead::of(directory.path(), arguments.parameters.vsl_space);
    let file_bytes = memory.files().bytes();
    let storage_limits_bytes = memory_limits::of(&arguments, &file_bytes, directory.path(), &Kernel::here());
    if let Some(complaint) = overhead.complaint(&storage_limits_bytes, usable) {
        reporter.say(Level::Warning, &complaint);
    }
    let acme = match arguments.acme.clone() {
        Some(acme) => Some(Acme::new(acme, arguments.certificates.clone(), &arguments.listeners)?),
        None => None,
    };
    let held =
        cli_sockets.iter().map(CliListener::hold).collect::<Result<_, _>>().map_err(|error| no_memory(&error))?;
    let parts = Parts {
        directory: directory.take(),
        listeners,
        tls,
        acme,
        secret: secret.clone(),
        storage_limits_bytes,
        memory,
        cli_sockets: held,
        metrics,
        dash,
        program,
    };
    let manager = Manager::new(arguments, reporter, parts).map_err(|error| no_memory(&error))?;
    let places: Vec<String> = cli_sockets.iter().filter_map(CliListener::place).collect();
    manager.publish_cli(&places, secret.as_deref().map(Path::new)).map_err(|error| no_memory(&error))?;
    Ok((Rc::new(manager), cli_sockets))
}

/// The `-I` file, and the first worker.
async fn first_start(manager: &Rc<Manager>) -> Result<(), ArgumentError> {
    if let Some((_, content)) = &manager.arguments.commands {
        cli_server::run_file(manager, content).await?;
    }
    let has_vcl = manager.vcls.borrow().active().is_some();
    if manager.is_debug_mode() || !has_vcl || manager.state.get() != ChildState::Stopped {
        return Ok(());
    }
    let _changes = manager.changes.lock().await;
    let start = life::start(manager);
    tokio::pin!(start);
    let started = tokio::select! {
        started = &mut start => started,
        () = manager.end.notified() => {
            // A worker that is nearly ready is stopped in an orderly way; one that hangs is not
            // waited for.
            manager.end.notify_one();
            tokio::time::timeout(CHANGE_PATIENCE, start).await.unwrap_or(Ok(()))
        }
    };
    started.map_err(ArgumentError::of_start)
}

/// Notifies systemd, if it started us, that we are ready; and, if the watchdog is on, from then on
/// that we are alive.
fn announce(manager: &Rc<Manager>) {
    manager.is_awaited.set(false);
    match manager.running_worker() {
        Some(_) => systemd::ready(),
        // A daemon that waits for an operator's commands is as ready as it can be.
        None => {
            systemd::ready();
            systemd::waiting("no worker: load a VCL and start it");
        }
    }
    if let Some(interval) = systemd::watchdog_interval() {
        spawn_local(async move {
            let mut ticks = tokio::time::interval(interval);
            loop {
                ticks.tick().await;
                systemd::alive();
            }
        });
    }
}

/// Serves until a signal or command ends us.
async fn serve(manager: &Rc<Manager>) {
    if manager.is_debug_mode() {
        tokio::select! {
            () = cli_server::standard_input(manager) => {}
            () = manager.end.notified() => {}
        }
    } else {
        manager.end.notified().await;
    }
}

/// SIGHUP: certificates are read again.
async fn hang_up(manager: Rc<Manager>) {
    if !manager.tls.borrow().is_configured() {
        return;
    }
    match tls::reload::reload(&manager).await {
        Ok(count) => manager.say(Level::Info, format!("Manager got SIGHUP: {count} certificates are read again")),
        Err(why) => manager.say(Level::Error, format!("Manager got SIGHUP, and nothing is changed: {why}")),
    }
}

/// SIGTERM and SIGINT end us, a second one at once; SIGHUP, which may come from a closing terminal,
/// doesn't. SIGUSR2 begins an upgrade.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    upgrade: Signal,
}

impl Signals {
    /// Installs the signal handlers. Must come before anything visible to other processes, since
    /// those may send a signal.
    fn listen() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            upgrade: signal(SignalKind::user_defined2())?,
        })
    }

    async fn obey(mut self, manager: Rc<Manager>) {
        loop {
            let name = tokio::select! {
                _ = self.terminate.recv() => "SIGTERM",
                _ = self.interrupt.recv() => "SIGINT",
                _ = self.hangup.recv() => {
                    // Not here: the end must not wait for it.
                    spawn_local(hang_up(manager.clone()));
                    continue;
                }
                _ = self.upgrade.recv() => {
                    // The result is in the log.
                    drop(predecessor::begin(&manager));
                    continue;
                }
            };
            // Compat: to varnishd the regular end is an error.
            let level = |own| if manager.arguments.called == Called::Copal { own } else { Level::Error };
            if manager.ending.replace(true) {
                let text = format!("Manager got {name} again: requests in flight are cut");
                manager.say(level(Level::Warning), text);
                manager.hurry.notify_one();
            } else {
                manager.say(level(Level::Info), format!("Manager got {name}"));
                manager.end.notify_one();
            }
        }
    }
}

/// Once a second: publishes the uptime, and reports panics that the worker survived.
async fn tick(manager: Rc<Manager>) {
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        manager.count_uptime();
        if manager.published.follow(&manager.vcls.borrow(), manager.tls.borrow().active()) {
            manager.directory.borrow().share_manager_files();
        }
        if let Some(worker) = manager.running_worker() {
            life::report_panic(&manager, worker.pid);
        }
    }
}

/// Stops the worker and removes the created files.
async fn end(manager: &Rc<Manager>) {
    // A worker with files on disks writes them out.
    let has_files = manager.memory.borrow().files().journal.is_some();
    let writing = if has_files { manager.reply_timeout() } else { Duration::ZERO };
    systemd::stopping(manager.drain() + CHANGE_PATIENCE * 2 + writing);
    manager.ending.set(true);
    if let Some(successor) = manager.successor.get().and_then(|pid| i32::try_from(pid).ok()) {
        // It would take our death as its signal to go.
        let _ = kill(Pid::from_raw(successor), KillSignal::SIGKILL);
    }
    // A change may be under way; a worker that does not answer must not delay us for long. A worker
    // that an operator is already stopping keeps the time it was given.
    let is_stopping = manager.state.get() == ChildState::Stopping;
    let patience = if is_stopping { manager.drain() + CHANGE_PATIENCE } else { CHANGE_PATIENCE };
    let changes = tokio::time::timeout(patience, manager.changes.lock()).await;
    if manager.state.get() != ChildState::Stopped {
        life::stop(manager).await;
    }
    drop(changes);
    manager.directory.borrow_mut().clean(manager.debug(debug::VTC_MODE));
    manager.listeners.borrow_mut().clear();
}
