//! Waits for bytes of stored bodies that lie in a file.
//!
//! A reader shows such bytes only once they were read, which happens off the event loop: whoever wants them waits here, or tells
//! its own caller to wait (`source.rs`, `page.rs`). Bodies in memory are there at once. Next file: `request/delivered.rs`.

use store::{BodyReader, Object};
use surface::limits::FILED_PIECE_BYTES;

/// Waits until the reader can show the bytes at `offset`. False when there are none (yet), or when they cannot be read.
pub(crate) async fn are_there(reader: &mut BodyReader, offset: u64) -> bool {
    while reader.chunk_at(offset).is_none() {
        if reader.has_failed() || !reader.wants_load() {
            return false;
        }
        reader.load().await;
    }
    true
}

/// The most memory that a reader of the object holds, in bytes; 0 = it reads where the bytes lie.
pub(crate) fn held_bytes(object: &Object) -> usize {
    if !object.is_filed() {
        return 0;
    }
    usize::try_from(object.promised_bytes().unwrap_or(u64::MAX)).unwrap_or(usize::MAX).min(FILED_PIECE_BYTES)
}
