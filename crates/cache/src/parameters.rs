//! Parameter values that the cache reads. Each is an atomic, so that a change needs no lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use surface::parameter::{Parameters, debug};
use surface::tag::Tag;

/// A number of seconds that can be changed.
pub(crate) struct Seconds(AtomicU64);

impl Seconds {
    fn new(seconds: f64) -> Seconds {
        Seconds(AtomicU64::new(seconds.to_bits()))
    }

    pub(crate) fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }

    fn set(&self, seconds: f64) {
        self.0.store(seconds.to_bits(), Relaxed);
    }
}

pub(crate) struct CacheParameters {
    pub(crate) rush_exponent: AtomicU64,
    pub(crate) lru_interval: Seconds,
    pub(crate) ban_dups: AtomicBool,
    pub(crate) ban_any_variant: AtomicU64,
    pub(crate) ban_cutoff: AtomicU64,
    pub(crate) lurker_age: Seconds,
    pub(crate) lurker_batch: AtomicU64,
    pub(crate) lurker_sleep: Seconds,
    pub(crate) lurker_holdoff: Seconds,
    pub(crate) debug_lurker: AtomicBool,
    /// Objects that leave memory are moved to a file, if there is one.
    pub(crate) storage_demote: AtomicBool,
    /// `vsl_mask` lets `ExpKill` records through.
    pub(crate) logs_expiry: AtomicBool,
}

impl Default for CacheParameters {
    fn default() -> Self {
        let parameters = CacheParameters {
            rush_exponent: AtomicU64::new(0),
            lru_interval: Seconds::new(0.0),
            ban_dups: AtomicBool::new(false),
            ban_any_variant: AtomicU64::new(u64::MAX),
            ban_cutoff: AtomicU64::new(0),
            lurker_age: Seconds::new(0.0),
            lurker_batch: AtomicU64::new(0),
            lurker_sleep: Seconds::new(0.0),
            lurker_holdoff: Seconds::new(0.0),
            debug_lurker: AtomicBool::new(false),
            storage_demote: AtomicBool::new(false),
            logs_expiry: AtomicBool::new(false),
        };
        parameters.configure(&Parameters::default());
        parameters
    }
}

impl CacheParameters {
    pub(crate) fn configure(&self, parameters: &Parameters) {
        self.rush_exponent.store(parameters.rush_exponent.max(1), Relaxed);
        self.lru_interval.set(parameters.lru_interval);
        self.ban_dups.store(parameters.ban_dups, Relaxed);
        self.ban_any_variant.store(parameters.ban_any_variant, Relaxed);
        self.ban_cutoff.store(parameters.ban_cutoff, Relaxed);
        self.lurker_age.set(parameters.ban_lurker_age);
        self.lurker_batch.store(parameters.ban_lurker_batch.max(1), Relaxed);
        self.lurker_sleep.set(parameters.ban_lurker_sleep);
        self.lurker_holdoff.set(parameters.ban_lurker_holdoff);
        self.debug_lurker.store(parameters.debug & debug::LURKER != 0, Relaxed);
        self.storage_demote.store(parameters.storage_demote && parameters.storage_placement == "tiers", Relaxed);
        let tag = Tag::ExpKill as usize;
        self.logs_expiry.store(parameters.vsl_mask[tag >> 3] & 0x80 >> (tag & 7) == 0, Relaxed);
    }
}
