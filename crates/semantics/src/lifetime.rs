//! How long a response may be used.

use crate::HttpPolicy;
use message::Message;

/// What applies where the response says nothing: the parameters `default_ttl`, `default_grace`, `default_keep`, in
/// seconds, and `clock_skew`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LifetimeDefaults {
    /// `default_ttl`, seconds.
    pub ttl: f64,
    /// `default_grace`, seconds.
    pub grace: f64,
    /// `default_keep`, seconds.
    pub keep: f64,
    /// `clock_skew`, seconds.
    pub clock_skew: f64,
}

/// How long a response may be used, and what that was derived from. Times are seconds since 1970.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Lifetime {
    /// When the response was made: reception less `Age`.
    pub origin: f64,
    /// Seconds from `origin` for which it is fresh; negative when it may not be stored.
    pub ttl: f64,
    /// Seconds after that for which it may be served stale.
    pub grace: f64,
    /// Seconds after that for which it may be revalidated.
    pub keep: f64,
    /// The `Age` header, 0 without one.
    pub age_seconds: f64,
    /// The `Date` header, 0 without one or when unreadable.
    pub date: f64,
    /// The `Expires` header, 0 without one or when unreadable.
    pub expires: f64,
    /// `s-maxage` or `max-age` as far as it was used, else 0.
    pub max_age: u64,
}

/// The lifetime of a response received at `now` that may be stored.
#[must_use]
pub fn lifetime(
    _policy: HttpPolicy,
    _status: u16,
    _response: &Message,
    now: f64,
    _defaults: &LifetimeDefaults,
) -> Lifetime {
    Lifetime { origin: now, ..Lifetime::default() }
}

/// The lifetime of a response that is passed: only its origin counts, and no `TTL` record is written.
#[must_use]
pub fn lifetime_of_pass(_response: &Message, now: f64) -> Lifetime {
    Lifetime { origin: now, ttl: -1.0, ..Lifetime::default() }
}

/// Appends the payload of the record `TTL RFC …`.
pub fn log_ttl_rfc(_lifetime: &Lifetime, _now: f64, _cacheable: bool, _out: &mut Vec<u8>) {}
