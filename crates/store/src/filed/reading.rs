//! Reading bodies from the file, piece by piece; each piece is checked before anybody sees it.

use super::map::{CHUNK_BYTES, Map, chunks_of};
use super::{Advice, Extent, Filing, Tier};
use crate::object::Object;
use crate::place::Place;
use crate::streaming::Streaming;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// How far ahead of a reader that has to wait the disk is told to read.
const AHEAD_CHUNKS: u64 = 16;

/// Where a chunk lies, and what it must be.
struct Target {
    parts: Vec<Extent>,
    checksum: u32,
}

/// The body on its way into the file. One that broke off is known to those who began to read it in time: `counted`.
fn filing_of(object: &Object, counted: Option<&Streaming>) -> Option<Arc<Filing>> {
    match object.streaming.load().as_ref() {
        Some(streaming) => streaming.filing.clone(),
        None if object.is_whole() => None,
        None => counted?.filing.clone(),
    }
}

fn target(place: &Place, filing: Option<&Filing>, chunk: u64) -> Option<Target> {
    if let Some(filing) = filing {
        return filing.chunk(chunk).map(|(parts, checksum)| Target { parts, checksum });
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
    fn fetch(&self, place: &Place, filing: Option<&Filing>, chunk: u64, may_wait: bool) -> io::Result<Option<Vec<u8>>> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "not what was stored");
        let target = target(place, filing, chunk).ok_or_else(damaged)?;
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

/// What a reader of a body in a file remembers.
#[derive(Default)]
pub(crate) struct FiledReader {
    /// A piece, and the offset of its first byte in the body.
    window: Option<(u64, Window)>,
    wanted: Option<u64>,
    loaded: Arc<Mutex<Option<Chunk>>>,
    has_failed: bool,
}

enum Window {
    /// From the file.
    Read(Vec<u8>),
    /// Not yet there.
    Piece(Arc<[u8]>),
}

impl FiledReader {
    /// From which byte on a reader that is at `offset` needs the body: pieces are read and checked as wholes.
    pub(crate) fn needs_from(offset: u64) -> u64 {
        offset / CHUNK_BYTES * CHUNK_BYTES
    }

    pub(crate) fn wants_load(&self) -> bool {
        self.wanted.is_some()
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// See [`crate::BodyReader::chunk_at`]; `offset` is below the end of what was published. `counted`: what a counted reader keeps.
    pub(crate) fn chunk_at(&mut self, object: &Object, counted: Option<&Streaming>, offset: u64) -> Option<&[u8]> {
        self.wanted = None;
        if self.has_failed {
            return None;
        }
        let is_here = self.window.as_ref().is_some_and(|(begin, window)| {
            offset.checked_sub(*begin).is_some_and(|skip| skip < window.bytes().len() as u64)
        });
        if !is_here {
            // What is not needed any more goes first.
            self.window = None;
            self.window = self.find(object, counted, offset);
        }
        let (begin, window) = self.window.as_ref()?;
        window.bytes().get(usize::try_from(offset - begin).ok()?..)
    }

    fn find(&mut self, object: &Object, counted: Option<&Streaming>, offset: u64) -> Option<(u64, Window)> {
        let place = object.stored()?;
        let tier = place.store.tier.as_ref()?;
        let filing = filing_of(object, counted);
        let filing = filing.as_deref();
        if let Some((begin, piece)) = filing.and_then(|filing| filing.piece(offset)) {
            return Some((begin, Window::Piece(piece)));
        }
        let chunk = offset / CHUNK_BYTES;
        let loaded = self.loaded.lock().take().filter(|(number, _)| *number == chunk).map(|(_, result)| result);
        let result = match loaded {
            Some(result) => result.map(Some),
            None => tier.fetch(place, filing, chunk, false).inspect(|found| {
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
                // Whatever it was, the body is not what it should be.
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
            let Some((place, tier)) = object.stored().and_then(|place| Some((place, place.store.tier.as_ref()?)))
            else {
                return;
            };
            let filing = filing_of(&object, counted.as_deref());
            let filing = filing.as_deref();
            tier.counts.cold_reads.fetch_add(1, Relaxed);
            let result = tier.fetch(place, filing, chunk, true).map(Option::unwrap_or_default);
            *loaded.lock() = Some((chunk, result));
            let last = chunks_of(place.body_bytes());
            if tier.advice != Advice::Normal && filing.is_none() && chunk + 1 < last {
                tier.read_ahead(place, chunk + 1, AHEAD_CHUNKS.min(last - chunk - 1));
            }
        };
        // If it is cancelled the task goes on by itself, and what it read is dropped with the last reader.
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
    /// Tells the kernel what a reader needs next.
    fn read_ahead(&self, place: &Place, chunk: u64, chunks: u64) {
        let Some(map) = Map::of(place) else { return };
        let offset = chunk * CHUNK_BYTES;
        let bytes = (chunks * CHUNK_BYTES).min(place.body_bytes().saturating_sub(offset));
        for part in super::map::parts(map.extents(), offset, bytes) {
            self.device.will_need(part.at, part.bytes);
        }
    }
}
