//! vcl_init and vcl_fini: VCL without a request. There is nothing to read but the server's own names, nothing to wait for,
//! and the records go to no transaction.

use super::LoadedVcl;
use crate::context::Engine;
use crate::world::{Side, World};
use backend::Notes;
use shm::log::{LogBuffer, LogId};
use std::sync::Arc;
use surface::vcl::Method;
use vcl_run::eval::{Machine, Outcome};
use vcl_run::host::Failure;
use vcl_run::value::Scratch;
use vmods::{TaskState, VmodContext};

/// Runs vcl_init or vcl_fini.
///
/// # Errors
/// The text for the CLI, when it failed.
pub(super) fn run(engine: &Arc<Engine>, vcl: &Arc<LoadedVcl>, method: Method, now: f64) -> Result<(), String> {
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
