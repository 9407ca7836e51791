//! `obj_stale`: the stale object that a 304 refers to, in vcl_backend_refresh.

use super::value::text;
use super::{Side, World, out_of_reach};
use surface::vcl::Var;
use vcl_run::host::Failure;
use vcl_run::value::{Scratch, Value};

pub(super) fn read(world: &World<'_>, var: Var, scratch: &mut Scratch) -> Result<Value, Failure> {
    let Side::Fetch(fetch) = &world.side else { return Err(out_of_reach()) };
    let Some(stale) = &fetch.task.life.stale else { return Ok(Value::Void) };
    let head = &fetch.task.attempt.stale_head;
    Ok(match var {
        Var::ObjStaleAge => Value::Duration(world.now - stale.origin()),
        Var::ObjStaleCanEsi => Value::Bool(stale.annex_bytes() > 0),
        Var::ObjStaleGrace => Value::Duration(stale.grace()),
        Var::ObjStaleHits => Value::Int(i64::from(stale.hits())),
        Var::ObjStaleIsValid => Value::Bool(!stale.is_removed()),
        Var::ObjStaleKeep => Value::Duration(stale.keep()),
        Var::ObjStaleProto => text(head.protocol(), scratch),
        Var::ObjStaleReason => text(head.reason(), scratch),
        Var::ObjStaleStatus => Value::Int(i64::from(head.status())),
        Var::ObjStaleStorage => Value::Stevedore(Some(world.engine.storages.of_object(stale))),
        Var::ObjStaleTime => Value::Time(stale.origin()),
        Var::ObjStaleTtl => Value::Duration(stale.origin() + stale.ttl() - world.now),
        // A marker for uncacheable responses has nothing to revalidate, so it is never the stale
        // object.
        Var::ObjStaleUncacheable => Value::Bool(false),
        _ => return Err(out_of_reach()),
    })
}
