//! The arena that holds cached objects, and the journal that holds the bans. Both survive the
//! worker.
//!
//! An object is stored in a memory file that the manager holds open, and is addressed by offset,
//! never by pointer. It is committed when its commit bits are set; everything else in the file is
//! discarded by the scan that [`Store::open`] makes after a restart, and a damaged object when it
//! is first used ([`Object::check`]). Each storage has an arena of its own. One limit bounds the
//! arena, including Transient objects, and the private memory that the index charges
//! ([`Store::charge`]). This crate does not depend on HTTP, on keys beyond their bytes, or on the
//! choice of objects to evict: it calls the evictor.
//!
//! *Invariants*: a kill at any instant leaves a heap that can be walked; a removed object never
//! comes back; bytes that a reader may ask for never change while it reads.
//!
//! Reading order: `memory` (bytes and atomics) → `layout` (meaning of the words) → `heap`
//! (allocator) → `unsized_bodies`, `shares`, `arena` (limit, eviction) → `place`, `chain` (blocks
//! of a record) → `readership`, `streaming`, `object` → `writer`, `annex`, `reader` (bodies) →
//! `recovery`, `soundness` → `storage`; also `passing` (responses that are not kept), `journal`,
//! and `disk_tier` (bodies in a file).

#![warn(missing_docs)]

mod annex;
mod arena;
mod attributes;
mod chain;
mod disk_tier;
mod heap;
mod journal;
mod layout;
mod memory;
mod object;
mod passing;
mod place;
pub mod process;
mod reader;
mod readership;
mod recovery;
mod shares;
mod soundness;
mod storage;
mod streaming;
mod streaming_cell;
mod unsized_bodies;
mod usage;
mod writer;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod overflow_tests;

pub use arena::StoreFull;
pub use attributes::{AppendError, BodyState, ObjectAttributes, ObjectFlags};
pub use disk_tier::{FileOptions, FileUsage, Reclaimer};
pub use journal::Journal;
pub use object::Object;
pub use reader::BodyReader;
pub use recovery::Recovered;
pub use shares::Evictable;
pub use storage::{Reservation, Store};
pub use usage::Usage;
