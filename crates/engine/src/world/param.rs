//! `param`: the current values of parameters.

use super::value::{int, size};
use super::{World, out_of_reach};
use surface::vcl::Var;
use vcl_run::host::Failure;
use vcl_run::value::Value;

pub(super) fn read(world: &World<'_>, var: Var) -> Result<Value, Failure> {
    let seconds = Value::Duration;
    let parameters = world.engine.parameters.load();
    Ok(match var {
        Var::ParamBackendIdleTimeout => seconds(parameters.backend_idle_timeout),
        Var::ParamBackendWaitLimit => int(parameters.backend_wait_limit),
        Var::ParamBackendWaitTimeout => seconds(parameters.backend_wait_timeout),
        Var::ParamBetweenBytesTimeout => seconds(parameters.between_bytes_timeout),
        Var::ParamConnectTimeout => seconds(parameters.connect_timeout),
        Var::ParamDefaultGrace => seconds(parameters.default_grace),
        Var::ParamDefaultKeep => seconds(parameters.default_keep),
        Var::ParamDefaultTtl => seconds(parameters.default_ttl),
        Var::ParamFirstByteTimeout => seconds(parameters.first_byte_timeout),
        Var::ParamIdleSendTimeout => seconds(parameters.idle_send_timeout),
        Var::ParamMaxEsiDepth => int(parameters.max_esi_depth),
        Var::ParamMaxRestarts => int(parameters.max_restarts),
        Var::ParamMaxRetries => int(parameters.max_retries),
        Var::ParamPipeTaskDeadline => seconds(parameters.pipe_task_deadline),
        Var::ParamPipeTimeout => seconds(parameters.pipe_timeout),
        Var::ParamSendTimeout => seconds(parameters.send_timeout),
        Var::ParamShortlived => seconds(parameters.shortlived),
        Var::ParamTimeoutIdle => seconds(parameters.timeout_idle),
        Var::ParamTransitBuffer => size(parameters.transit_buffer),
        Var::ParamUncacheableTtl => seconds(parameters.uncacheable_ttl),
        _ => return Err(out_of_reach()),
    })
}
