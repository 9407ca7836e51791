//! `beresp`: the origin's response, or the one that vcl_backend_error makes.
//!
//! Lifetimes are stored as seconds from the response's origin and shown as seconds from now.

use super::messages::StartLine;
use super::value::{bool_of, bytes_of, formatted, seconds_of, size, text};
use super::{FetchSide, Side, World, out_of_reach, storage};
use crate::fetch::filters::default_list;
use crate::fetch::mode::FetchMode;
use crate::fetch::task::Verdict;
use semantics::rfc::Refusal;
use surface::tag::Tag;
use surface::vcl::{HttpObject, Var};
use vcl_run::host::Failure;
use vcl_run::value::{Scratch, Text, Value};

pub(super) fn read(world: &World<'_>, var: Var, scratch: &mut Scratch) -> Result<Value, Failure> {
    let Side::Fetch(FetchSide { task, .. }) = &world.side else { return Err(out_of_reach()) };
    let (beresp, verdict) = (&task.attempt.beresp, &task.attempt.verdict);
    let age = world.now - verdict.origin;
    Ok(match var {
        Var::Beresp => Value::Http(HttpObject::Beresp),
        Var::BerespAge => Value::Duration(age),
        Var::BerespBackend => Value::Backend(task.used_backend()),
        Var::BerespBackendIp => Value::Ip(task.route.address.map(|address| (address.ip(), address.port()))),
        Var::BerespBackendName => match &task.route.backend {
            Some(backend) => text(backend.name().as_bytes(), scratch),
            None => Value::Text(Text::UNSET),
        },
        Var::BerespDoEsi => Value::Bool(verdict.do_esi),
        Var::BerespDoGunzip => Value::Bool(verdict.do_gunzip),
        Var::BerespDoGzip => Value::Bool(verdict.do_gzip),
        Var::BerespDoStream => Value::Bool(verdict.do_stream),
        Var::BerespFilters => match &verdict.filters {
            Some(list) => text(list, scratch),
            None => text(&default_list(task), scratch),
        },
        Var::BerespGrace => Value::Duration(verdict.grace),
        Var::BerespKeep => Value::Duration(verdict.keep),
        Var::BerespProto => text(beresp.protocol(), scratch),
        Var::BerespReason => text(beresp.reason(), scratch),
        Var::BerespStatus => Value::Int(i64::from(beresp.status())),
        Var::BerespStorage => Value::Stevedore(task.attempt.storage),
        // In the old dialects this was the storage that VCL had requested; later it is the one the
        // response gets, in VCL syntax.
        Var::BerespStorageHint if world.vcl.is_legacy() => {
            text(storage::name(world, verdict.storage_hint).as_bytes(), scratch)
        }
        Var::BerespStorageHint => match task.attempt.storage.and_then(|storage| world.engine.storages.name(storage)) {
            Some(storage) => formatted(format_args!("storage.{}", storage.name), scratch),
            None => Value::Text(Text::UNSET),
        },
        Var::BerespTime => Value::Time(task.attempt.responded),
        Var::BerespTransitBuffer => size(task.transit_buffer()),
        Var::BerespTtl => {
            // A status that makes the response uncacheable gives it a ttl of -1, which reads as 0.
            // Compat: Varnish 7.1.
            let ttl = if world.vcl.is_legacy() { verdict.ttl } else { verdict.ttl.max(0.0) };
            let left = ttl - age;
            Value::Duration(if task.order.mode == FetchMode::Pass { left.max(0.0) } else { left })
        }
        Var::BerespUncacheable => Value::Bool(task.is_uncacheable()),
        Var::BerespWas304 => Value::Bool(verdict.was_304),
        _ => return Err(out_of_reach()),
    })
}

pub(super) fn write(
    world: &mut World<'_>,
    var: Var,
    value: Value,
    append: bool,
    scratch: &Scratch,
) -> Result<(), Failure> {
    match var {
        Var::BerespProto => {
            return world.set_start_line((HttpObject::Beresp, StartLine::Protocol), "beresp.proto", value, scratch);
        }
        // The old dialects accepted any value.
        Var::BerespReason if world.vcl.is_legacy() => {
            let reason = bytes_of(value, scratch);
            return world.set_start_line_to((HttpObject::Beresp, StartLine::Reason), "beresp.reason", reason);
        }
        Var::BerespReason => {
            return world.set_start_line((HttpObject::Beresp, StartLine::Reason), "beresp.reason", value, scratch);
        }
        Var::BerespStatus => return world.set_status(HttpObject::Beresp, "beresp.status", value),
        Var::BerespTtl | Var::BerespGrace | Var::BerespKeep => return set_lifetime(world, var, seconds_of(value)),
        Var::BerespUncacheable => return set_uncacheable(world, bool_of(value)),
        Var::Saintmode => return set_saint_mode(world, seconds_of(value)),
        _ => {}
    }
    let Side::Fetch(FetchSide { task, .. }) = &mut world.side else { return Err(out_of_reach()) };
    let verdict = &mut task.attempt.verdict;
    match var {
        Var::BerespBody => {
            if !append {
                task.attempt.synthetic.clear();
            }
            task.attempt.synthetic.extend_from_slice(bytes_of(value, scratch));
        }
        Var::BerespDoEsi => *filter_flag(verdict, "beresp.do_esi", |verdict| &mut verdict.do_esi)? = bool_of(value),
        Var::BerespDoGunzip => {
            *filter_flag(verdict, "beresp.do_gunzip", |verdict| &mut verdict.do_gunzip)? = bool_of(value);
        }
        Var::BerespDoGzip => *filter_flag(verdict, "beresp.do_gzip", |verdict| &mut verdict.do_gzip)? = bool_of(value),
        Var::BerespDoStream => verdict.do_stream = bool_of(value),
        Var::BerespFilters => verdict.filters = Some(bytes_of(value, scratch).to_vec()),
        Var::BerespStorage => {
            task.attempt.storage = match value {
                Value::Stevedore(storage) => storage,
                _ => None,
            };
            task.attempt.is_storage_chosen = true;
        }
        Var::BerespStorageHint => {
            let named = world.engine.storages.by_name(bytes_of(value, scratch));
            task.attempt.storage = named.or(task.attempt.storage);
            task.attempt.is_storage_chosen |= named.is_some();
            verdict.storage_hint = named.or(verdict.storage_hint);
        }
        Var::BerespTransitBuffer => {
            if let Value::Bytes(bytes) = value {
                verdict.transit_buffer = Some(u64::try_from(bytes).unwrap_or(0));
            }
        }
        _ => return Err(out_of_reach()),
    }
    Ok(())
}

/// The flag for `beresp.do_gzip` and similar variables.
///
/// # Errors
/// When the list of filters is already fixed.
fn filter_flag<'a>(
    verdict: &'a mut Verdict,
    name: &str,
    flag: fn(&mut Verdict) -> &mut bool,
) -> Result<&'a mut bool, Failure> {
    if verdict.filters.is_some() {
        return Err(Failure(format!("beresp.filters are already fixed, {name} is undefined")));
    }
    Ok(flag(verdict))
}

fn set_lifetime(world: &mut World<'_>, var: Var, seconds: f64) -> Result<(), Failure> {
    let Side::Fetch(FetchSide { task, .. }) = &mut world.side else { return Err(out_of_reach()) };
    let verdict = &mut task.attempt.verdict;
    let age = world.now - verdict.origin;
    match var {
        Var::BerespTtl => {
            verdict.ttl = (seconds + age).max(0.0);
            verdict.is_ttl_set = true;
            if seconds > 0.0 && verdict.refusal.is_some_and(Refusal::is_for_lack_of_lifetime) {
                verdict.refusal = None;
            }
            verdict.ttl_by.swap(0, 1);
            verdict.ttl_by[0] = world.noted.take();
        }
        Var::BerespGrace => verdict.grace = seconds.max(0.0),
        _ => verdict.keep = seconds.max(0.0),
    }
    log_lifetime(world);
    Ok(())
}

fn set_uncacheable(world: &mut World<'_>, value: bool) -> Result<(), Failure> {
    let Side::Fetch(FetchSide { task, .. }) = &mut world.side else { return Err(out_of_reach()) };
    if !value {
        // VCL may store a response that the policy refuses.
        task.attempt.verdict.is_vouched_for = true;
    }
    if task.life.uncacheable && !value {
        world.log.record(Tag::VCLError, b"Ignoring attempt to reset beresp.uncacheable");
    }
    if value && !task.life.uncacheable {
        task.life.uncacheable = true;
        task.life.uncacheable_by = world.noted.take();
    }
    log_lifetime(world);
    Ok(())
}

/// The record of a lifetime set by VCL.
fn log_lifetime(world: &mut World<'_>) {
    let Side::Fetch(FetchSide { task, .. }) = &world.side else { return };
    let Verdict { origin, ttl, grace, keep, .. } = task.attempt.verdict;
    let word = if task.is_uncacheable() { "uncacheable" } else { "cacheable" };
    world.log.record_fmt(Tag::TTL, format_args!("VCL {ttl:.0} {grace:.0} {keep:.0} {origin:.0} {word}"));
}

/// `return (pass(duration))`: the response is passed for that long.
pub(super) fn pass_for(world: &mut World<'_>, seconds: f64) {
    let Side::Fetch(FetchSide { task, .. }) = &mut world.side else { return };
    task.life.uncacheable = true;
    let verdict = &mut task.attempt.verdict;
    verdict.ttl = seconds.max(0.0);
    verdict.grace = 0.0;
    verdict.keep = 0.0;
    let origin = verdict.origin;
    // Compat: the value that VCL set, even if it is negative.
    world.log.record_fmt(Tag::TTL, format_args!("HFP {seconds:.0} 0 0 {origin:.0} uncacheable"));
}

/// `set beresp.saintmode`: the backend counts as sick for this request for that many seconds.
fn set_saint_mode(world: &mut World<'_>, seconds: f64) -> Result<(), Failure> {
    let Side::Fetch(FetchSide { task, .. }) = &world.side else { return Err(out_of_reach()) };
    if task.order.mode != FetchMode::Pass
        && seconds > 0.0
        && let Some(backend) = &task.route.backend
    {
        backend.troubles().add(&task.order.digest, world.now + seconds, world.now);
    }
    Ok(())
}
