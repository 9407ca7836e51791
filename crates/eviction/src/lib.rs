//! Eviction policies over numbered slots, and a replay of request logs under each of them.
//!
//! A policy handles slots, sizes and hashes, and is independent of stores and HTTP. Its state is a
//! few bytes for each slot, in one array ([`entry`]); nothing is allocated for an object. *A policy
//! is not called on a use*: the owner of the objects counts their uses anyway, and a policy
//! compares that count with the one it recorded when it last examined the object
//! ([`Objects::uses`]). So a hit writes nothing for the policy.
//!
//! *Invariants*: a victim is a slot that is occupied and free to evict; the sums of the queues are
//! those of their entries; a call of [`Policy::victim`] examines at most [`STEPS_MAX`] objects.
//! *Locks*: none; the owner has one around the policy.
//!
//! Reading order: `hash` → `entry` → `sieve` → `ghost` → `s3_fifo` → `sketch` → `tiny_lfu` → `any`;
//! then `replay`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod any;
mod entry;
mod ghost;
mod hash;
pub mod replay;
mod s3_fifo;
mod sieve;
mod sketch;
mod tiny_lfu;

pub use any::Queued;
pub use hash::mix;
pub use s3_fifo::S3Fifo;
pub use sieve::Sieve;
pub use surface::eviction::EvictionPolicy;
pub use tiny_lfu::TinyLfu;

/// Number of objects that one search for a victim examines.
pub const STEPS_MAX: usize = 64;

/// Number of parts of a cache that should be drawn to find the one that gives an object: where
/// parts are small, a few often contain only proven objects.
#[must_use]
pub fn parts_to_draw(objects: u64, parts: u64) -> u64 {
    if objects < parts * 16 { 8 } else { 2 }
}

/// The properties that a policy may query of the objects it was given.
pub trait Objects {
    /// A running count of the uses of an object; only differences matter, and it may wrap.
    fn uses(&self, slot: u32) -> u32;

    /// True if evicting the object now would free its memory: it is not being read or written.
    fn is_free(&self, slot: u32) -> bool;

    /// The hash of the object's key: every bit should depend on all of the key.
    fn hash(&self, slot: u32) -> u64;
}

/// An object as it enters or leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Its slot; numbers are small and used again.
    pub slot: u32,
    /// As [`Objects::hash`].
    pub hash: u64,
    /// Its size, or the part of it known so far.
    pub bytes: u64,
    /// As [`Objects::uses`].
    pub uses: u32,
}

/// Urgency with which a part of a cache should give an object: greater is more urgent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Pressure {
    /// It has more unproven objects than its share.
    pub is_beyond_share: bool,
    /// Their bytes; otherwise, the bytes of all objects.
    pub bytes: u64,
}

/// A policy that chooses the object to evict.
pub trait Policy {
    /// An object has come into an empty slot.
    fn inserted(&mut self, arrival: Arrival);

    /// The size of an object has become known more exactly.
    fn resized(&mut self, slot: u32, bytes: u64);

    /// An object leaves, whatever the reason. A slot without an object is ignored.
    fn removed(&mut self, slot: u32, objects: &impl Objects);

    /// The object to evict next; it stays until it is [`Policy::removed`]. `None` when there is
    /// none, or when the first [`STEPS_MAX`] were all in use or used lately: the next call
    /// continues from there.
    fn victim(&mut self, objects: &impl Objects) -> Option<u32>;

    /// Urgency with which this part of a cache should give an object, compared with others under
    /// the same policy.
    fn pressure(&self) -> Pressure;

    /// Memory that the policy has allocated.
    fn memory_bytes(&self) -> usize;
}

#[cfg(test)]
mod tests;
