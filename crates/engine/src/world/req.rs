//! `req` and `req_top`: the client's request. vcl_fetch of the old dialects has it too, on loan
//! until it has decided.

use super::messages::StartLine;
use super::value::{bool_of, bytes_of, int, seconds_of, size, text};
use super::{ClientSide, Side, World, out_of_reach};
use crate::bodies::filters;
use crate::legacy_rules::{cap, grace_shown};
use crate::request::client_body::ClientBody;
use message::Message;
use surface::vcl::{HttpObject, Var};
use vcl_run::host::Failure;
use vcl_run::value::{Scratch, Value};

/// As [`vcl_run::host::Host::is_usual`].
pub(crate) fn is_usual(request: &Message) -> bool {
    request.method() == b"GET"
        && !request.has("Authorization")
        && !request.has("Cookie")
        && request.get("Host").is_some_and(|host| !host.iter().any(u8::is_ascii_uppercase))
}

pub(super) fn read(world: &World<'_>, var: Var, scratch: &mut Scratch) -> Result<Value, Failure> {
    if matches!(var, Var::ReqTopMethod | Var::ReqTopProto | Var::ReqTopUrl | Var::ReqTopTime) {
        return read_top(world, var, scratch);
    }
    let (message, choices, restarts, vxid) = match &world.side {
        Side::Client(ClientSide { task, .. }) => (&task.request, &task.choices, task.life.restarts, task.life.vxid),
        Side::Fetch(fetch) => match &fetch.task.life.client {
            Some(client) => (&client.message, &client.choices, client.restarts, client.vxid),
            None => return Err(out_of_reach()),
        },
        Side::Housekeeping(_) => return Err(out_of_reach()),
    };
    Ok(match var {
        Var::Req => Value::Http(HttpObject::Req),
        Var::ReqBackendHint => Value::Backend(choices.director),
        Var::ReqCanGzip => Value::Bool(semantics::encoding::accepts_gzip(message)),
        Var::ReqEsi => Value::Bool(!choices.is_esi_forbidden),
        Var::ReqEsiLevel => int(world.esi_level()),
        Var::ReqGrace => Value::Duration(grace_shown(choices.grace_cap, world.vcl.generation, world.default_grace())),
        Var::ReqMethod => text(message.method(), scratch),
        Var::ReqProto => text(message.protocol(), scratch),
        Var::ReqRestarts => int(restarts),
        Var::ReqTtl => Value::Duration(choices.ttl_cap.unwrap_or(-1.0)),
        Var::ReqUrl => text(message.target(), scratch),
        Var::ReqXid => int(vxid),
        var => return read_own(world, var, scratch),
    })
}

/// `req_top`: the client's request above all pages that include this one, which may be this one.
fn read_top(world: &World<'_>, var: Var, scratch: &mut Scratch) -> Result<Value, Failure> {
    let Side::Client(ClientSide { task, .. }) = &world.side else { return Err(out_of_reach()) };
    let top = task.life.inclusion.as_ref().map(|inclusion| &*inclusion.top);
    let message = top.map_or(&task.request, |top| &top.request);
    Ok(match var {
        Var::ReqTopMethod => text(message.method(), scratch),
        Var::ReqTopProto => text(message.protocol(), scratch),
        Var::ReqTopUrl => text(message.target(), scratch),
        Var::ReqTopTime => Value::Time(top.map_or(task.life.received_at, |top| top.received_at)),
        _ => return Err(out_of_reach()),
    })
}

/// Variables that vcl_fetch does not have.
fn read_own(world: &World<'_>, var: Var, scratch: &mut Scratch) -> Result<Value, Failure> {
    let Side::Client(ClientSide { task, .. }) = &world.side else { return Err(out_of_reach()) };
    Ok(match var {
        Var::ReqFilters => text(task.choices.body_filters.as_deref().unwrap_or_default(), scratch),
        Var::ReqHash => Value::Blob(scratch.put(&task.life.digest)),
        Var::ReqHashAlwaysMiss => Value::Bool(task.choices.always_miss),
        Var::ReqHashIgnoreBusy => Value::Bool(task.choices.ignore_busy),
        Var::ReqHashIgnoreVary => Value::Bool(task.choices.ignore_vary),
        Var::ReqIsHitmiss => Value::Bool(task.found.is_hitmiss),
        Var::ReqIsHitpass => Value::Bool(task.found.is_hitpass),
        Var::ReqSliceBytes => size(task.choices.slice_bytes.unwrap_or(task.settings.slice_bytes)),
        Var::ReqStorage => Value::Stevedore(task.choices.storage),
        Var::ReqTime => Value::Time(task.life.received_at),
        Var::ReqTrace => Value::Bool(world.traces(task.choices.trace)),
        Var::ReqTransport => text(task.life.protocol.as_bytes(), scratch),
        _ => return Err(out_of_reach()),
    })
}

pub(super) fn write(world: &mut World<'_>, var: Var, value: Value, scratch: &Scratch) -> Result<(), Failure> {
    match var {
        Var::ReqMethod => {
            return world.set_start_line((HttpObject::Req, StartLine::Method), "req.method", value, scratch);
        }
        Var::ReqUrl => return world.set_start_line((HttpObject::Req, StartLine::Url), "req.url", value, scratch),
        Var::ReqProto => {
            return world.set_start_line((HttpObject::Req, StartLine::Protocol), "req.proto", value, scratch);
        }
        _ => {}
    }
    let generation = world.vcl.generation;
    let level = world.esi_level();
    let choices = match &mut world.side {
        Side::Client(client) if var == Var::ReqFilters => return client.set_body_filters(bytes_of(value, scratch)),
        Side::Client(client) => &mut client.task.choices,
        Side::Fetch(fetch) => match &mut fetch.task.life.client {
            Some(client) => &mut client.choices,
            None => return Err(out_of_reach()),
        },
        Side::Housekeeping(_) => return Err(out_of_reach()),
    };
    match var {
        Var::ReqBackendHint => {
            if let Value::Backend(director) = value {
                choices.director = director;
            }
        }
        // Compat: only the client's own request can be processed without ESI (e00016).
        Var::ReqEsi if level > 0 => {}
        Var::ReqEsi => choices.is_esi_forbidden = !bool_of(value),
        Var::ReqGrace => choices.grace_cap = cap(seconds_of(value), generation),
        Var::ReqHashAlwaysMiss => {
            choices.always_miss = bool_of(value);
            choices.always_miss_by = world.noted.take().filter(|_| bool_of(value));
        }
        Var::ReqHashIgnoreBusy => choices.ignore_busy = bool_of(value),
        Var::ReqHashIgnoreVary => choices.ignore_vary = bool_of(value),
        Var::ReqSliceBytes => {
            if let Value::Bytes(bytes) = value {
                choices.slice_bytes = Some(u64::try_from(bytes).unwrap_or(0));
            }
        }
        Var::ReqStorage => {
            if let Value::Stevedore(storage) = value {
                choices.storage = storage;
            }
        }
        Var::ReqTrace => choices.trace = Some(bool_of(value)),
        Var::ReqTtl => choices.ttl_cap = cap(seconds_of(value), generation),
        _ => return Err(out_of_reach()),
    }
    Ok(())
}

pub(super) fn unset(world: &mut World<'_>, var: Var) -> Result<(), Failure> {
    let Side::Client(ClientSide { task, .. }) = &mut world.side else { return Err(out_of_reach()) };
    match var {
        Var::ReqGrace => task.choices.grace_cap = None,
        Var::ReqTtl => task.choices.ttl_cap = None,
        _ => return Err(out_of_reach()),
    }
    Ok(())
}

impl World<'_> {
    /// `req.esi_level`.
    fn esi_level(&self) -> u64 {
        match &self.side {
            Side::Client(client) => client.task.life.inclusion.as_ref().map_or(0, |inclusion| inclusion.level),
            Side::Fetch(fetch) => fetch.task.life.client.as_ref().map_or(0, |client| client.esi_level),
            Side::Housekeeping(_) => 0,
        }
    }

    /// The parameter `default_grace`; a fetch uses the value at its beginning.
    fn default_grace(&self) -> f64 {
        match &self.side {
            Side::Fetch(fetch) => fetch.task.order.parameters.default_grace,
            Side::Client(_) | Side::Housekeeping(_) => self.engine.parameters.load().default_grace,
        }
    }
}

impl ClientSide<'_> {
    /// Sets `req.filters`, which is possible until the body has been read.
    fn set_body_filters(&mut self, list: &[u8]) -> Result<(), Failure> {
        let is_read = matches!(self.task.life.body, ClientBody::Cached(_) | ClientBody::Taken | ClientBody::Failed);
        if is_read || self.task.choices.is_body_filtered {
            return Err(Failure("req.filters: the request body has been processed already".to_owned()));
        }
        filters::check(list, body::Side::Req).map_err(|text| Failure(format!("req.filters: {text}")))?;
        self.task.choices.body_filters = Some(list.to_vec());
        Ok(())
    }
}
