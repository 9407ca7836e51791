//! Waits for bytes of stored bodies in a file.
//!
//! A reader shows such bytes only once they were read, which happens off the event loop: their user
//! waits here, or makes its own caller wait (`source.rs`, `page.rs`). Bodies in memory are
//! available at once. Next file: `request/delivered.rs`.

use store::{BodyReader, Object};
use surface::limits::DISK_PIECE_BYTES;

/// Waits until the reader can show the bytes at `offset`. False if there are none (yet), or if they
/// cannot be read.
pub(crate) async fn are_there(reader: &mut BodyReader, offset: u64) -> bool {
    while reader.chunk_at(offset).is_none() {
        if reader.has_failed() || !reader.wants_load() {
            return false;
        }
        reader.load().await;
    }
    true
}

/// The most memory that a reader of the object holds, in bytes; 0 = it reads the bytes in place.
pub(crate) fn held_bytes(object: &Object) -> usize {
    if !object.is_on_disk() {
        return 0;
    }
    usize::try_from(object.promised_bytes().unwrap_or(u64::MAX)).unwrap_or(usize::MAX).min(DISK_PIECE_BYTES)
}
