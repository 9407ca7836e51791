//! `bereq`: the request to the origin: of a fetch, of a pipe, or the one that vcl_miss and vcl_pass
//! of the old dialects see.

use super::messages::StartLine;
use super::value::{bool_of, bytes_of, int, limit_of, text};
use super::{ClientSide, FetchSide, Side, World, out_of_reach};
use crate::bodies::filters;
use crate::fetch::legacy_order::PreparedRequest;
use crate::fetch::mode::FetchMode;
use surface::vcl::{HttpObject, Var};
use vcl_run::host::Failure;
use vcl_run::value::{Scratch, Value};

pub(super) fn read(world: &World<'_>, var: Var, scratch: &mut Scratch) -> Result<Value, Failure> {
    match &world.side {
        Side::Client(client) => read_of_client(world, client, var, scratch),
        Side::Fetch(fetch) => read_of_fetch(world, fetch, var, scratch),
        Side::Housekeeping(_) => Err(out_of_reach()),
    }
}

fn read_of_client(
    world: &World<'_>,
    client: &ClientSide<'_>,
    var: Var,
    scratch: &mut Scratch,
) -> Result<Value, Failure> {
    let found = &client.task.found;
    let (pipe, prepared) = (found.pipe.as_deref(), found.prepared.as_deref());
    let timeout = |own: fn(&PreparedRequest) -> f64| prepared.map(own).filter(|seconds| *seconds > 0.0);
    Ok(match var {
        Var::Bereq => Value::Http(HttpObject::Bereq),
        Var::BereqBackend => match pipe {
            Some(pipe) => Value::Backend(pipe.director),
            None => Value::Backend(prepared.and(client.task.choices.director)),
        },
        Var::BereqBetweenBytesTimeout => {
            let own = timeout(|prepared| prepared.between_bytes_timeout);
            Value::Duration(own.unwrap_or_else(|| world.engine.parameters.load().between_bytes_timeout))
        }
        Var::BereqConnectTimeout => {
            let of_pipe = pipe.and_then(|pipe| pipe.connect_timeout);
            let own = of_pipe.or_else(|| timeout(|prepared| prepared.connect_timeout));
            Value::Duration(own.unwrap_or_else(|| world.engine.parameters.load().connect_timeout))
        }
        Var::BereqFirstByteTimeout => {
            let own = timeout(|prepared| prepared.first_byte_timeout);
            Value::Duration(own.unwrap_or_else(|| world.engine.parameters.load().first_byte_timeout))
        }
        Var::BereqHash => Value::Blob(scratch.put(&client.task.life.digest)),
        Var::BereqMethod => text(client.bereq().method(), scratch),
        Var::BereqProto => text(client.bereq().protocol(), scratch),
        Var::BereqTaskDeadline => {
            let own = pipe.and_then(|pipe| pipe.task_deadline);
            Value::Duration(own.unwrap_or(client.task.settings.pipe_task_deadline))
        }
        Var::BereqTime => Value::Time(pipe.map_or(0.0, |pipe| pipe.started)),
        Var::BereqUrl => text(client.bereq().target(), scratch),
        Var::BereqXid => {
            let vxid = pipe.map(|pipe| pipe.vxid).or_else(|| prepared.map(|prepared| prepared.vxid));
            int(vxid.unwrap_or(0))
        }
        _ => return Err(out_of_reach()),
    })
}

fn read_of_fetch(world: &World<'_>, fetch: &FetchSide<'_>, var: Var, scratch: &mut Scratch) -> Result<Value, Failure> {
    let task = &*fetch.task;
    Ok(match var {
        Var::Bereq => Value::Http(HttpObject::Bereq),
        Var::BereqBackend => Value::Backend(task.choices.director),
        Var::BereqBetweenBytesTimeout => {
            Value::Duration(task.choices.between_bytes_timeout.unwrap_or(task.order.parameters.between_bytes_timeout))
        }
        Var::BereqConnectTimeout => {
            Value::Duration(task.choices.connect_timeout.unwrap_or(task.order.parameters.connect_timeout))
        }
        Var::BereqFilters => text(task.choices.body_filters.as_deref().unwrap_or_default(), scratch),
        Var::BereqFirstByteTimeout => {
            Value::Duration(task.choices.first_byte_timeout.unwrap_or(task.order.parameters.first_byte_timeout))
        }
        Var::BereqHash => Value::Blob(scratch.put(&task.order.digest)),
        Var::BereqIsBgfetch => Value::Bool(task.order.mode == FetchMode::Background),
        Var::BereqIsHitmiss => Value::Bool(task.order.is_hit_for_miss),
        Var::BereqIsHitpass => Value::Bool(task.order.is_hit_for_pass),
        Var::BereqLastByteTimeout => Value::Duration(task.choices.last_byte_timeout.unwrap_or(0.0)),
        Var::BereqMethod => text(task.bereq.method(), scratch),
        Var::BereqProto => text(task.bereq.protocol(), scratch),
        Var::BereqRetries => int(task.life.retries),
        Var::BereqTime => Value::Time(task.life.started),
        Var::BereqTrace => Value::Bool(world.traces(task.choices.trace)),
        Var::BereqUncacheable => Value::Bool(task.life.uncacheable),
        Var::BereqUrl => text(task.bereq.target(), scratch),
        Var::BereqXid => int(task.life.vxid),
        _ => return Err(out_of_reach()),
    })
}

pub(super) fn write(world: &mut World<'_>, var: Var, value: Value, scratch: &Scratch) -> Result<(), Failure> {
    match var {
        Var::BereqMethod => {
            return world.set_start_line((HttpObject::Bereq, StartLine::Method), "bereq.method", value, scratch);
        }
        Var::BereqUrl => return world.set_start_line((HttpObject::Bereq, StartLine::Url), "bereq.url", value, scratch),
        Var::BereqProto => {
            return world.set_start_line((HttpObject::Bereq, StartLine::Protocol), "bereq.proto", value, scratch);
        }
        _ => {}
    }
    match &mut world.side {
        Side::Client(client) => write_of_client(client, var, value),
        Side::Fetch(fetch) => write_of_fetch(fetch, var, value, scratch),
        Side::Housekeeping(_) => Err(out_of_reach()),
    }
}

fn write_of_client(client: &mut ClientSide<'_>, var: Var, value: Value) -> Result<(), Failure> {
    let found = &mut client.task.found;
    match (var, &mut found.pipe, &mut found.prepared) {
        (Var::BereqBackend, Some(pipe), _) => {
            if let Value::Backend(director) = value {
                pipe.director = director;
            }
        }
        (Var::BereqConnectTimeout, Some(pipe), _) => pipe.connect_timeout = Some(limit_of(value)),
        (Var::BereqTaskDeadline, Some(pipe), _) => pipe.task_deadline = Some(limit_of(value)),
        (Var::BereqConnectTimeout, None, Some(prepared)) => prepared.connect_timeout = limit_of(value),
        (Var::BereqFirstByteTimeout, None, Some(prepared)) => prepared.first_byte_timeout = limit_of(value),
        (Var::BereqBetweenBytesTimeout, None, Some(prepared)) => prepared.between_bytes_timeout = limit_of(value),
        _ => return Err(out_of_reach()),
    }
    Ok(())
}

fn write_of_fetch(fetch: &mut FetchSide<'_>, var: Var, value: Value, scratch: &Scratch) -> Result<(), Failure> {
    let choices = &mut fetch.task.choices;
    match var {
        Var::BereqBackend => {
            choices.director = match value {
                Value::Backend(director) => director,
                _ => None,
            };
        }
        Var::BereqBetweenBytesTimeout => choices.between_bytes_timeout = Some(limit_of(value)),
        Var::BereqConnectTimeout => choices.connect_timeout = Some(limit_of(value)),
        Var::BereqFilters => {
            let list = bytes_of(value, scratch);
            filters::check_names(list, body::Side::Bereq).map_err(|text| Failure(format!("bereq.filters: {text}")))?;
            choices.body_filters = Some(list.to_vec());
        }
        Var::BereqFirstByteTimeout => choices.first_byte_timeout = Some(limit_of(value)),
        Var::BereqLastByteTimeout => choices.last_byte_timeout = Some(limit_of(value)),
        Var::BereqTrace => choices.trace = Some(bool_of(value)),
        _ => return Err(out_of_reach()),
    }
    Ok(())
}

pub(super) fn unset(world: &mut World<'_>, var: Var) -> Result<(), Failure> {
    match &mut world.side {
        Side::Client(client) => {
            let Some(pipe) = &mut client.task.found.pipe else { return Err(out_of_reach()) };
            match var {
                Var::BereqConnectTimeout => pipe.connect_timeout = None,
                Var::BereqTaskDeadline => pipe.task_deadline = None,
                _ => return Err(out_of_reach()),
            }
        }
        // If it has no timeout of its own, a fetch uses that of the backend or the parameter.
        Side::Fetch(fetch) => match var {
            Var::BereqBetweenBytesTimeout => fetch.task.choices.between_bytes_timeout = None,
            Var::BereqBody => fetch.task.drop_request_body(world.log),
            Var::BereqConnectTimeout => fetch.task.choices.connect_timeout = None,
            Var::BereqFirstByteTimeout => fetch.task.choices.first_byte_timeout = None,
            Var::BereqLastByteTimeout => fetch.task.choices.last_byte_timeout = None,
            _ => return Err(out_of_reach()),
        },
        Side::Housekeeping(_) => return Err(out_of_reach()),
    }
    Ok(())
}
