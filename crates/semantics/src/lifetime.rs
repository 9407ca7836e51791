//! Lifetimes: the time for which a response may be used.
//!
//! ```text
//!        now−Age        receipt
//! ────────┼───────────────┼──────────────┼───────────┼──────────┼───→ time
//!       origin           now        origin+ttl    +grace      +keep
//!         └──────────── fresh ───────────┴── stale ──┴ revalidate ┘
//! ```
//!
//! Under the policy `varnish` everything is as observed of Varnish 7.1.1: a status that is
//! cacheable by default gets `default_ttl` when the response gives no lifetime, directives like
//! `no-store` count only in VCL, and an unreadable number is 0. Source: RFC 9111 §4.2, RFC 5861 §3;
//! interoperability tests in `tests/lifetime.rs`.

use crate::date::{self, DateForms};
use crate::{HttpPolicy, list};
use message::Message;
use std::io::Write;

/// Effect of a purge on the variants of an object.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Purge {
    /// Removes them.
    Hard,
    /// Sets new lifetimes, counted from now. Usually shorter ones, but VCL may ask for longer ones
    /// too.
    Soft {
        /// Seconds of freshness left.
        ttl: f64,
        /// Seconds; negative = unchanged.
        grace: f64,
        /// Seconds; negative = unchanged.
        keep: f64,
    },
}

/// Values for responses without explicit lifetime: the parameters `default_ttl`, `default_grace`,
/// `default_keep` and `clock_skew`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LifetimeDefaults {
    /// `default_ttl`, seconds.
    pub ttl: f64,
    /// `default_grace`, seconds.
    pub grace: f64,
    /// `default_keep`, seconds.
    pub keep: f64,
    /// `clock_skew`, seconds: greatest difference between Date and the local clock that is ignored.
    pub clock_skew: f64,
    /// The accepted forms of dates.
    pub dates: DateForms,
}

/// Time for which a response may be used, and the values it was derived from. Times are seconds
/// since 1970.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Lifetime {
    /// Time at which the response was made: the time of reception minus `Age`.
    pub origin: f64,
    /// Seconds from `origin` for which the response is fresh; negative when it may not be stored.
    pub ttl: f64,
    /// Seconds after the TTL for which it may be served stale.
    pub grace: f64,
    /// Seconds after grace for which it may be revalidated.
    pub keep: f64,
    /// The `Age` header, 0 if absent.
    pub age_seconds: f64,
    /// The `Date` header, 0 if absent or unreadable.
    pub date: f64,
    /// The `Expires` header, 0 if absent or unreadable.
    pub expires: f64,
    /// The value of `s-maxage` or `max-age` if it was used, else 0.
    pub max_age: u64,
}

/// True if the old dialects consider a response with this status cacheable: `beresp.cacheable` of
/// 2.1, `obj.cacheable` of 2.0 and 1.x, and the statuses that get a TTL in 3.0 (which adds 307).
/// Source: RFC 2616 §13.4.
#[must_use]
pub fn is_cacheable_of_old(status: u16) -> bool {
    matches!(status, 200 | 203 | 300 | 301 | 302 | 404 | 410)
}

/// Conditions under which a status may be stored if the response has no explicit lifetime.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cacheable {
    /// For `default_ttl`.
    ByDefault,
    /// Only with an explicit lifetime.
    WhenExplicit,
    Never,
}

fn cacheable(status: u16) -> Cacheable {
    match status {
        200 | 203 | 204 | 300 | 301 | 304 | 404 | 410 | 414 => Cacheable::ByDefault,
        302 | 307 => Cacheable::WhenExplicit,
        _ => Cacheable::Never,
    }
}

/// The lifetime of a storable response received at `now`. Several Cache-Control headers count as
/// one list.
#[must_use]
pub fn lifetime(
    policy: HttpPolicy,
    status: u16,
    response: &Message,
    now: f64,
    defaults: &LifetimeDefaults,
) -> Lifetime {
    match policy {
        HttpPolicy::Varnish | HttpPolicy::Rfc => varnish(status, response, now, defaults),
        HttpPolicy::Varnish3 => of_old(status == 307 || is_cacheable_of_old(status), response, now, defaults),
        HttpPolicy::Varnish2 => of_old(true, response, now, defaults),
    }
}

fn varnish(status: u16, response: &Message, now: f64, defaults: &LifetimeDefaults) -> Lifetime {
    let age_seconds = age(response);
    let mut lifetime = Lifetime {
        origin: now - age_seconds,
        ttl: defaults.ttl,
        grace: defaults.grace,
        keep: defaults.keep,
        age_seconds,
        date: header_date(response, "Date", defaults.dates),
        expires: header_date(response, "Expires", defaults.dates),
        max_age: 0,
    };
    match cacheable(status) {
        Cacheable::Never => lifetime.ttl = -1.0,
        by_default => {
            if by_default == Cacheable::WhenExplicit {
                lifetime.ttl = -1.0;
            }
            if let Some(seconds) = max_age(response) {
                lifetime.max_age = seconds;
                lifetime.ttl = seconds as f64;
            } else if lifetime.expires != 0.0 {
                lifetime.ttl = from_expires(&lifetime, now, defaults.clock_skew);
            }
        }
    }
    if lifetime.ttl >= 0.0
        && let Some(Some(value)) = directive(response, "stale-while-revalidate")
    {
        lifetime.grace = delta_seconds(value) as f64;
    }
    lifetime
}

/// The rules of Varnish 3.0 and before: lifetimes count from reception unless `max-age` says
/// otherwise, a response without one gets `default_ttl` if its status is cacheable, and
/// stale-while-revalidate was unknown.
fn of_old(has_ttl: bool, response: &Message, now: f64, defaults: &LifetimeDefaults) -> Lifetime {
    let age_seconds = age(response);
    let mut lifetime = Lifetime {
        origin: now - age_seconds,
        ttl: defaults.ttl + age_seconds,
        grace: defaults.grace,
        keep: defaults.keep,
        age_seconds,
        date: header_date(response, "Date", defaults.dates),
        expires: header_date(response, "Expires", defaults.dates),
        max_age: 0,
    };
    if !has_ttl {
        lifetime.ttl = -1.0;
    } else if let Some(seconds) = max_age(response) {
        lifetime.max_age = seconds;
        lifetime.ttl = seconds as f64;
    } else if lifetime.expires != 0.0 {
        lifetime.ttl = from_expires(&lifetime, now, defaults.clock_skew);
        if lifetime.ttl > 0.0 {
            lifetime.ttl += age_seconds;
        }
    }
    lifetime
}

/// The lifetime of a passed response: only its origin counts, and no `TTL` record is written.
#[must_use]
pub fn lifetime_of_pass(response: &Message, now: f64) -> Lifetime {
    let age_seconds = age(response);
    Lifetime { origin: now - age_seconds, ttl: -1.0, age_seconds, ..Lifetime::default() }
}

/// Expires counts from the local clock if the origin's agrees with it, else from the origin's own
/// Date.
fn from_expires(lifetime: &Lifetime, now: f64, clock_skew: f64) -> f64 {
    let Lifetime { date, expires, .. } = *lifetime;
    if expires < date {
        0.0
    } else if date == 0.0 || (date - now).abs() < clock_skew {
        (expires - now).max(0.0)
    } else {
        expires - date
    }
}

/// `s-maxage`, else `max-age`. The first one present decides, even without a value: then there is
/// none.
fn max_age(response: &Message) -> Option<u64> {
    let value = directive(response, "s-maxage").or_else(|| directive(response, "max-age"))?;
    value.map(delta_seconds)
}

/// The value of a Cache-Control directive; the inner `None` if it has no value.
fn directive<'a>(response: &'a Message, name: &str) -> Option<Option<&'a [u8]>> {
    response
        .headers()
        .filter(|header| header.is("Cache-Control"))
        .find_map(|header| list::directive(header.value(), name))
}

fn age(response: &Message) -> f64 {
    response.get("Age").map_or(0, delta_seconds) as f64
}

fn header_date(response: &Message, name: &str, forms: DateForms) -> f64 {
    response.get(name).and_then(|value| date::parse(value, forms)).unwrap_or(0.0)
}

/// A number of seconds: digits, optionally with a fraction, which is dropped. An unreadable number
/// is 0, one that is too large 2^32 − 1. Compat: observed; a `+` is accepted, and so is anything
/// after a comma or blank.
fn delta_seconds(value: &[u8]) -> u64 {
    let value = value.strip_prefix(b"+").unwrap_or(value);
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, mut rest) = value.split_at(digits);
    if digits > 0
        && let Some(fraction) = rest.strip_prefix(b".")
    {
        rest = &fraction[fraction.iter().take_while(|byte| byte.is_ascii_digit()).count()..];
    }
    if !matches!(rest, [] | [b',' | b' ' | b'\t', ..]) {
        return 0;
    }
    number.iter().fold(0u64, |sum, digit| (sum * 10 + u64::from(digit - b'0')).min(u64::from(u32::MAX)))
}

/// Appends the payload of the record `TTL RFC …`: ttl, grace, keep, now, origin, date, expires in
/// whole seconds, the max-age, and the word for cacheable or not.
pub fn log_ttl_rfc(lifetime: &Lifetime, now: f64, cacheable: bool, out: &mut Vec<u8>) {
    let Lifetime { origin, ttl, grace, keep, date, expires, max_age, .. } = *lifetime;
    out.extend_from_slice(b"RFC ");
    for seconds in [ttl, grace, keep, now, origin, date, expires] {
        put_whole(seconds, out);
        out.push(b' ');
    }
    out.extend_from_slice(itoa::Buffer::new().format(max_age).as_bytes());
    out.extend_from_slice(if cacheable { b" cacheable" } else { b" uncacheable" });
}

/// Appends a number as `%.0f` writes it. There are seven in the record of each fetch, and
/// formatting a float is slow.
fn put_whole(value: f64, out: &mut Vec<u8>) {
    let rounded = value.round_ties_even();
    if rounded.abs() < 1e15 && (rounded != 0.0 || value.is_sign_positive()) {
        return out.extend_from_slice(itoa::Buffer::new().format(rounded as i64).as_bytes());
    }
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{value:.0}");
}

#[cfg(test)]
mod tests {
    use super::put_whole;

    #[test]
    fn whole_seconds_are_written_as_they_are_formatted() {
        let sums = (0..4000).map(|number| f64::from(number - 2000) / 8.0);
        let large = [1e15, -1e15, 1e300, 999_999_999_999_999.5, 4_294_967_295.5, 1_700_000_000.25];
        for value in sums.chain(large).chain([f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, -0.5, 0.5, 1.5]) {
            let mut out = Vec::new();
            put_whole(value, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), format!("{value:.0}"));
        }
    }
}
