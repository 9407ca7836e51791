//! Reading bodies from the file, piece by piece; each piece is checked before it is delivered.
//!
//! *Invariant:* no event loop waits for a disk. A reader holds at most one piece, which its request
//! or fetch counts.

use super::map::{CHUNK_BYTES, Map, chunks_of};
use super::{DiskWrite, Extent, Tier};
use crate::object::Object;
use crate::place::Place;
use crate::streaming::Streaming;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use surface::closed_set::Advice;

/// Distance ahead of a waiting reader up to which the disk is asked to read.
const AHEAD_CHUNKS: u64 = 16;

/// Location of a chunk, and its checksum.
struct Target {
    parts: Vec<Extent>,
    checksum: u32,
}

/// The body being written to the file. An aborted one is available only to readers that began in
/// time: `counted`.
fn disk_write_of(object: &Object, counted: Option<&Streaming>) -> Option<Arc<DiskWrite>> {
    match object.streaming.get() {
        Some(streaming) => streaming.disk_write.clone(),
        None if object.is_whole() => None,
        None => counted?.disk_write.clone(),
    }
}

fn target(place: &Place, disk_write: Option<&DiskWrite>, chunk: u64) -> Option<Target> {
    if let Some(disk_write) = disk_write {
        return disk_write.chunk(chunk).map(|(parts, checksum)| Target { parts, checksum });
    }
    let (map, offset) = (Map::of(place)?, chunk * CHUNK_BYTES);
    let bytes = CHUNK_BYTES.min(place.body_bytes().checked_sub(offset)?);
    let parts = super::map::parts(map.extents(), offset, bytes);
    Some(Target { parts, checksum: map.checksum(chunk)? })
}

impl Tier {
    pub(super) fn refuse(&self) {
        self.counts.usage.refused();
    }

    /// Reads a chunk; `None` = that would have to wait (never if `may_wait`).
    fn fetch(
        &self,
        place: &Place,
        disk_write: Option<&DiskWrite>,
        chunk: u64,
        may_wait: bool,
    ) -> io::Result<Option<Vec<u8>>> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "not what was stored");
        let target = target(place, disk_write, chunk).ok_or_else(damaged)?;
        let length: u64 = target.parts.iter().map(|part| part.bytes).sum();
        let (mut bytes, mut at) = (vec![0; length as usize], 0);
        for part in &target.parts {
            let into = &mut bytes[at..at + part.bytes as usize];
            let inside = part.at >= self.bodies.start && part.at.saturating_add(part.bytes) <= self.bodies.end;
            if !inside {
                return Err(damaged());
            }
            if may_wait {
                self.device.read(into, part.at)?;
            } else {
                match self.device.read_cached(into, part.at) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                    other => other?,
                }
            }
            at += part.bytes as usize;
        }
        if crc32fast::hash(&bytes) != target.checksum {
            return Err(damaged());
        }
        Ok(Some(bytes))
    }
}

/// A chunk that was read, and its number.
type Chunk = (u64, io::Result<Vec<u8>>);

/// The state of a reader of a body in a file.
#[derive(Default)]
pub(crate) struct OnDiskReader {
    /// A piece, and the offset of its first byte in the body.
    window: Option<(u64, Window)>,
    wanted: Option<u64>,
    loaded: Arc<Mutex<Option<Chunk>>>,
    has_failed: bool,
}

enum Window {
    /// From the file.
    Read(Vec<u8>),
    /// Not yet in the file.
    Piece(Arc<[u8]>),
}

impl OnDiskReader {
    /// The first byte that a reader at `offset` needs: pieces are read and checked as wholes.
    pub(crate) fn needs_from(offset: u64) -> u64 {
        offset / CHUNK_BYTES * CHUNK_BYTES
    }

    pub(crate) fn wants_load(&self) -> bool {
        self.wanted.is_some()
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// See [`crate::BodyReader::chunk_at`]; `offset` is below the end of the published bytes.
    /// `counted`: the state of a counted reader.
    pub(crate) fn chunk_at(&mut self, object: &Object, counted: Option<&Streaming>, offset: u64) -> Option<&[u8]> {
        self.wanted = None;
        if self.has_failed {
            return None;
        }
        let is_here = self.window.as_ref().is_some_and(|(begin, window)| {
            offset.checked_sub(*begin).is_some_and(|skip| skip < window.bytes().len() as u64)
        });
        if !is_here {
            // The old window is freed first.
            self.window = None;
            self.window = self.find(object, counted, offset);
        }
        let (begin, window) = self.window.as_ref()?;
        window.bytes().get(usize::try_from(offset - begin).ok()?..)
    }

    fn find(&mut self, object: &Object, counted: Option<&Streaming>, offset: u64) -> Option<(u64, Window)> {
        let place = object.stored()?;
        let tier = place.store.disk_tier()?;
        let disk_write = disk_write_of(object, counted);
        let disk_write = disk_write.as_deref();
        if let Some((begin, piece)) = disk_write.and_then(|disk_write| disk_write.piece(offset)) {
            return Some((begin, Window::Piece(piece)));
        }
        let chunk = offset / CHUNK_BYTES;
        let loaded = self.loaded.lock().take().filter(|(number, _)| *number == chunk).map(|(_, result)| result);
        let result = match loaded {
            Some(result) => result.map(Some),
            None => tier.fetch(place, disk_write, chunk, false).inspect(|found| {
                tier.counts.warm_reads.fetch_add(u64::from(found.is_some()), Relaxed);
            }),
        };
        match result {
            Ok(Some(bytes)) => Some((chunk * CHUNK_BYTES, Window::Read(bytes))),
            Ok(None) => {
                self.wanted = Some(chunk);
                None
            }
            Err(_) => {
                // Whatever the cause, the body differs from the stored one.
                tier.counts.read_errors.fetch_add(1, Relaxed);
                self.has_failed = true;
                object.remove();
                None
            }
        }
    }

    /// See [`crate::BodyReader::load`].
    pub(crate) async fn load(&self, object: &Arc<Object>, counted: Option<Arc<Streaming>>) {
        let Some(chunk) = self.wanted else { return };
        let (object, loaded) = (Arc::clone(object), Arc::clone(&self.loaded));
        let read = move || {
            let Some((place, tier)) = object.stored().and_then(|place| Some((place, place.store.disk_tier()?))) else {
                return;
            };
            let disk_write = disk_write_of(&object, counted.as_deref());
            let disk_write = disk_write.as_deref();
            tier.counts.cold_reads.fetch_add(1, Relaxed);
            let result = tier.fetch(place, disk_write, chunk, true).map(Option::unwrap_or_default);
            *loaded.lock() = Some((chunk, result));
            let last = chunks_of(place.body_bytes());
            if tier.advice != Advice::Normal && disk_write.is_none() && chunk + 1 < last {
                tier.read_ahead(place, chunk + 1, AHEAD_CHUNKS.min(last - chunk - 1));
            }
        };
        // If it is cancelled the task continues by itself, and the bytes that it read are dropped
        // with the last reader.
        let _ = tokio::task::spawn_blocking(read).await;
    }
}

impl Window {
    fn bytes(&self) -> &[u8] {
        match self {
            Window::Read(bytes) => bytes,
            Window::Piece(bytes) => bytes,
        }
    }
}

impl Tier {
    /// Announces to the kernel the bytes that a reader needs next.
    fn read_ahead(&self, place: &Place, chunk: u64, chunks: u64) {
        let Some(map) = Map::of(place) else { return };
        let offset = chunk * CHUNK_BYTES;
        let bytes = (chunks * CHUNK_BYTES).min(place.body_bytes().saturating_sub(offset));
        for part in super::map::parts(map.extents(), offset, bytes) {
            self.device.will_need(part.at, part.bytes);
        }
    }
}
