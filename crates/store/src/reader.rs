//! Reading of a stored body, even while it grows: published bytes never change.
//!
//! A complete body stays in place as long as its handle: reading it takes no lock and needs no
//! [`BodyReader`]. A body that is still being written may turn out too large to be kept; therefore
//! its readers are counted, and each reports its position at every block (`readership.rs`).
//!
//! *Invariant:* a block of a body being written is freed only when every counted reader is past it.

use crate::chain::{Spot, find, first};
use crate::disk_tier::OnDiskReader;
use crate::object::Object;
use crate::place::Place;
use crate::streaming::Streaming;
use std::sync::Arc;

impl Object {
    /// For a stored object with a complete body in memory: the contiguous bytes from `offset` on;
    /// `None` past the end, and for all other objects. Searches the body's extents from the first
    /// one: for long bodies use [`Object::reader`].
    #[must_use]
    pub fn chunk_at(&self, offset: u64) -> Option<&[u8]> {
        let place = self.stored().filter(|place| self.is_whole() && !place.is_on_disk())?;
        find(place, first(place), offset).map(|(bytes, _)| bytes)
    }

    /// For a stored object with a complete body in memory: its contiguous pieces, in order. None
    /// for all other objects.
    pub fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        let place = self.stored().filter(|place| self.is_whole() && !place.is_on_disk());
        let mut at = place.map(|place| (place, first(place), 0));
        std::iter::from_fn(move || {
            let (place, spot, offset) = at?;
            let (bytes, spot) = find(place, spot, offset)?;
            at = Some((place, spot, offset + bytes.len() as u64));
            Some(bytes)
        })
    }

    /// True if the body is in a file: only a reader can read it, and may have to wait
    /// ([`BodyReader::wants_load`]).
    #[must_use]
    pub fn is_on_disk(&self) -> bool {
        self.stored().is_some_and(Place::is_on_disk)
    }

    /// A reader that remembers its position. If [`Object::is_whole`] it need not be counted;
    /// otherwise it is counted from here on, and the part that it has not read yet stays. `None` if
    /// the body cannot be kept and its beginning may be gone.
    #[must_use]
    pub fn reader(self: &Arc<Object>) -> Option<BodyReader> {
        let spot = self.stored().map_or(Spot { block: 0, offset: 0 }, first);
        let streaming = if self.is_whole() || self.is_passing() { None } else { self.streaming.get() };
        if self.has_overflowed() || streaming.as_ref().is_some_and(|streaming| !streaming.readership.join()) {
            return None;
        }
        let counted = streaming.map(|streaming| Box::new(Counted { streaming, needs_from: 0, held: None }));
        let on_disk = self.is_on_disk().then(Box::default);
        Some(BodyReader { object: Arc::clone(self), spot, counted, on_disk })
    }
}

/// The state of a reader that was created while the body was being written.
struct Counted {
    streaming: Arc<Streaming>,
    /// The first byte that it still needs.
    needs_from: u64,
    /// A piece of an overflowed body, and its offset.
    held: Option<(u64, Arc<[u8]>)>,
}

/// Reads a stored body, remembering the extent it is in.
pub struct BodyReader {
    object: Arc<Object>,
    spot: Spot,
    /// Boxed, since most readers have none and are part of a session's state.
    counted: Option<Box<Counted>>,
    /// For a body in a file.
    on_disk: Option<Box<OnDiskReader>>,
}

impl std::fmt::Debug for BodyReader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("BodyReader").field("object", &self.object).finish_non_exhaustive()
    }
}

impl BodyReader {
    /// The contiguous bytes from `offset` on; `None` when there are none (yet), or when they have
    /// been given back. Cheap when offsets only grow; if the body was still being written when the
    /// reader was created, they must only grow.
    pub fn chunk_at(&mut self, offset: u64) -> Option<&[u8]> {
        let place = self.object.stored()?;
        if let Some(on_disk) = self.on_disk.as_deref_mut().filter(|_| offset < place.body_bytes()) {
            if let Some(counted) = &mut self.counted {
                let from = OnDiskReader::needs_from(offset);
                if from > counted.needs_from {
                    counted.streaming.readership.advance(place, counted.needs_from, Some(from));
                    counted.needs_from = from;
                }
            }
            let counted = self.counted.as_ref().map(|counted| &*counted.streaming);
            return on_disk.chunk_at(&self.object, counted, offset);
        }
        let Some(counted) = &mut self.counted else {
            let spot = if self.spot.offset <= offset { self.spot } else { first(place) };
            let (bytes, spot) = find(place, spot, offset)?;
            self.spot = spot;
            return Some(bytes);
        };
        let readership = &counted.streaming.readership;
        if offset < place.body_bytes() {
            if offset < self.spot.offset || self.spot.offset < counted.needs_from {
                return None;
            }
            let (bytes, spot) = find(place, self.spot, offset)?;
            if spot.offset > counted.needs_from {
                readership.advance(place, counted.needs_from, Some(spot.offset));
                counted.needs_from = spot.offset;
            }
            self.spot = spot;
            return Some(bytes);
        }
        if counted.held.as_ref().is_none_or(|(begin, piece)| offset < *begin || offset - begin >= piece.len() as u64) {
            let (begin, piece) = readership.take(place, counted.needs_from, offset)?;
            counted.needs_from = begin + piece.len() as u64;
            counted.held = Some((begin, piece));
        }
        counted.held.as_ref().and_then(|(begin, piece)| piece.get(usize::try_from(offset - begin).ok()?..))
    }

    /// True if the last [`BodyReader::chunk_at`] found nothing because the bytes are in a file and
    /// have to be waited for.
    #[must_use]
    pub fn wants_load(&self) -> bool {
        self.on_disk.as_ref().is_some_and(|on_disk| on_disk.wants_load())
    }

    /// Reads the bytes that the last [`BodyReader::chunk_at`] asked for, off the event loop;
    /// afterwards the same call finds them, or [`BodyReader::has_failed`]. Returns at once if
    /// nothing is wanted. Cancel-safe.
    pub async fn load(&self) {
        if let Some(on_disk) = &self.on_disk {
            let counted = self.counted.as_ref().map(|counted| Arc::clone(&counted.streaming));
            on_disk.load(&self.object, counted).await;
        }
    }

    /// True if bytes could not be read, or differed from the stored ones. The object was removed;
    /// its body must be aborted.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.on_disk.as_ref().is_some_and(|on_disk| on_disk.has_failed())
    }

    /// The object being read.
    #[must_use]
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }
}

impl Drop for BodyReader {
    fn drop(&mut self) {
        if let (Some(counted), Some(place)) = (&self.counted, self.object.stored()) {
            counted.streaming.readership.advance(place, counted.needs_from, None);
        }
    }
}
