//! saintmode: the VCL methods of backends that are sick for single objects. The lists are in
//! `backend::director::kind::saint`.
//!
//! Compat: vmod_saintmode of the varnish-modules collection, with both names of functions that were
//! renamed. `status()` returns complete JSON; the collection's VMOD leaves brackets open.

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use crate::directors::{create as create_director, director_of, log_notes, name_of};
use backend::director::kind::saint::Saint;
use backend::{DirectorKind, Notes};
use std::fmt::Write;
use surface::tag::Tag;
use surface::vcl::Method;
use surface::vmod::functions::saintmode::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{DirectorId, Scratch, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { instance, context, arguments, scratch } = call;
    match function {
        Function::Saintmode => create(context, instance, arguments),
        Function::SaintmodeBackend => done(crate::directors::backend(context, instance)),
        Function::SaintmodeBlacklist => done(list(context, arguments, "blacklist")),
        Function::SaintmodeDenylist => done(list(context, arguments, "denylist")),
        Function::SaintmodeBlacklistCount | Function::SaintmodeDenylistCount => done(count(context, instance)),
        Function::SaintmodeIsHealthy => done(is_healthy(context, instance)),
        Function::SaintmodeStatus => done(status(context, scratch)),
    }
}

/// The constructor.
pub(crate) fn create(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
) -> Result<Called, Failure> {
    let Some(backend) = arguments.backend(0).filter(|id| context.directors().exists(*id)) else {
        return Err(Failure(format!("{}: None backend has no saint mode", name_of(context, instance))));
    };
    create_director(context, instance, DirectorKind::Saint(Saint::new(backend, arguments.int(1))))
}

/// A saintmode object of the VCL, by its instance number.
fn saint_of(context: &dyn VmodContext, instance: Option<u32>) -> Option<(DirectorId, &Saint)> {
    let id = director_of(context, instance)?;
    match context.directors().director(id) {
        Some(DirectorKind::Saint(saint)) => Some((id, saint)),
        _ => None,
    }
}

/// All saintmode objects of the VCL, in order of `new`.
fn all(context: &dyn VmodContext) -> impl Iterator<Item = (DirectorId, &Saint)> {
    let instances = context.program().program().instances.len() as u32;
    (0..instances).filter_map(|instance| saint_of(context, Some(instance)))
}

/// `saintmode.blacklist()` and `saintmode.denylist()`; `name` selects one.
pub(crate) fn list(context: &mut dyn VmodContext, arguments: Arguments<'_>, name: &str) -> Value {
    let seconds = arguments.real(0);
    let mut saints = all(context).peekable();
    let text = if saints.peek().is_none() {
        Err(format!("saintmode.{name}(): Saintmode is not configured"))
    } else if context.method() != Method::BackendResponse {
        Err(format!("saintmode.{name}() called outside of vcl_backend_response"))
    } else {
        let used = context.used_backend();
        let saint = saints.find(|(_, saint)| Some(saint.backend()) == used);
        match (saint, context.digest()) {
            (Some((_, saint)), Some(digest)) => {
                saint.troubles().add(&digest, context.now() + seconds, context.now());
                let backend = context.directors().name(saint.backend());
                Ok(format!("saintmode: object put on {name} for backend {backend} for {seconds:.2} seconds"))
            }
            _ => Err(format!("Error: saintmode.{name}(): Saintmode not configured for this backend.")),
        }
    };
    drop(saints);
    match text {
        Ok(text) => context.log(Tag::VCLLog, text.as_bytes()),
        Err(text) => context.log(Tag::VCLError, text.as_bytes()),
    }
    Value::Void
}

/// `.blacklist_count()`
pub(crate) fn count(context: &mut dyn VmodContext, instance: Option<u32>) -> Value {
    let count = saint_of(context, instance).map_or(0, |(_, saint)| saint.troubles().count(context.now()));
    Value::Int(count as i64)
}

/// `.is_healthy()`: on the client's side only the list counts, elsewhere also the backend's health.
pub(crate) fn is_healthy(context: &mut dyn VmodContext, instance: Option<u32>) -> Value {
    let notes = Notes::new();
    let is_healthy = match saint_of(context, instance) {
        None => false,
        Some((id, saint)) => match context.method() {
            Method::BackendFetch
            | Method::BackendRefresh
            | Method::BackendResponse
            | Method::BackendError
            | Method::Init
            | Method::Fini => context.directors().is_healthy_for(id, &context.resolve_context(&notes)),
            Method::Recv
            | Method::Pipe
            | Method::Pass
            | Method::Hash
            | Method::Purge
            | Method::Miss
            | Method::Hit
            | Method::Deliver
            | Method::Synth => {
                let name = context.directors().name(saint.backend());
                !saint.speaks_against(context.digest().as_ref(), context.now(), &name, Some(&notes))
            }
        },
    };
    log_notes(context, &notes);
    Value::Bool(is_healthy)
}

/// `saintmode.status()`
pub(crate) fn status(context: &mut dyn VmodContext, scratch: &mut Scratch) -> Value {
    let mut text = "{\n\t\"saintmode\": [\n".to_owned();
    let directors = context.directors();
    for (place, (id, saint)) in all(context).enumerate() {
        let comma = if place == 0 { "" } else { ",\n" };
        let (name, backend) = (directors.name(id), directors.name(saint.backend()));
        let (count, threshold) = (saint.troubles().count(context.now()), saint.threshold());
        let _ = write!(
            text,
            "{comma}\t\t{{ \"name\": \"{name}\", \"backend\": \"{backend}\", \"count\": \"{count}\", \
             \"threshold\": \"{threshold}\" }}"
        );
    }
    text.push_str("\n\t]\n}\n");
    Value::Text(scratch.put(text.as_bytes()))
}
