//! Shares of a storage: the bytes that markers and transient objects may take, and the objects that
//! are evicted to make room for each kind.
//!
//! ```text
//! object                          at its own limit      at the limit of the storage
//! marker                          markers               markers; without any, one of all objects
//! transient                       -                     all objects
//! transient, Transient limited    transient objects     transient objects
//! marker, Transient limited       markers, see below    markers, then transient objects
//! any other                       -                     all objects
//! ```
//!
//! So requests for uncacheable resources, however many, evict nothing but markers. A part of the
//! storage is kept free for objects that cannot displace stored ones ([`Shares::kept_free`]):
//! otherwise a storage full of objects would have no room for them. Within a limit of Transient,
//! markers displace other transient objects up to a share of it. Next file: `arena.rs`.

use crate::attributes::ObjectFlags;
use crate::layout::Head;
use surface::limits::{MARKERS_BYTES_MIN, MARKERS_RESERVE_SHARE, MARKERS_SHARE, TRANSIENT_RESERVE_SHARE};

/// Kind of objects that may be evicted to make room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Evictable {
    /// Any object: the storage's limit is reached.
    Any,
    /// Transient objects only: their own limit is reached.
    Transient,
    /// Markers of hit-for-miss and hit-for-pass only: a marker needs room.
    Markers,
}

/// The reason why there is no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// The limit is reached; this many bytes are missing.
    Limit(u64),
    /// The limit of Transient is reached; this many bytes are missing.
    TransientLimit(u64),
    /// The share of markers is exhausted; this many bytes are missing.
    MarkerLimit(u64),
    /// There is room, but not in one piece, or only in pages that the kernel would have to add.
    Fragmented,
}

/// Kind of an object with regard to its share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Stored,
    Transient,
    Marker,
}

impl Class {
    pub(crate) fn of(head: Head) -> Class {
        let flags = ObjectFlags(head.object_flags());
        match flags.has(ObjectFlags::TRANSIENT) {
            false => Class::Stored,
            true if flags.is_marker() => Class::Marker,
            true => Class::Transient,
        }
    }

    pub(crate) fn is_transient(self) -> bool {
        self != Class::Stored
    }
}

/// The limits and the use of a storage at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    pub(crate) limit_bytes: u64,
    /// The limit that the operator has set for Transient.
    pub(crate) transient_limit_bytes: Option<u64>,
    /// Bytes of all transient objects, markers included.
    pub(crate) transient_bytes: u64,
    /// Bytes of all markers: their blocks and their handles.
    pub(crate) marker_bytes: u64,
    /// True if [`Shares::kept_free`] applies.
    pub(crate) keeps_room: bool,
}

impl Shares {
    /// Bytes left of the limit of Transient.
    pub(crate) fn transient_space(&self) -> u64 {
        self.transient_limit_bytes.unwrap_or(u64::MAX).saturating_sub(self.transient_bytes)
    }

    /// Bytes by which an object of this size, its handle included, would exceed the share of all
    /// markers; 0 for other objects.
    pub(crate) fn marker_excess(&self, class: Class, bytes: u64) -> u64 {
        if class != Class::Marker {
            return 0;
        }
        let share = (self.limit_bytes / MARKERS_SHARE).max(MARKERS_BYTES_MIN);
        let limit = self.transient_limit_bytes.unwrap_or(share);
        bytes.saturating_sub(limit.saturating_sub(self.marker_bytes))
    }

    /// Bytes of the storage that are not for an object of this class, although they are free.
    pub(crate) fn kept_free(&self, class: Class) -> u64 {
        match (self.transient_limit_bytes, class) {
            _ if !self.keeps_room => 0,
            (_, Class::Marker) | (Some(_), Class::Transient) => 0,
            (Some(limit), Class::Stored) => {
                limit.min(self.limit_bytes / TRANSIENT_RESERVE_SHARE).saturating_sub(self.transient_bytes)
            }
            (None, Class::Stored | Class::Transient) => {
                (self.limit_bytes / MARKERS_RESERVE_SHARE).saturating_sub(self.marker_bytes)
            }
        }
    }

    /// Kinds of objects to evict for an object of this class: the first kind that has any.
    pub(crate) fn displaced(&self, class: Class, fault: Fault) -> &'static [Evictable] {
        use Evictable::{Any, Markers, Transient};
        let is_limited = self.transient_limit_bytes.is_some();
        match (class, fault) {
            (_, Fault::MarkerLimit(_)) => &[Markers],
            (Class::Marker, Fault::TransientLimit(_)) => {
                let share = self.transient_limit_bytes.unwrap_or_default() / MARKERS_SHARE;
                if self.marker_bytes < share { &[Transient] } else { &[Markers] }
            }
            (Class::Stored | Class::Transient, Fault::TransientLimit(_)) => &[Transient],
            (Class::Marker, Fault::Limit(_) | Fault::Fragmented) if is_limited => &[Markers, Transient],
            (Class::Marker, Fault::Limit(_) | Fault::Fragmented) => &[Markers, Any],
            (Class::Transient, Fault::Limit(_) | Fault::Fragmented) if is_limited => &[Transient],
            (Class::Stored | Class::Transient, Fault::Limit(_) | Fault::Fragmented) => &[Any],
        }
    }
}
