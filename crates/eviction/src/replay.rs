//! Replay of a sequence of requests in a simulated cache, under any policy and at any size.
//!
//! A [`Simulation`] holds keys and sizes but no bytes, and drives the same policies that the cache
//! uses; LRU is an exact list here, as in Varnish and nginx. Nothing expires. [`optimum`] computes
//! the best result that knowledge of the future allows.

mod lru;
pub mod optimum;
mod simulation;

pub use simulation::Simulation;

/// A request, as a cache sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The hash of the requested key; see [`crate::mix`].
    pub key: u64,
    /// The size of the response.
    pub bytes: u64,
}

/// Results of requests.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ReplayCounts {
    /// Number of requests.
    pub requests: u64,
    /// Number of hits.
    pub hits: u64,
    /// The bytes of all responses; no more than fit.
    pub bytes: u64,
    /// The bytes of hits.
    pub hit_bytes: u64,
}

impl ReplayCounts {
    pub(crate) fn count(&mut self, request: Request, is_hit: bool) {
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(request.bytes);
        if is_hit {
            self.hits += 1;
            self.hit_bytes = self.hit_bytes.saturating_add(request.bytes);
        }
    }

    /// Hits as a share of requests; 0 without any.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        self.hits as f64 / self.requests.max(1) as f64
    }

    /// Bytes of hits as a share of all bytes; 0 without any.
    #[must_use]
    pub fn byte_hit_ratio(&self) -> f64 {
        self.hit_bytes as f64 / self.bytes.max(1) as f64
    }

    /// The counts since an earlier state.
    #[must_use]
    pub fn since(&self, earlier: &ReplayCounts) -> ReplayCounts {
        ReplayCounts {
            requests: self.requests - earlier.requests,
            hits: self.hits - earlier.hits,
            bytes: self.bytes - earlier.bytes,
            hit_bytes: self.hit_bytes - earlier.hit_bytes,
        }
    }
}
