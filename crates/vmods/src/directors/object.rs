//! The director object of a call, and its log records.

use crate::call::done;
use crate::context::{Transaction, VmodContext};
use backend::{DirectorKind, Notes};
use vcl_run::host::{Called, Failure};
use vcl_run::value::{DirectorId, Value};

/// Writes the log records of directors.
pub(crate) fn log_notes(context: &mut dyn VmodContext, notes: &Notes) {
    for note in notes.take() {
        match note.of_task {
            true => context.log(note.tag, note.text.as_bytes()),
            false => context.log_for(Transaction::None, note.tag, note.text.as_bytes()),
        }
    }
}

/// The id of the director object.
pub(crate) fn director_of(context: &dyn VmodContext, instance: Option<u32>) -> Option<DirectorId> {
    let index = context.instances().definition(instance?)?.director?;
    Some(context.directors().object_id(index))
}

/// The name of the object in VCL.
pub(crate) fn name_of(context: &dyn VmodContext, instance: Option<u32>) -> String {
    instance.and_then(|instance| context.instances().definition(instance)).map_or(String::new(), |it| it.name.clone())
}

/// Makes the object; for the constructors.
pub(crate) fn create(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    kind: DirectorKind,
) -> Result<Called, Failure> {
    match director_of(context, instance) {
        Some(id) if context.directors().create(id, kind) => done(Value::Void),
        _ => Err(Failure(format!("{}: cannot be made twice", name_of(context, instance)))),
    }
}
