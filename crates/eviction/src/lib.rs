//! Which object goes when there is no room: policies over numbered slots, and what each would have done with a log.
//!
//! A policy knows slots, sizes and hashes, nothing of stores or HTTP. Its state is a few bytes for each slot, in one
//! array ([`entry`]); nothing is allocated for an object. *Nothing is told of a use*: whoever holds the objects counts
//! their uses anyway, and a policy compares that count with the one it noted when it last looked ([`Objects::uses`]). So
//! a hit writes nothing for a policy's sake.
//!
//! *Invariants*: a victim is a slot that is held and free; the sums of the queues are those of their entries; a call of
//! [`Policy::victim`] looks at no more than [`STEPS_MAX`] objects. *Locks*: none; the owner has one around the policy.
//!
//! Reading order: `hash` → `entry` → `sieve` → `ghost` → `s3_fifo` → `sketch` → `tiny_lfu` → `any`; then `replay`.

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

/// How many objects one search for a victim looks at.
pub const STEPS_MAX: usize = 64;

/// How many parts of a cache should be drawn to find the one that gives an object: where parts are small, one of a few has
/// often nothing but what is proven.
#[must_use]
pub fn parts_to_draw(objects: u64, parts: u64) -> u64 {
    if objects < parts * 16 { 8 } else { 2 }
}

/// What a policy may ask about the objects that it was told of.
pub trait Objects {
    /// A running count of the uses of an object; only differences matter, and it may wrap.
    fn uses(&self, slot: u32) -> u32;

    /// Whether evicting the object now would free its memory: nobody reads or writes it.
    fn is_free(&self, slot: u32) -> bool;

    /// The hash of the object's key: every bit should depend on all of the key.
    fn hash(&self, slot: u32) -> u64;
}

/// An object as it enters or leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Where it lies; numbers are small and used again.
    pub slot: u32,
    /// As [`Objects::hash`].
    pub hash: u64,
    /// Its size, or what is known of it so far.
    pub bytes: u64,
    /// As [`Objects::uses`].
    pub uses: u32,
}

/// How urgently a part of a cache should give an object: the greater, the more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Pressure {
    /// It has more that did not prove itself than is its share.
    pub is_beyond_share: bool,
    /// How much it has of that; otherwise, how much of everything.
    pub bytes: u64,
}

/// Chooses which object goes.
pub trait Policy {
    /// An object has come into an empty slot.
    fn inserted(&mut self, arrival: Arrival);

    /// The size of an object is known better.
    fn resized(&mut self, slot: u32, bytes: u64);

    /// An object leaves, whatever the reason. A slot without an object is ignored.
    fn removed(&mut self, slot: u32, objects: &impl Objects);

    /// The object to evict next; it stays until it is [`Policy::removed`]. `None` when there is none, or when the first
    /// [`STEPS_MAX`] were all in use or used lately: calling again goes on from there.
    fn victim(&mut self, objects: &impl Objects) -> Option<u32>;

    /// How urgently this part of a cache should give an object, beside others under the same policy.
    fn pressure(&self) -> Pressure;

    /// Memory that the policy has allocated.
    fn memory_bytes(&self) -> usize;
}

#[cfg(test)]
mod tests;
