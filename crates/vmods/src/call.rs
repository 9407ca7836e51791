//! A call of a VMOD function, as the `dispatch` of each VMOD gets it.

use crate::arguments::Arguments;
use crate::context::VmodContext;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// One call.
pub(crate) struct Call<'a> {
    /// The object whose method is called, or that is made: an index into `Program::instances`.
    pub(crate) instance: Option<u32>,
    /// The running task.
    pub(crate) context: &'a mut dyn VmodContext,
    /// The arguments.
    pub(crate) arguments: Arguments<'a>,
    /// The memory of texts.
    pub(crate) scratch: &'a mut Scratch,
}

/// Returns a value without waiting.
pub(crate) fn done(value: Value) -> Result<Called, Failure> {
    Ok(Called::Value(value))
}
