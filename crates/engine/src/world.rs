//! What VCL can touch: one [`World`], whichever side runs the method.
//!
//! The evaluator asks it through [`Host`], VMODs besides through [`vmods::VmodContext`] (`world/vmod_context.rs`). Variables lie in
//! one file for each object of the language, with what each side answers that has the object; headers and start lines follow
//! once, from the messages (`world/messages.rs`). Which object a variable belongs to says its row in `surface::vcl`.
//!
//! A world is a handful of references and lives for one run of a method, until it ends or waits. *Invariants:* what changes a
//! message leaves its log records; what the compiler lets a method touch has an arm here, everything else is out of reach
//! (`world/tests.rs` goes through all rows).

mod bereq;
mod beresp;
mod connection;
pub(crate) mod decision;
mod invalidation;
mod messages;
mod obj;
mod obj_stale;
mod param;
mod req;
mod resp;
mod sess;
mod storage;
mod value;
mod vmod_context;
pub(crate) mod vmod_wait;

pub(crate) use decision::Decision;
pub(crate) use vmod_wait::VmodWait;

use crate::context::{Engine, Loop};
use crate::fetch::mode::FetchMode;
use crate::fetch::task::FetchTask;
use crate::loaded_vcl::LoadedVcl;
use crate::request::task::Task;
use crate::session::SessionView;
use backend::{ClientName, Notes, ResolveContext, TestableRandom};
use decision::Noted;
use sha2::Digest;
use shm::log::{LogBuffer, LogId};
use std::borrow::Cow;
use std::rc::Rc;
use surface::tag::Tag;
use surface::vcl::{HttpObject, Method, Var, VclObject};
use vcl_run::eval::Place;
use vcl_run::host::{Called, Failure, Host};
use vcl_run::link::LinkedProgram;
use vcl_run::program::Point;
use vcl_run::value::{DirectorId, Scratch, Text, Value};
use vmods::TaskState;

/// The world of one method.
pub(crate) struct World<'a> {
    engine: &'a Engine,
    vcl: &'a LoadedVcl,
    method: Method,
    /// `now`, seconds since 1970.
    now: f64,
    /// The log of the task.
    log: &'a mut LogBuffer,
    /// Where VCL is about to set something, if somebody will be told.
    noted: Option<Noted>,
    side: Side<'a>,
}

/// Who runs the method.
pub(crate) enum Side<'a> {
    /// A client's request.
    Client(ClientSide<'a>),
    /// A fetch.
    Fetch(FetchSide<'a>),
    /// vcl_init or vcl_fini: VCL without a request. There is nothing to wait for, and the records go to no transaction.
    Housekeeping(&'a mut TaskState),
}

/// A client's request and what it knows of its session.
pub(crate) struct ClientSide<'a> {
    pub(crate) context: &'a Rc<Loop>,
    pub(crate) session: &'a mut SessionView,
    pub(crate) task: &'a mut Task,
}

/// A fetch, which may have a client's request on loan.
pub(crate) struct FetchSide<'a> {
    pub(crate) context: &'a Rc<Loop>,
    pub(crate) task: &'a mut FetchTask,
}

/// The compiler has refused to touch this here, so the program is damaged.
fn out_of_reach() -> Failure {
    Failure("VCL program is damaged".to_owned())
}

fn no_request() -> Failure {
    Failure("There is no request in vcl_init{} and vcl_fini{}".to_owned())
}

impl<'a> World<'a> {
    /// The world of a method, at that time (seconds since 1970).
    pub(crate) fn new(
        (engine, vcl): (&'a Engine, &'a LoadedVcl),
        (method, now): (Method, f64),
        log: &'a mut LogBuffer,
        side: Side<'a>,
    ) -> World<'a> {
        World { engine, vcl, method, now, log, noted: None, side }
    }

    /// Whether somebody will be told where VCL decided something.
    fn tells_reasons(&self) -> bool {
        match &self.side {
            Side::Client(client) => client.task.settings.reasons,
            Side::Fetch(fetch) => fetch.task.order.parameters.tells_reasons(),
            Side::Housekeeping(_) => false,
        }
    }

    /// Whether the points of the program that a task passes are recorded: as VCL said, else as the log's mask says.
    fn traces(&self, said: Option<bool>) -> bool {
        said.unwrap_or_else(|| !self.log.is_masked(Tag::VCLTrace))
    }

    /// The loop of the task.
    fn context(&self) -> Option<&'a Rc<Loop>> {
        match &self.side {
            Side::Client(client) => Some(client.context),
            Side::Fetch(fetch) => Some(fetch.context),
            Side::Housekeeping(_) => None,
        }
    }

    /// What decides where directors lead. What they have to say goes to `notes`.
    fn resolving<'b>(&'b self, notes: &'b Notes) -> ResolveContext<'b> {
        let random = &self.engine.random;
        match &self.side {
            Side::Client(client) => client.resolving(random, (self.method, self.now), notes),
            Side::Fetch(fetch) => fetch.task.resolving(random, self.now, notes),
            Side::Housekeeping(_) => ResolveContext {
                now: self.now,
                random,
                url: b"",
                host: None,
                client: ClientName::default(),
                digest: None,
                is_for_cache: false,
                shard: None,
                notes,
            },
        }
    }

    /// Writes what directors had to say.
    pub(crate) fn log_notes(&mut self, notes: &Notes) {
        match &self.side {
            Side::Client(_) | Side::Fetch(_) => log_notes(self.engine, self.log, notes),
            // All records are of no transaction here, and in their order.
            Side::Housekeeping(_) => {
                for note in notes.take() {
                    self.log.record(note.tag, note.text.as_bytes());
                }
            }
        }
    }
}

/// Writes what directors had to say: to the task's log, or as records of no transaction.
pub(crate) fn log_notes(engine: &Engine, log: &mut LogBuffer, notes: &Notes) {
    for note in notes.take() {
        match note.of_task {
            true => log.record(note.tag, note.text.as_bytes()),
            false => engine.ring.write(note.tag, LogId::NONE, note.text.as_bytes()),
        }
    }
}

impl ClientSide<'_> {
    fn resolving<'b>(
        &'b self,
        random: &'b TestableRandom,
        (method, now): (Method, f64),
        notes: &'b Notes,
    ) -> ResolveContext<'b> {
        let task = &*self.task;
        ResolveContext {
            now,
            random,
            url: task.request.target(),
            host: task.found.prepared.as_ref().map_or(&task.request, |prepared| &prepared.bereq).get("Host"),
            client: ClientName {
                identity: task.choices.client_identity.as_deref(),
                address: Some(self.session.peer.client.ip()),
            },
            digest: knows_digest(method).then_some(&task.life.digest),
            is_for_cache: matches!(method, Method::Miss | Method::Hit),
            shard: (method == Method::Pipe).then(|| task.vmod_state.shard_parameters()),
            notes,
        }
    }
}

/// Whether vcl_hash has run before it, on the client's side.
fn knows_digest(method: Method) -> bool {
    !matches!(method, Method::Recv | Method::Hash)
}

impl FetchTask {
    /// What decides where directors lead, at that time (seconds since 1970).
    pub(crate) fn resolving<'b>(
        &'b self,
        random: &'b TestableRandom,
        now: f64,
        notes: &'b Notes,
    ) -> ResolveContext<'b> {
        ResolveContext {
            now,
            random,
            url: self.bereq.target(),
            host: self.bereq.get("Host"),
            client: ClientName {
                identity: self.choices.client_identity.as_deref(),
                address: Some(self.order.peer.client.ip()),
            },
            digest: Some(&self.order.digest),
            is_for_cache: self.order.mode != FetchMode::Pass,
            shard: Some(self.vmod_state.shard_parameters()),
            notes,
        }
    }
}

impl Host for World<'_> {
    fn program(&self) -> &LinkedProgram {
        &self.vcl.program
    }

    fn now(&self) -> f64 {
        self.now
    }

    /// Nothing waits in vcl_init and vcl_fini: it is when they began.
    fn clock(&self) -> f64 {
        self.context().map_or(self.now, |context| context.clock.now())
    }

    fn read(&mut self, var: Var, scratch: &mut Scratch) -> Result<Value, Failure> {
        match var.object() {
            VclObject::Client | VclObject::Server | VclObject::Remote | VclObject::Local => {
                connection::read(self, var, scratch)
            }
            VclObject::Req | VclObject::ReqTop => req::read(self, var, scratch),
            VclObject::Bereq => bereq::read(self, var, scratch),
            VclObject::Beresp => beresp::read(self, var, scratch),
            VclObject::Obj => obj::read(self, var, scratch),
            VclObject::ObjStale => obj_stale::read(self, var, scratch),
            VclObject::Resp => resp::read(self, var, scratch),
            VclObject::Now => Ok(Value::Time(self.now)),
            VclObject::Sess => sess::read(self, var, scratch),
            VclObject::Param => param::read(self, var),
            // Always of one storage: `Host::storage_property`.
            VclObject::Storage => Err(out_of_reach()),
        }
    }

    fn write(&mut self, var: Var, value: Value, append: bool, scratch: &mut Scratch) -> Result<(), Failure> {
        match var.object() {
            VclObject::Client => connection::write(self, var, value, scratch),
            VclObject::Req => req::write(self, var, value, scratch),
            VclObject::Bereq => bereq::write(self, var, value, scratch),
            VclObject::Beresp => beresp::write(self, var, value, append, scratch),
            VclObject::Obj => obj::write(self, var, value, scratch),
            VclObject::Resp => resp::write(self, var, value, append, scratch),
            VclObject::Sess => sess::write(self, var, value),
            VclObject::Server
            | VclObject::Remote
            | VclObject::Local
            | VclObject::ReqTop
            | VclObject::ObjStale
            | VclObject::Now
            | VclObject::Storage
            | VclObject::Param => Err(out_of_reach()),
        }
    }

    fn unset(&mut self, var: Var) -> Result<(), Failure> {
        match var.object() {
            VclObject::Req => req::unset(self, var),
            VclObject::Bereq => bereq::unset(self, var),
            VclObject::Sess => sess::unset(self, var),
            VclObject::Client
            | VclObject::Server
            | VclObject::Remote
            | VclObject::Local
            | VclObject::ReqTop
            | VclObject::Beresp
            | VclObject::Obj
            | VclObject::ObjStale
            | VclObject::Resp
            | VclObject::Now
            | VclObject::Storage
            | VclObject::Param => Err(out_of_reach()),
        }
    }

    fn variable_bytes(&self, var: Var) -> Option<&[u8]> {
        match (&self.side, var) {
            (Side::Client(client), Var::ReqUrl) => Some(client.task.request.target()),
            (Side::Client(client), Var::ReqMethod) => Some(client.task.request.method()),
            (Side::Fetch(fetch), Var::BereqUrl) => Some(fetch.task.bereq.target()),
            (Side::Fetch(fetch), Var::BereqMethod) => Some(fetch.task.bereq.method()),
            (_, _) => None,
        }
    }

    fn header(&mut self, http: HttpObject, name: &str) -> Option<&[u8]> {
        self.message_of(http)?.get(name)
    }

    fn set_header(&mut self, http: HttpObject, name: &str, value: Text, scratch: &Scratch) -> Result<(), Failure> {
        self.set_header_of(http, name, value, scratch)
    }

    fn unset_header(&mut self, http: HttpObject, name: &str) {
        self.unset_header_of(http, name);
    }

    fn storage_property(&mut self, storage: Option<u32>, var: Var) -> Value {
        storage::read(self, storage, var)
    }

    fn storage_name(&self, storage: Option<u32>) -> &str {
        storage::name(self, storage)
    }

    fn director_name(&self, director: DirectorId) -> Cow<'_, str> {
        self.vcl.directors.name(director)
    }

    fn resolve_director(&mut self, director: DirectorId) -> Option<DirectorId> {
        let notes = Notes::new();
        let resolved = self.vcl.directors.resolve_id(director, &self.resolving(&notes));
        self.log_notes(&notes);
        resolved
    }

    /// The client's side makes the hash.
    fn hash_data(&mut self, piece: Option<&[u8]>) {
        let Side::Client(client) = &mut self.side else { return };
        client.task.hasher.update(piece.unwrap_or(b"\0"));
        if let Some(piece) = piece {
            self.log.record(Tag::Hash, piece);
        }
    }

    fn synthetic(&mut self, body: &[u8]) {
        match &mut self.side {
            Side::Client(client) => client.task.synthetic.extend_from_slice(body),
            Side::Fetch(fetch) => fetch.task.attempt.synthetic.extend_from_slice(body),
            Side::Housekeeping(_) => {}
        }
    }

    fn ban(&mut self, expression: &[u8]) -> Result<(), String> {
        invalidation::add_ban(&self.engine.cache, expression, self.invalidated_at())
    }

    fn log(&mut self, tag: Tag, payload: &[u8]) {
        self.log.record(tag, payload);
    }

    /// Without a transaction only what VCL itself says is logged, not that its methods run. Why vcl_init failed is for the
    /// operator who loads it; vcl_fini has nobody but the log to tell. Compat: Varnish 7.1, both records.
    fn log_run(&mut self, tag: Tag, payload: &[u8]) {
        match (&self.side, tag) {
            (Side::Client(_) | Side::Fetch(_), _) => self.log.record(tag, payload),
            (Side::Housekeeping(_), Tag::VCLError) if self.method == Method::Fini => {
                self.log.record(tag, payload);
                self.log.record(tag, b"VRT_fail() from vcl_fini{} has no effect");
            }
            (Side::Housekeeping(_), Tag::VCLCall | Tag::VCLReturn | Tag::VCLError) => {}
            (Side::Housekeeping(_), _) => self.log.record(tag, payload),
        }
    }

    fn note(&mut self, place: Place<'_>) {
        if self.tells_reasons() {
            self.noted.get_or_insert_default().set(self.method, place);
        }
    }

    fn is_traced(&self) -> bool {
        self.traces(match &self.side {
            Side::Client(client) => client.task.choices.trace,
            Side::Fetch(fetch) => fetch.task.choices.trace,
            Side::Housekeeping(_) => None,
        })
    }

    fn trace(&mut self, index: u32, point: Point) {
        let Point { source, line, position } = point;
        let record = format!("{} {index} {source}.{line}.{position}", self.vcl.name);
        self.log.record_unmasked(Tag::VCLTrace, record.as_bytes());
    }

    fn pass_for(&mut self, seconds: f64) {
        beresp::pass_for(self, seconds);
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

    fn resume(&mut self, scratch: &mut Scratch) -> Result<Value, Failure> {
        match self.vmod_wait().and_then(Option::take) {
            Some(VmodWait::Value(value)) => Ok(value),
            Some(VmodWait::Finish(finish)) => finish(self, scratch),
            Some(VmodWait::CacheBody(_) | VmodWait::Pending(_)) | None => {
                Err(Failure("A VMOD waits for nothing".to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests;
