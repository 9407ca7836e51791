//! The policies that keep queues, as one type: one of them is chosen at run time, by name.

use crate::{Arrival, EvictionPolicy, Objects, Policy, Pressure, S3Fifo, Sieve, TinyLfu};

/// A policy that keeps queues.
#[derive(Clone, Debug)]
pub enum Queued {
    /// See [`S3Fifo`].
    S3Fifo(S3Fifo),
    /// See [`Sieve`].
    Sieve(Sieve),
    /// See [`TinyLfu`].
    TinyLfu(Box<TinyLfu>),
}

impl Queued {
    /// An empty policy; `None` for LRU, which keeps no queue: the times of last use suffice.
    #[must_use]
    pub fn new(policy: EvictionPolicy) -> Option<Queued> {
        match policy {
            EvictionPolicy::Lru => None,
            EvictionPolicy::S3Fifo => Some(Queued::S3Fifo(S3Fifo::default())),
            EvictionPolicy::Sieve => Some(Queued::Sieve(Sieve::default())),
            EvictionPolicy::TinyLfu => Some(Queued::TinyLfu(Box::default())),
        }
    }
}

impl Policy for Queued {
    fn inserted(&mut self, arrival: Arrival) {
        match self {
            Queued::S3Fifo(policy) => policy.inserted(arrival),
            Queued::Sieve(policy) => policy.inserted(arrival),
            Queued::TinyLfu(policy) => policy.inserted(arrival),
        }
    }

    fn resized(&mut self, slot: u32, bytes: u64) {
        match self {
            Queued::S3Fifo(policy) => policy.resized(slot, bytes),
            Queued::Sieve(policy) => policy.resized(slot, bytes),
            Queued::TinyLfu(policy) => policy.resized(slot, bytes),
        }
    }

    fn removed(&mut self, slot: u32, objects: &impl Objects) {
        match self {
            Queued::S3Fifo(policy) => policy.removed(slot, objects),
            Queued::Sieve(policy) => policy.removed(slot, objects),
            Queued::TinyLfu(policy) => policy.removed(slot, objects),
        }
    }

    fn victim(&mut self, objects: &impl Objects) -> Option<u32> {
        match self {
            Queued::S3Fifo(policy) => policy.victim(objects),
            Queued::Sieve(policy) => policy.victim(objects),
            Queued::TinyLfu(policy) => policy.victim(objects),
        }
    }

    fn pressure(&self) -> Pressure {
        match self {
            Queued::S3Fifo(policy) => policy.pressure(),
            Queued::Sieve(policy) => policy.pressure(),
            Queued::TinyLfu(policy) => policy.pressure(),
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Queued::S3Fifo(policy) => policy.memory_bytes(),
            Queued::Sieve(policy) => policy.memory_bytes(),
            Queued::TinyLfu(policy) => policy.memory_bytes(),
        }
    }
}
