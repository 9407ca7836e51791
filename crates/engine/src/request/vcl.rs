//! Runs of VCL methods for a request, including the waits of VMODs.

use super::{Request, Run, Step};
use crate::ruling::{Failed, Ruling, StatusLine};
use crate::world::{ClientSide, Side, VmodWait, World, is_usual, run_words};
use semantics::HttpPolicy;
use semantics::vary::Sameness;
use shm::log::LogBuffer;
use std::future::poll_fn;
use std::task::Poll;
use surface::counter::Main;
use surface::limits::REQUEST_BASE_BYTES;
use surface::reason::Reason;
use surface::tag::Tag;
use surface::vcl::{Action, Method};
use vcl_run::eval::{ActionArguments, Machine, Outcome};
use vcl_run::host::Failure;
use vcl_run::link::LinkedProgram;
use vcl_run::value::{Scratch, Value};
use vmods::{Finish, Pending};

impl Run<'_> {
    /// Runs the method that the ruling type `R` belongs to.
    pub(super) async fn call_vcl<R: Ruling>(&mut self) -> Result<R, Failed> {
        if let Some(action) = self.run_at_once(R::METHOD) {
            return R::of(action, ActionArguments::default()).ok_or(Failed);
        }
        let mut outcome = self.start_vcl(R::METHOD);
        while matches!(outcome, Outcome::Wait) {
            if !Box::pin(self.wait_for_vmod()).await {
                self.request.task.life.is_left = true;
                return Err(Failed);
            }
            outcome =
                self.in_world(R::METHOD, |machine, program, world, scratch| machine.resume(program, world, scratch));
        }
        match outcome {
            Outcome::Return(action, arguments) if !self.has_overflowed() => R::of(action, arguments).ok_or(Failed),
            outcome => Err(self.failed(&outcome)),
        }
    }

    /// Runs a method that does nothing but return an action, without creating a world for it.
    /// `None` if there is more to do, or if too much memory is in use, which is left to the full
    /// run.
    fn run_at_once(&mut self, method: Method) -> Option<Action> {
        let Request { vcl, machine, scratch, log, task, .. } = &mut *self.request;
        if task.choices.trace.unwrap_or_else(|| !log.is_masked(Tag::VCLTrace)) {
            return None;
        }
        let limit = task.memory_limit();
        if task.memory_bytes() > limit.min(REQUEST_BASE_BYTES) {
            return None;
        }
        let action = machine.run_at_once(&vcl.as_ref()?.program, method, || is_usual(&task.request))?;
        scratch.clear(limit);
        log.record_word(Tag::VCLCall, run_words::of_call(method));
        log.record_word(Tag::VCLReturn, run_words::of_return(action));
        Some(action)
    }

    /// The end of a run that failed, or that took too much memory.
    #[cold]
    fn failed(&mut self, outcome: &Outcome) -> Failed {
        match outcome {
            Outcome::Return(..) => self.out_of_memory(),
            Outcome::Failed(failure) if failure.is_out_of_memory() => self.out_of_memory(),
            Outcome::Failed(_) | Outcome::Wait => {}
        }
        self.context.count(Main::VclFail);
        Failed
    }

    fn start_vcl(&mut self, method: Method) -> Outcome {
        let request = &mut *self.request;
        request.scratch.clear(request.task.memory_limit());
        self.in_world(method, |machine, program, world, scratch| machine.run(program, method, world, scratch))
    }

    /// Runs the evaluator with the state that the method may access.
    #[inline]
    fn in_world(
        &mut self,
        method: Method,
        run: impl FnOnce(&mut Machine, &LinkedProgram, &mut World<'_>, &mut Scratch) -> Outcome,
    ) -> Outcome {
        // VCL's `now` is the time of the last timestamp.
        let now = self.request.task.life.previous;
        let Request { vcl, machine, scratch, log, task, .. } = &mut *self.request;
        let Some(vcl) = vcl else { return Outcome::Failed(Failure("No VCL".to_owned())) };
        let side = Side::Client(ClientSide { context: self.context, session: self.session, task });
        let mut world = World::new((&self.context.engine, vcl), (method, now), log, side);
        run(machine, &vcl.program, &mut world, scratch)
    }

    /// Waits until the VMOD's wait is over. False if the client left before.
    async fn wait_for_vmod(&mut self) -> bool {
        let _ = self.has_overflowed();
        let done = match self.request.task.life.vmod_wait.take() {
            Some(VmodWait::CacheBody(limit)) => VmodWait::Value(Value::Bool(self.cache_body(limit).await)),
            Some(VmodWait::Pending(pending)) => match self.while_there(pending).await {
                Some(finish) => VmodWait::Finish(finish),
                None => return false,
            },
            Some(VmodWait::Doing(doing)) => VmodWait::Finish(doing.await),
            Some(done @ (VmodWait::Finish(_) | VmodWait::Value(_))) => done,
            None => return true,
        };
        self.request.task.life.vmod_wait = Some(done);
        true
    }

    /// Waits as long as the client is connected; `None` if it has left.
    async fn while_there(&mut self, mut pending: Pending) -> Option<Finish> {
        // During early data, more is read only when its handshake is complete.
        let mut has_heard = self.request.task.life.early.is_some();
        poll_fn(|context| match pending.as_mut().poll(context) {
            Poll::Ready(finish) => Poll::Ready(Some(finish)),
            Poll::Pending => self.poll_gone(context, &mut has_heard).map(|()| None),
        })
        .await
    }

    /// Counts the memory held now. Returns true if it is more than allowed.
    #[inline]
    fn has_overflowed(&mut self) -> bool {
        let request = &mut *self.request;
        let bytes = request.scratch.used_bytes() + request.task.memory_bytes();
        if bytes > REQUEST_BASE_BYTES {
            request.task.life.held.set_at_least(&self.context.memory, bytes);
        }
        request.scratch.overflowed() || bytes > request.task.memory_limit()
    }

    fn out_of_memory(&mut self) {
        let limit = self.request.task.settings.request_memory_max;
        self.log().record_fmt(Tag::Error, format_args!("request needs more than request_memory_max ({limit} bytes)"));
        self.context.count(Main::WsClientOverflow);
    }

    /// True if the request's VCL follows RFC 9111.
    pub(super) fn follows_rfc(&self) -> bool {
        self.request.vcl.as_ref().is_some_and(|vcl| vcl.policy == HttpPolicy::Rfc)
    }

    /// Rule by which requests are for the same variant.
    pub(super) fn sameness(&self) -> Sameness {
        match self.follows_rfc() {
            true => Sameness::Meaning { any_language_order: self.request.task.settings.vary_language_order },
            false => Sameness::Bytes,
        }
    }

    /// The log of this transaction.
    pub(super) fn log(&mut self) -> &mut LogBuffer {
        &mut self.request.log
    }

    /// Logs a timestamp with the current time and stores it.
    pub(super) fn timestamp(&mut self, label: &str) -> f64 {
        let now = self.session.now(self.context);
        self.request.log.timestamp(label, now);
        self.request.task.life.previous = now;
        now
    }

    /// Makes an answer that the machine decides on by itself; an empty reason means the standard
    /// phrase of the status.
    pub(super) fn own_synth(&mut self, status: u16, reason: &[u8]) -> Step {
        let task = &mut self.request.task;
        task.life.error_status = status;
        task.error_reason.clear();
        task.error_reason.extend_from_slice(reason);
        Step::Synth
    }

    /// Carries out `return(synth(status, reason))`.
    pub(super) fn synth_ruling(&mut self, line: StatusLine) -> Step {
        let unnamed = if self.is_legacy() { self.legacy_error_status() } else { 0 };
        self.why_vcl(Reason::SynthByVcl);
        let request = &mut *self.request;
        request.task.life.error_status = line.status.unwrap_or(unnamed);
        request.task.error_reason.clear();
        request.task.error_reason.extend_from_slice(request.scratch.get(line.reason));
        Step::Synth
    }
}
