//! Operations of VMODs on a task, beyond those of VCL itself.

use super::invalidation::{purge_tags, purge_tags_at_once, settled};
use super::value::int;
use super::vmod_wait::VmodWait;
use super::{Side, World, knows_digest, no_request};
use crate::request::client_body::ClientBody;
use crate::request::initial;
use backend::{Directors, Notes, ResolveContext, TestableRandom};
use http2::Resets;
use message::Message;
use semantics::Purge;
use shm::log::LogId;
use std::rc::Rc;
use std::sync::Arc;
use surface::counter::Main;
use surface::parameter::Parameters;
use surface::tag::Tag;
use surface::vcl::{HttpObject, Method};
use vcl_run::host::{Called, Failure};
use vcl_run::tls::TlsFacts;
use vcl_run::value::DirectorId;
use vmods::{ClientConnection, Instances, Pending, SharedState, SocketOptions, TaskState, Transaction, VmodContext};

impl World<'_> {
    /// The slot for the wait of the task; `None` where waiting is not possible.
    pub(super) fn vmod_wait(&mut self) -> Option<&mut Option<VmodWait>> {
        match &mut self.side {
            Side::Client(client) => Some(&mut client.task.life.vmod_wait),
            Side::Fetch(fetch) => Some(&mut fetch.task.vmod_wait),
            Side::Housekeeping(_) => None,
        }
    }

    /// The time at which objects that VCL removes from the cache count as gone, seconds since 1970.
    pub(super) fn invalidated_at(&self) -> f64 {
        match &self.side {
            Side::Client(_) | Side::Housekeeping(_) => self.now,
            Side::Fetch(fetch) => fetch.context.clock.now(),
        }
    }

    /// As [`VmodContext::wait`], for work that runs to its end even if the client leaves.
    fn wait_through(&mut self, doing: Pending) {
        if let Some(wait) = self.vmod_wait() {
            *wait = Some(VmodWait::Doing(doing));
        }
    }

    /// Drops the state that VMODs keep for the task, which is rolled back.
    fn forget_kept(&mut self) {
        let notes = Notes::new();
        let vcl = self.vcl;
        self.task().leave(&vcl.directors, &notes);
        self.log_notes(&notes);
    }
}

impl VmodContext for World<'_> {
    fn method(&self) -> Method {
        self.method
    }

    fn random(&self) -> &TestableRandom {
        &self.engine.random
    }

    fn directors(&self) -> &Directors {
        &self.vcl.directors
    }

    fn resolve_context<'a>(&'a self, notes: &'a Notes) -> ResolveContext<'a> {
        self.resolving(notes)
    }

    fn used_backend(&self) -> Option<DirectorId> {
        match &self.side {
            Side::Fetch(fetch) => fetch.task.used_backend(),
            Side::Client(_) | Side::Housekeeping(_) => None,
        }
    }

    fn instances(&self) -> &Instances {
        &self.vcl.instances
    }

    fn shared(&self) -> &SharedState {
        &self.engine.vmod_state
    }

    fn task(&mut self) -> &mut TaskState {
        match &mut self.side {
            Side::Client(client) => &mut client.task.vmod_state,
            Side::Fetch(fetch) => &mut fetch.task.vmod_state,
            Side::Housekeeping(state) => state,
        }
    }

    fn message(&mut self, http: HttpObject) -> Option<&Message> {
        self.message_of(http)
    }

    fn message_mut(&mut self, http: HttpObject) -> Option<&mut Message> {
        self.logged(http).map(|(_, _, message)| message)
    }

    fn digest(&self) -> Option<[u8; 32]> {
        match &self.side {
            Side::Client(client) => knows_digest(self.method).then_some(client.task.life.digest),
            Side::Fetch(fetch) => Some(fetch.task.order.digest),
            Side::Housekeeping(_) => None,
        }
    }

    fn parameters(&self) -> Arc<Parameters> {
        self.engine.parameters.load_full()
    }

    fn log_for(&mut self, transaction: Transaction, tag: Tag, payload: &[u8]) {
        let id = match (transaction, &self.side) {
            // Written through the task's log, so that it stays in order with the other records that
            // belong to no transaction.
            (Transaction::None, Side::Housekeeping(_)) => return self.log.record(tag, payload),
            (Transaction::None, _) => LogId::NONE,
            (Transaction::Client(vxid), _) => LogId::client(vxid),
            (Transaction::Backend(vxid), _) => LogId::backend(vxid),
        };
        self.engine.ring.write(tag, id, payload);
    }

    fn message_bytes(&self) -> usize {
        match &self.side {
            Side::Client(client) => client.task.memory_bytes(),
            Side::Fetch(fetch) => fetch.task.message_bytes(),
            Side::Housekeeping(_) => 0,
        }
    }

    fn connection(&self) -> Option<ClientConnection<'_>> {
        match &self.side {
            Side::Client(client) => Some(client.session.peer.connection()),
            Side::Fetch(fetch) => Some(fetch.task.order.peer.connection()),
            Side::Housekeeping(_) => None,
        }
    }

    fn backend_tls(&self) -> Option<&TlsFacts> {
        match &self.side {
            Side::Fetch(fetch) => fetch.task.origin_tls(),
            Side::Client(_) | Side::Housekeeping(_) => None,
        }
    }

    fn http2_resets(&self) -> Option<&Resets> {
        match &self.side {
            Side::Client(client) => client.session.http2.as_deref(),
            Side::Fetch(_) | Side::Housekeeping(_) => None,
        }
    }

    fn timestamp(&mut self, label: &str) {
        let Some(context) = self.context() else { return };
        let now = context.clock.now();
        self.log.timestamp(label, now);
        if let Side::Client(client) = &mut self.side {
            client.task.life.previous = now;
        }
    }

    fn cache_request_body(&mut self, limit_bytes: u64) -> Result<Called, Failure> {
        match &mut self.side {
            Side::Client(client) if self.method == Method::Recv => {
                client.task.life.vmod_wait = Some(VmodWait::CacheBody(limit_bytes));
                Ok(Called::Wait)
            }
            Side::Client(_) | Side::Fetch(_) => Err(Failure("req.body can only be cached in vcl_recv{}".to_owned())),
            Side::Housekeeping(_) => Err(no_request()),
        }
    }

    fn late_100_continue(&mut self, late: bool) {
        if let Side::Client(client) = &mut self.side {
            client.task.life.late_continue = late;
        }
    }

    fn rollback(&mut self, http: HttpObject) -> Result<(), Failure> {
        let is_own = match &self.side {
            Side::Client(_) => http == HttpObject::Req && self.method != Method::Pipe,
            Side::Fetch(_) => http == HttpObject::Bereq,
            Side::Housekeeping(_) => false,
        };
        if is_own && !self.vcl.is_legacy() {
            self.forget_kept();
        }
        match (&mut self.side, http) {
            (Side::Client(_), HttpObject::Req) if self.method == Method::Pipe => {
                Err(Failure("Cannot rollback in vcl_pipe {}".to_owned()))
            }
            (Side::Client(client), HttpObject::Req) => {
                let task = &mut *client.task;
                task.request.copy_from(&task.original);
                match self.method {
                    _ if self.vcl.is_legacy() => {}
                    Method::Deliver => {
                        task.answer.filters = None;
                        initial::of_object(task, self.log, self.engine.name);
                    }
                    Method::Synth => {
                        initial::of_error(task, self.log, self.now, self.vcl.generation, self.engine.name);
                    }
                    _ => {}
                }
                Ok(())
            }
            (Side::Client(_), _) => Err(Failure("Only req can be rolled back here".to_owned())),
            (Side::Fetch(fetch), HttpObject::Bereq) => {
                fetch.task.roll_back(fetch.context, self.log);
                Ok(())
            }
            (Side::Fetch(fetch), HttpObject::Req) if fetch.task.life.client.is_some() => {
                if let Some(client) = &mut fetch.task.life.client {
                    client.message.copy_from(&client.original);
                }
                Ok(())
            }
            (Side::Fetch(_), _) => Err(Failure("std.rollback() works on req and bereq only".to_owned())),
            (Side::Housekeeping(_), _) => Err(no_request()),
        }
    }

    fn purge(&mut self, kind: Purge) -> Result<Called, Failure> {
        let client = match &self.side {
            Side::Client(client) => client,
            Side::Fetch(_) => {
                return Err(Failure("purge can only be called in vcl_hit{} and vcl_miss{}".to_owned()));
            }
            Side::Housekeeping(_) => return Err(no_request()),
        };
        let count = self.engine.cache.purge(&client.task.life.digest, kind, self.now);
        client.context.count(Main::NPurges);
        client.context.counters.add(Main::NObjPurged, count as u64);
        let count = int(count as u64);
        let on_disk = self.engine.storages.on_disk();
        if on_disk.is_empty() {
            return Ok(Called::Value(count));
        }
        self.wait_through(settled(on_disk, count));
        Ok(Called::Wait)
    }

    fn purge_tags(&mut self, list: &[u8], kind: Purge) -> Called {
        let (cache, now) = (&self.engine.cache, self.invalidated_at());
        if !self.can_wait() {
            return Called::Value(purge_tags_at_once(cache, list, kind, now));
        }
        match purge_tags(cache, list, kind, now, self.engine.storages.on_disk()) {
            Ok(value) => Called::Value(value),
            Err(pending) => {
                self.wait_through(pending);
                Called::Wait
            }
        }
    }

    fn cached_body(&self) -> Option<Rc<Vec<u8>>> {
        let Side::Client(client) = &self.side else { return None };
        match &client.task.life.body {
            ClientBody::Cached(body) => Some(Rc::clone(body.bytes())),
            ClientBody::None | ClientBody::Unread { .. } | ClientBody::Taken | ClientBody::Failed => None,
        }
    }

    fn client_socket(&self) -> Option<(Rc<dyn SocketOptions>, i32)> {
        let Side::Client(client) = &self.side else { return None };
        Some((Rc::clone(&client.context.sockets), client.session.peer.descriptor))
    }

    fn can_wait(&self) -> bool {
        match &self.side {
            Side::Client(_) | Side::Fetch(_) => true,
            Side::Housekeeping(_) => false,
        }
    }

    fn wait(&mut self, pending: Pending) {
        if let Some(wait) = self.vmod_wait() {
            *wait = Some(VmodWait::Pending(pending));
        }
    }
}
