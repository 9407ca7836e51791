//! What client-side VCL can touch: `req`, `resp`, `obj`, `bereq` in vcl_pipe, the session's timeouts.
//!
//! A host lives for one method; it borrows the task, its log and the session. What is the same for the fetch's host lies in
//! `vcl_context.rs`. The compiler has checked where each variable may be used, so what does not exist reads as unset.
//! Invariant: whatever changes a message leaves its log records.

use super::body::ClientBody;
use super::legacy;
use super::task::{ObjectHead, Task};
use super::vmod_context::VmodWait;
use crate::bodies::filters;
use crate::context::Loop;
use crate::fetch::legacy::{PreparedRequest, cap, grace_shown, unsets_by_set};
use crate::loaded_vcl::LoadedVcl;
use crate::logged::{self, BEREQ, MessageTags, OBJ, REQ, RESP};
use crate::session::SessionView;
use crate::vcl_context::{self, Noted, StartLine, bytes, checked_status, not_empty, seconds};
use backend::{ClientName, Notes, ResolveContext};
use body::Side;
use message::Message;
use sha2::Digest;
use shm::log::LogBuffer;
use std::borrow::Cow;
use std::rc::Rc;
use store::{BodyState, Object, ObjectFlags};
use surface::parameter::feature;
use surface::tag::Tag;
use surface::vcl::{HttpObject, Method, Var};
use vcl_run::eval::Place;
use vcl_run::host::{Called, Failure, Host};
use vcl_run::link::LinkedProgram;
use vcl_run::program::Point;
use vcl_run::value::{DirectorId, Scratch, Text, Value};

/// The world of one client-side method.
pub(crate) struct ClientHost<'a> {
    pub(crate) context: &'a Rc<Loop>,
    pub(crate) session: &'a mut SessionView,
    pub(crate) task: &'a mut Task,
    pub(crate) log: &'a mut LogBuffer,
    pub(crate) vcl: &'a LoadedVcl,
    pub(crate) method: Method,
    pub(crate) now: f64,
    /// Where VCL is about to set something.
    pub(crate) noted: Option<Noted>,
}

impl ClientHost<'_> {
    /// The headers that VCL names so; the request's where there are none.
    pub(super) fn message(&mut self, http: HttpObject) -> &mut Message {
        match http {
            HttpObject::Req | HttpObject::ReqTop => &mut self.task.request,
            HttpObject::Resp | HttpObject::Beresp => &mut self.task.response,
            HttpObject::Obj => self.object_head(),
            HttpObject::Bereq => match (&mut self.task.found.pipe, &mut self.task.found.prepared) {
                (Some(pipe), _) => &mut pipe.bereq,
                (None, Some(prepared)) => &mut prepared.bereq,
                (None, None) => &mut self.task.request,
            },
        }
    }

    /// The message, the log its changes go to, and the tags they have.
    pub(super) fn logged(&mut self, http: HttpObject) -> Option<(&mut LogBuffer, MessageTags, &mut Message)> {
        if http == HttpObject::Obj && self.changes_objects() {
            self.object_head();
            self.task.found.object_head = ObjectHead::Changed;
            return Some((self.log, OBJ, &mut self.task.object_head));
        }
        let task = &mut *self.task;
        match http {
            HttpObject::Req => Some((self.log, REQ, &mut task.request)),
            HttpObject::Resp => Some((self.log, RESP, &mut task.response)),
            HttpObject::Bereq => match (task.found.pipe.as_deref_mut(), task.found.prepared.as_deref_mut()) {
                (Some(pipe), _) => Some((&mut pipe.log, BEREQ, &mut pipe.bereq)),
                (None, Some(prepared)) => Some((self.log, BEREQ, &mut prepared.bereq)),
                (None, None) => None,
            },
            HttpObject::ReqTop | HttpObject::Obj | HttpObject::Beresp => None,
        }
    }

    /// Whether VCL can set what belongs to `obj` here: vcl_hit of the old dialects.
    fn changes_objects(&self) -> bool {
        self.method == Method::Hit && self.vcl.is_legacy()
    }

    /// Sets how long the object lives (see `legacy.rs`), where VCL may.
    fn set_object_lifetime(&mut self, var: Var, seconds: f64) {
        let Some(object) = self.task.found.object.as_ref().filter(|_| self.changes_objects()) else { return };
        let cache = &self.context.engine.cache;
        let [ttl, grace, keep] =
            legacy::set_object_lifetime(cache, object, (var, seconds), self.vcl.generation, self.now);
        let origin = object.origin();
        self.log.record_fmt(Tag::TTL, format_args!("VCL {ttl:.0} {grace:.0} {keep:.0} {origin:.0} cacheable"));
    }

    /// `obj`'s head, decoded when it is first looked at.
    fn object_head(&mut self) -> &mut Message {
        let task = &mut *self.task;
        if task.found.object_head == ObjectHead::Unread {
            let decoded = task.found.object.as_ref().and_then(|object| task.object_head.decode(object.head()));
            if decoded.is_none() {
                task.object_head.clear();
            }
            task.found.object_head = ObjectHead::Decoded;
        }
        &mut task.object_head
    }

    /// A number that follows from the object; nothing when there is none.
    fn of_object(&self, value: impl FnOnce(&Object) -> Value, otherwise: Value) -> Value {
        self.task.found.object.as_ref().map_or(otherwise, |object| value(object))
    }

    /// Sets a part of a start line; `what` is the variable.
    fn set_start_line(
        &mut self,
        (http, part): (HttpObject, StartLine),
        what: &str,
        value: Value,
        scratch: &Scratch,
    ) -> Result<(), Failure> {
        let value = not_empty(value, what, scratch)?;
        match self.logged(http) {
            Some(logged) => vcl_context::set_start_line(logged, part, what, value),
            None => Ok(()),
        }
    }

    /// Sets `resp.status`, and the reason that belongs to it.
    fn set_status(&mut self, value: Value) -> Result<(), Failure> {
        let status = checked_status("resp.status", value)?;
        let response = &mut self.task.response;
        response.set_status(status);
        self.log.record(RESP.status, itoa::Buffer::new().format(status % 1000).as_bytes());
        // The old dialects left the reason as it was.
        if !self.vcl.is_legacy() {
            let reason = vcl_context::standard_reason(status);
            response.set_reason(reason.as_bytes());
            self.log.record(RESP.reason, reason.as_bytes());
        }
        Ok(())
    }

    /// `req.filters`: while nothing of the body has been read.
    fn set_body_filters(&mut self, list: &[u8]) -> Result<(), Failure> {
        let is_read = matches!(self.task.life.body, ClientBody::Cached(_) | ClientBody::Taken | ClientBody::Failed);
        if is_read || self.task.choices.is_body_filtered {
            return Err(Failure("req.filters: the request body has been processed already".to_owned()));
        }
        filters::check(list, Side::Req).map_err(|text| Failure(format!("req.filters: {text}")))?;
        self.task.choices.body_filters = Some(list.to_vec());
        Ok(())
    }

    fn filters_are_fixed(&self, name: &str) -> Result<(), Failure> {
        if self.task.answer.filters.is_some() {
            return Err(Failure(format!("resp.filters are already fixed, {name} is undefined")));
        }
        Ok(())
    }

    /// Filters as VCL reads them: set, or those that would apply now.
    fn filters(&self) -> Vec<u8> {
        self.task.answer.filters.clone().unwrap_or_else(|| super::filters::default_list(self.task))
    }

    fn object_age(&self) -> f64 {
        self.task.found.object.as_ref().map_or(0.0, |object| self.now - object.origin())
    }

    fn is_uncacheable(&self) -> bool {
        self.task.found.object.as_ref().is_some_and(|object| {
            let flags = object.flags();
            object.is_passing()
                || [ObjectFlags::PRIVATE, ObjectFlags::HIT_FOR_MISS, ObjectFlags::HIT_FOR_PASS]
                    .iter()
                    .any(|flag| flags.has(*flag))
        })
    }

    /// A timeout of the request that vcl_miss and vcl_pass of the old dialects see, when VCL set it; seconds.
    fn prepared_timeout(&self, of: impl FnOnce(&PreparedRequest) -> f64) -> Option<f64> {
        self.task.found.prepared.as_deref().map(of).filter(|seconds| *seconds > 0.0)
    }

    /// What decides where directors lead.
    pub(crate) fn resolve_now<'a>(&'a self, notes: &'a Notes) -> ResolveContext<'a> {
        ResolveContext {
            now: self.now,
            random: &self.context.engine.random,
            url: self.task.request.target(),
            host: self.task.found.prepared.as_ref().map_or(&self.task.request, |prepared| &prepared.bereq).get("Host"),
            client: ClientName {
                identity: self.task.choices.client_identity.as_deref(),
                address: Some(self.session.peer.client.ip()),
            },
            digest: self.knows_digest().then_some(&self.task.life.digest),
            is_for_cache: matches!(self.method, Method::Miss | Method::Hit),
            shard: (self.method == Method::Pipe).then(|| self.task.vmod_state.shard_parameters()),
            notes,
        }
    }

    /// Whether vcl_hash has run.
    pub(crate) fn knows_digest(&self) -> bool {
        !matches!(self.method, Method::Recv | Method::Hash)
    }
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

impl Host for ClientHost<'_> {
    fn program(&self) -> &LinkedProgram {
        &self.vcl.program
    }

    fn now(&self) -> f64 {
        self.now
    }

    fn clock(&self) -> f64 {
        self.context.clock.now()
    }

    fn read(&mut self, var: Var, scratch: &mut Scratch) -> Result<Value, Failure> {
        let engine = &self.context.engine;
        let identity = self.task.choices.client_identity.as_deref();
        if let Some(value) = vcl_context::shared_variable(var, engine, &self.session.peer, identity, scratch) {
            return Ok(value);
        }
        let settings = &self.task.settings;
        let timeouts = &self.session.timeouts;
        Ok(match var {
            Var::Now => Value::Time(self.now),
            Var::ReqBackendHint => Value::Backend(self.task.choices.director),
            Var::ReqCanGzip => Value::Bool(semantics::encoding::accepts_gzip(&self.task.request)),
            Var::ReqEsi => Value::Bool(!self.task.choices.is_esi_forbidden),
            Var::ReqEsiLevel => Value::Int(0),
            Var::ReqGrace => {
                let default = engine.parameters.load().default_grace;
                Value::Duration(grace_shown(self.task.choices.grace_cap, self.vcl.generation, default))
            }
            Var::ReqTtl => Value::Duration(self.task.choices.ttl_cap.unwrap_or(-1.0)),
            Var::ReqFilters => text(scratch, self.task.choices.body_filters.as_deref().unwrap_or_default()),
            Var::ReqTrace => Value::Bool(vcl_context::is_traced(self.log, self.task.choices.trace)),
            Var::ReqHash | Var::BereqHash => Value::Blob(scratch.put(&self.task.life.digest)),
            Var::ReqHashAlwaysMiss => Value::Bool(self.task.choices.always_miss),
            Var::ReqHashIgnoreBusy => Value::Bool(self.task.choices.ignore_busy),
            Var::ReqHashIgnoreVary => Value::Bool(self.task.choices.ignore_vary),
            Var::ReqIsHitmiss => Value::Bool(self.task.found.is_hitmiss),
            Var::ReqIsHitpass => Value::Bool(self.task.found.is_hitpass),
            Var::ReqMethod | Var::ReqTopMethod => text(scratch, self.task.request.method()),
            Var::ReqProto | Var::ReqTopProto => text(scratch, self.task.request.protocol()),
            Var::ReqUrl | Var::ReqTopUrl => text(scratch, self.task.request.target()),
            Var::ReqRestarts => Value::Int(i64::try_from(self.task.life.restarts).unwrap_or(i64::MAX)),
            Var::ReqStorage => Value::Stevedore(self.task.choices.storage),
            Var::ReqTime | Var::ReqTopTime => Value::Time(self.task.life.received_at),
            Var::ReqTransport => text(scratch, self.task.life.protocol.as_bytes()),
            Var::ReqXid => number(scratch, u64::from(self.task.life.vxid)),
            Var::SessXid => number(scratch, u64::from(self.session.vxid)),
            Var::SessIdleSendTimeout => Value::Duration(timeouts.idle_send.unwrap_or(settings.idle_send_timeout)),
            Var::SessSendTimeout => Value::Duration(timeouts.send.unwrap_or(settings.send_timeout)),
            Var::SessTimeoutIdle => Value::Duration(timeouts.idle.unwrap_or(settings.timeout_idle)),
            Var::SessTimeoutLinger => Value::Duration(timeouts.linger.unwrap_or(settings.timeout_linger)),
            Var::BereqBackend => match &self.task.found.pipe {
                Some(pipe) => Value::Backend(pipe.director),
                None => Value::Backend(self.task.found.prepared.as_ref().and(self.task.choices.director)),
            },
            Var::BereqConnectTimeout => {
                let of_pipe = self.task.found.pipe.as_ref().and_then(|pipe| pipe.connect_timeout);
                let own = of_pipe.or_else(|| self.prepared_timeout(|prepared| prepared.connect_timeout));
                Value::Duration(own.unwrap_or_else(|| engine.parameters.load().connect_timeout))
            }
            Var::BereqTaskDeadline => {
                let own = self.task.found.pipe.as_ref().and_then(|pipe| pipe.task_deadline);
                Value::Duration(own.unwrap_or(settings.pipe_task_deadline))
            }
            Var::BereqFirstByteTimeout => {
                let own = self.prepared_timeout(|prepared| prepared.first_byte_timeout);
                Value::Duration(own.unwrap_or_else(|| engine.parameters.load().first_byte_timeout))
            }
            Var::BereqBetweenBytesTimeout => {
                let own = self.prepared_timeout(|prepared| prepared.between_bytes_timeout);
                Value::Duration(own.unwrap_or_else(|| engine.parameters.load().between_bytes_timeout))
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
            Var::BereqTime => Value::Time(self.task.found.pipe.as_ref().map_or(0.0, |pipe| pipe.started)),
            Var::BereqXid => {
                let of_pipe = self.task.found.pipe.as_ref().map(|pipe| pipe.vxid);
                let vxid = of_pipe.or_else(|| self.task.found.prepared.as_ref().map(|prepared| prepared.vxid));
                number(scratch, u64::from(vxid.unwrap_or(0)))
            }
            Var::ObjAge => Value::Duration(self.object_age()),
            Var::ObjTtl => {
                let now = self.now;
                self.of_object(|object| Value::Duration(object.origin() + object.ttl() - now), Value::Duration(0.0))
            }
            Var::ObjGrace => self.of_object(|object| Value::Duration(object.grace()), Value::Duration(0.0)),
            Var::ObjKeep => self.of_object(|object| Value::Duration(object.keep()), Value::Duration(0.0)),
            Var::ObjTime => self.of_object(|object| Value::Time(object.origin()), Value::Time(0.0)),
            // What was not found by this request's lookup has no hits yet, though others may have found it meanwhile.
            Var::ObjHits if !self.task.found.is_hit => Value::Int(0),
            Var::ObjHits => self.of_object(|object| Value::Int(i64::from(object.hits())), Value::Int(0)),
            Var::ObjCanEsi => {
                self.of_object(|object| Value::Bool(object.flags().has(ObjectFlags::ESI)), Value::Bool(false))
            }
            Var::ObjUncacheable => Value::Bool(self.is_uncacheable()),
            Var::ObjStorage => {
                let is_transient = self.is_uncacheable();
                let storages = &engine.storages;
                let of = |object: &Object| match is_transient {
                    true => storages.transient(),
                    false => storages.of_object(object),
                };
                Value::Stevedore(self.task.found.object.as_ref().map(|object| of(object)))
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
            Var::RespTime => Value::Time(self.task.life.responded_at),
            Var::RespIsStreaming => {
                Value::Bool(self.task.found.object.as_ref().is_some_and(|object| object.state() == BodyState::Writing))
            }
            Var::RespFilters => {
                let filters = self.filters();
                text(scratch, &filters)
            }
            Var::RespDoEsi => {
                self.filters_are_fixed("resp.do_esi")?;
                let of_object =
                    self.task.found.object.as_ref().is_some_and(|object| object.flags().has(ObjectFlags::ESI));
                Value::Bool(self.task.answer.do_esi.unwrap_or(of_object))
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
            | Var::BereqFilters
            | Var::BereqTrace
            | Var::BereqBody
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
            | Var::BerespTransitBuffer
            | Var::BerespTtl
            | Var::BerespUncacheable
            | Var::BerespWas304
            | Var::ObjStaleAge
            | Var::ObjStaleCanEsi
            | Var::ObjStaleGrace
            | Var::ObjStaleHits
            | Var::ObjStaleHttp
            | Var::ObjStaleIsValid
            | Var::ObjStaleKeep
            | Var::ObjStaleProto
            | Var::ObjStaleReason
            | Var::ObjStaleStatus
            | Var::ObjStaleStorage
            | Var::ObjStaleTime
            | Var::ObjStaleTtl
            | Var::ObjStaleUncacheable
            | Var::ObjHttp
            | Var::RespBody
            | Var::RespHttp
            | Var::StorageFreeSpace
            | Var::StorageHappy
            | Var::StorageUsedSpace
            | Var::ParamBackendIdleTimeout
            | Var::ParamBackendWaitLimit
            | Var::ParamBackendWaitTimeout
            | Var::ParamBetweenBytesTimeout
            | Var::ParamConnectTimeout
            | Var::ParamDefaultGrace
            | Var::ParamDefaultKeep
            | Var::ParamDefaultTtl
            | Var::ParamFirstByteTimeout
            | Var::ParamIdleSendTimeout
            | Var::ParamMaxEsiDepth
            | Var::ParamMaxRestarts
            | Var::ParamMaxRetries
            | Var::ParamPipeTaskDeadline
            | Var::ParamPipeTimeout
            | Var::ParamSendTimeout
            | Var::ParamShortlived
            | Var::ParamTimeoutIdle
            | Var::ParamTransitBuffer
            | Var::ParamUncacheableTtl => Value::Text(Text::UNSET),
            Var::Cacheable => Value::Bool(true),
            Var::Saintmode => Value::Duration(0.0),
            // What is delivered is used at that moment. Compat: vcl_deliver of 3.0.
            Var::ObjLastuse if self.method == Method::Hit => Value::Duration(self.task.found.unused_seconds),
            Var::ObjLastuse => Value::Duration(0.0),
            Var::ObjHash => vcl_context::hexadecimal(&self.task.life.digest, scratch),
        })
    }

    fn write(&mut self, var: Var, value: Value, append: bool, scratch: &mut Scratch) -> Result<(), Failure> {
        match var {
            Var::ClientIdentity => self.task.choices.client_identity = Some(bytes(value, scratch).to_vec()),
            Var::ReqBackendHint => {
                if let Value::Backend(director) = value {
                    self.task.choices.director = director;
                }
            }
            Var::ReqEsi => self.task.choices.is_esi_forbidden = !bool_of(value),
            Var::ReqGrace => self.task.choices.grace_cap = cap(seconds(value), self.vcl.generation),
            Var::ReqTtl => self.task.choices.ttl_cap = cap(seconds(value), self.vcl.generation),
            Var::ReqHashAlwaysMiss => {
                self.task.choices.always_miss = bool_of(value);
                self.task.choices.always_miss_by = self.noted.take().filter(|_| bool_of(value));
            }
            Var::ReqTrace => self.task.choices.trace = Some(bool_of(value)),
            Var::ReqFilters => self.set_body_filters(bytes(value, scratch))?,
            Var::BereqTaskDeadline => {
                if let Some(pipe) = &mut self.task.found.pipe {
                    pipe.task_deadline = Some(seconds(value).max(0.0));
                }
            }
            Var::ReqHashIgnoreBusy => self.task.choices.ignore_busy = bool_of(value),
            Var::ReqHashIgnoreVary => self.task.choices.ignore_vary = bool_of(value),
            Var::ReqStorage => {
                if let Value::Stevedore(storage) = value {
                    self.task.choices.storage = storage;
                }
            }
            Var::ReqMethod => {
                self.set_start_line((HttpObject::Req, StartLine::Method), "req.method", value, scratch)?;
            }
            Var::ReqUrl => {
                self.set_start_line((HttpObject::Req, StartLine::Url), "req.url", value, scratch)?;
            }
            Var::ReqProto => {
                self.set_start_line((HttpObject::Req, StartLine::Protocol), "req.proto", value, scratch)?;
            }
            Var::SessIdleSendTimeout => self.session.timeouts.idle_send = Some(seconds(value).max(0.0)),
            Var::SessSendTimeout => self.session.timeouts.send = Some(seconds(value).max(0.0)),
            Var::SessTimeoutIdle => self.session.timeouts.idle = Some(seconds(value).max(0.0)),
            Var::SessTimeoutLinger => self.session.timeouts.linger = Some(seconds(value).max(0.0)),
            Var::BereqBackend => {
                if let (Some(pipe), Value::Backend(director)) = (&mut self.task.found.pipe, value) {
                    pipe.director = director;
                }
            }
            Var::BereqConnectTimeout => {
                let seconds = seconds(value).max(0.0);
                match (&mut self.task.found.pipe, &mut self.task.found.prepared) {
                    (Some(pipe), _) => pipe.connect_timeout = Some(seconds),
                    (None, Some(prepared)) => prepared.connect_timeout = seconds,
                    (None, None) => {}
                }
            }
            Var::BereqFirstByteTimeout => {
                if let Some(prepared) = &mut self.task.found.prepared {
                    prepared.first_byte_timeout = seconds(value).max(0.0);
                }
            }
            Var::BereqBetweenBytesTimeout => {
                if let Some(prepared) = &mut self.task.found.prepared {
                    prepared.between_bytes_timeout = seconds(value).max(0.0);
                }
            }
            Var::ObjTtl | Var::ObjGrace | Var::ObjKeep => self.set_object_lifetime(var, seconds(value)),
            // What is not cacheable is not found again.
            Var::Cacheable if !bool_of(value) => self.set_object_lifetime(Var::ObjTtl, 0.0),
            Var::ObjProto => {
                self.set_start_line((HttpObject::Obj, StartLine::Protocol), "obj.proto", value, scratch)?
            }
            Var::BereqMethod => {
                self.set_start_line((HttpObject::Bereq, StartLine::Method), "bereq.method", value, scratch)?;
            }
            Var::BereqUrl => {
                self.set_start_line((HttpObject::Bereq, StartLine::Url), "bereq.url", value, scratch)?;
            }
            Var::BereqProto => {
                self.set_start_line((HttpObject::Bereq, StartLine::Protocol), "bereq.proto", value, scratch)?;
            }
            Var::RespBody => {
                if !append {
                    self.task.synthetic.clear();
                }
                self.synthetic(bytes(value, scratch));
            }
            Var::RespStatus => self.set_status(value)?,
            Var::RespReason => {
                self.set_start_line((HttpObject::Resp, StartLine::Reason), "resp.reason", value, scratch)?;
            }
            Var::RespProto => {
                self.set_start_line((HttpObject::Resp, StartLine::Protocol), "resp.proto", value, scratch)?;
            }
            Var::RespFilters => self.task.answer.filters = Some(bytes(value, scratch).to_vec()),
            Var::RespDoEsi => {
                self.filters_are_fixed("resp.do_esi")?;
                self.task.answer.do_esi = Some(bool_of(value));
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
            | Var::BereqFilters
            | Var::BereqTrace
            | Var::BereqBody
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
            | Var::BerespTransitBuffer
            | Var::BerespTtl
            | Var::BerespUncacheable
            | Var::BerespWas304
            | Var::ObjAge
            | Var::ObjCanEsi
            | Var::ObjHits
            | Var::ObjHttp
            | Var::ObjReason
            | Var::ObjStatus
            | Var::ObjStorage
            | Var::ObjTime
            | Var::ObjUncacheable
            | Var::Resp
            | Var::RespHttp
            | Var::RespIsStreaming
            | Var::RespTime
            | Var::Now
            | Var::SessXid
            | Var::StorageFreeSpace
            | Var::StorageHappy
            | Var::StorageUsedSpace
            | Var::ParamBackendIdleTimeout
            | Var::ParamBackendWaitLimit
            | Var::ParamBackendWaitTimeout
            | Var::ParamBetweenBytesTimeout
            | Var::ParamConnectTimeout
            | Var::ParamDefaultGrace
            | Var::ParamDefaultKeep
            | Var::ParamDefaultTtl
            | Var::ParamFirstByteTimeout
            | Var::ParamIdleSendTimeout
            | Var::ParamMaxEsiDepth
            | Var::ParamMaxRestarts
            | Var::ParamMaxRetries
            | Var::ParamPipeTaskDeadline
            | Var::ParamPipeTimeout
            | Var::ParamSendTimeout
            | Var::ParamShortlived
            | Var::ParamTimeoutIdle
            | Var::ParamTransitBuffer
            | Var::ParamUncacheableTtl
            | Var::ObjStaleAge
            | Var::ObjStaleCanEsi
            | Var::ObjStaleGrace
            | Var::ObjStaleHits
            | Var::ObjStaleHttp
            | Var::ObjStaleIsValid
            | Var::ObjStaleKeep
            | Var::ObjStaleProto
            | Var::ObjStaleReason
            | Var::ObjStaleStatus
            | Var::ObjStaleStorage
            | Var::ObjStaleTime
            | Var::ObjStaleTtl
            | Var::ObjStaleUncacheable
            | Var::Cacheable
            | Var::Saintmode
            | Var::ObjLastuse
            | Var::ObjHash => {}
        }
        Ok(())
    }

    fn unset(&mut self, var: Var) -> Result<(), Failure> {
        let timeouts = &mut self.session.timeouts;
        match var {
            Var::ReqGrace => self.task.choices.grace_cap = None,
            Var::ReqTtl => self.task.choices.ttl_cap = None,
            Var::SessIdleSendTimeout => timeouts.idle_send = None,
            Var::SessSendTimeout => timeouts.send = None,
            Var::SessTimeoutIdle => timeouts.idle = None,
            Var::SessTimeoutLinger => timeouts.linger = None,
            Var::BereqConnectTimeout => {
                if let Some(pipe) = &mut self.task.found.pipe {
                    pipe.connect_timeout = None;
                }
            }
            Var::BereqTaskDeadline => {
                if let Some(pipe) = &mut self.task.found.pipe {
                    pipe.task_deadline = None;
                }
            }
            // Nothing else of the client's side can be unset; headers have a call of their own.
            _ => {}
        }
        Ok(())
    }

    fn header(&mut self, http: HttpObject, name: &str) -> Option<&[u8]> {
        self.message(http).get(name)
    }

    fn variable_bytes(&self, var: Var) -> Option<&[u8]> {
        match var {
            Var::ReqUrl => Some(self.task.request.target()),
            Var::ReqMethod => Some(self.task.request.method()),
            _ => None,
        }
    }

    fn set_header(&mut self, http: HttpObject, name: &str, value: Text, scratch: &Scratch) -> Result<(), Failure> {
        if !value.is_set() && unsets_by_set(self.vcl.generation) {
            self.unset_header(http, name);
            return Ok(());
        }
        let held_bytes = self.task.memory_bytes() + scratch.used_bytes();
        if held_bytes + name.len() + value.len() > self.task.memory_limit() {
            return Err(Failure::out_of_memory());
        }
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

    fn director_name(&self, director: DirectorId) -> Cow<'_, str> {
        vcl_context::director_name(self.vcl, director)
    }

    fn resolve_director(&mut self, director: DirectorId) -> Option<DirectorId> {
        let notes = Notes::new();
        let resolved = self.vcl.directors.resolve_id(director, &self.resolve_now(&notes));
        vcl_context::log_notes(&self.context.engine, self.log, &notes);
        resolved
    }

    fn hash_data(&mut self, piece: Option<&[u8]>) {
        self.task.hasher.update(piece.unwrap_or(b"\0"));
        if let Some(piece) = piece {
            self.log.record(Tag::Hash, piece);
        }
    }

    fn synthetic(&mut self, body: &[u8]) {
        self.task.synthetic.extend_from_slice(body);
    }

    fn ban(&mut self, expression: &[u8]) -> Result<(), String> {
        vcl_context::add_ban(&self.context.engine, expression, self.now)
    }

    fn log(&mut self, tag: Tag, payload: &[u8]) {
        self.log.record(tag, payload);
    }

    fn note(&mut self, place: Place<'_>) {
        if self.task.settings.reasons {
            self.noted.get_or_insert_default().set(self.method, place);
        }
    }

    fn is_traced(&self) -> bool {
        vcl_context::is_traced(self.log, self.task.choices.trace)
    }

    fn trace(&mut self, index: u32, point: Point) {
        vcl_context::trace(self.log, &self.vcl.name, index, point);
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
        match self.task.life.vmod_wait.take() {
            Some(VmodWait::Value(value)) => Ok(value),
            Some(VmodWait::Finish(finish)) => finish(self, scratch),
            Some(VmodWait::CacheBody(_) | VmodWait::Pending(_)) | None => {
                Err(Failure("A VMOD waits for nothing".to_owned()))
            }
        }
    }
}
