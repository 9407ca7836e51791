//! xkey: purges by the tags in the `xkey` header of responses.
//!
//! The index belongs to the cache (`cache::Cache::purge_tags`) and exists whether or not a VCL
//! imports this VMOD. Compat: vmod_xkey of the varnish-modules collection, including the returned
//! counts.

use crate::arguments::Arguments;
use crate::call::Call;
use crate::context::VmodContext;
use semantics::Purge;
use surface::vmod::functions::xkey::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::Scratch;

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { context, arguments, scratch, .. } = call;
    match function {
        Function::XkeyPurge => purge(context, arguments, scratch),
        Function::XkeySoftpurge => soft_purge(context, arguments, scratch),
    }
}

/// `xkey.purge()`
pub(crate) fn purge(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    Ok(context.purge_tags(scratch.get(arguments.text(0)), Purge::Hard))
}

/// `xkey.softpurge()`: ends freshness; grace and keep stay.
pub(crate) fn soft_purge(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let kind = Purge::Soft { ttl: 0.0, grace: -1.0, keep: -1.0 };
    Ok(context.purge_tags(scratch.get(arguments.text(0)), kind))
}
