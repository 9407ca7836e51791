//! What VCL may touch of a fetch: [`Host`] for the evaluator, [`VmodContext`] for VMODs.
//!
//! Variables are answered from [`Fetch`]; whatever changes a message leaves a record. Lifetimes are kept as seconds from the
//! response's origin and shown as seconds from now.

use super::legacy::unsets_by_set;
use super::task::Verdict;
use super::{Fetch, FetchMode};
use crate::bodies::filters;
use crate::logged::{self, BEREQ, BERESP, MessageTags, REQ};
use crate::vcl_context::{self as shared, Noted, StartLine};
use backend::{ClientName, Directors, Notes, ResolveContext, TestableRandom};
use body::Side;
use message::Message;
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use surface::parameter::Parameters;
use surface::tag::Tag;
use surface::vcl::{HttpObject, Method, Var};
use vcl_run::eval::Place;
use vcl_run::host::{Called, Failure, Host};
use vcl_run::link::LinkedProgram;
use vcl_run::program::Point;
use vcl_run::value::{DirectorId, Scratch, Text, Value};
use vmods::{
    ClientConnection, Instances, Pending, PurgeKind, SharedState, SocketOptions, TaskState, Transaction, VmodContext,
};

impl Fetch {
    fn http(&self, http: HttpObject) -> Option<&Message> {
        match http {
            HttpObject::Bereq => Some(&self.task.bereq),
            HttpObject::Beresp if self.task.running.method != Method::BackendFetch => Some(&self.task.attempt.beresp),
            HttpObject::Req | HttpObject::ReqTop => self.task.life.client.as_ref().map(|client| &client.message),
            // The stale object, which nothing but vcl_backend_refresh can name.
            HttpObject::Obj if self.task.running.method == Method::BackendRefresh => {
                Some(&self.task.attempt.stale_head)
            }
            HttpObject::Beresp | HttpObject::Obj | HttpObject::Resp => None,
        }
    }

    fn http_mut(&mut self, http: HttpObject) -> Option<(&mut Message, MessageTags, &mut shm::log::LogBuffer)> {
        match http {
            HttpObject::Bereq => Some((&mut self.task.bereq, BEREQ, &mut self.log)),
            HttpObject::Beresp if self.task.running.method != Method::BackendFetch => {
                Some((&mut self.task.attempt.beresp, BERESP, &mut self.log))
            }
            HttpObject::Req => self.task.life.client.as_mut().map(|client| (&mut client.message, REQ, &mut self.log)),
            HttpObject::Beresp | HttpObject::ReqTop | HttpObject::Obj | HttpObject::Resp => None,
        }
    }

    /// The id of the backend in use.
    pub(super) fn used_backend(&self) -> Option<DirectorId> {
        let used = self.task.route.backend.as_ref()?;
        self.task.order.vcl.directors.id_of(used)
    }

    /// Seconds that the response has existed.
    fn age(&self) -> f64 {
        self.task.running.now - self.task.attempt.verdict.origin
    }

    /// Where VCL sets what it is setting; `None` when nobody will be told.
    pub(super) fn taken_note(&self) -> Option<Noted> {
        self.task.order.parameters.tells_reasons().then(|| self.task.running.noted.clone())
    }

    /// The record of a lifetime set by VCL.
    fn log_lifetime(&mut self) {
        let Verdict { origin, ttl, grace, keep, .. } = self.task.attempt.verdict;
        let word = if self.task.life.uncacheable { "uncacheable" } else { "cacheable" };
        self.log.record_fmt(Tag::TTL, format_args!("VCL {ttl:.0} {grace:.0} {keep:.0} {origin:.0} {word}"));
    }

    /// The flag behind `beresp.do_gzip` and the like.
    ///
    /// # Errors
    /// When the list of filters is fixed already.
    fn filter_flag(&mut self, name: &str) -> Result<(), Failure> {
        if self.task.attempt.verdict.filters.is_some() {
            return Err(Failure(format!("beresp.filters are already fixed, {name} is undefined")));
        }
        Ok(())
    }

    fn set_uncacheable(&mut self, value: bool) {
        if self.task.life.uncacheable && !value {
            self.log.record(Tag::VCLError, b"Ignoring attempt to reset beresp.uncacheable");
        }
        if value && !self.task.life.uncacheable {
            self.task.life.uncacheable = true;
            self.task.life.uncacheable_by = self.taken_note();
        }
        self.log_lifetime();
    }

    /// Sets a part of a start line.
    fn set_start_line(&mut self, var: Var, value: Value, scratch: &Scratch) -> Result<(), Failure> {
        let (what, part) = match var {
            Var::BereqMethod => ("bereq.method", StartLine::Method),
            Var::BereqUrl => ("bereq.url", StartLine::Url),
            Var::BereqProto => ("bereq.proto", StartLine::Protocol),
            Var::BerespProto => ("beresp.proto", StartLine::Protocol),
            _ => ("beresp.reason", StartLine::Reason),
        };
        let bytes = match part {
            // The old dialects took what they were given.
            StartLine::Reason if self.task.order.vcl.is_legacy() => shared::bytes(value, scratch),
            _ => shared::not_empty(value, what, scratch)?,
        };
        let logged = match what.starts_with("bereq") {
            true => (&mut self.log, BEREQ, &mut self.task.bereq),
            false => (&mut self.log, BERESP, &mut self.task.attempt.beresp),
        };
        shared::set_start_line(logged, part, what, bytes)
    }

    fn set_lifetime(&mut self, var: Var, value: Value) {
        let seconds = shared::seconds(value);
        let age = self.age();
        match var {
            Var::BerespTtl => {
                self.task.attempt.verdict.ttl = (seconds + age).max(0.0);
                self.task.attempt.verdict.ttl_by.swap(0, 1);
                self.task.attempt.verdict.ttl_by[0] = self.taken_note();
            }
            Var::BerespGrace => self.task.attempt.verdict.grace = seconds.max(0.0),
            _ => self.task.attempt.verdict.keep = seconds.max(0.0),
        }
        self.log_lifetime();
    }

    /// What decides where directors lead; `now` is seconds since 1970.
    pub(super) fn resolve_at<'a>(&'a self, now: f64, notes: &'a Notes) -> ResolveContext<'a> {
        ResolveContext {
            now,
            random: &self.context.engine.random,
            url: self.task.bereq.target(),
            host: self.task.bereq.get("Host"),
            client: ClientName {
                identity: self.task.choices.client_identity.as_deref(),
                address: Some(self.task.order.peer.client.ip()),
            },
            digest: Some(&self.task.order.digest),
            is_for_cache: self.task.order.mode != FetchMode::Pass,
            shard: Some(self.task.vmod_state.shard_parameters()),
            notes,
        }
    }
}

impl Host for Fetch {
    fn program(&self) -> &LinkedProgram {
        &self.task.order.vcl.program
    }

    fn now(&self) -> f64 {
        self.task.running.now
    }

    fn clock(&self) -> f64 {
        self.context.clock.now()
    }

    fn read(&mut self, var: Var, scratch: &mut Scratch) -> Result<Value, Failure> {
        let engine = &self.context.engine;
        if let Some(value) = shared::shared_variable(
            var,
            engine,
            &self.task.order.peer,
            self.task.choices.client_identity.as_deref(),
            scratch,
        ) {
            return Ok(value);
        }
        let text = |bytes: &[u8], scratch: &mut Scratch| Value::Text(scratch.put(bytes));
        Ok(match var {
            Var::Bereq => Value::Http(HttpObject::Bereq),
            Var::Beresp => Value::Http(HttpObject::Beresp),
            Var::BereqBackend => Value::Backend(self.task.choices.director),
            Var::BereqBetweenBytesTimeout => Value::Duration(self.task.choices.between_bytes_timeout),
            Var::BereqConnectTimeout => Value::Duration(self.task.choices.connect_timeout),
            Var::BereqFirstByteTimeout => Value::Duration(self.task.choices.first_byte_timeout),
            Var::BereqHash => Value::Blob(scratch.put(&self.task.order.digest)),
            Var::BereqIsBgfetch => Value::Bool(self.task.order.mode == FetchMode::Background),
            Var::BereqIsHitmiss => Value::Bool(self.task.order.is_hit_for_miss),
            Var::BereqIsHitpass => Value::Bool(self.task.order.is_hit_for_pass),
            Var::BereqMethod => text(self.task.bereq.method(), scratch),
            Var::BereqProto => text(self.task.bereq.protocol(), scratch),
            Var::BereqRetries => Value::Int(i64::try_from(self.task.life.retries).unwrap_or(i64::MAX)),
            Var::BereqTime => Value::Time(self.task.life.started),
            Var::BereqUncacheable | Var::BerespUncacheable => Value::Bool(self.task.life.uncacheable),
            Var::BereqUrl => text(self.task.bereq.target(), scratch),
            Var::BereqXid => shared::number_text(scratch, format_args!("{}", self.task.life.vxid)),
            Var::BerespAge => Value::Duration(self.age()),
            Var::BerespBackend => Value::Backend(self.used_backend()),
            Var::BerespBackendIp => Value::Ip(self.task.route.address.map(|address| (address.ip(), address.port()))),
            Var::BerespBackendName => Value::Text(
                self.task.route.backend.as_ref().map_or(Text::UNSET, |backend| scratch.put(backend.name().as_bytes())),
            ),
            Var::BerespDoEsi => Value::Bool(self.task.attempt.verdict.do_esi),
            Var::BerespDoGunzip => Value::Bool(self.task.attempt.verdict.do_gunzip),
            Var::BerespDoGzip => Value::Bool(self.task.attempt.verdict.do_gzip),
            Var::BerespDoStream => Value::Bool(self.task.attempt.verdict.do_stream),
            Var::BerespFilters => match &self.task.attempt.verdict.filters {
                Some(list) => text(list, scratch),
                None => text(&self.task.default_filters(), scratch),
            },
            Var::BerespGrace => Value::Duration(self.task.attempt.verdict.grace),
            Var::BerespKeep => Value::Duration(self.task.attempt.verdict.keep),
            Var::BerespProto => text(self.task.attempt.beresp.protocol(), scratch),
            Var::BerespReason => text(self.task.attempt.beresp.reason(), scratch),
            Var::BerespStatus => Value::Int(i64::from(self.task.attempt.beresp.status())),
            Var::BerespStorage => Value::Stevedore(self.task.attempt.storage),
            // Of old it said what VCL had asked for, later what the response gets, in VCL's own words.
            Var::BerespStorageHint if self.task.order.vcl.is_legacy() => {
                text(shared::storage_name(engine, self.task.attempt.verdict.storage_hint).as_bytes(), scratch)
            }
            Var::BerespStorageHint => match self.task.attempt.storage.and_then(|storage| engine.storages.name(storage))
            {
                Some(storage) => shared::number_text(scratch, format_args!("storage.{}", storage.name)),
                None => Value::Text(Text::UNSET),
            },
            Var::BerespTime => Value::Time(self.task.attempt.responded),
            Var::BerespTtl => {
                // What its status makes uncacheable has a ttl of -1, which reads as none at all. Compat: Varnish 7.1.
                let ttl = if self.task.order.vcl.is_legacy() {
                    self.task.attempt.verdict.ttl
                } else {
                    self.task.attempt.verdict.ttl.max(0.0)
                };
                let left = ttl - self.age();
                Value::Duration(if self.task.order.mode == FetchMode::Pass { left.max(0.0) } else { left })
            }
            Var::BerespWas304 => Value::Bool(self.task.attempt.verdict.was_304),
            Var::BerespTransitBuffer => Value::Bytes(i64::try_from(self.task.transit_buffer()).unwrap_or(i64::MAX)),
            Var::BereqFilters => text(self.task.choices.body_filters.as_deref().unwrap_or_default(), scratch),
            Var::BereqTrace => Value::Bool(shared::is_traced(&self.log, self.task.choices.trace)),
            Var::Now => Value::Time(self.task.running.now),
            Var::SessXid => shared::number_text(scratch, format_args!("{}", self.task.order.session_vxid)),
            Var::Req => Value::Http(HttpObject::Req),
            Var::ObjStaleAge
            | Var::ObjStaleCanEsi
            | Var::ObjStaleGrace
            | Var::ObjStaleHits
            | Var::ObjStaleIsValid
            | Var::ObjStaleKeep
            | Var::ObjStaleProto
            | Var::ObjStaleReason
            | Var::ObjStaleStatus
            | Var::ObjStaleStorage
            | Var::ObjStaleTime
            | Var::ObjStaleTtl
            | Var::ObjStaleUncacheable => self.read_of_stale(var, scratch),
            // Nothing else of a client's request can be read here but in the old dialects.
            var => self.read_of_client(var, scratch),
        })
    }

    fn write(&mut self, var: Var, value: Value, append: bool, scratch: &mut Scratch) -> Result<(), Failure> {
        let flag = value == Value::Bool(true);
        match var {
            Var::BereqMethod | Var::BereqUrl | Var::BereqProto | Var::BerespProto | Var::BerespReason => {
                self.set_start_line(var, value, scratch)?;
            }
            Var::BereqBackend => {
                self.task.choices.director = match value {
                    Value::Backend(director) => director,
                    _ => None,
                };
            }
            Var::BereqBetweenBytesTimeout => self.task.choices.between_bytes_timeout = shared::seconds(value).max(0.0),
            Var::BereqConnectTimeout => self.task.choices.connect_timeout = shared::seconds(value).max(0.0),
            Var::BereqFirstByteTimeout => self.task.choices.first_byte_timeout = shared::seconds(value).max(0.0),
            Var::BerespBody => {
                if !append {
                    self.task.attempt.synthetic.clear();
                }
                self.synthetic(shared::bytes(value, scratch));
            }
            Var::BerespDoEsi => {
                self.filter_flag("beresp.do_esi")?;
                self.task.attempt.verdict.do_esi = flag;
            }
            Var::BerespDoGunzip => {
                self.filter_flag("beresp.do_gunzip")?;
                self.task.attempt.verdict.do_gunzip = flag;
            }
            Var::BerespDoGzip => {
                self.filter_flag("beresp.do_gzip")?;
                self.task.attempt.verdict.do_gzip = flag;
            }
            Var::BerespDoStream => self.task.attempt.verdict.do_stream = flag,
            Var::BerespFilters => self.task.attempt.verdict.filters = Some(shared::bytes(value, scratch).to_vec()),
            Var::BerespTtl | Var::BerespGrace | Var::BerespKeep => self.set_lifetime(var, value),
            Var::BerespStatus => {
                let status = shared::checked_status("beresp.status", value)?;
                self.task.attempt.beresp.set_status(status);
                self.log.record_fmt(BERESP.status, format_args!("{}", status % 1000));
                // The old dialects left the reason as it was.
                if !self.task.order.vcl.is_legacy() {
                    let reason = shared::standard_reason(status);
                    self.task.attempt.beresp.set_reason(reason.as_bytes());
                    self.log.record(BERESP.reason, reason.as_bytes());
                }
            }
            Var::BerespStorage => {
                self.task.attempt.storage = match value {
                    Value::Stevedore(storage) => storage,
                    _ => None,
                };
            }
            Var::BerespStorageHint => {
                let named = self.context.engine.storages.by_name(shared::bytes(value, scratch));
                self.task.attempt.storage = named.or(self.task.attempt.storage);
                self.task.attempt.verdict.storage_hint = named.or(self.task.attempt.verdict.storage_hint);
            }
            Var::BerespUncacheable => self.set_uncacheable(flag),
            Var::BerespTransitBuffer => {
                let Value::Bytes(bytes) = value else { return Ok(()) };
                self.task.attempt.verdict.transit_buffer = Some(u64::try_from(bytes).unwrap_or(0));
            }
            Var::BereqFilters => {
                let list = shared::bytes(value, scratch);
                filters::check_names(list, Side::Bereq).map_err(|text| Failure(format!("bereq.filters: {text}")))?;
                self.task.choices.body_filters = Some(list.to_vec());
            }
            Var::BereqTrace => self.task.choices.trace = Some(flag),
            // Nothing else can be set here but what the old dialects have.
            var => self.write_of_client(var, value, scratch)?,
        }
        Ok(())
    }

    fn unset(&mut self, var: Var) -> Result<(), Failure> {
        match var {
            Var::BereqBody => self.task.drop_request_body(&mut self.log),
            // Without one of its own, a fetch has the timeout of the backend or the parameter.
            Var::BereqBetweenBytesTimeout => self.task.choices.between_bytes_timeout = 0.0,
            Var::BereqConnectTimeout => self.task.choices.connect_timeout = 0.0,
            Var::BereqFirstByteTimeout => self.task.choices.first_byte_timeout = 0.0,
            _ => {}
        }
        Ok(())
    }

    fn header(&mut self, http: HttpObject, name: &str) -> Option<&[u8]> {
        self.http(http)?.get(name)
    }

    fn variable_bytes(&self, var: Var) -> Option<&[u8]> {
        match var {
            Var::BereqUrl => Some(self.task.bereq.target()),
            Var::BereqMethod => Some(self.task.bereq.method()),
            _ => None,
        }
    }

    fn set_header(&mut self, http: HttpObject, name: &str, value: Text, scratch: &Scratch) -> Result<(), Failure> {
        if !value.is_set() && unsets_by_set(self.task.order.vcl.generation) {
            self.unset_header(http, name);
            return Ok(());
        }
        let validate = shared::validates_headers(&self.task.order.parameters);
        let limit = usize::try_from(self.task.order.parameters.request_memory_max).unwrap_or(usize::MAX);
        let held_bytes =
            self.task.bereq.memory_bytes() + self.task.attempt.beresp.memory_bytes() + scratch.used_bytes();
        if held_bytes + name.len() + value.len() > limit {
            return Err(Failure::out_of_memory());
        }
        if let Some((message, tags, log)) = self.http_mut(http) {
            shared::set_header(log, tags, message, name, scratch.get(value), validate)?;
        }
        Ok(())
    }

    fn unset_header(&mut self, http: HttpObject, name: &str) {
        if let Some((message, tags, log)) = self.http_mut(http) {
            logged::unset(log, tags, message, name);
        }
    }

    fn storage_property(&mut self, storage: Option<u32>, property: &str) -> Value {
        shared::storage_property(&self.context.engine, storage, property)
    }

    fn storage_name(&self, storage: Option<u32>) -> &str {
        shared::storage_name(&self.context.engine, storage)
    }

    fn director_name(&self, director: DirectorId) -> Cow<'_, str> {
        shared::director_name(&self.task.order.vcl, director)
    }

    fn resolve_director(&mut self, director: DirectorId) -> Option<DirectorId> {
        let notes = Notes::new();
        let resolved =
            self.task.order.vcl.directors.resolve_id(director, &self.resolve_at(self.task.running.now, &notes));
        shared::log_notes(&self.context.engine, &mut self.log, &notes);
        resolved
    }

    /// The hash was made by the client's side.
    fn hash_data(&mut self, _piece: Option<&[u8]>) {}

    fn synthetic(&mut self, body: &[u8]) {
        self.task.attempt.synthetic.extend_from_slice(body);
    }

    fn ban(&mut self, expression: &[u8]) -> Result<(), String> {
        shared::add_ban(&self.context.engine, expression, self.context.clock.now())
    }

    fn log(&mut self, tag: Tag, payload: &[u8]) {
        self.log.record(tag, payload);
    }

    fn note(&mut self, place: Place<'_>) {
        self.task.running.noted.set(self.task.running.method, place);
    }

    fn is_traced(&self) -> bool {
        shared::is_traced(&self.log, self.task.choices.trace)
    }

    fn trace(&mut self, index: u32, point: Point) {
        shared::trace(&mut self.log, &self.task.order.vcl.name, index, point);
    }

    fn pass_for(&mut self, seconds: f64) {
        self.task.attempt.verdict.ttl = seconds.max(0.0);
        self.task.attempt.verdict.grace = 0.0;
        self.task.attempt.verdict.keep = 0.0;
        self.task.life.uncacheable = true;
        let Verdict { origin, ttl, grace, keep, .. } = self.task.attempt.verdict;
        self.log.record_fmt(Tag::TTL, format_args!("HFP {ttl:.0} {grace:.0} {keep:.0} {origin:.0} uncacheable"));
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
        match self.task.running.finish.take() {
            Some(finish) => finish(self, scratch),
            None => Err(Failure("A VMOD waited for nothing".to_owned())),
        }
    }
}

impl VmodContext for Fetch {
    fn method(&self) -> Method {
        self.task.running.method
    }

    fn random(&self) -> &TestableRandom {
        &self.context.engine.random
    }

    fn directors(&self) -> &Directors {
        &self.task.order.vcl.directors
    }

    fn resolve_context<'a>(&'a self, notes: &'a Notes) -> ResolveContext<'a> {
        self.resolve_at(self.task.running.now, notes)
    }

    fn used_backend(&self) -> Option<DirectorId> {
        Fetch::used_backend(self)
    }

    fn instances(&self) -> &Instances {
        &self.task.order.vcl.instances
    }

    fn shared(&self) -> &SharedState {
        &self.context.engine.vmod_state
    }

    fn task(&mut self) -> &mut TaskState {
        &mut self.task.vmod_state
    }

    fn message(&mut self, http: HttpObject) -> Option<&Message> {
        self.http(http)
    }

    fn message_mut(&mut self, http: HttpObject) -> Option<&mut Message> {
        self.http_mut(http).map(|(message, _, _)| message)
    }

    fn digest(&self) -> Option<[u8; 32]> {
        Some(self.task.order.digest)
    }

    fn parameters(&self) -> Arc<Parameters> {
        self.context.engine.parameters.load_full()
    }

    fn log_for(&mut self, transaction: Transaction, tag: Tag, payload: &[u8]) {
        self.context.engine.ring.write(tag, shared::log_id(transaction), payload);
    }

    fn message_bytes(&self) -> usize {
        self.task.bereq.memory_bytes() + self.task.attempt.beresp.memory_bytes()
    }

    fn connection(&self) -> Option<ClientConnection<'_>> {
        Some(self.task.order.peer.connection())
    }

    fn timestamp(&mut self, label: &str) {
        let now = self.context.clock.now();
        self.log.timestamp(label, now);
    }

    fn cache_request_body(&mut self, _limit_bytes: u64) -> Result<Called, Failure> {
        Err(Failure("req.body can only be cached in vcl_recv{}".to_owned()))
    }

    fn late_100_continue(&mut self, _late: bool) {}

    fn rollback(&mut self, http: HttpObject) -> Result<(), Failure> {
        match http {
            HttpObject::Bereq => {
                // The request that this is the answer to is no more. Compat: so is the connection.
                self.task.give_up_response(&self.context, &mut self.log);
                self.task.attempt.verdict.filters = None;
                self.task.bereq.copy_from(&self.task.bereq_original);
                let mut number = itoa::Buffer::new();
                self.task.bereq.set("X-Varnish", number.format(self.task.life.vxid).as_bytes());
                Ok(())
            }
            HttpObject::Req => self.roll_client_back(),
            HttpObject::Beresp | HttpObject::ReqTop | HttpObject::Obj | HttpObject::Resp => {
                Err(Failure("std.rollback() works on req and bereq only".to_owned()))
            }
        }
    }

    fn purge(&mut self, _kind: PurgeKind) -> Result<usize, Failure> {
        Err(Failure("purge can only be called in vcl_hit{} and vcl_miss{}".to_owned()))
    }

    fn purge_tags(&mut self, list: &[u8], kind: PurgeKind) -> Called {
        match shared::purge_tags(&self.context.engine.cache, list, kind, self.context.clock.now()) {
            Ok(value) => Called::Value(value),
            Err(pending) => {
                self.wait(pending);
                Called::Wait
            }
        }
    }

    fn cached_body(&self) -> Option<Rc<Vec<u8>>> {
        None
    }

    fn client_socket(&self) -> Option<(Rc<dyn SocketOptions>, i32)> {
        None
    }

    fn can_wait(&self) -> bool {
        true
    }

    fn wait(&mut self, pending: Pending) {
        self.task.running.pending = Some(pending);
    }
}
