//! directors.shard: the methods of the director that uses consistent hashing. Rings and choices are
//! in `backend::director::kind::shard`.
//!
//! Changes of members are kept in the task until `.reconfigure()` or the end of the task.
//! `.backend()` chooses at once, or with `resolve=LAZY` stores its arguments in the task until the
//! director is used.

use super::shard_param::{Given, failure, is_backend_side, set_of_blob, settled};
use super::{director_of, log_notes, name_of};
use crate::arguments::Arguments;
use crate::call::done;
use crate::context::VmodContext;
use backend::DirectorKind;
use backend::director::choice::hash_text;
use backend::director::kind::shard::{Change, Shard};
use backend::{Directors, Notes};
use surface::tag::Tag;
use surface::vcl::Method;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{DirectorId, Scratch, Value};

fn is_housekeeping(method: Method) -> bool {
    matches!(method, Method::Init | Method::Fini)
}

fn shard_of(directors: &Directors, id: DirectorId) -> Option<&Shard> {
    match directors.director(id) {
        Some(DirectorKind::Shard(shard)) => Some(shard),
        _ => None,
    }
}

fn own(context: &dyn VmodContext, instance: Option<u32>) -> Result<DirectorId, Failure> {
    director_of(context, instance)
        .filter(|id| shard_of(context.directors(), *id).is_some())
        .ok_or_else(|| failure(&name_of(context, instance), "was never made"))
}

/// `new x = directors.shard()`
pub(crate) fn create(context: &mut dyn VmodContext, instance: Option<u32>) -> Result<Called, Failure> {
    let kind = DirectorKind::Shard(Shard::new(&name_of(context, instance)));
    super::create(context, instance, kind)
}

/// `.set_warmup()`: a probability outside [0, 1) is ignored.
pub(crate) fn set_warmup(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
) -> Result<Called, Failure> {
    let id = own(context, instance)?;
    let probability = arguments.real(0);
    if (0.0..1.0).contains(&probability) {
        if let Some(shard) = shard_of(context.directors(), id) {
            shard.set_warmup(probability);
        }
    } else {
        notice(context, instance, format_args!(".set_warmup({probability:.6}) ignored"));
    }
    done(Value::Void)
}

fn notice(context: &mut dyn VmodContext, instance: Option<u32>, text: std::fmt::Arguments<'_>) {
    let name = name_of(context, instance);
    context.log(Tag::Notice, format!("vmod_directors: shard {name}: {text}").as_bytes());
}

/// `.set_rampup()`
pub(crate) fn set_rampup(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
) -> Result<Called, Failure> {
    let id = own(context, instance)?;
    if let Some(shard) = shard_of(context.directors(), id) {
        shard.set_rampup(arguments.real(0));
    }
    done(Value::Void)
}

/// `.associate()`
pub(crate) fn associate(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let id = own(context, instance)?;
    let blob = arguments.text(0);
    let set = if blob.is_set() {
        let invalid = || failure(&name_of(context, instance), "shard .associate param invalid");
        Some(set_of_blob(context.instances(), scratch.get(blob)).ok_or_else(invalid)?)
    } else {
        None
    };
    if let Some(shard) = shard_of(context.directors(), id) {
        shard.associate(set);
    }
    done(Value::Void)
}

fn add_change(context: &mut dyn VmodContext, director: DirectorId, change: Change) {
    let pending = &mut context.task().kept().shard_changes;
    match pending.iter_mut().find(|(id, _)| *id == director) {
        Some((_, changes)) => changes.push(change),
        None => pending.push((director, vec![change])),
    }
}

fn ident(arguments: Arguments<'_>, place: usize, scratch: &Scratch) -> Option<String> {
    let text = arguments.text(place);
    text.is_set().then(|| String::from_utf8_lossy(scratch.get(text)).into_owned())
}

/// `.add_backend()`
pub(crate) fn add_backend(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let id = own(context, instance)?;
    let member = arguments
        .backend(0)
        .filter(|member| context.directors().exists(*member))
        .ok_or_else(|| failure(&name_of(context, instance), "None backend cannot be added"))?;
    let mut weight = 1.0;
    if arguments.is_given(3) {
        let asked = arguments.real(3);
        if asked >= 1.0 {
            weight = asked;
        } else {
            notice(context, instance, format_args!(".add_backend(weight={asked:.6}) ignored"));
        }
    }
    let rampup = arguments.is_given(2).then(|| arguments.real(2).max(0.0));
    add_change(context, id, Change::Add { director: member, ident: ident(arguments, 1, scratch), rampup, weight });
    done(Value::Bool(true))
}

/// `.remove_backend()`
pub(crate) fn remove_backend(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let id = own(context, instance)?;
    let (director, ident) = (arguments.backend(0), ident(arguments, 1, scratch));
    if director.is_none() && ident.is_none() {
        let text = ".remove_backend(): either backend or ident are required";
        return Err(failure(&name_of(context, instance), text));
    }
    add_change(context, id, Change::Remove { director, ident });
    done(Value::Bool(true))
}

/// `.clear()`
pub(crate) fn clear(context: &mut dyn VmodContext, instance: Option<u32>) -> Result<Called, Failure> {
    let id = own(context, instance)?;
    add_change(context, id, Change::Clear);
    done(Value::Bool(true))
}

/// `.reconfigure()`
pub(crate) fn reconfigure(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
) -> Result<Called, Failure> {
    let id = own(context, instance)?;
    let replicas = arguments.int(0);
    if replicas <= 0 {
        let name = name_of(context, instance);
        let text = format!("vmod_directors: shard {name}: .reconfigure() invalid replicas argument {replicas}");
        context.log(Tag::Error, text.as_bytes());
        return done(Value::Bool(false));
    }
    let pending = &mut context.task().kept().shard_changes;
    let changes = match pending.iter().position(|(director, _)| *director == id) {
        Some(place) => pending.swap_remove(place).1,
        None => Vec::new(),
    };
    let notes = Notes::new();
    let replicas = u32::try_from(replicas).unwrap_or(u32::MAX);
    let made = context.directors().reconfigure_shard(id, &changes, replicas, &notes);
    log_notes(context, &notes);
    done(Value::Bool(made))
}

/// `.key()`
pub(crate) fn key(arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    Value::Int(i64::from(hash_text(scratch.get(arguments.text(0)))))
}

/// `.debug()`
pub(crate) fn debug(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
) -> Result<Called, Failure> {
    let id = own(context, instance)?;
    if let Some(shard) = shard_of(context.directors(), id) {
        shard.set_debug(arguments.int(0));
    }
    done(Value::Void)
}

/// Positions of the arguments of `.backend()` that follow those it shares with parameter sets.
const PARAM: usize = 7;
const RESOLVE: usize = 8;

/// `.backend()`
pub(crate) fn backend(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let id = own(context, instance)?;
    let name = name_of(context, instance);
    let method = context.method();
    let is_lazy = match scratch.get(arguments.text(RESOLVE)) {
        b"LAZY" => true,
        b"NOW" => false,
        _ => is_housekeeping(method),
    };
    if is_lazy && (0..RESOLVE).all(|place| !arguments.is_given(place)) {
        return done(Value::Backend(Some(id)));
    }
    if is_lazy && !is_backend_side(method) {
        let text = ".backend(resolve=LAZY) with other parameters can only be used in backend/pipe context";
        return Err(failure(&name, text));
    }
    if !is_lazy && is_housekeeping(method) {
        return Err(failure(&name, ".backend(resolve=NOW) can not be used in vcl_init{}/vcl_fini{}"));
    }
    let set = if arguments.is_given(PARAM) {
        let set = set_of_blob(context.instances(), scratch.get(arguments.text(PARAM)));
        Some(set.ok_or_else(|| failure(&name, ".backend(key_blob) param invalid"))?)
    } else {
        None
    };
    let given = Given { name: &name, function: "shard.backend()", arguments };
    let values = settled(context, &given, scratch)?;
    if is_lazy {
        let layer = context.task().shard_parameters.director_mut(id);
        layer.values = values;
        if set.is_some() {
            layer.set = set;
        }
        return done(Value::Backend(Some(id)));
    }
    // On the backend side, arguments stored by an earlier lazy call apply here too.
    let task = context.task().shard_parameters.clone();
    let notes = Notes::new();
    let asked = context.resolve_context(&notes);
    let chosen = shard_of(context.directors(), id).and_then(|shard| {
        let parameters = shard.parameters_below(&values, set.as_deref(), id, Some(&task));
        shard.choose(context.directors(), &parameters, &asked)
    });
    log_notes(context, &notes);
    done(Value::Backend(chosen))
}
