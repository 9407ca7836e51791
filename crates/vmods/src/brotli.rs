//! brotli: an import that gives the built-in filters brotli and unbrotli their names in a VMOD of
//! Varnish, br and unbr. The rows are in `body::filter`.

use crate::call::{Call, done};
use surface::vmod::functions::brotli::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::Value;

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    match function {
        Function::BrotliVersion => done(Value::Text(call.scratch.put(b"built in"))),
    }
}
