//! Rules of the old dialects (1.x to 3.0) that both sides of a request or their VCL follow:
//! stateless functions, one per rule. Other differences of the machines are in `request/legacy.rs`
//! and `fetch/legacy.rs`. Source: behaviour of Varnish 1.1.2, 2.0.6, 2.1.5 and 3.0.7.

use cache::Cache;
use std::sync::Arc;
use store::Object;
use surface::vcl::{Generation, Var};

/// True if the origin gets the client's address without VCL: until 2.0, in a header of its own.
/// Later that was left to VCL.
#[must_use]
pub(crate) fn forwards_address(generation: Generation) -> bool {
    generation <= Generation::V20
}

/// True if `set` of a header to an unset value removes the header: in 1.x and 2.x. Since 3.0 this
/// leaves an empty header.
#[must_use]
pub(crate) fn unsets_by_set(generation: Generation) -> bool {
    generation < Generation::V3
}

/// The cap from `req.ttl` or `req.grace` as VCL set it. In 3.0 setting 0 removed the cap.
#[must_use]
pub(crate) fn cap(seconds: f64, generation: Generation) -> Option<f64> {
    if generation == Generation::V3 && seconds <= 0.0 { None } else { Some(seconds.max(0.0)) }
}

/// The value that `req.grace` shows when unset: until 2.1 the default, in 3.0 it is 0, and since
/// then negative.
#[must_use]
pub(crate) fn grace_shown(cap: Option<f64>, generation: Generation, default_grace: f64) -> f64 {
    cap.unwrap_or(match generation {
        Generation::V1 | Generation::V20 | Generation::V21 => default_grace,
        Generation::V3 => 0.0,
        Generation::V4 => -1.0,
    })
}

/// Part of its grace that an object may use for a request with that cap. 1.x had no grace; in 2.x a
/// request that does not set it gets `default_grace`.
#[must_use]
pub(crate) fn grace_granted(cap: Option<f64>, generation: Generation, default_grace: f64) -> Option<f64> {
    match generation {
        Generation::V1 => Some(0.0),
        Generation::V20 | Generation::V21 => Some(cap.unwrap_or(default_grace)),
        Generation::V3 | Generation::V4 => cap,
    }
}

/// Sets `obj.ttl`, `obj.grace` or `obj.keep` in vcl_hit, permanently and for all requests;
/// `obj.cacheable = false` counts as a zero ttl. A ttl of zero ends the object: in 3.0 at once,
/// before that only after its grace.
pub(crate) fn set_object_lifetime(
    cache: &Cache,
    object: &Arc<Object>,
    (var, seconds): (Var, f64),
    generation: Generation,
    now: f64,
) -> [f64; 3] {
    let (mut ttl, mut grace, mut keep) = (object.ttl(), object.grace(), object.keep());
    let age = now - object.origin();
    match var {
        Var::ObjGrace => grace = seconds.max(0.0),
        Var::ObjKeep => keep = seconds.max(0.0),
        _ if seconds > 0.0 => ttl = age + seconds,
        _ if generation == Generation::V3 => (ttl, grace, keep) = (0.0, 0.0, 0.0),
        // Expired one second ago, or half its age ago if it is younger than two seconds, so that
        // grace can still follow.
        _ => ttl = (age - 1.0).max(age / 2.0).max(0.0),
    }
    cache.set_lifetime(object, ttl, grace, keep);
    [ttl, grace, keep]
}
