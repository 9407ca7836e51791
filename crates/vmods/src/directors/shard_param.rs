//! directors.shard_param: sets of parameters for shard directors, and the checks that a set and
//! `.backend()` share.
//!
//! In vcl_init a set changes permanently, in a backend task for that task. Elsewhere it cannot be
//! changed.

use super::{log_notes, name_of};
use crate::arguments::Arguments;
use crate::call::done;
use crate::context::VmodContext;
use crate::instances::Instances;
use backend::Notes;
use backend::director::choice::shard_parameters::{By, ParameterSet, Parameters, Wanted, blob_key};
use std::sync::Arc;
use surface::tag::Tag;
use surface::vcl::{Method, at};
use surface::vmod::functions::directors::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// Start of the blob that refers to a set; the object's number follows.
const MARK: &[u8; 16] = b"copal shard set\0";

/// A failure in Varnish's words.
pub(super) fn failure(name: &str, text: impl std::fmt::Display) -> Failure {
    Failure(format!("vmod_directors: shard {name}: {text}"))
}

/// True if the task is on the backend side; vcl_pipe counts as such.
pub(super) fn is_backend_side(method: Method) -> bool {
    method.row().bit & (at::BACKEND | at::PIPE) != 0
}

fn set_of(instances: &Instances, instance: Option<u32>) -> Option<Arc<ParameterSet>> {
    instances.object::<Arc<ParameterSet>>(instance).map(Arc::clone)
}

fn own(context: &dyn VmodContext, instance: Option<u32>) -> Result<Arc<ParameterSet>, Failure> {
    set_of(context.instances(), instance).ok_or_else(|| failure(&name_of(context, instance), "was never made"))
}

/// The set that a blob made by `.use()` refers to.
pub(super) fn set_of_blob(instances: &Instances, blob: &[u8]) -> Option<Arc<ParameterSet>> {
    let number = blob.strip_prefix(MARK)?;
    set_of(instances, Some(u32::from_le_bytes(number.try_into().ok()?)))
}

/// The arguments that `.set()` and `.backend()` share: by, key, key_blob, alt, warmup, rampup,
/// healthy.
pub(super) struct Given<'a> {
    pub(super) name: &'a str,
    pub(super) function: &'a str,
    pub(super) arguments: Arguments<'a>,
}

/// Checks the arguments and makes a layer from them.
///
/// # Errors
/// Names the argument that is missing, superfluous or out of range.
pub(super) fn settled(
    context: &mut dyn VmodContext,
    given: &Given<'_>,
    scratch: &Scratch,
) -> Result<Parameters, Failure> {
    let Given { name, function, arguments } = *given;
    let fail = |text: std::fmt::Arguments<'_>| failure(name, format_args!("{function} {text}"));
    let by = match scratch.get(arguments.text(0)) {
        b"KEY" => {
            if !arguments.is_given(1) {
                return Err(fail(format_args!("missing key argument with by=KEY")));
            }
            let key = arguments.int(1);
            let short = u32::try_from(key);
            By::Key(short.map_err(|_| fail(format_args!("invalid key argument {key} with by=KEY")))?)
        }
        b"BLOB" => {
            if !arguments.is_given(2) {
                return Err(fail(format_args!("missing key_blob argument with by=BLOB")));
            }
            let blob = scratch.get(arguments.text(2));
            if blob.is_empty() {
                let text =
                    format!("vmod_directors: shard {name}: {function} by=BLOB but no or empty key_blob - using key 0");
                context.log(Tag::Error, text.as_bytes());
            }
            By::Blob(blob_key(blob))
        }
        word => {
            let by = if word == b"URL" { By::Url } else { By::Hash };
            if arguments.is_given(1) || arguments.is_given(2) {
                let word = by.word();
                return Err(fail(format_args!("key and key_blob arguments are invalid with by={word}")));
            }
            by
        }
    };
    let alt = arguments.int(3);
    let Ok(checked_alt) = u64::try_from(alt) else {
        return Err(fail(format_args!("invalid alt argument {alt}")));
    };
    let warmup = arguments.real(4);
    if arguments.is_given(4) && warmup != -1.0 && !(0.0..=1.0).contains(&warmup) {
        return Err(fail(format_args!("invalid warmup argument {warmup:.6}")));
    }
    let healthy = match scratch.get(arguments.text(6)) {
        b"ALL" => Wanted::All,
        b"IGNORE" => Wanted::Ignore,
        _ => Wanted::Chosen,
    };
    Ok(Parameters {
        by: arguments.is_given(0).then_some(by),
        alt: arguments.is_given(3).then_some(checked_alt),
        warmup: arguments.is_given(4).then_some(warmup),
        rampup: arguments.is_given(5).then(|| arguments.bool(5)),
        healthy: arguments.is_given(6).then_some(healthy),
    })
}

/// `new x = directors.shard_param()`
pub(crate) fn create(context: &mut dyn VmodContext, instance: Option<u32>) -> Result<Called, Failure> {
    let set = ParameterSet::new(instance.unwrap_or(u32::MAX), &name_of(context, instance));
    context.instances().keep_object(instance, Arc::new(set));
    done(Value::Void)
}

/// Changes a set, if that is allowed here.
fn change(
    context: &mut dyn VmodContext,
    set: &ParameterSet,
    function: &str,
    values: Parameters,
) -> Result<Called, Failure> {
    match context.method() {
        Method::Init | Method::Fini => set.set(values),
        method if is_backend_side(method) => context.task().shard_parameters.change_set(set.id(), values),
        _ => {
            let text = format_args!("{function} may only be used in vcl_init and in backend/pipe context");
            return Err(failure(set.name(), text));
        }
    }
    done(Value::Void)
}

/// `.clear()`
pub(crate) fn clear(context: &mut dyn VmodContext, instance: Option<u32>) -> Result<Called, Failure> {
    let set = own(context, instance)?;
    change(context, &set, "shard_param.clear()", Parameters::default())
}

/// `.set()`
pub(crate) fn set(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let set = own(context, instance)?;
    let given = Given { name: set.name(), function: "shard_param.set()", arguments };
    let values = settled(context, &given, scratch)?;
    change(context, &set, "shard_param.set()", values)
}

/// The methods that read one parameter.
pub(crate) fn get(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    function: Function,
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    let set = own(context, instance)?;
    let task = is_backend_side(context.method()).then(|| context.task().shard_parameters.clone());
    let values = set.values_in(task.as_ref()).completed();
    let by = values.by.unwrap_or(By::Hash);
    done(match function {
        Function::ShardParamGetKey => {
            let notes = Notes::new();
            let key = context.resolve_context(&notes).shard_key(by);
            log_notes(context, &notes);
            Value::Int(i64::from(key))
        }
        Function::ShardParamGetAlt => Value::Int(i64::try_from(values.alt.unwrap_or(0)).unwrap_or(i64::MAX)),
        Function::ShardParamGetWarmup => Value::Real(values.warmup.unwrap_or(-1.0)),
        Function::ShardParamGetRampup => Value::Bool(values.rampup.unwrap_or(true)),
        Function::ShardParamGetHealthy => {
            Value::Text(scratch.put(values.healthy.unwrap_or(Wanted::Chosen).word().as_bytes()))
        }
        _ => Value::Text(scratch.put(by.word().as_bytes())),
    })
}

/// `.use()`
pub(crate) fn use_blob(instance: Option<u32>, scratch: &mut Scratch) -> Value {
    let start = scratch.begin();
    scratch.extend(MARK);
    scratch.extend(&instance.unwrap_or(u32::MAX).to_le_bytes());
    Value::Blob(scratch.end(start))
}
