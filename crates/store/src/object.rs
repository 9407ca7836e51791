//! A response: head, and a body that may still grow.
use std::sync::Arc;

/// What an object is, as a set of bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ObjectFlags(pub u16);

impl ObjectFlags {
    /// Nothing.
    pub const NONE: ObjectFlags = ObjectFlags(0);
    /// A marker: fetch without coalescing.
    pub const HIT_FOR_MISS: ObjectFlags = ObjectFlags(1);
    /// A marker: pass.
    pub const HIT_FOR_PASS: ObjectFlags = ObjectFlags(2);
    /// The body is gzip.
    pub const GZIPPED: ObjectFlags = ObjectFlags(4);
    /// Has an ETag or Last-Modified, status 200: may be revalidated.
    pub const CAN_REVALIDATE: ObjectFlags = ObjectFlags(8);
    /// The body holds ESI instructions.
    pub const ESI: ObjectFlags = ObjectFlags(16);
    /// Counted as Transient.
    pub const TRANSIENT: ObjectFlags = ObjectFlags(32);
    /// We changed the content encoding.
    pub const CHANGED_GZIP: ObjectFlags = ObjectFlags(64);
    /// Made by vcl_backend_error or vcl_synth.
    pub const SYNTHETIC: ObjectFlags = ObjectFlags(128);
    /// For one client only: a pass, or the body of a hit-for-miss.
    pub const PRIVATE: ObjectFlags = ObjectFlags(256);

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn has(self, other: ObjectFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets.
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

/// What is known of an object when it is made. Times are seconds.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ObjectAttributes {
    /// Digest of the request.
    pub key: [u8; 32],
    /// The fetch's vxid.
    pub xid: u32,
    /// When the response was generated, seconds since 1970 (now − Age).
    pub origin: f64,
    /// Freshness lifetime from `origin`; stored as an `f32`, rounded down.
    pub ttl: f64,
    /// May be served stale that long after `ttl`.
    pub grace: f64,
    /// Kept for revalidation that long after `ttl` + `grace`.
    pub keep: f64,
    /// What it is.
    pub flags: ObjectFlags,
    /// Variant key from `semantics::vary::encode`; empty = matches every request. At most 65,535 bytes.
    pub vary: Vec<u8>,
    /// Length of the body when known; a promise: more than that cannot be appended. `None` = unknown.
    pub body_bytes: Option<u64>,
    /// Last-Modified in seconds since 1970, whole; 0 = none.
    pub last_modified: f64,
    /// Counted as Transient (the flag is set by this too).
    pub transient: bool,
}

/// How far a body has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyState {
    /// More may come.
    Writing,
    /// All there.
    Complete,
    /// No more will come, and it is not whole.
    Failed,
}

/// Why bytes could not be added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppendError {
    /// No room: nothing evictable is left, or more than the promised length.
    Full,
    /// The reader of a passing object went away.
    Abandoned,
}

/// Where a reader is in a body of many extents, so that reading on is not a search. Any cursor works with any offset.
#[derive(Clone, Copy, Debug, Default)]
pub struct BodyCursor(());

/// A response that is stored, or passes by. Send + Sync; all methods take `&self`.
#[derive(Debug)]
pub struct Object(());

#[allow(clippy::unused_async)]
impl Object {
    /// A response that is not kept: its body passes from one writer to one reader, at most
    /// `surface::limits::PASS_IN_FLIGHT_BYTES_MAX` at a time. Not counted against any store.
    #[must_use]
    pub fn passing(_attributes: &ObjectAttributes, _head: &[u8]) -> Arc<Object> {
        todo!()
    }
    /// Whether this is a passing object.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        todo!()
    }
    /// The first 24 bytes of the digest it was made with (what is kept of it).
    #[must_use]
    pub fn key(&self) -> [u8; 24] {
        todo!()
    }
    /// The vxid of the fetch.
    #[must_use]
    pub fn xid(&self) -> u32 {
        todo!()
    }
    /// When the response was generated, seconds since 1970.
    #[must_use]
    pub fn origin(&self) -> f64 {
        todo!()
    }
    /// Freshness lifetime from `origin`, seconds.
    #[must_use]
    pub fn ttl(&self) -> f64 {
        todo!()
    }
    /// Grace, seconds.
    #[must_use]
    pub fn grace(&self) -> f64 {
        todo!()
    }
    /// Keep, seconds.
    #[must_use]
    pub fn keep_seconds(&self) -> f64 {
        todo!()
    }
    /// What it is.
    #[must_use]
    pub fn flags(&self) -> ObjectFlags {
        todo!()
    }
    /// The variant key; empty = matches every request.
    #[must_use]
    pub fn vary(&self) -> &[u8] {
        todo!()
    }
    /// Last-Modified in seconds since 1970; 0 = none.
    #[must_use]
    pub fn last_modified(&self) -> f64 {
        todo!()
    }
    /// How often a lookup found it.
    #[must_use]
    pub fn hits(&self) -> u32 {
        todo!()
    }
    /// The encoded response head (`message::Message::encode`).
    #[must_use]
    pub fn head(&self) -> &[u8] {
        todo!()
    }
    /// Changes the lifetime, durably.
    pub fn set_lifetime(&self, _ttl: f64, _grace: f64, _keep: f64) {
        todo!()
    }
    /// Adds bytes to the body. One writer at a time. A passing object waits for its reader.
    ///
    /// # Errors
    /// [`AppendError`].
    pub async fn append(&self, _bytes: &[u8]) -> Result<(), AppendError> {
        todo!()
    }
    /// The body is whole.
    pub fn finish(&self) {
        todo!()
    }
    /// The body will never be whole.
    pub fn fail(&self) {
        todo!()
    }
    /// How far the body has come.
    #[must_use]
    pub fn state(&self) -> BodyState {
        todo!()
    }
    /// Body bytes written so far; the length of the body once complete.
    #[must_use]
    pub fn available_bytes(&self) -> u64 {
        todo!()
    }
    /// The promised length, while it is known: `body_bytes` of the attributes, or the length of a complete body.
    #[must_use]
    pub fn promised_bytes(&self) -> Option<u64> {
        todo!()
    }
    /// Stored objects: bytes from `offset` that lie together; `None` when there are none (yet), or in a passing object.
    #[must_use]
    pub fn chunk_at(&self, _offset: u64) -> Option<&[u8]> {
        todo!()
    }
    /// As [`Object::chunk_at`], without searching when the cursor comes from the chunk before.
    #[must_use]
    pub fn chunk_from(&self, _offset: u64, _cursor: &mut BodyCursor) -> Option<&[u8]> {
        todo!()
    }
    /// Passing objects: the next bytes, once; makes room for the writer.
    #[must_use]
    pub fn take_chunk(&self) -> Option<Vec<u8>> {
        todo!()
    }
    /// Returns once there are more than `seen_bytes` bytes, or the state is not Writing. Cancel-safe.
    pub async fn changed(&self, _seen_bytes: u64) {
        todo!()
    }
    /// The reader of a passing object went away: `append` fails from now on.
    pub fn abandon(&self) {
        todo!()
    }
    /// Never comes back, from now on and durably; the memory is freed when the last `Arc` goes.
    pub fn remove(&self) {
        todo!()
    }
    /// Whether it was removed.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        todo!()
    }
    /// Sequence number of the newest ban it was tested against. Durable.
    #[must_use]
    pub fn ban(&self) -> u64 {
        todo!()
    }
    /// Sets [`Object::ban`].
    pub fn set_ban(&self, _ban: u64) {
        todo!()
    }
}
