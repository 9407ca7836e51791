//! `req` and `req_top`: the client's request. vcl_fetch of the old dialects has it, too: lent, until the fetch is decided.

use super::messages::StartLine;
use super::value::{bool_of, bytes_of, digits, int, seconds_of, text};
use super::{ClientSide, FetchSide, Side, World, out_of_reach};
use crate::bodies::filters;
use crate::fetch::legacy::{cap, grace_shown};
use crate::request::ClientBody;
use surface::vcl::{Generation, HttpObject, Var};
use vcl_run::host::Failure;
use vcl_run::value::{Scratch, Value};

pub(super) fn read(world: &World<'_>, var: Var, scratch: &mut Scratch) -> Result<Value, Failure> {
    match &world.side {
        Side::Client(client) => read_own(world, client, var, scratch),
        Side::Fetch(fetch) => read_lent(world, fetch, var, scratch),
        Side::Housekeeping(_) => Err(out_of_reach()),
    }
}

fn read_own(world: &World<'_>, client: &ClientSide<'_>, var: Var, scratch: &mut Scratch) -> Result<Value, Failure> {
    let task = &*client.task;
    Ok(match var {
        Var::Req => Value::Http(HttpObject::Req),
        Var::ReqMethod | Var::ReqTopMethod => text(task.request.method(), scratch),
        Var::ReqUrl | Var::ReqTopUrl => text(task.request.target(), scratch),
        Var::ReqProto | Var::ReqTopProto => text(task.request.protocol(), scratch),
        Var::ReqBackendHint => Value::Backend(task.choices.director),
        Var::ReqCanGzip => Value::Bool(semantics::encoding::accepts_gzip(&task.request)),
        Var::ReqEsi => Value::Bool(!task.choices.is_esi_forbidden),
        Var::ReqEsiLevel => Value::Int(0),
        Var::ReqFilters => text(task.choices.body_filters.as_deref().unwrap_or_default(), scratch),
        Var::ReqGrace => {
            let default = world.engine.parameters.load().default_grace;
            Value::Duration(grace_shown(task.choices.grace_cap, world.vcl.generation, default))
        }
        Var::ReqHash => Value::Blob(scratch.put(&task.life.digest)),
        Var::ReqHashAlwaysMiss => Value::Bool(task.choices.always_miss),
        Var::ReqHashIgnoreBusy => Value::Bool(task.choices.ignore_busy),
        Var::ReqHashIgnoreVary => Value::Bool(task.choices.ignore_vary),
        Var::ReqIsHitmiss => Value::Bool(task.found.is_hitmiss),
        Var::ReqIsHitpass => Value::Bool(task.found.is_hitpass),
        Var::ReqRestarts => int(task.life.restarts),
        Var::ReqStorage => Value::Stevedore(task.choices.storage),
        Var::ReqTime | Var::ReqTopTime => Value::Time(task.life.received_at),
        Var::ReqTrace => Value::Bool(world.traces(task.choices.trace)),
        Var::ReqTransport => text(task.life.protocol.as_bytes(), scratch),
        Var::ReqTtl => Value::Duration(task.choices.ttl_cap.unwrap_or(-1.0)),
        Var::ReqXid => digits(task.life.vxid, scratch),
        _ => return Err(out_of_reach()),
    })
}

fn read_lent(world: &World<'_>, fetch: &FetchSide<'_>, var: Var, scratch: &mut Scratch) -> Result<Value, Failure> {
    let order = &fetch.task.order;
    let Some(client) = &fetch.task.life.client else { return Ok(Value::Void) };
    Ok(match var {
        Var::Req => Value::Http(HttpObject::Req),
        Var::ReqMethod => text(client.message.method(), scratch),
        Var::ReqUrl => text(client.message.target(), scratch),
        Var::ReqProto => text(client.message.protocol(), scratch),
        Var::ReqBackendHint => Value::Backend(client.director),
        Var::ReqCanGzip => Value::Bool(semantics::encoding::accepts_gzip(&client.message)),
        Var::ReqEsi => Value::Bool(client.is_esi_allowed),
        Var::ReqEsiLevel => Value::Int(0),
        Var::ReqGrace => {
            let default = order.parameters.default_grace;
            Value::Duration(grace_shown(client.grace_cap, world.vcl.generation, default))
        }
        Var::ReqRestarts => int(client.restarts),
        Var::ReqTtl => Value::Duration(client.ttl_cap.unwrap_or(-1.0)),
        Var::ReqXid => digits(client.vxid, scratch),
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
    let choices = match &mut world.side {
        Side::Client(client) if var == Var::ReqFilters => return client.set_body_filters(bytes_of(value, scratch)),
        Side::Client(client) => &mut client.task.choices,
        Side::Fetch(fetch) => return write_lent(fetch, generation, var, value),
        Side::Housekeeping(_) => return Err(out_of_reach()),
    };
    match var {
        Var::ReqBackendHint => {
            if let Value::Backend(director) = value {
                choices.director = director;
            }
        }
        Var::ReqEsi => choices.is_esi_forbidden = !bool_of(value),
        Var::ReqGrace => choices.grace_cap = cap(seconds_of(value), generation),
        Var::ReqHashAlwaysMiss => {
            choices.always_miss = bool_of(value);
            choices.always_miss_by = world.noted.take().filter(|_| bool_of(value));
        }
        Var::ReqHashIgnoreBusy => choices.ignore_busy = bool_of(value),
        Var::ReqHashIgnoreVary => choices.ignore_vary = bool_of(value),
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

fn write_lent(fetch: &mut FetchSide<'_>, generation: Generation, var: Var, value: Value) -> Result<(), Failure> {
    let Some(client) = &mut fetch.task.life.client else { return Ok(()) };
    match var {
        Var::ReqBackendHint => {
            if let Value::Backend(director) = value {
                client.director = director;
            }
        }
        Var::ReqEsi => client.is_esi_allowed = bool_of(value),
        Var::ReqGrace => client.grace_cap = cap(seconds_of(value), generation),
        Var::ReqTtl => client.ttl_cap = cap(seconds_of(value), generation),
        _ => return Err(out_of_reach()),
    }
    Ok(())
}

pub(super) fn unset(world: &mut World<'_>, var: Var) -> Result<(), Failure> {
    let Side::Client(client) = &mut world.side else { return Err(out_of_reach()) };
    match var {
        Var::ReqGrace => client.task.choices.grace_cap = None,
        Var::ReqTtl => client.task.choices.ttl_cap = None,
        _ => return Err(out_of_reach()),
    }
    Ok(())
}

impl ClientSide<'_> {
    /// `req.filters`: while nothing of the body has been read.
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
