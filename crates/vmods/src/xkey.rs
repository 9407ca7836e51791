//! xkey: purges by the tags in the `xkey` header of responses.
//!
//! The index belongs to the cache (`cache::Cache::purge_tags`) and exists whether or not a VCL imports this VMOD.
//! Compat: vmod_xkey of the varnish-modules collection, including the returned counts.

use crate::arguments::Arguments;
use crate::context::{PurgeKind, VmodContext};
use vcl_run::host::{Called, Failure};
use vcl_run::value::Scratch;

/// `xkey.purge()`
pub(crate) fn purge(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    Ok(context.purge_tags(scratch.get(arguments.text(0)), PurgeKind::Hard))
}

/// `xkey.softpurge()`: ends freshness; grace and keep stay.
pub(crate) fn soft_purge(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let kind = PurgeKind::Soft { ttl: 0.0, grace: -1.0, keep: -1.0 };
    Ok(context.purge_tags(scratch.get(arguments.text(0)), kind))
}
