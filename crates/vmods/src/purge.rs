//! purge: removes or ages the object of the request.

use crate::arguments::Arguments;
use crate::context::{PurgeKind, VmodContext};
use surface::vcl::Method;
use vcl_run::host::{Called, Failure};

/// `purge.hard()`
pub(crate) fn hard(context: &mut dyn VmodContext) -> Result<Called, Failure> {
    purge(context, PurgeKind::Hard)
}

/// `purge.soft()`: a negative time leaves that time unchanged; a negative ttl counts as zero.
pub(crate) fn soft(context: &mut dyn VmodContext, arguments: Arguments<'_>) -> Result<Called, Failure> {
    let kind = PurgeKind::Soft { ttl: arguments.real(0), grace: arguments.real(1), keep: arguments.real(2) };
    purge(context, kind)
}

fn purge(context: &mut dyn VmodContext, kind: PurgeKind) -> Result<Called, Failure> {
    if !matches!(context.method(), Method::Hit | Method::Miss) {
        return Err(Failure("purge can only happen in vcl_hit{} or vcl_miss{}".to_owned()));
    }
    context.purge(kind)
}
