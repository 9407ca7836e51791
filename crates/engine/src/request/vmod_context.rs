//! What VMODs can do to a client's request, beyond the variables.

use super::host::ClientHost;
use crate::vcl_context;
use backend::{Directors, TestableRandom};
use cache::Purge;
use message::Message;
use surface::counter::Main;
use surface::tag::Tag;
use surface::vcl::{HttpObject, Method};
use vcl_run::host::{Called, Failure};
use vcl_run::link::LinkedProgram;
use vcl_run::value::Value;
use vmods::{Finish, Instances, Pending, PurgeKind, TaskState, VmodContext};

/// What a method waits for, and then what came of it.
pub(crate) enum VmodWait {
    /// The client's body shall be read and kept, if it has at most that many bytes.
    CacheBody(u64),
    /// A VMOD's own wait.
    Pending(Pending),
    /// Its end.
    Finish(Finish),
    /// The value of the call.
    Value(Value),
}

impl VmodContext for ClientHost<'_> {
    fn program(&self) -> &LinkedProgram {
        &self.vcl.program
    }

    fn method(&self) -> Method {
        self.method
    }

    fn now(&self) -> f64 {
        self.now
    }

    fn random(&self) -> &TestableRandom {
        &self.context.engine.random
    }

    fn directors(&self) -> &Directors {
        &self.vcl.directors
    }

    fn instances(&self) -> &Instances {
        &self.vcl.instances
    }

    fn task(&mut self) -> &mut TaskState {
        &mut self.task.vmod_state
    }

    fn message(&self, http: HttpObject) -> Option<&Message> {
        match http {
            HttpObject::Req | HttpObject::ReqTop => Some(&self.task.request),
            HttpObject::Resp => Some(&self.task.response),
            HttpObject::Obj => self.task.is_object_head_decoded.then_some(&self.task.object_head),
            HttpObject::Bereq => self.task.pipe.as_ref().map(|pipe| &pipe.bereq),
            HttpObject::Beresp => None,
        }
    }

    fn message_mut(&mut self, http: HttpObject) -> Option<&mut Message> {
        match http {
            HttpObject::Req => Some(&mut self.task.request),
            HttpObject::Resp => Some(&mut self.task.response),
            HttpObject::Bereq => self.task.pipe.as_mut().map(|pipe| &mut pipe.bereq),
            HttpObject::ReqTop | HttpObject::Obj | HttpObject::Beresp => None,
        }
    }

    fn digest(&self) -> Option<[u8; 32]> {
        self.knows_digest().then_some(self.task.digest)
    }

    fn log(&mut self, tag: Tag, payload: &[u8]) {
        self.log.record(tag, payload);
    }

    fn timestamp(&mut self, label: &str) {
        let now = self.context.clock.now();
        self.log.timestamp(label, now);
        self.task.previous = now;
    }

    fn cache_request_body(&mut self, limit_bytes: u64) -> Result<Called, Failure> {
        if self.method != Method::Recv {
            return Err(Failure("req.body can only be cached in vcl_recv{}".to_owned()));
        }
        self.task.vmod_wait = Some(VmodWait::CacheBody(limit_bytes));
        Ok(Called::Wait)
    }

    fn late_100_continue(&mut self, late: bool) {
        self.task.late_continue = late;
    }

    fn set_type_of_service(&mut self, _tos: u8) {
        // The engine has streams, not sockets: nothing to set it on.
    }

    fn rollback(&mut self, http: HttpObject) -> Result<(), Failure> {
        if http != HttpObject::Req {
            return Err(Failure("Only req can be rolled back here".to_owned()));
        }
        let task = &mut *self.task;
        task.request.copy_from(&task.original);
        Ok(())
    }

    fn ban(&mut self, expression: &[u8]) -> Result<(), String> {
        vcl_context::add_ban(&self.context.engine, expression, self.now)
    }

    fn purge(&mut self, kind: PurgeKind) -> Result<usize, Failure> {
        let purge = match kind {
            PurgeKind::Hard => Purge::Hard,
            PurgeKind::Soft { ttl, grace, keep } => Purge::Soft { ttl, grace, keep },
        };
        let count = self.context.engine.cache.purge(&self.task.digest, purge, self.now);
        self.context.count(Main::NPurges);
        self.context.counters.add(Main::NObjPurged, count as u64);
        Ok(count)
    }

    fn can_wait(&self) -> bool {
        true
    }

    fn wait(&mut self, pending: Pending) {
        self.task.vmod_wait = Some(VmodWait::Pending(pending));
    }
}
