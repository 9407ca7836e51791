//! What client-side VCL can touch: `req`, `resp`, `obj`, `bereq` in vcl_pipe, the session's timeouts.
//!
//! A host lives for one method; it borrows the task, its log and the session. What is the same for the fetch's host lies in
//! `vcl_context.rs`. The compiler has checked where each variable may be used, so what does not exist reads as unset.
//! Invariant: whatever changes a message leaves its log records.

use super::task::Task;
use super::vmod_context::VmodWait;
use crate::context::Loop;
use crate::loaded_vcl::LoadedVcl;
use crate::logged::{self, BEREQ, MessageTags, REQ, RESP};
use crate::session::Session;
use crate::vcl_context::{self, bytes, checked_status, not_empty, seconds};
use backend::ResolveContext;
use message::Message;
use sha2::Digest;
use shm::log::LogBuffer;
use std::rc::Rc;
use store::{BodyState, Object, ObjectFlags};
use surface::parameter::feature;
use surface::tag::Tag;
use surface::vcl::{HttpObject, Method, Var};
use vcl_run::host::{Called, Failure, Host};
use vcl_run::link::LinkedProgram;
use vcl_run::program::Point;
use vcl_run::value::{DirectorId, Scratch, Text, Value};

/// The world of one client-side method.
pub(crate) struct ClientHost<'a> {
    pub(crate) context: &'a Rc<Loop>,
    pub(crate) session: &'a mut Session,
    pub(crate) task: &'a mut Task,
    pub(crate) log: &'a mut LogBuffer,
    pub(crate) vcl: &'a LoadedVcl,
    pub(crate) method: Method,
    pub(crate) now: f64,
}

impl ClientHost<'_> {
    /// The headers that VCL names so; the request's where there are none.
    fn message(&mut self, http: HttpObject) -> &mut Message {
        match http {
            HttpObject::Req | HttpObject::ReqTop => &mut self.task.request,
            HttpObject::Resp | HttpObject::Beresp => &mut self.task.response,
            HttpObject::Obj => self.object_head(),
            HttpObject::Bereq => match &mut self.task.pipe {
                Some(pipe) => &mut pipe.bereq,
                None => &mut self.task.request,
            },
        }
    }

    /// The message, the log its changes go to, and the tags they have.
    fn logged(&mut self, http: HttpObject) -> Option<(&mut LogBuffer, MessageTags, &mut Message)> {
        let task = &mut *self.task;
        match http {
            HttpObject::Req => Some((self.log, REQ, &mut task.request)),
            HttpObject::Resp => Some((self.log, RESP, &mut task.response)),
            HttpObject::Bereq => {
                let pipe = task.pipe.as_deref_mut()?;
                Some((&mut pipe.log, BEREQ, &mut pipe.bereq))
            }
            HttpObject::ReqTop | HttpObject::Obj | HttpObject::Beresp => None,
        }
    }

    /// `obj`'s head, decoded when it is first looked at.
    fn object_head(&mut self) -> &mut Message {
        let task = &mut *self.task;
        if !task.is_object_head_decoded {
            let decoded = task.object.as_ref().and_then(|object| task.object_head.decode(object.head()));
            if decoded.is_none() {
                task.object_head.clear();
            }
            task.is_object_head_decoded = true;
        }
        &mut task.object_head
    }

    /// A number that follows from the object; nothing when there is none.
    fn of_object(&self, value: impl FnOnce(&Object) -> Value, otherwise: Value) -> Value {
        self.task.object.as_ref().map_or(otherwise, |object| value(object))
    }

    fn set_start_line(&mut self, http: HttpObject, part: StartLine, value: Value, scratch: &Scratch) {
        let value = bytes(value, scratch);
        let Some((log, tags, message)) = self.logged(http) else { return };
        match part {
            StartLine::Method => {
                message.set_method(value);
                log.record(tags.method, value);
            }
            StartLine::Url => {
                message.set_target(value);
                log.record(tags.url, value);
            }
            StartLine::Protocol => {
                message.set_protocol(value);
                log.record(tags.protocol, value);
            }
            StartLine::Reason => {
                message.set_reason(value);
                log.record(tags.reason, value);
            }
        }
    }

    /// Sets `resp.status`, and the reason that belongs to it.
    fn set_status(&mut self, value: Value) -> Result<(), Failure> {
        let status = checked_status("resp.status", value)?;
        let reason = vcl_context::standard_reason(status);
        let response = &mut self.task.response;
        response.set_status(status);
        response.set_reason(reason.as_bytes());
        self.log.record(RESP.status, itoa::Buffer::new().format(status % 1000).as_bytes());
        self.log.record(RESP.reason, reason.as_bytes());
        Ok(())
    }

    fn filters_are_fixed(&self, name: &str) -> Result<(), Failure> {
        if self.task.filters.is_some() {
            return Err(Failure(format!("resp.filters are already fixed, {name} is undefined")));
        }
        Ok(())
    }

    /// Filters as VCL reads them: set, or those that would apply now.
    fn filters(&self) -> Vec<u8> {
        self.task.filters.clone().unwrap_or_else(|| super::filters::default_list(self.task))
    }

    fn object_age(&self) -> f64 {
        self.task.object.as_ref().map_or(0.0, |object| self.now - object.origin())
    }

    fn is_uncacheable(&self) -> bool {
        self.task.object.as_ref().is_some_and(|object| {
            let flags = object.flags();
            object.is_passing()
                || [ObjectFlags::PRIVATE, ObjectFlags::HIT_FOR_MISS, ObjectFlags::HIT_FOR_PASS]
                    .iter()
                    .any(|flag| flags.has(*flag))
        })
    }

    /// What decides where directors lead.
    pub(crate) fn resolve_context(&self) -> ResolveContext<'_> {
        let url = self.task.pipe.as_ref().map_or(self.task.request.target(), |pipe| pipe.bereq.target());
        ResolveContext {
            now: self.now,
            random: &self.context.engine.random,
            url,
            digest: self.knows_digest().then_some(&self.task.digest),
        }
    }

    /// Whether vcl_hash has run.
    pub(crate) fn knows_digest(&self) -> bool {
        !matches!(self.method, Method::Recv | Method::Hash)
    }
}

/// The parts of a start line that VCL can set.
enum StartLine {
    Method,
    Url,
    Protocol,
    Reason,
}

fn text(scratch: &mut Scratch, bytes: &[u8]) -> Value {
    Value::Text(scratch.put(bytes))
}

fn number(scratch: &mut Scratch, number: u64) -> Value {
    text(scratch, itoa::Buffer::new().format(number).as_bytes())
}

fn bool_of(value: Value) -> bool {
    value == Value::Bool(true)
}

/// A cap of `req.ttl` or `req.grace`: a negative one is zero.
fn cap(value: Value) -> Option<f64> {
    Some(seconds(value).max(0.0))
}

impl Host for ClientHost<'_> {
    fn program(&self) -> &LinkedProgram {
        &self.vcl.program
    }

    fn now(&self) -> f64 {
        self.now
    }

    fn read(&mut self, var: Var, scratch: &mut Scratch) -> Result<Value, Failure> {
        let engine = &self.context.engine;
        let identity = self.task.client_identity.as_deref();
        if let Some(value) = vcl_context::shared_variable(var, engine, &self.session.peer, identity, scratch) {
            return Ok(value);
        }
        let settings = &self.task.settings;
        let timeouts = &self.session.timeouts;
        Ok(match var {
            Var::Now => Value::Time(self.now),
            Var::ReqBackendHint => Value::Backend(self.task.director),
            Var::ReqCanGzip => Value::Bool(semantics::encoding::accepts_gzip(&self.task.request)),
            Var::ReqEsi => Value::Bool(self.task.is_esi_allowed),
            Var::ReqEsiLevel => Value::Int(0),
            Var::ReqGrace => Value::Duration(self.task.grace_cap.unwrap_or(-1.0)),
            Var::ReqTtl => Value::Duration(self.task.ttl_cap.unwrap_or(-1.0)),
            Var::ReqHash | Var::BereqHash => Value::Blob(scratch.put(&self.task.digest)),
            Var::ReqHashAlwaysMiss => Value::Bool(self.task.always_miss),
            Var::ReqHashIgnoreBusy => Value::Bool(self.task.ignore_busy),
            Var::ReqHashIgnoreVary => Value::Bool(self.task.ignore_vary),
            Var::ReqIsHitmiss => Value::Bool(self.task.is_hitmiss),
            Var::ReqIsHitpass => Value::Bool(self.task.is_hitpass),
            Var::ReqMethod | Var::ReqTopMethod => text(scratch, self.task.request.method()),
            Var::ReqProto | Var::ReqTopProto => text(scratch, self.task.request.protocol()),
            Var::ReqUrl | Var::ReqTopUrl => text(scratch, self.task.request.target()),
            Var::ReqRestarts => Value::Int(i64::try_from(self.task.restarts).unwrap_or(i64::MAX)),
            Var::ReqStorage => Value::Stevedore(self.task.storage),
            Var::ReqTime | Var::ReqTopTime => Value::Time(self.task.received_at),
            Var::ReqTransport => text(scratch, b"HTTP/1"),
            Var::ReqXid => number(scratch, u64::from(self.task.vxid)),
            Var::SessXid => number(scratch, u64::from(self.session.vxid)),
            Var::SessIdleSendTimeout => Value::Duration(timeouts.idle_send.unwrap_or(settings.idle_send_timeout)),
            Var::SessSendTimeout => Value::Duration(timeouts.send.unwrap_or(settings.send_timeout)),
            Var::SessTimeoutIdle => Value::Duration(timeouts.idle.unwrap_or(settings.timeout_idle)),
            Var::SessTimeoutLinger => Value::Duration(timeouts.linger.unwrap_or(settings.timeout_linger)),
            Var::BereqBackend => match &self.task.pipe {
                Some(pipe) => Value::Backend(pipe.director),
                None => Value::Backend(None),
            },
            Var::BereqConnectTimeout => {
                let own = self.task.pipe.as_ref().and_then(|pipe| pipe.connect_timeout);
                Value::Duration(own.unwrap_or_else(|| engine.parameters.load().connect_timeout))
            }
            Var::BereqMethod => {
                let message = self.message(HttpObject::Bereq);
                text(scratch, message.method())
            }
            Var::BereqUrl => {
                let message = self.message(HttpObject::Bereq);
                text(scratch, message.target())
            }
            Var::BereqProto => {
                let message = self.message(HttpObject::Bereq);
                text(scratch, message.protocol())
            }
            Var::BereqTime => Value::Time(self.task.pipe.as_ref().map_or(0.0, |pipe| pipe.started)),
            Var::BereqXid => number(scratch, self.task.pipe.as_ref().map_or(0, |pipe| u64::from(pipe.vxid))),
            Var::ObjAge => Value::Duration(self.object_age()),
            Var::ObjTtl => {
                let now = self.now;
                self.of_object(|object| Value::Duration(object.origin() + object.ttl() - now), Value::Duration(0.0))
            }
            Var::ObjGrace => self.of_object(|object| Value::Duration(object.grace()), Value::Duration(0.0)),
            Var::ObjKeep => self.of_object(|object| Value::Duration(object.keep()), Value::Duration(0.0)),
            Var::ObjTime => self.of_object(|object| Value::Time(object.origin()), Value::Time(0.0)),
            // What was not found by this request's lookup has no hits yet, though others may have found it meanwhile.
            Var::ObjHits if !self.task.is_hit => Value::Int(0),
            Var::ObjHits => self.of_object(|object| Value::Int(i64::from(object.hits())), Value::Int(0)),
            Var::ObjCanEsi => {
                self.of_object(|object| Value::Bool(object.flags().has(ObjectFlags::ESI)), Value::Bool(false))
            }
            Var::ObjUncacheable => Value::Bool(self.is_uncacheable()),
            Var::ObjStorage => {
                let is_transient = self.is_uncacheable()
                    || self.task.object.as_ref().is_some_and(|object| object.flags().has(ObjectFlags::TRANSIENT));
                let storage = if is_transient { vcl_context::transient_storage(engine) } else { 0 };
                Value::Stevedore(self.task.object.is_some().then_some(storage))
            }
            Var::ObjStatus => Value::Int(i64::from(self.object_head().status())),
            Var::ObjReason => {
                let head = self.object_head();
                text(scratch, head.reason())
            }
            Var::ObjProto => {
                let head = self.object_head();
                text(scratch, head.protocol())
            }
            Var::RespStatus => Value::Int(i64::from(self.task.response.status())),
            Var::RespReason => text(scratch, self.task.response.reason()),
            Var::RespProto => text(scratch, self.task.response.protocol()),
            Var::RespTime => Value::Time(self.task.responded_at),
            Var::RespIsStreaming => {
                Value::Bool(self.task.object.as_ref().is_some_and(|object| object.state() == BodyState::Writing))
            }
            Var::RespFilters => {
                let filters = self.filters();
                text(scratch, &filters)
            }
            Var::RespDoEsi => {
                self.filters_are_fixed("resp.do_esi")?;
                let of_object = self.task.object.as_ref().is_some_and(|object| object.flags().has(ObjectFlags::ESI));
                Value::Bool(self.task.do_esi.unwrap_or(of_object))
            }
            Var::Req => Value::Http(HttpObject::Req),
            Var::Resp => Value::Http(HttpObject::Resp),
            Var::Bereq => Value::Http(HttpObject::Bereq),
            // Shared by all tasks and answered above, or of the fetch's side, or headers, which have calls of their own.
            Var::ClientIdentity
            | Var::ClientIp
            | Var::ServerHostname
            | Var::ServerIdentity
            | Var::ServerIp
            | Var::RemoteIp
            | Var::LocalEndpoint
            | Var::LocalIp
            | Var::LocalSocket
            | Var::ReqHttp
            | Var::ReqTopHttp
            | Var::BereqBetweenBytesTimeout
            | Var::BereqBody
            | Var::BereqFirstByteTimeout
            | Var::BereqHttp
            | Var::BereqIsBgfetch
            | Var::BereqIsHitmiss
            | Var::BereqIsHitpass
            | Var::BereqRetries
            | Var::BereqUncacheable
            | Var::Beresp
            | Var::BerespAge
            | Var::BerespBackend
            | Var::BerespBackendIp
            | Var::BerespBackendName
            | Var::BerespBody
            | Var::BerespDoEsi
            | Var::BerespDoGunzip
            | Var::BerespDoGzip
            | Var::BerespDoStream
            | Var::BerespFilters
            | Var::BerespGrace
            | Var::BerespHttp
            | Var::BerespKeep
            | Var::BerespProto
            | Var::BerespReason
            | Var::BerespStatus
            | Var::BerespStorage
            | Var::BerespStorageHint
            | Var::BerespTime
            | Var::BerespTtl
            | Var::BerespUncacheable
            | Var::BerespWas304
            | Var::ObjHttp
            | Var::RespBody
            | Var::RespHttp
            | Var::StorageFreeSpace
            | Var::StorageHappy
            | Var::StorageUsedSpace => Value::Text(Text::UNSET),
        })
    }

    fn write(&mut self, var: Var, value: Value, append: bool, scratch: &mut Scratch) -> Result<(), Failure> {
        match var {
            Var::ClientIdentity => self.task.client_identity = Some(bytes(value, scratch).to_vec()),
            Var::ReqBackendHint => {
                if let Value::Backend(director) = value {
                    self.task.director = director;
                }
            }
            Var::ReqEsi => self.task.is_esi_allowed = bool_of(value),
            Var::ReqGrace => self.task.grace_cap = cap(value),
            Var::ReqTtl => self.task.ttl_cap = cap(value),
            Var::ReqHashAlwaysMiss => self.task.always_miss = bool_of(value),
            Var::ReqHashIgnoreBusy => self.task.ignore_busy = bool_of(value),
            Var::ReqHashIgnoreVary => self.task.ignore_vary = bool_of(value),
            Var::ReqStorage => {
                if let Value::Stevedore(storage) = value {
                    self.task.storage = storage;
                }
            }
            Var::ReqMethod => {
                not_empty(value, "req.method", scratch)?;
                self.set_start_line(HttpObject::Req, StartLine::Method, value, scratch);
            }
            Var::ReqUrl => {
                not_empty(value, "req.url", scratch)?;
                self.set_start_line(HttpObject::Req, StartLine::Url, value, scratch);
            }
            Var::ReqProto => {
                not_empty(value, "req.proto", scratch)?;
                self.set_start_line(HttpObject::Req, StartLine::Protocol, value, scratch);
            }
            Var::SessIdleSendTimeout => self.session.timeouts.idle_send = Some(seconds(value).max(0.0)),
            Var::SessSendTimeout => self.session.timeouts.send = Some(seconds(value).max(0.0)),
            Var::SessTimeoutIdle => self.session.timeouts.idle = Some(seconds(value).max(0.0)),
            Var::SessTimeoutLinger => self.session.timeouts.linger = Some(seconds(value).max(0.0)),
            Var::BereqBackend => {
                if let (Some(pipe), Value::Backend(director)) = (&mut self.task.pipe, value) {
                    pipe.director = director;
                }
            }
            Var::BereqConnectTimeout => {
                if let Some(pipe) = &mut self.task.pipe {
                    pipe.connect_timeout = Some(seconds(value).max(0.0));
                }
            }
            Var::BereqMethod => {
                not_empty(value, "bereq.method", scratch)?;
                self.set_start_line(HttpObject::Bereq, StartLine::Method, value, scratch);
            }
            Var::BereqUrl => {
                not_empty(value, "bereq.url", scratch)?;
                self.set_start_line(HttpObject::Bereq, StartLine::Url, value, scratch);
            }
            Var::BereqProto => {
                not_empty(value, "bereq.proto", scratch)?;
                self.set_start_line(HttpObject::Bereq, StartLine::Protocol, value, scratch);
            }
            Var::RespBody => self.synthetic(bytes(value, scratch), append),
            Var::RespStatus => self.set_status(value)?,
            Var::RespReason => {
                not_empty(value, "resp.reason", scratch)?;
                self.set_start_line(HttpObject::Resp, StartLine::Reason, value, scratch);
            }
            Var::RespProto => {
                not_empty(value, "resp.proto", scratch)?;
                self.set_start_line(HttpObject::Resp, StartLine::Protocol, value, scratch);
            }
            Var::RespFilters => self.task.filters = Some(bytes(value, scratch).to_vec()),
            Var::RespDoEsi => {
                self.filters_are_fixed("resp.do_esi")?;
                self.task.do_esi = Some(bool_of(value));
            }
            // Not to be set on the client's side: the compiler has refused it.
            Var::ClientIp
            | Var::ServerHostname
            | Var::ServerIdentity
            | Var::ServerIp
            | Var::RemoteIp
            | Var::LocalEndpoint
            | Var::LocalIp
            | Var::LocalSocket
            | Var::Req
            | Var::ReqCanGzip
            | Var::ReqEsiLevel
            | Var::ReqHash
            | Var::ReqHttp
            | Var::ReqIsHitmiss
            | Var::ReqIsHitpass
            | Var::ReqRestarts
            | Var::ReqTime
            | Var::ReqTransport
            | Var::ReqXid
            | Var::ReqTopHttp
            | Var::ReqTopMethod
            | Var::ReqTopProto
            | Var::ReqTopTime
            | Var::ReqTopUrl
            | Var::Bereq
            | Var::BereqBetweenBytesTimeout
            | Var::BereqBody
            | Var::BereqFirstByteTimeout
            | Var::BereqHash
            | Var::BereqHttp
            | Var::BereqIsBgfetch
            | Var::BereqIsHitmiss
            | Var::BereqIsHitpass
            | Var::BereqRetries
            | Var::BereqTime
            | Var::BereqUncacheable
            | Var::BereqXid
            | Var::Beresp
            | Var::BerespAge
            | Var::BerespBackend
            | Var::BerespBackendIp
            | Var::BerespBackendName
            | Var::BerespBody
            | Var::BerespDoEsi
            | Var::BerespDoGunzip
            | Var::BerespDoGzip
            | Var::BerespDoStream
            | Var::BerespFilters
            | Var::BerespGrace
            | Var::BerespHttp
            | Var::BerespKeep
            | Var::BerespProto
            | Var::BerespReason
            | Var::BerespStatus
            | Var::BerespStorage
            | Var::BerespStorageHint
            | Var::BerespTime
            | Var::BerespTtl
            | Var::BerespUncacheable
            | Var::BerespWas304
            | Var::ObjAge
            | Var::ObjCanEsi
            | Var::ObjGrace
            | Var::ObjHits
            | Var::ObjHttp
            | Var::ObjKeep
            | Var::ObjProto
            | Var::ObjReason
            | Var::ObjStatus
            | Var::ObjStorage
            | Var::ObjTime
            | Var::ObjTtl
            | Var::ObjUncacheable
            | Var::Resp
            | Var::RespHttp
            | Var::RespIsStreaming
            | Var::RespTime
            | Var::Now
            | Var::SessXid
            | Var::StorageFreeSpace
            | Var::StorageHappy
            | Var::StorageUsedSpace => {}
        }
        Ok(())
    }

    fn unset(&mut self, _var: Var) -> Result<(), Failure> {
        // No variable of the client's side can be unset; headers have a call of their own.
        Ok(())
    }

    fn header(&mut self, http: HttpObject, name: &str, scratch: &mut Scratch) -> Text {
        vcl_context::header(self.message(http), name, scratch)
    }

    fn has_header(&mut self, http: HttpObject, name: &str, _scratch: &mut Scratch) -> bool {
        self.message(http).has(name)
    }

    fn set_header(&mut self, http: HttpObject, name: &str, value: Text, scratch: &Scratch) -> Result<(), Failure> {
        let validate = self.task.settings.feature & feature::VALIDATE_HEADERS != 0;
        match self.logged(http) {
            Some((log, tags, message)) => {
                vcl_context::set_header(log, tags, message, name, scratch.get(value), validate)
            }
            None => Ok(()),
        }
    }

    fn unset_header(&mut self, http: HttpObject, name: &str) {
        if let Some((log, tags, message)) = self.logged(http) {
            logged::unset(log, tags, message, name);
        }
    }

    fn storage_property(&mut self, storage: Option<u32>, property: &str) -> Value {
        vcl_context::storage_property(&self.context.engine, storage, property)
    }

    fn storage_name(&self, storage: Option<u32>) -> &str {
        vcl_context::storage_name(&self.context.engine, storage)
    }

    fn storage_by_name(&self, name: &[u8]) -> Option<u32> {
        vcl_context::storage_by_name(&self.context.engine, name)
    }

    fn director_name(&self, director: DirectorId) -> &str {
        vcl_context::director_name(self.vcl, director)
    }

    fn resolve_director(&mut self, director: DirectorId) -> Option<DirectorId> {
        self.vcl.directors.resolve_id(director, &self.resolve_context())
    }

    fn hash_data(&mut self, data: &[u8]) {
        self.task.hasher.update(data);
        self.task.hasher.update([0]);
        self.log.record(Tag::Hash, data);
    }

    fn synthetic(&mut self, body: &[u8], append: bool) {
        if !append {
            self.task.synthetic.clear();
        }
        self.task.synthetic.extend_from_slice(body);
    }

    fn ban(&mut self, expression: &[u8]) {
        vcl_context::ban(&self.context.engine, self.log, expression, self.now);
    }

    fn log(&mut self, tag: Tag, payload: &[u8]) {
        self.log.record(tag, payload);
    }

    fn trace(&mut self, index: u32, point: Point) {
        if !self.log.is_masked(Tag::VCLTrace) {
            let (source, line, position) = (point.source, point.line, point.position);
            self.log.record_fmt(Tag::VCLTrace, format_args!("{} {index} {source}.{line}.{position}", self.vcl.name));
        }
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
        match self.task.vmod_wait.take() {
            Some(VmodWait::Value(value)) => Ok(value),
            Some(VmodWait::Finish(finish)) => finish(self, scratch),
            Some(VmodWait::CacheBody(_) | VmodWait::Pending(_)) | None => {
                Err(Failure("A VMOD waits for nothing".to_owned()))
            }
        }
    }
}
