//! h2: limits on the stream resets of an HTTP/2 client.
//!
//! The functions read a limit and set it, for the connection, if they are given a value; a limit
//! that changes begins a new budget. Elsewhere they return -1. Compat: vmod_h2 of Varnish 7.5.

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use http2::ResetLimits;
use surface::vmod::functions::h2::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::Value;

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { context, arguments, .. } = call;
    match function {
        Function::H2Is => done(Value::Bool(context.http2_resets().is_some())),
        Function::H2RapidReset => done(rapid_reset(context, arguments)),
        Function::H2RapidResetPeriod => done(period(context, arguments)),
        Function::H2RapidResetLimit => done(limit(context, arguments)),
        Function::H2RapidResetBudget => done(budget(context)),
    }
}

/// `h2.rapid_reset()`.
pub(crate) fn rapid_reset(context: &dyn VmodContext, arguments: Arguments<'_>) -> Value {
    let set = |limits| ResetLimits { rapid: arguments.real(0), ..limits };
    Value::Duration(exchange(context, arguments, set).map_or(-1.0, |old| old.rapid))
}

/// `h2.rapid_reset_period()`.
pub(crate) fn period(context: &dyn VmodContext, arguments: Arguments<'_>) -> Value {
    let set = |limits| ResetLimits { period: arguments.real(0), ..limits };
    Value::Duration(exchange(context, arguments, set).map_or(-1.0, |old| old.period))
}

/// `h2.rapid_reset_limit()`.
pub(crate) fn limit(context: &dyn VmodContext, arguments: Arguments<'_>) -> Value {
    let set = |limits| ResetLimits { limit: arguments.int(0), ..limits };
    Value::Int(exchange(context, arguments, set).map_or(-1, |old| old.limit))
}

/// `h2.rapid_reset_budget()`.
pub(crate) fn budget(context: &dyn VmodContext) -> Value {
    Value::Real(context.http2_resets().map_or(-1.0, |resets| resets.left()))
}

/// The limits before the call, which are replaced if an argument is given.
fn exchange(
    context: &dyn VmodContext,
    arguments: Arguments<'_>,
    set: impl Fn(ResetLimits) -> ResetLimits,
) -> Option<ResetLimits> {
    let resets = context.http2_resets()?;
    let old = resets.limits();
    if arguments.is_given(0) {
        resets.set_limits(set(old));
    }
    Some(old)
}
