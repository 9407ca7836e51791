//! Runs of VCL methods for a fetch.

use super::Fetch;
use crate::ruling::{Failed, Ruling, StatusLine};
use crate::world::{FetchSide, Side, VmodWait, World};
use std::sync::Arc;
use surface::counter::Main;
use surface::limits::REQUEST_BASE_BYTES;
use surface::tag::Tag;
use surface::vcl::Method;
use vcl_run::eval::{Machine, Outcome};
use vcl_run::host::Failure;
use vcl_run::link::LinkedProgram;
use vcl_run::value::Scratch;

impl Fetch {
    /// Runs the method that the ruling type `R` belongs to, waiting where a VMOD waits. A failure
    /// is counted.
    pub(super) async fn run_vcl<R: Ruling>(&mut self) -> Result<R, Failed> {
        match self.run_method(R::METHOD).await {
            Outcome::Return(action, arguments) => R::of(action, arguments).ok_or(Failed),
            Outcome::Failed(_) | Outcome::Wait => Err(Failed),
        }
    }

    async fn run_method(&mut self, method: Method) -> Outcome {
        let limit = usize::try_from(self.task.order.parameters.request_memory_max).unwrap_or(usize::MAX);
        self.scratch.clear(limit.saturating_sub(self.task.vmod_state.taken_bytes()));
        // VCL's `now` is the time of the last timestamp, so that a fresh response has its whole
        // lifetime.
        let now = self.log.previous();
        let mut outcome =
            self.in_world(method, now, |machine, program, world, scratch| machine.run(program, method, world, scratch));
        while outcome == Outcome::Wait {
            if let Some(VmodWait::Pending(pending) | VmodWait::Doing(pending)) = self.task.vmod_wait.take() {
                self.task.vmod_wait = Some(VmodWait::Finish(pending.await));
            }
            outcome =
                self.in_world(method, now, |machine, program, world, scratch| machine.resume(program, world, scratch));
        }
        self.task.life.held.set_at_least(&self.context.memory, self.bytes_of_vcl());
        if self.task.attempt.synthetic.len() > limit && !matches!(outcome, Outcome::Failed(_)) {
            let failure = Failure::out_of_memory();
            self.log.record(Tag::Error, failure.0.as_bytes());
            outcome = Outcome::Failed(failure);
        }
        if let Outcome::Failed(failure) = &outcome {
            self.context.count(Main::VclFail);
            if failure.is_out_of_memory() {
                self.context.count(Main::WsBackendOverflow);
            }
        }
        outcome
    }

    /// Runs the evaluator with the state that the method may access.
    fn in_world(
        &mut self,
        method: Method,
        now: f64,
        run: impl FnOnce(&mut Machine, &LinkedProgram, &mut World<'_>, &mut Scratch) -> Outcome,
    ) -> Outcome {
        let vcl = Arc::clone(&self.task.order.vcl);
        let side = Side::Fetch(FetchSide { context: &self.context, task: &mut self.task });
        let mut world = World::new((&self.context.engine, &vcl), (method, now), &mut self.log, side);
        run(&mut self.machine, &vcl.program, &mut world, &mut self.scratch)
    }

    /// Bytes that VCL uses for headers, strings, a body and state of VMODs; 0 when the base covers
    /// them.
    pub(super) fn bytes_of_vcl(&self) -> usize {
        let heads = self.task.bereq.memory_bytes()
            + self.task.bereq_original.memory_bytes()
            + self.task.attempt.beresp.memory_bytes();
        let kept = self.task.attempt.synthetic.len() + self.task.vmod_state.memory_bytes();
        let bytes = heads + self.scratch.used_bytes() + kept;
        if bytes > REQUEST_BASE_BYTES { bytes } else { 0 }
    }

    /// Stores the arguments of `return (error(status, reason))`. Must be called before another
    /// method runs.
    pub(super) fn note_error(&mut self, line: StatusLine) {
        self.task.attempt.error_status = line.status.unwrap_or(503);
        self.task.attempt.error_reason.clear();
        match line.status {
            Some(_) => self.task.attempt.error_reason.extend_from_slice(self.scratch.get(line.reason)),
            None => self.task.attempt.error_reason.extend_from_slice(b"Backend fetch failed"),
        }
    }
}
