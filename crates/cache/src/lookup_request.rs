//! Input of a lookup: the request and its lookup conditions.
//!
//! Plain data, shared by the files that answer it. Next files: `lookup_conditions.rs`, `lookup.rs`.

use message::Message;
use semantics::vary::Sameness;
use std::cell::Cell;

/// A query of the index.
#[derive(Clone, Copy, Debug)]
pub struct LookupRequest<'a> {
    /// Digest of the request.
    pub key: &'a [u8; 32],
    /// The request's time, seconds since 1970.
    pub now: f64,
    /// The request, for Vary and bans.
    pub request: &'a Message,
    /// `req.ttl`, seconds.
    pub ttl_cap: Option<f64>,
    /// `req.grace`, seconds.
    pub grace_cap: Option<f64>,
    /// `req.hash_always_miss`.
    pub always_miss: bool,
    /// `req.hash_ignore_busy`.
    pub ignore_busy: bool,
    /// `req.hash_ignore_vary`.
    pub ignore_vary: bool,
    /// `http_gzip_support`.
    pub gzip_support: bool,
    /// A stored part (206) may answer the request, and its fetch may ask for a part: RFC 9111
    /// applies, and ranges are served.
    pub parts: bool,
    /// The criterion by which a request is for the same variant.
    pub sameness: Sameness,
    /// The lookup conditions of RFC 9111; `None` under the other policies.
    pub conditions: Option<LookupConditions>,
    /// `vary_notice`: this many mismatching variants are worth a record; 0 = never.
    pub vary_notice: u64,
    /// Receives the time, in seconds, since the found object was last used. If set, uses are
    /// recorded exactly instead of at `lru_interval`.
    pub unused_seconds: Option<&'a Cell<f64>>,
}

/// The lookup conditions of one request.
#[derive(Clone, Copy, Debug, Default)]
pub struct LookupConditions {
    /// Maximum time, in seconds, for which a response may have been stale: `max-stale` of the
    /// request.
    pub max_stale: f64,
    /// Minimum time, in seconds, for which a response must still be fresh: `min-fresh` of the
    /// request.
    pub min_fresh: f64,
    /// The object that was fetched or validated while the request waited
    /// ([`crate::Waiter::granted`]): it can be used as it is. 0 = none.
    pub granted: u64,
    /// A response in the language that the client prefers is also used if it was made for another
    /// `Accept-Language`.
    pub selects_language: bool,
}
