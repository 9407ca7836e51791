//! Lookup.
use crate::Cache;
use message::Message;
use shm::counters::MainCounters;
use std::sync::Arc;
use store::Object;
use surface::tag::Tag;

/// One question to the index.
pub struct LookupRequest<'a> {
    /// Digest of the request.
    pub key: &'a [u8; 32],
    /// The request's time, seconds since 1970.
    pub now: f64,
    /// The request, for Vary and bans.
    pub request: &'a Message,
    /// `req.ttl`.
    pub ttl_cap: Option<f64>,
    /// `req.grace`.
    pub grace_cap: Option<f64>,
    /// `req.hash_always_miss`.
    pub always_miss: bool,
    /// `req.hash_ignore_busy`.
    pub ignore_busy: bool,
    /// `req.hash_ignore_vary`.
    pub ignore_vary: bool,
    /// `http_gzip_support`.
    pub gzip_support: bool,
    /// `vary_notice`; 0 = never.
    pub vary_notice: u64,
}

/// The answer.
pub enum Lookup {
    /// Fresh. Its hits were counted up.
    Hit(Arc<Object>),
    /// Expired, within grace.
    Grace {
        /// The stale object; its hits were counted up.
        object: Arc<Object>,
        /// Given to the one request that must start the background fetch.
        fetch: Option<Busy>,
    },
    /// A hit-for-pass marker.
    HitForPass(Arc<Object>),
    /// A hit-for-miss marker: fetch, without waiting for others.
    HitForMiss {
        /// The marker.
        marker: Arc<Object>,
        /// To publish the response under.
        busy: Busy,
    },
    /// Nothing usable: fetch.
    Miss {
        /// To publish the response under.
        busy: Busy,
        /// An expired object, for a conditional request.
        stale: Option<Arc<Object>>,
    },
    /// Somebody fetches it already.
    Wait(Waiter),
}

/// How to purge.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Purge {
    /// Remove.
    Hard,
    /// Shorten lives.
    Soft {
        /// Seconds of freshness left.
        ttl: f64,
        /// Seconds; negative = unchanged.
        grace: f64,
        /// Seconds; negative = unchanged.
        keep: f64,
    },
}

/// The right to publish a response under a key; others wait meanwhile. Dropped without `publish` = the fetch failed:
/// waiters are woken. Send.
pub struct Busy(());

impl Busy {
    /// Puts the object (streaming or complete) into the index and wakes waiters. The object's key must be this one's.
    pub fn publish(&self, _object: &Arc<Object>) {
        todo!()
    }
    /// Whether requests wait for this.
    #[must_use]
    pub fn has_waiters(&self) -> bool {
        todo!()
    }
    /// What the response is expected to vary on: requests that do not match it need not wait.
    pub fn set_vary(&self, _vary: &[u8]) {
        todo!()
    }
}

/// A place on a waiting list. Dropping it is safe.
pub struct Waiter(());

#[allow(clippy::unused_async)]
impl Waiter {
    /// Returns when it is worth looking up again. Keep the waiter until that lookup is done.
    pub async fn wait(&self) {
        todo!()
    }
}

impl Cache {
    /// Finds what to do with a request. Counts `cache_hitpass`, `cache_hitmiss`, `busy_sleep` and the ban counters; the
    /// records `Hit`, `HitPass` and `HitMiss` are the caller's, `log` gets `ExpBan` and `Notice`.
    pub fn lookup(
        &self,
        _request: &LookupRequest<'_>,
        _counters: &MainCounters,
        _log: &mut dyn FnMut(Tag, &[u8]),
    ) -> Lookup {
        todo!()
    }
}
