//! directors: the VCL methods of objects that choose a backend. The algorithms are in the `backend`
//! crate. Next file: `directors/shard.rs`.

pub(crate) mod object;
pub(crate) mod shard;
pub(crate) mod shard_param;

pub(crate) use object::{create, director_of, log_notes, name_of};

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use backend::director::choice::Member;
use backend::director::kind::fallback::Fallback;
use backend::director::kind::hash::{Hash, HashKey};
use backend::director::kind::least_connections::LeastConnections;
use backend::director::kind::random::Random;
use backend::director::kind::round_robin::RoundRobin;
use backend::director::table::MemberError;
use backend::{DirectorKind, Notes};
use surface::vcl::Method;
use surface::vmod::functions::directors::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { instance, context, arguments, scratch } = call;
    match function {
        Function::RoundRobin => create(context, instance, round_robin()),
        Function::Fallback => create(context, instance, fallback(arguments)),
        Function::Random => {
            let kind = random(context, instance);
            create(context, instance, kind)
        }
        Function::Hash => {
            let kind = hash(context, instance);
            create(context, instance, kind)
        }
        Function::RoundRobinAddBackend | Function::FallbackAddBackend => add(context, instance, arguments, 1.0),
        Function::RandomAddBackend | Function::HashAddBackend => {
            let weight = arguments.real(1);
            add(context, instance, arguments, weight)
        }
        Function::RoundRobinRemoveBackend
        | Function::FallbackRemoveBackend
        | Function::RandomRemoveBackend
        | Function::HashRemoveBackend => remove(context, instance, arguments),
        Function::RoundRobinBackend | Function::FallbackBackend | Function::RandomBackend => {
            done(backend(context, instance))
        }
        Function::LeastConn => create(context, instance, least_connections()),
        Function::LeastConnAddBackend => {
            let weight = arguments.real(1);
            add(context, instance, arguments, weight)
        }
        Function::LeastConnRemoveBackend => remove(context, instance, arguments),
        Function::LeastConnBackend => done(backend(context, instance)),
        Function::HashBackend => done(hash_backend(context, instance, arguments, scratch)),
        Function::Shard => shard::create(context, instance),
        Function::ShardSetWarmup => shard::set_warmup(context, instance, arguments),
        Function::ShardSetRampup => shard::set_rampup(context, instance, arguments),
        Function::ShardAssociate => shard::associate(context, instance, arguments, scratch),
        Function::ShardAddBackend => shard::add_backend(context, instance, arguments, scratch),
        Function::ShardRemoveBackend => shard::remove_backend(context, instance, arguments, scratch),
        Function::ShardClear => shard::clear(context, instance),
        Function::ShardReconfigure => shard::reconfigure(context, instance, arguments),
        Function::ShardKey => done(shard::key(arguments, scratch)),
        Function::ShardBackend => shard::backend(context, instance, arguments, scratch),
        Function::ShardDebug => shard::debug(context, instance, arguments),
        Function::ShardParam => shard_param::create(context, instance),
        Function::ShardParamClear => shard_param::clear(context, instance),
        Function::ShardParamSet => shard_param::set(context, instance, arguments, scratch),
        Function::ShardParamGetBy
        | Function::ShardParamGetKey
        | Function::ShardParamGetAlt
        | Function::ShardParamGetWarmup
        | Function::ShardParamGetRampup
        | Function::ShardParamGetHealthy => shard_param::get(context, instance, function, scratch),
        Function::ShardParamUse => done(shard_param::use_blob(instance, scratch)),
        Function::DirectorsLookup => lookup(context, arguments, scratch),
    }
}

pub(crate) fn round_robin() -> DirectorKind {
    DirectorKind::RoundRobin(RoundRobin::default())
}

pub(crate) fn fallback(arguments: Arguments<'_>) -> DirectorKind {
    DirectorKind::Fallback(Fallback::new(arguments.bool(0)))
}

pub(crate) fn random(context: &dyn VmodContext, instance: Option<u32>) -> DirectorKind {
    DirectorKind::Random(Random::with_retries(retries(context, instance)))
}

/// `.retries` of the `director` block that defines the object.
fn retries(context: &dyn VmodContext, instance: Option<u32>) -> Option<u32> {
    context.program().program().block(instance?)?.retries
}

/// In the old dialects a `director` block defines the object, and its class determines the hashed
/// text; otherwise VCL gives the text.
pub(crate) fn hash(context: &dyn VmodContext, instance: Option<u32>) -> DirectorKind {
    let definition = instance.and_then(|instance| context.instances().definition(instance));
    let is_legacy = context.program().program().generation().is_legacy();
    let key = match definition {
        Some(definition) if definition.class == "client" => HashKey::Client,
        _ if is_legacy => HashKey::Digest,
        _ => HashKey::Given,
    };
    DirectorKind::Hash(Hash::by(key, retries(context, instance)))
}

pub(crate) fn least_connections() -> DirectorKind {
    DirectorKind::LeastConnections(LeastConnections::default())
}

/// `.add_backend()`
pub(crate) fn add(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    weight: f64,
) -> Result<Called, Failure> {
    let name = || name_of(context, instance);
    let unknown = || Failure(format!("{}: None backend cannot be added", name()));
    let director = director_of(context, instance).ok_or_else(unknown)?;
    let member = arguments.backend(0).ok_or_else(unknown)?;
    match context.directors().add_member(director, Member { director: member, weight }) {
        Ok(()) => done(Value::Void),
        Err(MemberError::Unknown) => Err(unknown()),
        Err(MemberError::Ring) => {
            let member = context.directors().name(member).into_owned();
            Err(Failure(format!("{}: {member} leads back to it and cannot be added", name())))
        }
    }
}

/// `.remove_backend()`
pub(crate) fn remove(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
) -> Result<Called, Failure> {
    let member = arguments.backend(0).filter(|id| context.directors().exists(*id));
    match (director_of(context, instance), member) {
        (Some(director), Some(member)) => {
            context.directors().remove_member(director, member);
            done(Value::Void)
        }
        _ => Err(Failure(format!("{}: None backend cannot be removed", name_of(context, instance)))),
    }
}

/// `.backend()` of a director that is resolved only when it is used.
pub(crate) fn backend(context: &mut dyn VmodContext, instance: Option<u32>) -> Value {
    Value::Backend(director_of(context, instance).filter(|id| context.directors().exists(*id)))
}

/// `.backend()` of a hash director: the member for the text.
pub(crate) fn hash_backend(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Value {
    let notes = Notes::new();
    let asked = context.resolve_context(&notes);
    let chosen = director_of(context, instance).and_then(|id| match context.directors().director(id) {
        Some(DirectorKind::Hash(hash)) => hash.choose(context.directors(), &asked, scratch.get(arguments.text(0))),
        _ => None,
    });
    Value::Backend(chosen)
}

/// `directors.lookup()`
pub(crate) fn lookup(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    if !matches!(context.method(), Method::Init | Method::Fini) {
        return Err(Failure("lookup() may only be called from vcl_init / vcl_fini".to_owned()));
    }
    let name = std::str::from_utf8(scratch.get(arguments.text(0))).unwrap_or("");
    done(Value::Backend(context.directors().lookup(name)))
}
