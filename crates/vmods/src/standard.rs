//! std: the standard VMOD, in groups: text, files, conversions, addresses, dates, and control of
//! the running task.

pub(crate) mod address;
pub(crate) mod control;
pub(crate) mod convert;
pub(crate) mod file;
pub(crate) mod strftime;
pub(crate) mod text;

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use crate::directors;
use backend::{DirectorKind, Notes};
use semantics::date::DateForms;
use surface::vmod::functions::std::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::Value;

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { context, arguments, scratch, .. } = call;
    match function {
        Function::StdRandom => done(random(context, arguments)),
        Function::StdRound => done(Value::Real(arguments.real(0).round())),
        Function::StdCollect => text::collect(context, arguments, scratch),
        Function::StdQuerysort => text::querysort(arguments, scratch),
        Function::StdToupper => done(text::map(arguments, scratch, u8::to_ascii_uppercase)),
        Function::StdTolower => done(text::map(arguments, scratch, u8::to_ascii_lowercase)),
        Function::StdStrstr => done(text::strstr(arguments, scratch)),
        Function::StdFnmatch => text::fnmatch(arguments, scratch),
        Function::StdFileread => file::read(context, arguments, scratch, file::Kind::Text),
        Function::StdBlobread => file::read(context, arguments, scratch, file::Kind::Blob),
        Function::StdFileExists => file::exists(context, arguments, scratch),
        Function::StdHealthy => healthy(context, arguments),
        Function::StdPort => done(port(arguments)),
        Function::StdDuration => convert::duration(arguments, scratch),
        Function::StdBytes => convert::bytes(arguments, scratch),
        Function::StdInteger => convert::integer(arguments, scratch),
        Function::StdIp => address::ip(context, arguments, scratch),
        Function::StdReal => convert::real(arguments, scratch),
        Function::StdTime => {
            let dates = DateForms::of_features(context.parameters().feature);
            convert::time(dates, arguments, scratch)
        }
        Function::StdStrftime => done(strftime::strftime(arguments, scratch)),
        Function::StdLog => done(control::log(context, arguments, scratch)),
        Function::StdSyslog => done(control::syslog(arguments, scratch)),
        Function::StdTimestamp => done(control::timestamp(context, arguments, scratch)),
        Function::StdNow => done(Value::Time(context.clock())),
        Function::StdTimedCall => control::timed_call(arguments),
        Function::StdSyntax => done(control::syntax(context, arguments)),
        Function::StdGetenv => done(control::getenv(arguments, scratch)),
        Function::StdCacheReqBody => control::cache_req_body(context, arguments),
        Function::StdLate100Continue => control::late_100_continue(context, arguments),
        Function::StdSetIpTos => control::set_ip_tos(context, arguments),
        Function::StdRollback => control::rollback(context, arguments),
        Function::StdBan => done(control::ban(context, arguments, scratch)),
        Function::StdBanError => done(control::ban_error(context, scratch)),
        Function::StdReal2integer => done(convert::real2integer(arguments)),
        Function::StdReal2time => done(convert::real2time(arguments)),
        Function::StdTime2integer => done(convert::time2integer(arguments)),
        Function::StdTime2real => done(convert::time2real(arguments)),
    }
}

/// `std.random()`: takes two values of the generator.
pub(crate) fn random(context: &dyn VmodContext, arguments: Arguments<'_>) -> Value {
    let (low, high) = (arguments.real(0), arguments.real(1));
    Value::Real(low + context.random().next_real() * (high - low))
}

/// `std.healthy()`
pub(crate) fn healthy(context: &mut dyn VmodContext, arguments: Arguments<'_>) -> Result<Called, Failure> {
    let director = arguments.backend(0).and_then(|id| context.directors().director(id));
    if let Some(DirectorKind::Failing(_)) = director {
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
