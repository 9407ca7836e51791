//! The messages that VCL names, their headers and start lines, whichever side has them.
//!
//! *Invariant:* every change made here is logged.

use super::value::{bytes_of, status_of};
use super::{ClientSide, FetchSide, Side, World, no_request, out_of_reach};
use crate::legacy_rules::unsets_by_set;
use crate::logged::{self, BEREQ, BERESP, MessageTags, OBJ, REQ, RESP};
use crate::request::task::ObjectHead;
use message::Message;
use shm::log::LogBuffer;
use surface::parameter::feature;
use surface::vcl::{HttpObject, Method};
use vcl_run::host::Failure;
use vcl_run::line;
use vcl_run::value::{Scratch, Text, Value};

/// A part of a start line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StartLine {
    Method,
    Url,
    Protocol,
    Reason,
}

/// A message that VCL may change, the log for its changes, and the tags to use there.
type Logged<'a> = (&'a mut LogBuffer, MessageTags, &'a mut Message);

impl ClientSide<'_> {
    /// The message of this name in VCL. On this side `beresp` means `resp`.
    #[inline]
    fn message(&mut self, http: HttpObject) -> &Message {
        match http {
            HttpObject::Req => &self.task.request,
            HttpObject::ReqTop => match &self.task.life.inclusion {
                Some(inclusion) => &inclusion.top.request,
                None => &self.task.request,
            },
            HttpObject::Resp | HttpObject::Beresp => &self.task.response,
            HttpObject::Obj => self.object_head(),
            HttpObject::Bereq => self.bereq(),
        }
    }

    fn logged<'a>(&'a mut self, http: HttpObject, changes_objects: bool, log: &'a mut LogBuffer) -> Option<Logged<'a>> {
        match http {
            HttpObject::Req => Some((log, REQ, &mut self.task.request)),
            HttpObject::Resp => Some((log, RESP, &mut self.task.response)),
            HttpObject::Bereq => match (&mut self.task.found.pipe, &mut self.task.found.prepared) {
                (Some(pipe), _) => Some((&mut pipe.log, BEREQ, &mut pipe.bereq)),
                (None, Some(prepared)) => Some((log, BEREQ, &mut prepared.bereq)),
                (None, None) => None,
            },
            HttpObject::Obj if changes_objects => {
                self.object_head();
                self.task.found.object_head = ObjectHead::Changed;
                Some((log, OBJ, &mut self.task.object_head))
            }
            HttpObject::ReqTop | HttpObject::Obj | HttpObject::Beresp => None,
        }
    }

    /// `bereq`, where VCL sees it: in vcl_pipe, and in vcl_miss and vcl_pass of the old dialects.
    pub(super) fn bereq(&self) -> &Message {
        match (&self.task.found.pipe, &self.task.found.prepared) {
            (Some(pipe), _) => &pipe.bereq,
            (None, Some(prepared)) => &prepared.bereq,
            (None, None) => &self.task.request,
        }
    }

    /// The head of `obj`, decoded when it is first used.
    pub(super) fn object_head(&mut self) -> &Message {
        let task = &mut *self.task;
        if task.found.object_head == ObjectHead::Unread {
            let decoded = task.found.object.as_ref().and_then(|object| task.object_head.decode(object.head()));
            if decoded.is_none() {
                task.object_head.clear();
            }
            task.found.object_head = ObjectHead::Decoded;
        }
        &task.object_head
    }
}

impl FetchSide<'_> {
    fn message(&self, http: HttpObject, method: Method) -> Option<&Message> {
        match http {
            HttpObject::Bereq => Some(&self.task.bereq),
            HttpObject::Beresp if method != Method::BackendFetch => Some(&self.task.attempt.beresp),
            HttpObject::Req | HttpObject::ReqTop => self.task.life.client.as_ref().map(|client| &client.message),
            // The stale object; only vcl_backend_refresh can name it.
            HttpObject::Obj if method == Method::BackendRefresh => Some(&self.task.attempt.stale_head),
            HttpObject::Beresp | HttpObject::Obj | HttpObject::Resp => None,
        }
    }

    fn logged<'a>(&'a mut self, http: HttpObject, method: Method, log: &'a mut LogBuffer) -> Option<Logged<'a>> {
        match http {
            HttpObject::Bereq => Some((log, BEREQ, &mut self.task.bereq)),
            HttpObject::Beresp if method != Method::BackendFetch => Some((log, BERESP, &mut self.task.attempt.beresp)),
            HttpObject::Req => self.task.life.client.as_mut().map(|client| (log, REQ, &mut client.message)),
            HttpObject::Beresp | HttpObject::ReqTop | HttpObject::Obj | HttpObject::Resp => None,
        }
    }
}

impl World<'_> {
    /// The current state of the message of this name in VCL; `None` if this side has none.
    #[inline]
    pub(super) fn message_of(&mut self, http: HttpObject) -> Option<&Message> {
        match &mut self.side {
            Side::Client(client) => Some(client.message(http)),
            Side::Fetch(fetch) => fetch.message(http, self.method),
            Side::Housekeeping(_) => None,
        }
    }

    /// The message of this name, for changes by VCL.
    pub(super) fn logged(&mut self, http: HttpObject) -> Option<Logged<'_>> {
        let changes_objects = self.changes_objects();
        match &mut self.side {
            Side::Client(client) => client.logged(http, changes_objects, self.log),
            Side::Fetch(fetch) => fetch.logged(http, self.method, self.log),
            Side::Housekeeping(_) => None,
        }
    }

    /// True if VCL can change `obj` here: in vcl_hit of the old dialects.
    pub(super) fn changes_objects(&self) -> bool {
        self.method == Method::Hit && self.vcl.is_legacy()
    }

    /// Replaces all headers of that name, unless that takes more memory than the task may have.
    pub(super) fn set_header_of(
        &mut self,
        http: HttpObject,
        name: &str,
        value: Text,
        scratch: &Scratch,
    ) -> Result<(), Failure> {
        let (held_bytes, limit_bytes, features) = match &self.side {
            Side::Client(client) => {
                (client.task.memory_bytes(), client.task.memory_limit(), client.task.settings.feature)
            }
            Side::Fetch(fetch) => {
                let parameters = &fetch.task.order.parameters;
                let limit_bytes = usize::try_from(parameters.request_memory_max).unwrap_or(usize::MAX);
                (fetch.task.message_bytes(), limit_bytes, parameters.feature)
            }
            Side::Housekeeping(_) => return Err(no_request()),
        };
        if !value.is_set() && unsets_by_set(self.vcl.generation) {
            self.unset_header_of(http, name);
            return Ok(());
        }
        if held_bytes + scratch.used_bytes() + name.len() + value.len() > limit_bytes {
            return Err(Failure::out_of_memory());
        }
        let Some((log, tags, message)) = self.logged(http) else { return Err(out_of_reach()) };
        let value = scratch.get(value);
        if features & feature::VALIDATE_HEADERS != 0 && line::check("header", value).is_err() {
            return line::check(&format!("header {name}"), value);
        }
        logged::set(log, tags, message, name, value);
        self.keep_place_of_change(http);
        Ok(())
    }

    /// Removes all headers of that name.
    pub(super) fn unset_header_of(&mut self, http: HttpObject, name: &str) {
        if let Some((log, tags, message)) = self.logged(http) {
            logged::unset(log, tags, message, name);
        }
        self.keep_place_of_change(http);
    }

    /// Keeps the place of a change of a marking header, which was announced before.
    fn keep_place_of_change(&mut self, http: HttpObject) {
        if http == HttpObject::Beresp
            && let Side::Fetch(fetch) = &mut self.side
            && let Some(noted) = self.noted.take()
        {
            fetch.task.attempt.evidence.changed_by = Some(noted);
        }
    }

    /// Sets a part of a message's start line, which must not be empty; `what` is the variable, e.g.
    /// `req.url`.
    pub(super) fn set_start_line(
        &mut self,
        of: (HttpObject, StartLine),
        what: &str,
        value: Value,
        scratch: &Scratch,
    ) -> Result<(), Failure> {
        match bytes_of(value, scratch) {
            b"" => Err(Failure(format!("Setting {what} to empty string"))),
            bytes => self.set_start_line_to(of, what, bytes),
        }
    }

    /// As [`World::set_start_line`], but the value may be empty.
    ///
    /// # Errors
    /// `Bad <what>: …` for a value that would not remain one line, or one word where a space ends
    /// it. A space in a URL is kept: VCL continues to work with it, and the request to an origin
    /// has it as `%20`.
    pub(super) fn set_start_line_to(
        &mut self,
        (http, part): (HttpObject, StartLine),
        what: &str,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let Some((log, tags, message)) = self.logged(http) else { return Err(out_of_reach()) };
        match part {
            StartLine::Method | StartLine::Protocol => line::check_word(what, bytes)?,
            StartLine::Url | StartLine::Reason => line::check(what, bytes)?,
        }
        let tag = match part {
            StartLine::Method => {
                message.set_method(bytes);
                tags.method
            }
            StartLine::Url => {
                message.set_target(bytes);
                tags.url
            }
            StartLine::Protocol => {
                message.set_protocol(bytes);
                tags.protocol
            }
            StartLine::Reason => {
                message.set_reason(bytes);
                tags.reason
            }
        };
        log.record(tag, bytes);
        Ok(())
    }

    /// Sets `resp.status` or `beresp.status` together with the matching reason.
    pub(super) fn set_status(&mut self, http: HttpObject, what: &str, value: Value) -> Result<(), Failure> {
        // The old dialects did not change the reason.
        let has_reason = !self.vcl.is_legacy();
        let Some((log, tags, message)) = self.logged(http) else { return Err(out_of_reach()) };
        let status = status_of(what, value)?;
        message.set_status(status);
        log.record(tags.status, itoa::Buffer::new().format(status % 1000).as_bytes());
        if has_reason {
            let reason = semantics::reason::phrase(status % 1000).as_bytes();
            message.set_reason(reason);
            log.record(tags.reason, reason);
        }
        Ok(())
    }
}
