//! The beginning and the end of a VCL: vcl_init and vcl_fini, which run without a request. They can
//! read only the server's own variables, cannot wait, and their records belong to no transaction.

use crate::context::Engine;
use crate::loaded_vcl::LoadedVcl;
use crate::world::{Side, World};
use backend::Notes;
use shm::log::{LogBuffer, LogId};
use std::sync::Arc;
use surface::closed_set::VclState;
use surface::tag::Tag;
use surface::vcl::Method;
use vcl_run::eval::{Machine, Outcome};
use vcl_run::host::Failure;
use vcl_run::program::Program;
use vcl_run::value::Scratch;
use vmods::{TaskState, VmodContext};

/// Links a program, makes its backends and runs vcl_init. `now` is seconds since 1970.
///
/// # Errors
/// The text for the CLI: the program is damaged, or vcl_init failed (vcl_fini has then run).
pub fn load(
    engine: &Engine,
    name: &str,
    program: Program,
    state: VclState,
    now: f64,
) -> Result<Arc<LoadedVcl>, String> {
    let vcl = LoadedVcl::link(name, program, state, &engine.parameters.load(), now)?;
    let told = run(engine, &vcl, Method::Init, now).and_then(|()| match vcl.is_warm() {
        true => tell_warm(engine, &vcl).map_err(|text| format!("VCL \"{name}\" Failed warmup\nMessage:\n\t{text}")),
        false => Ok(()),
    });
    match told {
        Ok(()) => Ok(vcl),
        Err(text) => {
            finish(engine, &vcl, now);
            Err(text)
        }
    }
}

/// Notifies the VMOD debug, if the VCL imports it, that the VCL becomes warm.
///
/// # Errors
/// The reason why it must not become warm; a text for the CLI.
pub fn tell_warm(engine: &Engine, vcl: &LoadedVcl) -> Result<(), String> {
    if vcl.instances.debug_life().warm(vcl.program.program(), &engine.parameters.load())? {
        log_event(engine, vcl, "WARM");
    }
    Ok(())
}

/// Notifies the VMOD debug that the VCL is cold and no request runs on it any more.
pub fn tell_cold(engine: &Engine, vcl: &LoadedVcl, now: f64) {
    if vcl.instances.debug_life().cold(now) {
        log_event(engine, vcl, "COLD");
    }
}

fn log_event(engine: &Engine, vcl: &LoadedVcl, event: &str) {
    engine.ring.write_fmt(Tag::Debug, LogId::NONE, format_args!("{}: VCL_EVENT_{event}", vcl.name));
}

/// Runs vcl_fini, once. Must be called when a discarded VCL is no longer used, and when the worker
/// ends. `now` is seconds since 1970.
pub fn finish(engine: &Engine, vcl: &LoadedVcl, now: f64) {
    if vcl.take_finish() {
        // vcl_fini has no caller to report to; its log records describe a failure.
        let _ = run(engine, vcl, Method::Fini, now);
    }
}

/// Runs vcl_init or vcl_fini.
///
/// # Errors
/// The text for the CLI, if the method failed.
fn run(engine: &Engine, vcl: &LoadedVcl, method: Method, now: f64) -> Result<(), String> {
    let parameters = engine.parameters.load_full();
    let limit = usize::try_from(parameters.request_memory_max).unwrap_or(usize::MAX);
    let mut log = LogBuffer::new(&engine.ring);
    log.start(LogId::NONE, now);
    let mut state = TaskState::new();
    let mut world = World::new((engine, vcl), (method, now), &mut log, Side::Housekeeping(&mut state));
    let mut scratch = Scratch::new(limit);
    let outcome = match vmods::before(&vcl.program, method, &parameters) {
        Ok(()) => Machine::new().run(&vcl.program, method, &mut world, &mut scratch),
        Err(failure) => Outcome::Failed(failure),
    };
    let outcome = match (outcome, vcl.instances.missing()) {
        (Outcome::Return(..), Some(name)) if method == Method::Init => {
            Outcome::Failed(Failure(format!("Object {name} not initialized")))
        }
        (outcome, _) => outcome,
    };
    let notes = Notes::new();
    world.task().leave(&vcl.directors, &notes);
    let outcome = match (outcome, world.task().take_failure()) {
        (Outcome::Return(..), Some(failure)) => Outcome::Failed(failure),
        (outcome, _) => outcome,
    };
    world.log_notes(&notes);
    log.flush();
    match outcome {
        Outcome::Return(_, _) => Ok(()),
        Outcome::Wait => Err(format!("VCL \"{}\" Failed initialization\nMessage:\n\tIt cannot wait\n", vcl.name)),
        Outcome::Failed(failure) => {
            Err(format!("VCL \"{}\" Failed initialization\nMessage:\n\t{}\n", vcl.name, failure.0))
        }
    }
}
