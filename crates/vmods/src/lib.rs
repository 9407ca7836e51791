//! The VMODs that VCL can `import`, one file each.
//!
//! [`call`] is the only entry point: the evaluator's host passes the function's number (a row of
//! `surface::vmod`), the object and the arguments. [`context::VmodContext`] is the part that a VMOD
//! can access of the running task; [`Instances`] holds the objects made in vcl_init, shared by all
//! event loops; [`TaskState`] is the state of one task.
//!
//! Reading order: the state of single VMODs (`cookie/cookies`, `var/variables`, `debug/state` and
//! others) → `task`, `shared`, `instances` → `context` → the functions of the VMODs.
//!
//! *Invariants:* every row of the table has an arm in [`call`], and there is no catch-all arm. The
//! compiler checks arguments; a value of the wrong type reads as unset or zero and does not panic.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod accept;
mod alphabet;
mod arguments;
mod basicauth;
mod blob;
mod bodyaccess;
mod brotli;
mod call;
pub mod context;
mod cookie;
mod crypto;
mod debug;
mod digest;
mod directors;
mod dynamic;
mod geo;
mod geoip;
mod geoip2;
mod h2;
mod header;
mod instances;
mod json;
mod json_text;
mod jwt;
mod keys;
mod kvstore;
mod lookups;
mod maxminddb;
pub mod number;
mod proxy;
mod purge;
mod querystring;
mod re;
mod remarks;
mod saintmode;
mod shared;
mod softpurge;
mod standard;
mod strings;
mod task;
mod tcp;
mod tls;
mod unix;
mod uuid;
mod var;
mod vsthrottle;
mod vtc;
mod watched;
mod xkey;
mod ykey;

pub use context::{ClientConnection, Finish, Pending, Transaction, VmodContext};
pub use debug::life::DebugLife;
pub use instances::Instances;
pub use shared::SharedState;
pub use standard::address::service_port;
pub use task::TaskState;
pub use tcp::{NoSockets, SocketOptions, TcpInfo};

use arguments::Arguments;
use call::Call;
use surface::parameter::Parameters;
use surface::vcl::{Method, Type};
use surface::vmod::{Function, VmodFunction};
use vcl_run::host::{Called, Failure};
use vcl_run::link::LinkedProgram;
use vcl_run::value::{Scratch, Value};

/// Calls a VMOD function, method or constructor. `function` is an index into
/// `surface::vmod::FUNCTIONS`, `instance` one into `Program::instances`. STRANDS arrive joined; an
/// argument that was left out is [`Value::Absent`].
///
/// # Errors
/// The VMOD fails the task; the text is for a `VCL_Error` record.
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
    let call = Call { instance, context: &mut *context, arguments: Arguments::new(arguments), scratch };
    let called = dispatch(name, call)?;
    if name.row().returns == Type::Instance {
        context.instances().note_made(instance);
    }
    Ok(called)
}

/// Actions of VMODs before a VCL is loaded: debug can refuse the load.
///
/// # Errors
/// The reason why the VCL can't be loaded.
pub fn before(program: &LinkedProgram, method: Method, parameters: &Parameters) -> Result<(), Failure> {
    let wants_debug = program.program().vmods.iter().any(|vmod| vmod == "debug");
    if wants_debug && method == Method::Init { debug::before_load(parameters) } else { Ok(()) }
}

fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    match function.of_vmod() {
        VmodFunction::Std(function) => standard::dispatch(function, call),
        VmodFunction::Directors(function) => directors::dispatch(function, call),
        VmodFunction::Blob(function) => blob::dispatch(function, call),
        VmodFunction::Cookie(function) => cookie::dispatch(function, call),
        VmodFunction::Purge(function) => purge::dispatch(function, call),
        VmodFunction::Vtc(function) => vtc::dispatch(function, call),
        VmodFunction::Accept(function) => accept::dispatch(function, call),
        VmodFunction::Basicauth(function) => basicauth::dispatch(function, call),
        VmodFunction::Bodyaccess(function) => bodyaccess::dispatch(function, call),
        VmodFunction::Brotli(function) => brotli::dispatch(function, call),
        VmodFunction::Crypto(function) => crypto::dispatch(function, call),
        VmodFunction::Debug(function) => debug::dispatch(function, call),
        VmodFunction::Digest(function) => digest::dispatch(function, call),
        VmodFunction::Dynamic(function) => dynamic::dispatch(function, call),
        VmodFunction::Geoip(function) => geoip::dispatch(function, call),
        VmodFunction::Geoip2(function) => geoip2::dispatch(function, call),
        VmodFunction::H2(function) => h2::dispatch(function, call),
        VmodFunction::Header(function) => header::dispatch(function, call),
        VmodFunction::Jq(function) => json::dispatch_jq(function, call),
        VmodFunction::Json(function) => json::dispatch(function, call),
        VmodFunction::Jwt(function) => jwt::dispatch(function, call),
        VmodFunction::Kvstore(function) => kvstore::dispatch(function, call),
        VmodFunction::Maxminddb(function) => maxminddb::dispatch(function, call),
        VmodFunction::Proxy(function) => proxy::dispatch(function, call),
        VmodFunction::Querystring(function) => querystring::dispatch(function, call),
        VmodFunction::Re(function) => re::dispatch(function, call),
        VmodFunction::Saintmode(function) => saintmode::dispatch(function, call),
        VmodFunction::Softpurge(function) => softpurge::dispatch(function, call),
        VmodFunction::Str(function) => strings::dispatch(function, call),
        VmodFunction::Tcp(function) => tcp::dispatch(function, call),
        VmodFunction::Tls(function) => tls::dispatch(function, call),
        VmodFunction::Unix(function) => unix::dispatch(function, call),
        VmodFunction::Uuid(function) => uuid::dispatch(function, call),
        VmodFunction::Var(function) => var::dispatch(function, call),
        VmodFunction::Vsthrottle(function) => vsthrottle::dispatch(function, call),
        VmodFunction::Xkey(function) => xkey::dispatch(function, call),
        VmodFunction::Ykey(function) => ykey::dispatch(function, call),
    }
}

#[cfg(test)]
mod tests;
