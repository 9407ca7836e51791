//! The state of a body while it is being written: its first block, and the writer's position.

use crate::arena::{Demand, Inner, StoreFull};
use crate::attributes::ObjectFlags;
use crate::disk_tier::{DiskWrite, map_bytes};
use crate::heap::Block;
use crate::layout::{GROWING, Head, IDENTITY, KEY, KIND_ON_DISK, KIND_RECORD, LINK_BYTES, ORIGIN, low};
use crate::place::Place;
use crate::readership::Readership;
use crc32fast::Hasher;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::Notify;

/// Longest block that is requested.
pub(crate) const BLOCK_BYTES_MAX: u64 = 1 << 20;
/// Initial guess for a body of unknown length.
pub(crate) const GUESS_BYTES: u64 = 4096;
/// Initial guess for an annex.
pub(crate) const ANNEX_GUESS_BYTES: u64 = 512;
/// Room is made (by evicting) for a body of unknown length in steps of at most this.
pub(crate) const FAIR_BYTES_MAX: u64 = 64 << 10;
/// A block with less room for body bytes than this is not worth its header.
pub(crate) const PIECE_BYTES_MIN: u64 = 256;

/// A record's block, fresh from the allocator.
pub(crate) struct Opening {
    pub(crate) block: Block,
    growing: bool,
}

impl Opening {
    /// Allocates room for `fixed_bytes` and as much of the body as is reasonable.
    pub(crate) fn allocate(
        store: &Inner,
        fixed_bytes: u64,
        promised: Option<u64>,
        flags: ObjectFlags,
        is_on_disk: bool,
    ) -> Result<Opening, StoreFull> {
        let kind = if is_on_disk { KIND_ON_DISK } else { KIND_RECORD };
        // The map will be stored instead of the body; it is short if the body is in one piece.
        let promised = if is_on_disk {
            Some(promised.map_or(GUESS_BYTES / 8, |bytes| map_bytes(bytes, 2)).max(16))
        } else {
            promised
        };
        let head = |bits: u64| Head(Head::new(0, kind).with_object_flags(flags.0).0 | bits);
        let is_annexed = flags.has(ObjectFlags::ESI);
        let annex =
            if is_annexed { ANNEX_GUESS_BYTES } else { 0 } + if is_annexed || is_on_disk { LINK_BYTES } else { 0 };
        let whole = promised.map(|body| fixed_bytes + body + annex);
        if whole.is_some_and(|bytes| bytes > store.limit_bytes()) {
            return Err(StoreFull);
        }
        let link = fixed_bytes + LINK_BYTES;
        let demand = match whole {
            Some(whole) if whole <= BLOCK_BYTES_MAX || promised == Some(0) => {
                Demand { least_bytes: whole.min(link + PIECE_BYTES_MIN), fair_bytes: whole, wanted_bytes: whole }
            }
            Some(_) => Demand {
                least_bytes: link + PIECE_BYTES_MIN,
                fair_bytes: link.max(BLOCK_BYTES_MAX),
                wanted_bytes: link.max(BLOCK_BYTES_MAX),
            },
            None => Demand {
                least_bytes: link + PIECE_BYTES_MIN,
                fair_bytes: link + GUESS_BYTES / 4,
                wanted_bytes: link + GUESS_BYTES,
            },
        };
        let block = store.allocate(demand, head(0))?;
        // An annex may need more room than was guessed.
        let growing = is_annexed || is_on_disk || whole.is_none_or(|whole| store.geometry.byte(block.units) < whole);
        if growing {
            store.memory.update(store.geometry.byte(block.at), |head| head | GROWING);
        }
        Ok(Opening { block, growing })
    }
}

/// The writer's position.
pub(crate) struct Position {
    /// The block being filled, in units.
    pub(crate) block: u32,
    /// Address of the next byte, from the arena's start.
    pub(crate) at: u64,
    /// End of the block's room for body bytes.
    pub(crate) end: u64,
    /// True if more blocks may follow.
    pub(crate) growing: bool,
    pub(crate) body_bytes: u64,
    /// Bytes of the storage that a body of unknown length has while it is written; `None` for other
    /// bodies, and after it has ended or overflowed.
    pub(crate) unsized_bytes: Option<u64>,
    pub(crate) checksum: Hasher,
    /// Set under the lock, so that no writer ever touches a block that was trimmed.
    pub(crate) ended: bool,
}

/// The state of a body while it is being written.
pub(crate) struct Streaming {
    pub(crate) changed: Notify,
    pub(crate) promised_bytes: Option<u64>,
    pub(crate) readership: Readership,
    /// For a body that goes into a file. It stays until all of it is written.
    pub(crate) disk_write: Option<Arc<DiskWrite>>,
    pub(crate) position: Mutex<Position>,
}

impl Streaming {
    /// Private memory: its size, the counts of its `Arc`, and the overhead of a heap allocation.
    pub(crate) const PRIVATE_BYTES: i64 = (size_of::<Streaming>() + 16 + 8) as i64;

    /// Called when a handle is dropped without its body having ended.
    pub(crate) fn forget(&self, store: &Inner) {
        if let Some(bytes) = self.position.lock().unsized_bytes.take().or_else(|| self.readership.take_unsized()) {
            store.unsized_bodies.end(bytes);
        }
    }

    pub(crate) fn new(
        place: &Place,
        opening: Opening,
        promised_bytes: Option<u64>,
        disk_write: Option<Arc<DiskWrite>>,
    ) -> Streaming {
        let at = place.body_at();
        let block_end = place.store.geometry.byte(opening.block.at + opening.block.units);
        let end = match promised_bytes {
            Some(bytes) if !opening.growing => at + bytes,
            _ => block_end - LINK_BYTES,
        };
        let is_unsized = promised_bytes.is_none() && disk_write.is_none();
        let unsized_bytes = is_unsized.then(|| place.store.geometry.byte(opening.block.units));
        if let Some(bytes) = unsized_bytes {
            place.store.unsized_bodies.begin(bytes);
        }
        Streaming {
            changed: Notify::new(),
            promised_bytes,
            readership: Readership::default(),
            disk_write,
            position: Mutex::new(Position {
                block: opening.block.at,
                at,
                end,
                growing: opening.growing,
                body_bytes: 0,
                unsized_bytes,
                checksum: fixed_checksum(place),
                ended: false,
            }),
        }
    }
}

/// The checksum of everything before the body: xid, origin and vary length, head length, key, vary,
/// head.
pub(crate) fn fixed_checksum(place: &Place) -> Hasher {
    let memory = &place.store.memory;
    let mut hasher = Hasher::new();
    hasher.update(&low(memory.load(place.at(IDENTITY))).to_le_bytes());
    hasher.update(&memory.load(place.at(ORIGIN)).to_le_bytes());
    hasher.update(&(place.head_bytes() as u32).to_le_bytes());
    let from = place.at(KEY);
    // SAFETY: from the key to the end of the response head: written before the first call, not
    // changed after.
    hasher.update(unsafe { memory.bytes(from, (place.fixed_end() - from) as usize) });
    hasher
}

/// Ends a checksum: flags and the lengths of body and annex are covered too.
pub(crate) fn final_checksum(mut hasher: Hasher, flags: u16, body_bytes: u64, annex_bytes: u64) -> u32 {
    hasher.update(&flags.to_le_bytes());
    if flags & ObjectFlags::ESI.0 != 0 {
        hasher.update(&annex_bytes.to_le_bytes());
    }
    hasher.update(&body_bytes.to_le_bytes());
    hasher.finalize()
}
