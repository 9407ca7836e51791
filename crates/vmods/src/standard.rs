//! std: the standard VMOD, in groups: text, files, conversions, addresses, dates, and control of the running task.

pub(crate) mod address;
pub(crate) mod control;
pub(crate) mod convert;
pub(crate) mod file;
pub(crate) mod strftime;
pub(crate) mod text;

use crate::arguments::Arguments;
use crate::context::VmodContext;
use crate::{directors, done};
use backend::{DirectorKind, Notes};
use vcl_run::host::{Called, Failure};
use vcl_run::value::Value;

/// `std.random()`: takes two values of the generator.
pub(crate) fn random(context: &dyn VmodContext, arguments: Arguments<'_>) -> Value {
    let (low, high) = (arguments.real(0), arguments.real(1));
    Value::Real(low + context.random().next_real() * (high - low))
}

/// `std.healthy()`
pub(crate) fn healthy(context: &mut dyn VmodContext, arguments: Arguments<'_>) -> Result<Called, Failure> {
    let director = arguments.backend(0).and_then(|id| context.directors().director(id));
    if let Some(DirectorKind::Failing) = director {
        return Err(Failure("fail".to_owned()));
    }
    let notes = Notes::new();
    let asked = context.resolve_context(&notes);
    let is_healthy = arguments.backend(0).is_some_and(|id| context.directors().is_healthy_for(id, &asked));
    directors::log_notes(context, &notes);
    done(Value::Bool(is_healthy))
}

/// `std.port()`
pub(crate) fn port(arguments: Arguments<'_>) -> Value {
    Value::Int(arguments.ip(0).map_or(0, |(_, port)| i64::from(port)))
}
