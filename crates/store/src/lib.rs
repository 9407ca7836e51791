//! The arena that holds cached objects, and the journal that holds what was banned. Both outlive the worker.
//!
//! An object lies in a memory file that the manager holds open, and is addressed by offset, never by pointer. It is
//! stored when its commit bits are set; everything else in the file is discarded by the scan that [`Store::open`] makes
//! after a restart, and what is damaged when it is first used ([`Object::check`]). Each storage has an arena of its own. One limit bounds the arena, including
//! Transient objects, and the private memory that the index charges ([`Store::charge`]). This crate knows nothing of
//! HTTP, of keys beyond their bytes, or of which object to evict: it asks the evictor.
//!
//! *Invariants*: a kill at any instant leaves a heap that can be walked; a removed object never comes back; bytes that a
//! reader may ask for never change while it reads.
//!
//! Reading order: `memory` (bytes and atomics) → `layout` (what the words mean) → `heap` (allocator) → `unsized_bodies`, `arena` (limit,
//! eviction) → `place`, `object` → `streaming`, `writer`, `reader`, `readership` (bodies) → `annex` → `recovery`, `soundness` → `storage`; also
//! `passing` (responses that are not kept), `journal`, and `filed` (bodies in a file).

#![warn(missing_docs)]

mod annex;
mod arena;
mod attributes;
mod filed;
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
mod soundness;
mod storage;
mod streaming;
mod unsized_bodies;
mod usage;
mod writer;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod overflow_tests;

pub use arena::{Evictable, StoreFull};
pub use attributes::{AppendError, BodyState, ObjectAttributes, ObjectFlags};
pub use filed::{Advice, FileOptions, FileUsage, Sweeper};
pub use journal::Journal;
pub use object::Object;
pub use reader::BodyReader;
pub use recovery::Recovered;
pub use storage::{Reservation, Store};
pub use usage::Usage;
