//! Attributes of an object, and the ways in which its body can end: the plain types of this crate's
//! interface.

/// Properties of an object, as a set of bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ObjectFlags(pub u16);

impl ObjectFlags {
    /// No properties.
    pub const NONE: ObjectFlags = ObjectFlags(0);
    /// A marker: fetch without coalescing.
    pub const HIT_FOR_MISS: ObjectFlags = ObjectFlags(1);
    /// A marker: pass.
    pub const HIT_FOR_PASS: ObjectFlags = ObjectFlags(2);
    /// The body is gzip.
    pub const GZIPPED: ObjectFlags = ObjectFlags(4);
    /// Has an ETag or Last-Modified and status 200: may be revalidated.
    pub const CAN_REVALIDATE: ObjectFlags = ObjectFlags(8);
    /// Parsed for ESI: the annex holds the result. Without an annex there was nothing to process.
    pub const ESI: ObjectFlags = ObjectFlags(16);
    /// Counted as Transient.
    pub const TRANSIENT: ObjectFlags = ObjectFlags(32);
    /// Copal changed the content encoding.
    pub const CHANGED_GZIP: ObjectFlags = ObjectFlags(64);
    /// Made by vcl_backend_error or vcl_synth.
    pub const SYNTHETIC: ObjectFlags = ObjectFlags(128);
    /// For one client only: a pass, or the body of a hit-for-miss.
    pub const PRIVATE: ObjectFlags = ObjectFlags(256);
    /// A marker: the body, of unknown length, was too large to be kept. Without
    /// [`ObjectFlags::HIT_FOR_MISS`]: the body is stored in slices, which are other objects
    /// ([`ObjectFlags::is_sliced`]).
    pub const TOO_LARGE: ObjectFlags = ObjectFlags(512);
    /// Must be validated before every use (`no-cache`).
    pub const REVALIDATE: ObjectFlags = ObjectFlags(1024);
    /// Must never be served stale, not even if the origin fails (`must-revalidate`,
    /// `proxy-revalidate`, `s-maxage`).
    pub const NEVER_STALE: ObjectFlags = ObjectFlags(2048);
    /// The body is a part of the representation: status 206, with the range in the `Content-Range`
    /// of the head.
    pub const PARTIAL: ObjectFlags = ObjectFlags(4096);
    /// The body is brotli.
    pub const BROTLI: ObjectFlags = ObjectFlags(8192);
    /// The body is Zstandard.
    pub const ZSTD: ObjectFlags = ObjectFlags(16384);

    /// True if all bits of `other` are set.
    #[must_use]
    pub const fn has(self, other: ObjectFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if the body is in other objects, slice by slice.
    #[must_use]
    pub const fn is_sliced(self) -> bool {
        self.has(ObjectFlags::TOO_LARGE) && !self.has(ObjectFlags::HIT_FOR_MISS)
    }

    /// True if the body has a coding that this program can decode.
    #[must_use]
    pub const fn is_coded(self) -> bool {
        self.0 & (ObjectFlags::GZIPPED.0 | ObjectFlags::BROTLI.0 | ObjectFlags::ZSTD.0) != 0
    }

    /// True for a marker of hit-for-miss or hit-for-pass: a record without a body.
    #[must_use]
    pub const fn is_marker(self) -> bool {
        self.0 & (ObjectFlags::HIT_FOR_MISS.0 | ObjectFlags::HIT_FOR_PASS.0) != 0
    }

    /// The union of both sets.
    #[must_use]
    pub const fn with(self, other: ObjectFlags) -> ObjectFlags {
        ObjectFlags(self.0 | other.0)
    }
}

impl std::ops::BitOr for ObjectFlags {
    type Output = ObjectFlags;
    fn bitor(self, other: ObjectFlags) -> ObjectFlags {
        self.with(other)
    }
}

impl std::ops::BitOrAssign for ObjectFlags {
    fn bitor_assign(&mut self, other: ObjectFlags) {
        *self = self.with(other);
    }
}

/// Attributes of an object at its creation. Times are in seconds; NaN counts as 0.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ObjectAttributes {
    /// Digest of the request.
    pub key: [u8; 32],
    /// The fetch's vxid.
    pub xid: u64,
    /// Time at which the response was generated, seconds since 1970 (now − Age); kept to 0.1 ms,
    /// rounded down.
    pub origin: f64,
    /// Freshness lifetime from `origin`; kept with 24 significant bits, rounded down.
    pub ttl: f64,
    /// Time after `ttl` during which it may be served stale; 24 significant bits.
    pub grace: f64,
    /// Time after `ttl` + `grace` during which it is kept for revalidation; 24 significant bits.
    pub keep: f64,
    /// Its properties.
    pub flags: ObjectFlags,
    /// Variant key from `semantics::vary::encode`; empty = matches every request. At most 65,535
    /// bytes, else the object cannot be created.
    pub vary: Vec<u8>,
    /// Length of the body if known, as a promise: no more than that can be appended, less is
    /// allowed. `None` = unknown.
    pub body_bytes: Option<u64>,
    /// Counted as Transient (sets the flag too).
    pub transient: bool,
}

impl ObjectAttributes {
    /// The flags, with TRANSIENT set if `transient` is.
    pub(crate) fn all_flags(&self) -> ObjectFlags {
        if self.transient { self.flags | ObjectFlags::TRANSIENT } else { self.flags }
    }
}

/// The progress of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyState {
    /// More bytes may come.
    Writing,
    /// All bytes are written.
    Complete,
    /// No more will come, and the body is incomplete.
    Failed,
}

/// The reason why bytes could not be added to a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppendError {
    /// No room: nothing evictable is left, or the promised length would be exceeded.
    Full,
    /// A body of unknown length has reached the share of the storage that one may have
    /// ([`crate::Store::set_unsized_share`]).
    TooLarge,
    /// No readers are left for an object that is not kept, or the body has already ended.
    Abandoned,
}

impl std::fmt::Display for AppendError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            AppendError::Full => "no room for the body",
            AppendError::TooLarge => "the body is too large for its share of the storage",
            AppendError::Abandoned => "nobody reads the body",
        })
    }
}

impl std::error::Error for AppendError {}
