//! Loads, activates, labels and discards VCLs in the worker at the manager's request.
//!
//! The table of VCLs is replaced as a whole; requests that run on an old table keep it alive. A
//! discarded VCL stays in `discarded` until its last request is done, then vcl_fini runs. Probes
//! run on the main thread while their VCL is warm.
//!
//! *Invariant:* the worker never compiles VCL. It gets programs from the manager and verifies them.

use crate::configure::Worker;
use crate::health_record::HealthRecord;
use crate::statistics::Statistics;
use crate::sweeping::sweep;
use backend::dns_names::resolve::Resolve;
use backend::dns_names::run::Surroundings;
use backend::{Backend, Findings, FollowSettings};
use cli_proto::response::Response;
use cli_proto::response::status::{CANNOT, PARAMETER};
use engine::clock::Clock;
use engine::context::Engine;
use engine::loaded_vcl::{LoadedVcl, VclTable};
use engine::vcl_life;
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;
use surface::closed_set::VclState;
use surface::parameter::debug;
use tokio::task::JoinHandle;
use vcl_run::program::Program;

/// Interval between checks for discarded VCLs that can end.
const DISCARD_CHECK_SECONDS: f64 = 3.0;

/// Makes a VCL warm.
///
/// # Errors
/// The answer for the CLI: it must not become warm.
fn tell_warm(worker: &Worker, vcl: &LoadedVcl, state: &str) -> Result<(), Response> {
    let told = match vcl.instances.debug_life().is_cooling(worker.own.clock.now()) {
        true => Err(format!("VCL {0} is waiting for:\n\t- vmod-debug ref on {0}", vcl.name)),
        false => vcl_life::tell_warm(&worker.engine, vcl),
    };
    told.map_err(|text| Response::new(CANNOT, format!("Failed <vcl.state {} {state}>\nMessage:\n\t{text}", vcl.name)))
}

/// Replaces the table with a changed copy.
pub(crate) fn change(worker: &Worker, with: impl FnOnce(&mut VclTable)) {
    let mut table = VclTable::clone(&worker.engine.vcl.load());
    with(&mut table);
    worker.engine.vcl.store(Arc::new(table));
}

/// Verifies a program, makes its backends and runs vcl_init.
pub async fn load(worker: &Rc<Worker>, name: &str, program: &[u8], state: VclState) -> Response {
    let program = match postcard::from_bytes::<Program>(program) {
        Ok(program) => program,
        Err(error) => return Response::new(CANNOT, format!("VCL \"{name}\": damaged program: {error}")),
    };
    let now = worker.own.clock.now();
    let vcl = match vcl_life::load(&worker.engine, name, program, state, now) {
        Ok(vcl) => vcl,
        Err(text) => return Response::new(CANNOT, text),
    };
    if let Err(error) = worker.statistics.add_backends(name, &vcl.all_backends()) {
        vcl_life::finish(&worker.engine, &vcl, now);
        return Response::new(CANNOT, format!("VCL \"{name}\": counters: {error}"));
    }
    if vcl.program.program().vmods.iter().any(|vmod| vmod == "xkey")
        && let Err(error) = worker.statistics.add_tags()
    {
        worker.statistics.remove_backends(name);
        vcl_life::finish(&worker.engine, &vcl, now);
        return Response::new(CANNOT, format!("VCL \"{name}\": counters: {error}"));
    }
    worker.set_as_before(&vcl);
    follow_warmth(worker, &vcl);
    change(worker, |table| {
        table.loaded.insert(name.to_owned(), vcl);
    });
    Response::ok(format!("Loaded \"{name}\""))
}

/// Starts probes and shows counters of a warm VCL, stops and hides those of a cold one.
fn follow_warmth(worker: &Worker, vcl: &Arc<LoadedVcl>) {
    let is_warm = vcl.is_warm();
    worker.statistics.hide_backends(&vcl.name, !is_warm);
    follow_lookups(worker, vcl, is_warm);
    let mut probes = worker.probes.borrow_mut();
    if !is_warm {
        let Some(running) = probes.remove(&vcl.name) else { return };
        running.iter().for_each(JoinHandle::abort);
        for backend in vcl.probed_backends() {
            backend::rest_probe(&backend, worker.own.clock.now(), &worker.engine.ring);
        }
    } else if !probes.contains_key(&vcl.name) {
        let found = worker.inherited.with(&worker.engine.vcl.load(), worker.own.clock.now());
        let running = vcl
            .probed_backends()
            .into_iter()
            .map(|backend| {
                let clock = worker.own.clock.clone();
                let engine = Arc::clone(&worker.engine);
                tokio::task::spawn_local(backend::run_probe(
                    backend,
                    Rc::clone(&worker.own.dial),
                    &found,
                    move || clock.now(),
                    move || engine.parameters.load().prefer_ipv6,
                    worker.engine.ring.clone(),
                ))
            })
            .chain(followers(worker, vcl))
            .collect();
        probes.insert(vcl.name.clone(), running);
    }
}

/// Starts the tasks that follow the names of its own backends.
fn followers(worker: &Worker, vcl: &LoadedVcl) -> Vec<JoinHandle<()>> {
    let follow = |backend: Arc<Backend>| {
        let engine = Arc::clone(&worker.engine);
        tokio::task::spawn_local(backend::follow_name(
            backend,
            Rc::clone(&worker.resolver) as Rc<dyn Resolve>,
            move || FollowSettings::of(&engine.parameters.load()),
            worker.engine.ring.clone(),
        ))
    };
    vcl.all_backends().into_iter().filter(|backend| backend.definition().follows.is_some()).map(follow).collect()
}

/// Parts of the worker that resolving the names of a VCL needs.
struct Lookups {
    vcl: String,
    clock: Clock,
    engine: Arc<Engine>,
    statistics: Rc<Statistics>,
    inherited: Rc<HealthRecord>,
}

impl Surroundings for Lookups {
    fn now(&self) -> f64 {
        self.clock.now()
    }

    fn prefers_v6(&self) -> bool {
        self.engine.parameters.load().prefer_ipv6
    }

    fn found(&self) -> Rc<Findings> {
        Rc::new(self.inherited.with(&self.engine.vcl.load(), self.now()))
    }

    fn appeared(&self, backend: &Arc<Backend>) {
        if let Err(error) = self.statistics.add_backend(&self.vcl, backend) {
            eprintln!("counters of {}: {error}", backend.display_name());
        }
    }

    fn vanished(&self, backend: &Arc<Backend>) {
        self.statistics.remove_backend(&self.vcl, backend);
    }
}

/// Starts resolving the names of a warm VCL, stops it for a cold one.
fn follow_lookups(worker: &Worker, vcl: &LoadedVcl, is_warm: bool) {
    let mut lookups = worker.lookups.borrow_mut();
    if !is_warm {
        if let Some(running) = lookups.remove(&vcl.name) {
            running.abort();
        }
    } else if !lookups.contains_key(&vcl.name) && vcl.directors.dns_names().has_makers() {
        let around = Lookups {
            vcl: vcl.name.clone(),
            clock: worker.own.clock.clone(),
            engine: Arc::clone(&worker.engine),
            statistics: Rc::clone(&worker.statistics),
            inherited: Rc::clone(&worker.inherited),
        };
        let running = tokio::task::spawn_local(backend::dns_names::run::run(
            Arc::clone(vcl.directors.dns_names()),
            Rc::clone(&worker.resolver) as Rc<dyn Resolve>,
            Rc::clone(&worker.own.dial),
            Rc::new(around),
            worker.engine.ring.clone(),
        ));
        lookups.insert(vcl.name.clone(), running);
    }
}

/// Stops the probes of a VCL.
fn stop_probes(worker: &Worker, vcl: &str) {
    for probe in worker.probes.borrow_mut().remove(vcl).into_iter().flatten() {
        probe.abort();
    }
}

/// Makes a VCL warm because it becomes active or a label points to it.
///
/// # Errors
/// The answer for the CLI: it must not be warm.
pub(crate) fn warm_up(worker: &Worker, vcl: &Arc<LoadedVcl>) -> Result<(), Response> {
    if vcl.state() != VclState::Cold {
        tell_warm(worker, vcl, vcl.state().word())?;
    }
    vcl.warm_up(worker.own.clock.now()).map_err(|text| Response::new(CANNOT, text))?;
    follow_warmth(worker, vcl);
    Ok(())
}

/// Reports to a VCL that it is cold, once no task runs on it. `held` is the number of references of
/// others.
fn tell_cold(worker: &Worker, vcl: &Arc<LoadedVcl>, held: usize) {
    if vcl.instances.debug_life().awaits_cold() && !vcl.is_warm() && vcl.busy(held) == 0 {
        vcl_life::tell_cold(&worker.engine, vcl, worker.own.clock.now());
    }
}

/// Activates a VCL, or the VCL that a label points to. Ends a canary at the same instant.
pub fn make_active(worker: &Rc<Worker>, name: &str) -> Response {
    let table = worker.engine.vcl.load_full();
    let Some(vcl) = table.find(name).map(Arc::clone) else {
        return Response::new(PARAMETER, format!("No VCL named {name} known\n"));
    };
    if let Err(reply) = warm_up(worker, &vcl) {
        return reply;
    }
    change(worker, |table| {
        table.active_label = table.labels.contains_key(name).then(|| name.to_owned());
        table.active = Some(vcl);
        table.trial = None;
    });
    if let Some(trial) = &table.trial {
        sweep(worker, Arc::downgrade(&trial.canary));
    }
    Response::ok("")
}

/// Changes the state that the operator set for a VCL.
pub fn set_state(worker: &Rc<Worker>, name: &str, state: VclState) -> Response {
    let table = worker.engine.vcl.load_full();
    let Some(vcl) = table.loaded.get(name) else {
        return Response::new(PARAMETER, format!("No VCL named {name} known\n"));
    };
    if state == VclState::Warm
        && let Err(reply) = tell_warm(worker, vcl, state.word())
    {
        return reply;
    }
    vcl.set_state(state, worker.own.clock.now());
    follow_warmth(worker, vcl);
    tell_cold(worker, vcl, table.held(vcl));
    Response::ok("")
}

/// Points a label at a VCL; if the label is active, the active VCL changes with it.
pub fn label(worker: &Rc<Worker>, label: &str, vcl: &str) -> Response {
    let table = worker.engine.vcl.load_full();
    let Some(target) = table.loaded.get(vcl).map(Arc::clone) else {
        return Response::new(PARAMETER, format!("No VCL named {vcl} known\n"));
    };
    if let Err(reply) = warm_up(worker, &target) {
        return reply;
    }
    change(worker, |table| {
        table.labels.insert(label.to_owned(), vcl.to_owned());
        if table.active_label.as_deref() == Some(label) {
            table.active = Some(target);
        }
    });
    Response::ok("")
}

/// Takes a VCL or label out of the table. The manager has checked that it is not referred to.
pub fn discard(worker: &Rc<Worker>, name: &str) -> Response {
    let table = worker.engine.vcl.load_full();
    if table.labels.contains_key(name) {
        change(worker, |table| {
            table.labels.remove(name);
        });
        return Response::ok("");
    }
    let Some(vcl) = table.loaded.get(name).map(Arc::clone) else {
        return Response::new(PARAMETER, format!("No VCL named {name} known\n"));
    };
    change(worker, |table| {
        table.loaded.remove(name);
    });
    drop(table);
    vcl.set_state(VclState::Cold, worker.own.clock.now());
    stop_probes(worker, name);
    if let Some(running) = worker.lookups.borrow_mut().remove(name) {
        running.abort();
    }
    let is_busy = vcl.busy(1) > 0;
    let counters = worker.statistics.retire_backends(name);
    worker.discarded.borrow_mut().push((vcl, counters));
    if !is_busy {
        finish_discarded(worker);
    }
    Response::ok("")
}

/// Ends the discarded VCLs that no request uses any more.
fn finish_discarded(worker: &Worker) {
    let now = worker.own.clock.now();
    worker.swept_at.set(now);
    worker.discarded.borrow_mut().retain(|(vcl, counters)| {
        tell_cold(worker, vcl, 1);
        let is_free = vcl.busy(1) == 0 && !vcl.instances.debug_life().is_cooling(now);
        if is_free {
            vcl_life::finish(&worker.engine, vcl, now);
            worker.statistics.remove_backends(counters);
        }
        !is_free
    });
}

/// One line `name temperature busy` per VCL; the discarded ones come first, and their lines end in
/// `discarded`.
pub fn status(worker: &Worker) -> String {
    finish_discarded(worker);
    let table = worker.engine.vcl.load_full();
    let mut text = String::new();
    let now = worker.own.clock.now();
    for (vcl, _) in worker.discarded.borrow().iter() {
        let busy = vcl.busy(1);
        let _ = writeln!(text, "{} {} {busy} discarded", vcl.name, vcl.temperature(busy, now).word());
    }
    for vcl in table.loaded.values() {
        let busy = vcl.busy(table.held(vcl));
        let _ = writeln!(text, "{} {} {busy}", vcl.name, vcl.temperature(busy, now).word());
    }
    text
}

/// Makes VCLs cold that were not used for a while.
pub fn cool_down(worker: &Worker) {
    // Compat: scripts expect a discarded VCL to end with the next command of the CLI, or with the
    // manager's next ping.
    if worker.own.clock.now() - worker.swept_at.get() >= DISCARD_CHECK_SECONDS {
        finish_discarded(worker);
    }
    let table = worker.engine.vcl.load_full();
    let parameters = worker.engine.parameters.load();
    let now = worker.own.clock.now();
    let release_at_once = parameters.debug & debug::VCLREL != 0;
    for vcl in table.loaded.values() {
        let busy = vcl.busy(table.held(vcl));
        let prevents_cold = vcl.instances.debug_life().prevents_cold();
        let is_used = table.is_in_use(vcl) || prevents_cold || (busy > 0 && !release_at_once);
        tell_cold(worker, vcl, table.held(vcl));
        if vcl.cool_down(is_used, parameters.vcl_cooldown, now) {
            follow_warmth(worker, vcl);
        }
        if vcl.directors.has_run_time_backends() && worker.statistics.follow_backends(&vcl.name, &vcl.all_backends()) {
            stop_probes(worker, &vcl.name);
            follow_warmth(worker, vcl);
        }
    }
}

/// Runs vcl_fini of every VCL when the worker ends.
pub fn end_all(worker: &Worker) {
    let table = worker.engine.vcl.swap(Arc::new(VclTable::default()));
    let now = worker.own.clock.now();
    let discarded = worker.discarded.borrow();
    for vcl in table.loaded.values().chain(discarded.iter().map(|(vcl, _)| vcl)) {
        vcl_life::finish(&worker.engine, vcl, now);
    }
}
