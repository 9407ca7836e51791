//! The worker process: serves traffic, unprivileged, and may die at any moment without losing more
//! than the requests in flight. The manager starts it with the descriptors it needs and controls it
//! through [`control`].
//!
//! The main thread answers the manager, sums counters, expires objects and runs probes; every event
//! loop is a thread of its own ([`event_loop`]). The worker never compiles VCL and owns nothing
//! that must outlive it: the manager owns listening sockets, arenas and ban journal.
//!
//! Reading order: `control`, `manager_process`, `directory_lock`, `health_record`, `configure`,
//! `log_space`, `fleet`, `event_loop`, `housekeeping`, `trimming`, `disk_watch`, `vcl_control`,
//! `command`, `panic_text`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod backend_list;
mod ban_list;
mod canary;
mod command;
mod configure;
mod directory_lock;
mod disk_watch;
mod event_loop;
mod fleet;
mod health_record;
mod histograms;
mod housekeeping;
mod log_space;
mod manager_process;
mod panic_text;
mod runtime;
mod statistics;
mod stopping;
mod sweeping;
mod trimming;
mod vcl_control;

use cli_proto::response::Response;
use cli_proto::response::status::CANNOT;
use control::messages::{self, Request, Said, Step};
use manager_process::ManagerProcess;
use std::rc::Rc;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

/// Runs the worker: called for `copal worker --control FD`. Returns the exit status.
///
/// If the control connection closes without `Stop`, the manager is gone and the worker ends
/// ([`manager_process`]).
#[must_use]
pub fn run(control_descriptor: i32) -> i32 {
    println!("Child starts");
    let runtime = match runtime::build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no event loop: {error}");
            return 1;
        }
    };
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        // An interrupt at the terminal reaches the whole group, and systemd ends a unit with a
        // signal to every process of it. The manager decides how to react to either.
        let _interrupt = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt());
        let _terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
        match serve(control_descriptor).await {
            Ok(()) => {
                println!("Child dies");
                0
            }
            Err(message) => {
                eprintln!("{message}");
                1
            }
        }
    })
}

async fn serve(control_descriptor: i32) -> Result<(), String> {
    let descriptor = control::inheritance::inherited(control_descriptor)
        .map_err(|error| format!("control descriptor {control_descriptor}: {error}"))?;
    let socket = std::os::unix::net::UnixStream::from(descriptor);
    socket.set_nonblocking(true).map_err(|error| format!("control socket: {error}"))?;
    let steps = socket.try_clone().map_err(|error| format!("control socket: {error}"))?;
    let mut socket = UnixStream::from_std(socket).map_err(|error| format!("control socket: {error}"))?;
    let manager_process = ManagerProcess::of(&socket)?;
    manager_process.set_death_signal()?;
    let first = messages::receive::<Request>(&mut socket).await.map_err(|error| format!("control: {error}"))?;
    let Some(Request::Configure(configuration)) = first else {
        return Err("the manager did not begin with a configuration".into());
    };
    // If the manager no longer listens, the configuration is not needed any more; sending the first
    // reply will fail.
    let worker =
        match configure::configure(*configuration, manager_process, &|step| drop(messages::send_step(&steps, step))) {
            Ok(worker) => Rc::new(worker),
            Err(message) => {
                let _ = messages::send(&mut socket, &Said::Reply(Response::new(CANNOT, message.clone()))).await;
                return Err(message);
            }
        };
    messages::send(&mut socket, &Said::Reply(Response::ok(""))).await.map_err(|error| format!("control: {error}"))?;
    housekeeping::start(&worker);
    let mut lost = watch_loops(&worker);
    loop {
        let request = tokio::select! {
            request = messages::receive::<Request>(&mut socket) => request,
            number = lost.recv() => return Err(format!("event loop {} has ended", number.unwrap_or_default())),
        };
        let request = request.map_err(|error| format!("control: {error}"))?;
        let Some(request) = request else {
            return Err("the manager is gone".into());
        };
        let is_stop = matches!(request, Request::Stop);
        log_command(&worker, "Rd", &describe(&request));
        let reply = answer(&worker, request, &|step| drop(messages::send_step(&steps, step))).await;
        log_command(&worker, "Wr", &format!("{} {} {}", reply.status, reply.body.len(), reply.body));
        messages::send(&mut socket, &Said::Reply(reply)).await.map_err(|error| format!("control: {error}"))?;
        if is_stop {
            return Ok(());
        }
    }
}

/// Reports event loops that have ended. Outside of a stop none should: its clients would wait for
/// ever, so the worker ends too.
fn watch_loops(worker: &Rc<configure::Worker>) -> mpsc::UnboundedReceiver<usize> {
    let (tell, told) = mpsc::unbounded_channel();
    for number in 0..worker.loops.len() {
        let (worker, tell) = (Rc::clone(worker), tell.clone());
        tokio::task::spawn_local(async move {
            worker.loops[number].ended().await;
            let _ = tell.send(number);
        });
    }
    told
}

/// Writes a `CLI` record: the log contains every exchange with the manager.
fn log_command(worker: &configure::Worker, direction: &str, text: &str) {
    let ring = &worker.engine.ring;
    ring.write_fmt(surface::tag::Tag::CLI, shm::log::LogId::NONE, format_args!("{direction} {text}"));
}

/// A request in the form of the log.
fn describe(request: &Request) -> String {
    match request {
        Request::Configure(_) => "configure".into(),
        Request::Parameters(_) => "param.set".into(),
        Request::VclLoad { name, .. } => format!("vcl.load {name}"),
        Request::VclUse { name } => format!("vcl.use {name}"),
        Request::VclState { name, .. } => format!("vcl.state {name}"),
        Request::VclLabel { label, vcl } => format!("vcl.label {label} {vcl}"),
        Request::VclDiscard { name } => format!("vcl.discard {name}"),
        Request::VclCanary(Some(canary)) => format!("vcl.canary {}", canary.name),
        Request::VclCanary(None) => "vcl.canary none".into(),
        Request::CanaryCounts => "vcl.canary counts".into(),
        Request::VclStatus => "vcl.list".into(),
        Request::Tls(_) => "tls".into(),
        Request::Limits(_) => "storage.limits".into(),
        Request::FleetServe(serving) => format!("fleet.serve {}", serving.word()),
        Request::FleetApply(orders) => format!("fleet.apply {}", orders.len()),
        Request::FleetCheck(_) => "fleet.check".into(),
        Request::Start => "start".into(),
        Request::Command { words, .. } => words.join(" "),
        Request::Ping => "ping".into(),
        Request::Stop => "stop".into(),
    }
}

async fn answer(worker: &Rc<configure::Worker>, request: Request, step: &dyn Fn(Step)) -> Response {
    match request {
        Request::Configure(_) => Response::new(CANNOT, "Already configured"),
        Request::Parameters(parameters) => {
            worker.set_parameters(*parameters);
            Response::ok("")
        }
        Request::VclLoad { name, program, state } => vcl_control::load(worker, &name, &program, state).await,
        Request::VclUse { name } => vcl_control::make_active(worker, &name),
        Request::VclState { name, state } => vcl_control::set_state(worker, &name, state),
        Request::VclLabel { label, vcl } => vcl_control::label(worker, &label, &vcl),
        Request::VclDiscard { name } => vcl_control::discard(worker, &name),
        Request::VclCanary(canary) => canary::set(worker, canary.map(|canary| *canary)),
        Request::CanaryCounts => canary::counts(worker),
        Request::VclStatus => Response::ok(vcl_control::status(worker)),
        Request::Tls(table) => worker.set_tls(&table),
        Request::Limits(limits) => worker.set_limits(limits).await,
        Request::FleetServe(serving) => {
            worker.engine.fleet.set(fleet::conditions(serving));
            Response::ok("")
        }
        Request::FleetApply(orders) => fleet::apply(worker, orders).await,
        Request::FleetCheck(order) => fleet::check(&order),
        Request::Start => {
            // An earlier worker may have died in the middle of this.
            sweeping::sweep(worker, std::sync::Weak::new());
            worker.start()
        }
        Request::Command { words, json } => command::run(worker, &words, json).await,
        Request::Ping => Response::ok("PONG"),
        Request::Stop => Response::ok(worker.stop(step).await),
    }
}
