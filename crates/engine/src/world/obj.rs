//! `obj`: the object found. vcl_hit of the old dialects may change it; in their vcl_fetch it is the
//! object being made.

use super::messages::StartLine;
use super::value::{bool_of, hexadecimal, seconds_of, text};
use super::{ClientSide, FetchSide, Side, World, out_of_reach};
use crate::legacy_rules::set_object_lifetime;
use store::{Object, ObjectFlags};
use surface::tag::Tag;
use surface::vcl::{HttpObject, Method, Var};
use vcl_run::host::Failure;
use vcl_run::value::{Scratch, Value};

pub(super) fn read(world: &mut World<'_>, var: Var, scratch: &mut Scratch) -> Result<Value, Failure> {
    let client = match &mut world.side {
        Side::Client(client) => client,
        Side::Fetch(fetch) => return read_in_the_making(fetch, var, scratch),
        Side::Housekeeping(_) => return Err(out_of_reach()),
    };
    match var {
        Var::ObjStatus => return Ok(Value::Int(i64::from(client.object_head().status()))),
        Var::ObjReason => return Ok(text(client.object_head().reason(), scratch)),
        Var::ObjProto => return Ok(text(client.object_head().protocol(), scratch)),
        _ => {}
    }
    let found = &client.task.found;
    let object = found.object.as_ref().map(|delivered| &**delivered.object());
    let seconds = |of: fn(&Object) -> f64| Value::Duration(object.map_or(0.0, of));
    Ok(match var {
        Var::Cacheable => Value::Bool(true),
        Var::ObjAge => Value::Duration(object.map_or(0.0, |object| world.now - object.origin())),
        Var::ObjCanEsi => Value::Bool(object.is_some_and(|object| object.annex_bytes() > 0)),
        Var::ObjGrace => seconds(Object::grace),
        Var::ObjHash => hexadecimal(&client.task.life.digest, scratch),
        // If this request's lookup did not find the object, hits are 0, even if other requests have
        // found it since.
        Var::ObjHits if !found.is_hit => Value::Int(0),
        Var::ObjHits => Value::Int(object.map_or(0, |object| i64::from(object.hits()))),
        Var::ObjKeep => seconds(Object::keep),
        // Delivering an object counts as a use now. Compat: vcl_deliver of 3.0.
        Var::ObjLastuse if world.method == Method::Hit => Value::Duration(found.unused_seconds),
        Var::ObjLastuse => Value::Duration(0.0),
        Var::ObjStorage => {
            let storages = &world.engine.storages;
            Value::Stevedore(object.map(|object| match object.is_passing() || is_uncacheable(object) {
                true => storages.transient(),
                false => storages.of_object(object),
            }))
        }
        Var::ObjTime => Value::Time(object.map_or(0.0, Object::origin)),
        Var::ObjTtl => Value::Duration(object.map_or(0.0, |object| object.origin() + object.ttl() - world.now)),
        Var::ObjUncacheable => Value::Bool(object.is_some_and(is_uncacheable)),
        _ => return Err(out_of_reach()),
    })
}

/// True if VCL or the policy has refused it. An object that is not stored because it has expired,
/// or for lack of room, is not uncacheable.
fn is_uncacheable(object: &Object) -> bool {
    let flags = object.flags();
    [ObjectFlags::PRIVATE, ObjectFlags::HIT_FOR_MISS, ObjectFlags::HIT_FOR_PASS].iter().any(|flag| flags.has(*flag))
}

fn read_in_the_making(fetch: &FetchSide<'_>, var: Var, scratch: &mut Scratch) -> Result<Value, Failure> {
    Ok(match var {
        Var::Cacheable => Value::Bool(fetch.task.attempt.verdict.is_cacheable),
        Var::ObjHash => hexadecimal(&fetch.task.order.digest, scratch),
        _ => return Err(out_of_reach()),
    })
}

pub(super) fn write(world: &mut World<'_>, var: Var, value: Value, scratch: &Scratch) -> Result<(), Failure> {
    match (&mut world.side, var) {
        (Side::Client(_), Var::ObjProto) => {
            world.set_start_line((HttpObject::Obj, StartLine::Protocol), "obj.proto", value, scratch)?;
        }
        (Side::Client(_), Var::ObjTtl | Var::ObjGrace | Var::ObjKeep) => set_lifetime(world, var, seconds_of(value)),
        // An object that is not cacheable must not be found again.
        (Side::Client(_), Var::Cacheable) => {
            if !bool_of(value) {
                set_lifetime(world, Var::ObjTtl, 0.0);
            }
        }
        (Side::Fetch(FetchSide { task, .. }), Var::Cacheable) => {
            task.attempt.verdict.is_cacheable = bool_of(value);
            if !bool_of(value) {
                task.life.uncacheable_by = world.noted.take();
            }
        }
        (_, _) => return Err(out_of_reach()),
    }
    Ok(())
}

/// Sets the lifetime of the object (see `legacy_rules.rs`), where VCL may do so.
fn set_lifetime(world: &mut World<'_>, var: Var, seconds: f64) {
    let changes_objects = world.changes_objects();
    let Side::Client(ClientSide { task, .. }) = &world.side else { return };
    let Some(object) = task.found.object.as_ref().filter(|_| changes_objects) else { return };
    let [ttl, grace, keep] =
        set_object_lifetime(&world.engine.cache, object, (var, seconds), world.vcl.generation, world.now);
    let origin = object.origin();
    world.log.record_fmt(Tag::TTL, format_args!("VCL {ttl:.0} {grace:.0} {keep:.0} {origin:.0} cacheable"));
}
