//! vcl_init and vcl_fini: VCL without a request. There is nothing to read but the server's own names, nothing to wait for,
//! and the records go to no transaction.

use super::LoadedVcl;
use crate::context::Engine;
use crate::vcl_context as shared;
use backend::{ClientName, Directors, Notes, ResolveContext, TestableRandom};
use message::Message;
use shm::log::{LogBuffer, LogId};
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use surface::parameter::Parameters;
use surface::tag::Tag;
use surface::vcl::{HttpObject, Method, Var};
use vcl_run::eval::{Machine, Outcome};
use vcl_run::host::{Called, Failure, Host};
use vcl_run::link::LinkedProgram;
use vcl_run::program::Point;
use vcl_run::value::{DirectorId, Scratch, Text, Value};
use vmods::{
    ClientConnection, Instances, Pending, PurgeKind, SharedState, SocketOptions, TaskState, Transaction, VmodContext,
};

/// Runs vcl_init or vcl_fini.
///
/// # Errors
/// The text for the CLI, when it failed.
pub(super) fn run(engine: &Arc<Engine>, vcl: &Arc<LoadedVcl>, method: Method, now: f64) -> Result<(), String> {
    let parameters = engine.parameters.load_full();
    let limit = usize::try_from(parameters.request_memory_max).unwrap_or(usize::MAX);
    let mut log = LogBuffer::new(&engine.ring);
    log.start(LogId::NONE, now);
    let mut host = Housekeeping { engine, vcl, log, method, now, task: TaskState::new() };
    let mut scratch = Scratch::new(limit);
    let outcome = match vmods::before(&vcl.program, method, &parameters) {
        Ok(()) => Machine::new().run(&vcl.program, method, &mut host, &mut scratch),
        Err(failure) => Outcome::Failed(failure),
    };
    let outcome = match (outcome, vcl.instances.missing()) {
        (Outcome::Return(..), Some(name)) if method == Method::Init => {
            Outcome::Failed(Failure(format!("Object {name} not initialized")))
        }
        (outcome, _) => outcome,
    };
    let notes = Notes::new();
    host.task.leave(&vcl.directors, &notes);
    host.log_notes(&notes);
    host.log.flush();
    match outcome {
        Outcome::Return(_, _) => Ok(()),
        Outcome::Wait => Err(format!("VCL \"{}\" Failed initialization\nMessage:\n\tIt cannot wait\n", vcl.name)),
        Outcome::Failed(failure) => {
            Err(format!("VCL \"{}\" Failed initialization\nMessage:\n\t{}\n", vcl.name, failure.0))
        }
    }
}

struct Housekeeping<'a> {
    engine: &'a Arc<Engine>,
    vcl: &'a Arc<LoadedVcl>,
    log: LogBuffer,
    method: Method,
    now: f64,
    task: TaskState,
}

impl Housekeeping<'_> {
    /// All records are of no transaction here, and in their order.
    fn log_notes(&mut self, notes: &Notes) {
        for note in notes.take() {
            self.log.record(note.tag, note.text.as_bytes());
        }
    }
}

fn no_request() -> Failure {
    Failure("There is no request in vcl_init{} and vcl_fini{}".to_owned())
}

impl Host for Housekeeping<'_> {
    fn program(&self) -> &LinkedProgram {
        &self.vcl.program
    }

    fn now(&self) -> f64 {
        self.now
    }

    fn read(&mut self, var: Var, scratch: &mut Scratch) -> Result<Value, Failure> {
        Ok(match var {
            Var::ServerHostname => Value::Text(scratch.put(self.engine.hostname.as_bytes())),
            Var::ServerIdentity => Value::Text(scratch.put(self.engine.identity.as_bytes())),
            Var::Now => Value::Time(self.now),
            // The compiler lets nothing else be read here.
            var => shared::parameter_variable(var, &self.engine.parameters.load()).unwrap_or(Value::Void),
        })
    }

    fn write(&mut self, _var: Var, _value: Value, _append: bool, _scratch: &mut Scratch) -> Result<(), Failure> {
        Err(no_request())
    }

    fn unset(&mut self, _var: Var) -> Result<(), Failure> {
        Err(no_request())
    }

    fn header(&mut self, _http: HttpObject, _name: &str) -> Option<&[u8]> {
        None
    }

    fn set_header(&mut self, _http: HttpObject, _name: &str, _value: Text, _scratch: &Scratch) -> Result<(), Failure> {
        Err(no_request())
    }

    fn unset_header(&mut self, _http: HttpObject, _name: &str) {}

    fn storage_property(&mut self, storage: Option<u32>, property: &str) -> Value {
        shared::storage_property(self.engine, storage, property)
    }

    fn storage_name(&self, storage: Option<u32>) -> &str {
        shared::storage_name(self.engine, storage)
    }

    fn director_name(&self, director: DirectorId) -> Cow<'_, str> {
        shared::director_name(self.vcl, director)
    }

    fn resolve_director(&mut self, director: DirectorId) -> Option<DirectorId> {
        let notes = Notes::new();
        let resolved = self.vcl.directors.resolve_id(director, &self.resolve_context(&notes));
        self.log_notes(&notes);
        resolved
    }

    fn hash_data(&mut self, _piece: Option<&[u8]>) {}

    fn synthetic(&mut self, _body: &[u8]) {}

    fn ban(&mut self, expression: &[u8]) -> Result<(), String> {
        shared::add_ban(self.engine, expression, self.now)
    }

    fn log(&mut self, tag: Tag, payload: &[u8]) {
        self.log.record(tag, payload);
    }

    fn log_run(&mut self, tag: Tag, payload: &[u8]) {
        // Without a transaction only what VCL itself says is logged, not that its methods run. Why vcl_init failed is for the
        // operator who loads it; vcl_fini has nobody but the log to tell. Compat: Varnish 7.1, both records.
        match tag {
            Tag::VCLError if self.method == Method::Fini => {
                self.log.record(tag, payload);
                self.log.record(tag, b"VRT_fail() from vcl_fini{} has no effect");
            }
            Tag::VCLCall | Tag::VCLReturn | Tag::VCLError => {}
            _ => self.log.record(tag, payload),
        }
    }

    fn is_traced(&self) -> bool {
        shared::is_traced(&self.log, None)
    }

    fn trace(&mut self, index: u32, point: Point) {
        shared::trace(&mut self.log, &self.vcl.name, index, point);
    }

    fn call(
        &mut self,
        function: u32,
        instance: Option<u32>,
        arguments: &[Value],
        scratch: &mut Scratch,
    ) -> Result<Called, Failure> {
        vmods::call(function, instance, self, arguments, scratch)
    }

    fn resume(&mut self, _scratch: &mut Scratch) -> Result<Value, Failure> {
        Err(no_request())
    }
}

impl VmodContext for Housekeeping<'_> {
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
        ResolveContext {
            now: self.now,
            random: &self.engine.random,
            url: b"",
            host: None,
            client: ClientName::default(),
            digest: None,
            is_for_cache: false,
            shard: None,
            notes,
        }
    }

    fn used_backend(&self) -> Option<DirectorId> {
        None
    }

    fn instances(&self) -> &Instances {
        &self.vcl.instances
    }

    fn shared(&self) -> &SharedState {
        &self.engine.vmod_state
    }

    fn task(&mut self) -> &mut TaskState {
        &mut self.task
    }

    fn message(&mut self, _http: HttpObject) -> Option<&Message> {
        None
    }

    fn message_mut(&mut self, _http: HttpObject) -> Option<&mut Message> {
        None
    }

    fn digest(&self) -> Option<[u8; 32]> {
        None
    }

    fn parameters(&self) -> Arc<Parameters> {
        self.engine.parameters.load_full()
    }

    fn log_for(&mut self, transaction: Transaction, tag: Tag, payload: &[u8]) {
        match transaction {
            // So that it keeps its place among the others of no transaction.
            Transaction::None => self.log.record(tag, payload),
            other => self.engine.ring.write(tag, shared::log_id(other), payload),
        }
    }

    fn message_bytes(&self) -> usize {
        0
    }

    fn connection(&self) -> Option<ClientConnection<'_>> {
        None
    }

    fn timestamp(&mut self, _label: &str) {}

    fn cache_request_body(&mut self, _limit_bytes: u64) -> Result<Called, Failure> {
        Err(no_request())
    }

    fn late_100_continue(&mut self, _late: bool) {}

    fn rollback(&mut self, _http: HttpObject) -> Result<(), Failure> {
        Err(no_request())
    }

    fn purge(&mut self, _kind: PurgeKind) -> Result<usize, Failure> {
        Err(no_request())
    }

    fn purge_tags(&mut self, list: &[u8], kind: PurgeKind) -> Called {
        let mut purge = self.engine.cache.purge_tags(list, shared::purge_of(kind), self.now);
        purge.step(usize::MAX);
        Called::Value(Value::Int(i64::try_from(purge.count()).unwrap_or(i64::MAX)))
    }

    fn cached_body(&self) -> Option<Rc<Vec<u8>>> {
        None
    }

    fn client_socket(&self) -> Option<(Rc<dyn SocketOptions>, i32)> {
        None
    }

    fn can_wait(&self) -> bool {
        false
    }

    fn wait(&mut self, _pending: Pending) {}
}
