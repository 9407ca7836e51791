//! `sess`: the client's session.

use super::value::{int, limit_of};
use super::{Side, World, out_of_reach};
use surface::vcl::Var;
use vcl_run::host::Failure;
use vcl_run::value::Value;

pub(super) fn read(world: &World<'_>, var: Var) -> Result<Value, Failure> {
    let client = match (&world.side, var) {
        (Side::Client(client), Var::SessXid) => return Ok(int(client.session.vxid)),
        (Side::Fetch(fetch), Var::SessXid) => return Ok(int(fetch.task.order.session_vxid)),
        (Side::Client(client), _) => client,
        (Side::Fetch(_) | Side::Housekeeping(_), _) => return Err(out_of_reach()),
    };
    let (timeouts, settings) = (&client.session.timeouts, &client.task.settings);
    Ok(Value::Duration(match var {
        Var::SessIdleSendTimeout => timeouts.idle_send.unwrap_or(settings.idle_send_timeout),
        Var::SessSendTimeout => timeouts.send.unwrap_or(settings.send_timeout),
        Var::SessTimeoutIdle => timeouts.idle.unwrap_or(settings.timeout_idle),
        Var::SessTimeoutLinger => timeouts.linger.unwrap_or(settings.timeout_linger),
        _ => return Err(out_of_reach()),
    }))
}

pub(super) fn write(world: &mut World<'_>, var: Var, value: Value) -> Result<(), Failure> {
    set(world, var, Some(limit_of(value)))
}

pub(super) fn unset(world: &mut World<'_>, var: Var) -> Result<(), Failure> {
    set(world, var, None)
}

fn set(world: &mut World<'_>, var: Var, seconds: Option<f64>) -> Result<(), Failure> {
    let Side::Client(client) = &mut world.side else { return Err(out_of_reach()) };
    let timeouts = &mut client.session.timeouts;
    match var {
        Var::SessIdleSendTimeout => timeouts.idle_send = seconds,
        Var::SessSendTimeout => timeouts.send = seconds,
        Var::SessTimeoutIdle => timeouts.idle = seconds,
        Var::SessTimeoutLinger => timeouts.linger = seconds,
        _ => return Err(out_of_reach()),
    }
    Ok(())
}
