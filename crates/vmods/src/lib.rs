//! The VMODs: what `import` offers to VCL, one file each.
//!
//! [`call`] is the only entry: the evaluator's host passes it the function's number (a row of `surface::vmod`), the object
//! and the arguments. [`context::VmodContext`] is what a VMOD may touch of the running task; [`Instances`] what objects
//! made in vcl_init hold, shared by all event loops; [`TaskState`] what is kept for one task.
//!
//! *Invariants:* every row of the table has an arm in [`call`], there is no arm for "other"; arguments are checked by the
//! compiler, and one of the wrong type reads as unset or zero rather than panicking.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod arguments;
mod blob;
pub mod context;
mod cookie;
mod directors;
mod instances;
pub mod number;
mod purge;
mod standard;
mod task;
mod vtc;

pub use context::{Finish, Pending, PurgeKind, VmodContext};
pub use instances::Instances;
pub use task::TaskState;

use arguments::Arguments;
use surface::vmod::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// Calls a VMOD function, method or constructor. `function` is an index into `surface::vmod::FUNCTIONS`, `instance` one
/// into `Program::instances`; STRANDS arrive joined, an argument that was left out as [`Value::Absent`].
///
/// # Errors
/// When the VMOD fails the task; the text is for a `VCL_Error` record.
pub fn call(
    function: u32,
    instance: Option<u32>,
    context: &mut dyn VmodContext,
    arguments: &[Value],
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    let Some(name) = Function::from_number(function) else {
        return Err(Failure(format!("There is no VMOD function {function}")));
    };
    dispatch(name, instance, context, Arguments::new(arguments), scratch)
}

/// A value that is there at once.
fn done(value: Value) -> Result<Called, Failure> {
    Ok(Called::Value(value))
}

fn dispatch(
    name: Function,
    instance: Option<u32>,
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    match name {
        Function::StdRandom => done(standard::random(context, arguments)),
        Function::StdRound => done(Value::Real(arguments.real(0).round())),
        Function::StdCollect => standard::text::collect(context, arguments, scratch),
        Function::StdQuerysort => done(standard::text::querysort(arguments, scratch)),
        Function::StdToupper => done(standard::text::map(arguments, scratch, u8::to_ascii_uppercase)),
        Function::StdTolower => done(standard::text::map(arguments, scratch, u8::to_ascii_lowercase)),
        Function::StdStrstr => done(standard::text::strstr(arguments, scratch)),
        Function::StdFnmatch => standard::text::fnmatch(arguments, scratch),
        Function::StdFileread => standard::file::read(context, arguments, scratch, standard::file::Kind::Text),
        Function::StdBlobread => standard::file::read(context, arguments, scratch, standard::file::Kind::Blob),
        Function::StdFileExists => standard::file::exists(context, arguments, scratch),
        Function::StdHealthy => done(standard::healthy(context, arguments)),
        Function::StdPort => done(standard::port(arguments)),
        Function::StdDuration => standard::convert::duration(arguments, scratch),
        Function::StdBytes => standard::convert::bytes(arguments, scratch),
        Function::StdInteger => standard::convert::integer(arguments, scratch),
        Function::StdIp => standard::address::ip(context, arguments, scratch),
        Function::StdReal => standard::convert::real(arguments, scratch),
        Function::StdTime => standard::convert::time(arguments, scratch),
        Function::StdStrftime => done(standard::strftime::strftime(arguments, scratch)),
        Function::StdLog => done(standard::control::log(context, arguments, scratch)),
        Function::StdSyslog => done(standard::control::syslog(arguments, scratch)),
        Function::StdTimestamp => done(standard::control::timestamp(context, arguments, scratch)),
        Function::StdSyntax => done(standard::control::syntax(context, arguments)),
        Function::StdGetenv => done(standard::control::getenv(arguments, scratch)),
        Function::StdCacheReqBody => standard::control::cache_req_body(context, arguments),
        Function::StdLate100Continue => standard::control::late_100_continue(context, arguments),
        Function::StdSetIpTos => standard::control::set_ip_tos(context, arguments),
        Function::StdRollback => standard::control::rollback(context, arguments),
        Function::StdBan => done(standard::control::ban(context, arguments, scratch)),
        Function::StdBanError => done(standard::control::ban_error(context, scratch)),
        Function::StdReal2integer => done(standard::convert::real2integer(arguments)),
        Function::StdReal2time => done(standard::convert::real2time(arguments)),
        Function::StdTime2integer => done(standard::convert::time2integer(arguments)),
        Function::StdTime2real => done(standard::convert::time2real(arguments)),

        Function::RoundRobin => directors::create(context, instance, directors::round_robin()),
        Function::Fallback => directors::create(context, instance, directors::fallback(arguments)),
        Function::Random => directors::create(context, instance, directors::random()),
        Function::Hash => directors::create(context, instance, directors::hash()),
        Function::RoundRobinAddBackend | Function::FallbackAddBackend => {
            directors::add(context, instance, arguments, 1.0)
        }
        Function::RandomAddBackend | Function::HashAddBackend => {
            let weight = arguments.real(1);
            directors::add(context, instance, arguments, weight)
        }
        Function::RoundRobinRemoveBackend
        | Function::FallbackRemoveBackend
        | Function::RandomRemoveBackend
        | Function::HashRemoveBackend => directors::remove(context, instance, arguments),
        Function::RoundRobinBackend | Function::FallbackBackend | Function::RandomBackend => {
            done(directors::backend(context, instance))
        }
        Function::HashBackend => done(directors::hash_backend(context, instance, arguments, scratch)),
        Function::DirectorsLookup => directors::lookup(context, arguments, scratch),

        Function::PurgeHard => purge::hard(context),
        Function::PurgeSoft => purge::soft(context, arguments),

        Function::BlobDecode => blob::decode(arguments, scratch),
        Function::BlobEncode => blob::encode(arguments, scratch),
        Function::BlobTranscode => blob::transcode(arguments, scratch),
        Function::BlobSame => done(blob::same(arguments)),
        Function::BlobEqual => done(blob::equal(arguments, scratch)),
        Function::BlobLength => done(blob::length(arguments)),
        Function::BlobSub => blob::sub(arguments, scratch),
        Function::Blob => blob::create(context, instance, arguments, scratch),
        Function::BlobGet => done(blob::get(context, instance, scratch)),
        Function::BlobEncodeObject => blob::encode_object(context, instance, arguments, scratch),

        Function::CookieClean => done(cookie::clean(context)),
        Function::CookieDelete => done(cookie::delete(context, arguments, scratch)),
        Function::CookieFilter => done(cookie::filter(context, arguments, scratch, false)),
        Function::CookieFilterRe => cookie::filter_re(context, arguments, false),
        Function::CookieKeep => done(cookie::filter(context, arguments, scratch, true)),
        Function::CookieKeepRe => cookie::filter_re(context, arguments, true),
        Function::CookieFormatDate | Function::CookieFormatRfc1123 => done(cookie::format_date(arguments, scratch)),
        Function::CookieGet => done(cookie::get(context, arguments, scratch)),
        Function::CookieGetRe => cookie::get_re(context, arguments, scratch),
        Function::CookieGetString => done(cookie::get_string(context, scratch)),
        Function::CookieIsset => done(cookie::isset(context, arguments, scratch)),
        Function::CookieParse => done(cookie::parse(context, arguments, scratch)),
        Function::CookieSet => done(cookie::set(context, arguments, scratch)),

        Function::VtcBarrierSync => vtc::barrier_sync(context, arguments, scratch),
        Function::VtcNoBackend => done(Value::Backend(None)),
        Function::VtcNoStevedore => done(Value::Stevedore(None)),
        Function::VtcNoIp => done(Value::Ip(None)),
        Function::VtcPanic => done(vtc::panic(arguments, scratch)),
        Function::VtcSleep => vtc::sleep(context, arguments),
        Function::VtcTypesize => done(vtc::typesize(arguments, scratch)),
        Function::VtcProxyHeader => vtc::proxy_header(arguments, scratch),
    }
}

#[cfg(test)]
mod tests;
