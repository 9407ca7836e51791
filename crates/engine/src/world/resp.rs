//! `resp`: the response to the client.

use super::messages::StartLine;
use super::value::{bool_of, bytes_of, text};
use super::{ClientSide, Side, World, out_of_reach};
use crate::request::filters::default_list;
use crate::request::task::Answer;
use store::BodyState;
use surface::vcl::{HttpObject, Var};
use vcl_run::host::Failure;
use vcl_run::value::{Scratch, Value};

pub(super) fn read(world: &World<'_>, var: Var, scratch: &mut Scratch) -> Result<Value, Failure> {
    let Side::Client(ClientSide { task, .. }) = &world.side else { return Err(out_of_reach()) };
    let object = task.found.object.as_ref();
    Ok(match var {
        Var::Resp => Value::Http(HttpObject::Resp),
        Var::RespDoEsi => {
            task.answer.check_open("resp.do_esi")?;
            // The setting of VCL, even if there is nothing to include.
            Value::Bool(task.answer.do_esi.unwrap_or(!task.choices.is_esi_forbidden))
        }
        Var::RespFilters => match &task.answer.filters {
            Some(list) => text(list, scratch),
            None => text(&default_list(task), scratch),
        },
        Var::RespIsStreaming => Value::Bool(object.is_some_and(|object| object.state() == BodyState::Writing)),
        Var::RespProto => text(task.response.protocol(), scratch),
        Var::RespReason => text(task.response.reason(), scratch),
        Var::RespStatus => Value::Int(i64::from(task.response.status())),
        Var::RespTime => Value::Time(task.life.responded_at),
        _ => return Err(out_of_reach()),
    })
}

pub(super) fn write(
    world: &mut World<'_>,
    var: Var,
    value: Value,
    append: bool,
    scratch: &Scratch,
) -> Result<(), Failure> {
    match var {
        Var::RespProto => {
            return world.set_start_line((HttpObject::Resp, StartLine::Protocol), "resp.proto", value, scratch);
        }
        Var::RespReason => {
            return world.set_start_line((HttpObject::Resp, StartLine::Reason), "resp.reason", value, scratch);
        }
        Var::RespStatus => return world.set_status(HttpObject::Resp, "resp.status", value),
        _ => {}
    }
    let Side::Client(ClientSide { task, .. }) = &mut world.side else { return Err(out_of_reach()) };
    match var {
        Var::RespBody => {
            if !append {
                task.synthetic.clear();
            }
            task.synthetic.extend_from_slice(bytes_of(value, scratch));
        }
        Var::RespDoEsi => {
            task.answer.check_open("resp.do_esi")?;
            task.answer.do_esi = Some(bool_of(value));
        }
        Var::RespFilters => task.answer.filters = Some(bytes_of(value, scratch).to_vec()),
        _ => return Err(out_of_reach()),
    }
    Ok(())
}

impl Answer {
    /// Variables that influence the filters can be read and set until VCL has named the filters.
    fn check_open(&self, name: &str) -> Result<(), Failure> {
        match self.filters {
            Some(_) => Err(Failure(format!("resp.filters are already fixed, {name} is undefined"))),
            None => Ok(()),
        }
    }
}
