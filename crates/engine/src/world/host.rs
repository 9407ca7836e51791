//! The world as the evaluator uses it: each variable is handled in the file of its object.

use super::vmod_wait::VmodWait;
use super::{
    Side, World, bereq, beresp, connection, invalidation, obj, obj_stale, out_of_reach, param, req, resp, run_words,
    sess, storage,
};
use backend::Notes;
use std::borrow::Cow;
use surface::tag::Tag;
use surface::vcl::{Action, HttpObject, Method, Var, VclObject};
use vcl_run::eval::Place;
use vcl_run::host::{Called, Failure, Host};
use vcl_run::link::LinkedProgram;
use vcl_run::program::Point;
use vcl_run::value::{DirectorId, Scratch, Text, Value};

impl Host for World<'_> {
    fn program(&self) -> &LinkedProgram {
        &self.vcl.program
    }

    fn now(&self) -> f64 {
        self.now
    }

    /// Nothing waits in vcl_init and vcl_fini, so the clock shows when they began.
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
            VclObject::Sess => sess::read(self, var),
            VclObject::Param => param::read(self, var),
            // Always read through `Host::storage_property`, which has the storage.
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

    fn is_usual(&self) -> bool {
        match &self.side {
            Side::Client(client) => req::is_usual(&client.task.request),
            Side::Fetch(_) | Side::Housekeeping(_) => false,
        }
    }

    fn variable_bytes(&self, var: Var) -> Option<&[u8]> {
        match (&self.side, var) {
            (Side::Client(client), Var::ReqUrl) => Some(client.task.request.target()),
            (Side::Client(client), Var::ReqMethod) => Some(client.task.request.method()),
            (Side::Client(client), Var::ReqProto) => Some(client.task.request.protocol()),
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

    /// Only the client's side computes the hash.
    fn hash_data(&mut self, piece: Option<&[u8]>) {
        let Side::Client(client) = &mut self.side else { return };
        client.task.hasher.update(piece.unwrap_or(b"\0"));
        if let Some(piece) = piece {
            self.log.record(Tag::Hash, piece);
        }
    }

    fn hash_variable(&mut self, var: Var) -> bool {
        let (Side::Client(client), Var::ReqUrl) = (&mut self.side, var) else { return false };
        let task = &mut *client.task;
        task.hasher.update(task.request.target());
        self.log.record(Tag::Hash, task.request.target());
        task.hasher.update(b"\0");
        true
    }

    fn hash_header_if_any(&mut self, http: HttpObject, name: &str) -> bool {
        let (Side::Client(client), HttpObject::Req) = (&mut self.side, http) else {
            let Some(value) = self.header(http, name).map(<[u8]>::to_vec) else { return false };
            self.hash_data(Some(&value));
            self.hash_end();
            return true;
        };
        let task = &mut *client.task;
        let Some(value) = task.request.get(name) else { return false };
        task.hasher.update(value);
        self.log.record(Tag::Hash, value);
        task.hasher.update(b"\0");
        true
    }

    fn synthetic(&mut self, body: &[u8]) {
        match &mut self.side {
            Side::Client(client) => client.task.synthetic.extend_from_slice(body),
            Side::Fetch(fetch) => fetch.task.attempt.synthetic.extend_from_slice(body),
            Side::Housekeeping(_) => {}
        }
    }

    fn ban(&mut self, expression: &[u8]) -> Result<(), String> {
        invalidation::add_ban(&self.engine.cache, expression, self.invalidated_at())?;
        if self.engine.cache.orders_sync() {
            let (cache, ring) = (self.engine.cache.clone(), self.engine.ring.clone());
            // The event loop does not wait for a disk. The ban is active already.
            tokio::task::spawn_blocking(move || invalidation::sync_bans(&cache, &ring));
        }
        Ok(())
    }

    fn log(&mut self, tag: Tag, payload: &[u8]) {
        self.log.record(tag, payload);
    }

    fn is_masked(&self, tag: Tag) -> bool {
        self.log.is_masked(tag)
    }

    /// Without a transaction only VCL's own log records are written, not the runs of its methods. A
    /// failure of vcl_init is reported to the operator who loads the VCL; for vcl_fini there is
    /// only the log. Compat: Varnish 7.1, both records.
    fn log_run(&mut self, tag: Tag, payload: &[u8]) {
        match (&self.side, tag) {
            (Side::Client(_) | Side::Fetch(_), _) => self.log.record(tag, payload),
            (Side::Housekeeping(_), Tag::VCLError) if self.method == Method::Fini => {
                self.log.record(tag, payload);
                self.log.record(tag, b"VRT_fail() from vcl_fini{} has no effect");
            }
            (Side::Housekeeping(_), Tag::VCLError) => {}
            (Side::Housekeeping(_), _) => self.log.record(tag, payload),
        }
    }

    fn log_call(&mut self, method: Method) {
        if !matches!(self.side, Side::Housekeeping(_)) {
            self.log.record_word(Tag::VCLCall, run_words::of_call(method));
        }
    }

    fn log_switch(&mut self, label: u32) {
        let Side::Client(client) = &self.side else { return };
        if client.task.life.refusal_of_switch().is_none()
            && let Some((vcl, label)) = self.vcl.behind_label(&self.engine.vcl.load(), label)
        {
            self.log.record_parts(Tag::VCLUse, &[vcl.name.as_bytes(), b" via ", label.as_bytes()]);
        }
    }

    fn log_return(&mut self, action: Action) {
        if !matches!(self.side, Side::Housekeeping(_)) {
            self.log.record_word(Tag::VCLReturn, run_words::of_return(action));
        }
    }

    fn tells_reasons(&self) -> bool {
        self.records_reasons()
    }

    fn note(&mut self, place: &Place) {
        self.noted.get_or_insert_default().set(self.method, place);
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
            Some(VmodWait::CacheBody(_) | VmodWait::Pending(_) | VmodWait::Doing(_)) | None => {
                Err(Failure("A VMOD waits for nothing".to_owned()))
            }
        }
    }
}
