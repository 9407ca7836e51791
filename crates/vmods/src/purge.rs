//! purge: removes or ages the object of the request.

use crate::arguments::Arguments;
use crate::call::Call;
use crate::context::VmodContext;
use semantics::Purge;
use surface::vcl::Method;
use surface::vmod::functions::purge::Function;
use vcl_run::host::{Called, Failure};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { context, arguments, .. } = call;
    match function {
        Function::PurgeHard => hard(context),
        Function::PurgeSoft => soft(context, arguments),
    }
}

/// `purge.hard()`
pub(crate) fn hard(context: &mut dyn VmodContext) -> Result<Called, Failure> {
    purge(context, Purge::Hard)
}

/// `purge.soft()`: a negative time leaves that time unchanged; a negative ttl counts as zero.
pub(crate) fn soft(context: &mut dyn VmodContext, arguments: Arguments<'_>) -> Result<Called, Failure> {
    let kind = Purge::Soft { ttl: arguments.real(0), grace: arguments.real(1), keep: arguments.real(2) };
    purge(context, kind)
}

fn purge(context: &mut dyn VmodContext, kind: Purge) -> Result<Called, Failure> {
    if !matches!(context.method(), Method::Hit | Method::Miss) {
        return Err(Failure("purge can only happen in vcl_hit{} or vcl_miss{}".to_owned()));
    }
    context.purge(kind)
}
