//! softpurge: ends the freshness of the object of the request, like `purge.soft()`.

use crate::call::Call;
use crate::context::VmodContext;
use semantics::Purge;
use surface::vcl::Method;
use surface::vmod::functions::softpurge::Function;
use vcl_run::host::{Called, Failure};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    match function {
        Function::Softpurge => soft_purge(call.context),
    }
}

/// `softpurge.softpurge()`: grace and keep stay.
fn soft_purge(context: &mut dyn VmodContext) -> Result<Called, Failure> {
    if !matches!(context.method(), Method::Hit | Method::Miss) {
        return Err(Failure("softpurge can only happen in vcl_hit{} or vcl_miss{}".to_owned()));
    }
    context.purge(Purge::Soft { ttl: 0.0, grace: -1.0, keep: -1.0 })
}
