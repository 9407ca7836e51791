//! What VMODs can do to a client's request, beyond the variables.

use super::body::ClientBody;
use super::host::ClientHost;
use crate::vcl_context;
use backend::{Directors, Notes, ResolveContext, TestableRandom};
use message::Message;
use std::rc::Rc;
use std::sync::Arc;
use surface::counter::Main;
use surface::parameter::Parameters;
use surface::tag::Tag;
use surface::vcl::{HttpObject, Method};
use vcl_run::host::{Called, Failure};
use vcl_run::value::{DirectorId, Value};
use vmods::{
    ClientConnection, Finish, Instances, Pending, PurgeKind, SharedState, SocketOptions, TaskState, Transaction,
    VmodContext,
};

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
    fn method(&self) -> Method {
        self.method
    }

    fn random(&self) -> &TestableRandom {
        &self.context.engine.random
    }

    fn directors(&self) -> &Directors {
        &self.vcl.directors
    }

    fn resolve_context<'a>(&'a self, notes: &'a Notes) -> ResolveContext<'a> {
        self.resolve_now(notes)
    }

    fn used_backend(&self) -> Option<DirectorId> {
        None
    }

    fn instances(&self) -> &Instances {
        &self.vcl.instances
    }

    fn shared(&self) -> &SharedState {
        &self.context.engine.vmod_state
    }

    fn task(&mut self) -> &mut TaskState {
        &mut self.task.vmod_state
    }

    fn message(&mut self, http: HttpObject) -> Option<&Message> {
        Some(ClientHost::message(self, http))
    }

    fn message_mut(&mut self, http: HttpObject) -> Option<&mut Message> {
        self.logged(http).map(|(_, _, message)| message)
    }

    fn digest(&self) -> Option<[u8; 32]> {
        self.knows_digest().then_some(self.task.life.digest)
    }

    fn parameters(&self) -> Arc<Parameters> {
        self.context.engine.parameters.load_full()
    }

    fn log_for(&mut self, transaction: Transaction, tag: Tag, payload: &[u8]) {
        self.context.engine.ring.write(tag, vcl_context::log_id(transaction), payload);
    }

    fn message_bytes(&self) -> usize {
        self.task.memory_bytes()
    }

    fn connection(&self) -> Option<ClientConnection<'_>> {
        Some(self.session.peer.connection())
    }

    fn timestamp(&mut self, label: &str) {
        let now = self.context.clock.now();
        self.log.timestamp(label, now);
        self.task.life.previous = now;
    }

    fn cache_request_body(&mut self, limit_bytes: u64) -> Result<Called, Failure> {
        if self.method != Method::Recv {
            return Err(Failure("req.body can only be cached in vcl_recv{}".to_owned()));
        }
        self.task.life.vmod_wait = Some(VmodWait::CacheBody(limit_bytes));
        Ok(Called::Wait)
    }

    fn late_100_continue(&mut self, late: bool) {
        self.task.life.late_continue = late;
    }

    fn rollback(&mut self, http: HttpObject) -> Result<(), Failure> {
        if http != HttpObject::Req {
            return Err(Failure("Only req can be rolled back here".to_owned()));
        }
        let task = &mut *self.task;
        task.request.copy_from(&task.original);
        Ok(())
    }

    fn purge(&mut self, kind: PurgeKind) -> Result<usize, Failure> {
        let purge = vcl_context::purge_of(kind);
        let count = self.context.engine.cache.purge(&self.task.life.digest, purge, self.now);
        self.context.count(Main::NPurges);
        self.context.counters.add(Main::NObjPurged, count as u64);
        Ok(count)
    }

    fn purge_tags(&mut self, list: &[u8], kind: PurgeKind) -> Called {
        match vcl_context::purge_tags(&self.context.engine.cache, list, kind, self.now) {
            Ok(value) => Called::Value(value),
            Err(pending) => {
                self.wait(pending);
                Called::Wait
            }
        }
    }

    fn cached_body(&self) -> Option<Rc<Vec<u8>>> {
        match &self.task.life.body {
            ClientBody::Cached(body) => Some(Rc::clone(body.bytes())),
            ClientBody::None | ClientBody::Unread { .. } | ClientBody::Taken | ClientBody::Failed => None,
        }
    }

    fn client_socket(&self) -> Option<(Rc<dyn SocketOptions>, i32)> {
        Some((Rc::clone(&self.context.sockets), self.session.peer.descriptor))
    }

    fn can_wait(&self) -> bool {
        true
    }

    fn wait(&mut self, pending: Pending) {
        self.task.life.vmod_wait = Some(VmodWait::Pending(pending));
    }
}
