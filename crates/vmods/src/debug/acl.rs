//! debug: ACLs as values, and the addresses of a range that they match.

use crate::arguments::Arguments;
use crate::call::done;
use crate::context::VmodContext;
use sha2::{Digest, Sha256};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;
use surface::tag::Tag;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// The most addresses that a sweep checks, over all rounds: VCL blocks its event loop during the
/// sweep.
const SWEEP_MAX: u128 = 10_000_000;
/// Addresses per record.
const ADDRESSES_A_LINE: usize = 64;

fn acl_of(arguments: Arguments<'_>) -> Result<u32, Failure> {
    match arguments.value(0) {
        Value::Acl(Some(acl)) => Ok(acl),
        _ => Err(Failure("Cannot match a null ACL".to_owned())),
    }
}

/// True if an ACL matches; writes the record if the ACL logs.
fn is_match(context: &mut dyn VmodContext, acl: u32, address: IpAddr) -> bool {
    let program = context.program();
    let (Some(index), Some(definition)) = (program.acl(acl), program.program().acls.get(acl as usize)) else {
        return false;
    };
    let found = index.find(address);
    if definition.log {
        let entry = found.entry.and_then(|entry| definition.entries.get(entry as usize));
        let text = match (entry, found.matched) {
            (Some(entry), true) => format!("MATCH {} {}", definition.name, entry.text),
            (Some(entry), false) => format!("NEG_MATCH {} {}", definition.name, entry.text),
            (None, _) => format!("NO_MATCH {}", definition.name),
        };
        context.log(Tag::VCLAcl, text.as_bytes());
    }
    found.matched
}

/// `debug.match_acl()`
pub(crate) fn matches(context: &mut dyn VmodContext, arguments: Arguments<'_>) -> Result<Called, Failure> {
    let acl = acl_of(arguments)?;
    let Some((address, _)) = arguments.ip(1) else {
        return Err(Failure("Cannot match a null IP address".to_owned()));
    };
    done(Value::Bool(is_match(context, acl, address)))
}

/// A range of addresses, both ends included.
struct Sweep {
    first: u128,
    last: u128,
    step: u128,
    is_v4: bool,
}

impl Sweep {
    fn of(arguments: Arguments<'_>, rounds: i64) -> Result<Sweep, Failure> {
        let ends = arguments.ip(1).zip(arguments.ip(2)).map(|((first, _), (last, _))| (first, last));
        let (first, last, is_v4): (u128, u128, bool) = match ends {
            Some((IpAddr::V4(first), IpAddr::V4(last))) => (u32::from(first).into(), u32::from(last).into(), true),
            Some((IpAddr::V6(first), IpAddr::V6(last))) => (first.into(), last.into(), false),
            Some(_) => return Err(Failure("IPs have different families".to_owned())),
            None => return Err(Failure("Cannot match a null IP address".to_owned())),
        };
        let family = if is_v4 { "ipv4" } else { "ipv6" };
        if last < first {
            return Err(Failure(format!("Sweep: {family}.end < {family}.start")));
        }
        let step = u128::try_from(arguments.int(3)).unwrap_or(0);
        let rounds = u128::try_from(rounds).unwrap_or(0);
        if step == 0 || rounds == 0 || ((last - first) / step).saturating_add(1).saturating_mul(rounds) > SWEEP_MAX {
            return Err(Failure(format!("Sweep: step and rounds must make 1 to {SWEEP_MAX} addresses")));
        }
        Ok(Sweep { first, last, step, is_v4 })
    }

    fn addresses(&self) -> impl Iterator<Item = IpAddr> + use<> {
        let (first, step, is_v4) = (self.first, self.step, self.is_v4);
        (0..=(self.last - self.first) / self.step).map(move |number| match is_v4 {
            true => Ipv4Addr::from((first + number * step) as u32).into(),
            false => Ipv6Addr::from(first + number * step).into(),
        })
    }
}

/// `debug.sweep_acl()`
pub(crate) fn sweep(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    let acl = acl_of(arguments)?;
    let sweep = Sweep::of(arguments, 1)?;
    let mut digest = Sha256::new();
    let mut addresses = sweep.addresses().peekable();
    while let Some(first) = addresses.peek() {
        let mut line = format!("Sweep: {:<15}", first.to_string());
        for address in addresses.by_ref().take(ADDRESSES_A_LINE) {
            line.push(if is_match(context, acl, address) { 'X' } else { '-' });
        }
        context.log(Tag::Debug, line.as_bytes());
        digest.update(line.as_bytes());
    }
    done(Value::Blob(scratch.put(&digest.finalize())))
}

/// `debug.time_acl()`
pub(crate) fn time(context: &mut dyn VmodContext, arguments: Arguments<'_>) -> Result<Called, Failure> {
    let acl = acl_of(arguments)?;
    let rounds = arguments.int(4);
    let sweep = Sweep::of(arguments, rounds)?;
    let start = Instant::now();
    let mut count = 0u32;
    for _ in 0..rounds {
        for address in sweep.addresses() {
            is_match(context, acl, address);
            count = count.saturating_add(1);
        }
    }
    let nanoseconds = start.elapsed().as_secs_f64() * 1e9 / f64::from(count.max(1));
    context.log(Tag::Debug, format!("Timed ACL: {nanoseconds:.1} ns/lookup").as_bytes());
    done(Value::Duration(nanoseconds))
}
