//! [`Object`]: a handle to a response that is stored, or passed on without being stored.
//!
//! ```text
//! Writing ──finish──▶ Complete        committed = Complete and in the index and not removed
//!    └─────fail─────▶ Failed          memory is freed with the last handle unless committed
//! ```
//!
//! Everything about a stored object except its handle is in the arena (`layout`). The handle is 40
//! bytes with its counts, since there is one for every object in the index. While a body is being
//! written the handle has a [`Streaming`], which is dropped when the body has ended. *Owners*: one
//! writer appends; any thread reads; only the index uses `slot`, `touch`, `enter_index`. Next
//! files: `writer.rs`, `reader.rs`, `annex.rs`.

use crate::arena::{HANDLE_BYTES, Inner, StoreFull};
use crate::attributes::{AppendError, BodyState, ObjectAttributes, ObjectFlags};
use crate::disk_tier::{DiskWrite, give_back_in_file};
use crate::layout::{
    ANNEX_LENGTH_BYTES, BODY_BYTES_MAX, COMPLETE, FAILED, HAS_NEXT, HEAD_BYTES_MAX, Head, IDENTITY, INDEXED, KEEP_BAN,
    KEY, KEY_BYTES, LENGTHS, LIFETIME, LINK_BYTES, ORIGIN, OVERFLOWED, RECORD_HEADER_BYTES, REMOVED, USE, high,
    lengths, low, origin_seconds, origin_word, pair, seconds_down, seconds_near,
};
use crate::passing::Passing;
use crate::place::Place;
use crate::streaming::{Opening, Streaming};
use crate::streaming_cell::StreamingCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const _: () = assert!(size_of::<Object>() + 16 + 8 == HANDLE_BYTES as usize);

/// The words, the key, and a head of usual size.
const PREFETCHED_LINES: u64 = 4;

enum Kind {
    Stored(Place),
    Passing(Box<Passing>),
}

/// The words of a new record; see `layout.rs`.
pub(crate) struct Words {
    pub(crate) identity: u64,
    pub(crate) lengths: u64,
    pub(crate) origin: u64,
    pub(crate) lifetime: u64,
    pub(crate) keep_ban: u64,
    pub(crate) used: u64,
}

/// The destination of the body of a new record.
pub(crate) enum Body {
    /// Behind the head.
    InArena,
    /// In the file; `None` = it is there already.
    InFile(Option<Arc<DiskWrite>>),
}

/// A response that is stored, or passed on without being stored: a head, and a body that may still
/// grow. Shared between threads as `Arc<Object>`; all methods take `&self`.
pub struct Object {
    kind: Kind,
    pub(crate) streaming: StreamingCell,
}

impl std::fmt::Debug for Object {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Object")
            .field("vxid", &self.vxid())
            .field("flags", &self.flags())
            .field("state", &self.state())
            .field("available_bytes", &self.available_bytes())
            .finish_non_exhaustive()
    }
}

impl Object {
    /// Creates a response that is not kept: its body passes from one writer to one reader, with at
    /// most `in_flight_bytes` (at least one) under way. They are not counted against any store:
    /// `surface::limits::PASS_IN_FLIGHT_BYTES_MAX`, or less.
    #[must_use]
    pub fn passing(attributes: ObjectAttributes, head: Vec<u8>, in_flight_bytes: usize) -> Arc<Object> {
        let kind = Kind::Passing(Box::new(Passing::new(attributes, head, in_flight_bytes.max(1))));
        Arc::new(Object { kind, streaming: StreamingCell::empty() })
    }

    pub(crate) fn create(
        store: &Arc<Inner>,
        attributes: &ObjectAttributes,
        head: &[u8],
    ) -> Result<Arc<Object>, StoreFull> {
        let vary_bytes = u16::try_from(attributes.vary.len()).map_err(|_| StoreFull)?;
        let promised = attributes.body_bytes;
        if head.len() > HEAD_BYTES_MAX || promised.is_some_and(|bytes| bytes > BODY_BYTES_MAX) {
            return Err(StoreFull);
        }
        store.note_vxid(attributes.xid);
        let flags = attributes.all_flags();
        let tier = store.shared_disk_tier().filter(|_| !flags.has(ObjectFlags::TRANSIENT));
        if tier.as_ref().zip(promised).is_some_and(|(tier, bytes)| bytes > tier.capacity_bytes()) {
            return Err(StoreFull);
        }
        let words = Words {
            identity: pair(attributes.xid as u32, 0),
            lengths: lengths(0, head.len()),
            origin: origin_word(attributes.origin, vary_bytes),
            lifetime: pair(seconds_down(attributes.ttl).to_bits(), seconds_near(attributes.grace).to_bits()),
            keep_ban: pair(seconds_near(attributes.keep).to_bits(), 0),
            used: 0,
        };
        let parts = [&attributes.key[..KEY_BYTES], &attributes.vary, head];
        Object::write_record(
            store,
            &words,
            parts,
            flags,
            promised,
            tier.map_or(Body::InArena, |tier| Body::InFile(Some(DiskWrite::new(&tier, promised.is_none())))),
        )
    }

    /// A new record with these words and parts (key, vary, head), and its handle.
    pub(crate) fn write_record(
        store: &Arc<Inner>,
        words: &Words,
        parts: [&[u8]; 3],
        flags: ObjectFlags,
        promised: Option<u64>,
        body: Body,
    ) -> Result<Arc<Object>, StoreFull> {
        let (is_on_disk, disk_write) = match body {
            Body::InArena => (false, None),
            Body::InFile(disk_write) => (true, disk_write),
        };
        let no_annex = [0; ANNEX_LENGTH_BYTES as usize];
        let annex_length: &[u8] = if flags.has(ObjectFlags::ESI) { &no_annex } else { &[] };
        let [key, vary, head] = parts;
        let fixed_bytes = RECORD_HEADER_BYTES + (vary.len() + head.len() + annex_length.len()) as u64;
        // Charged before room is allocated, so that the limit holds at every instant.
        store.charge(HANDLE_BYTES + Streaming::PRIVATE_BYTES);
        let opening = Opening::allocate(store, fixed_bytes, promised, flags, is_on_disk).inspect_err(|_| {
            store.charge(-HANDLE_BYTES - Streaming::PRIVATE_BYTES);
        })?;
        let place = Place { store: Arc::clone(store), record: opening.block.at, slot: AtomicU32::new(0) };
        let memory = &store.memory;
        memory.store(place.at(IDENTITY), words.identity);
        memory.store(place.at(LENGTHS), words.lengths);
        memory.store(place.at(ORIGIN), words.origin);
        memory.store(place.at(LIFETIME), words.lifetime);
        memory.store(place.at(KEEP_BAN), words.keep_ban);
        memory.store(place.at(USE), words.used);
        let mut at = place.at(KEY);
        for part in [key, vary, head, annex_length] {
            // SAFETY: the block was just allocated and no other thread has its address; the parts
            // are inside it.
            unsafe { memory.write(at, part) };
            at += part.len() as u64;
        }
        let streaming = Streaming::new(&place, opening, promised, disk_write.clone());
        let object = Arc::new(Object { kind: Kind::Stored(place), streaming: StreamingCell::new(streaming) });
        if let Some(disk_write) = disk_write {
            let _ = disk_write.owner.set(Arc::<Object>::downgrade(&object));
        }
        Ok(object)
    }

    /// Creates the handle for a complete record that recovery found. There must be no other handle.
    pub(crate) fn recovered(store: &Arc<Inner>, record: u32) -> Arc<Object> {
        store.charge(HANDLE_BYTES);
        let place = Place { store: Arc::clone(store), record, slot: AtomicU32::new(0) };
        Arc::new(Object { kind: Kind::Stored(place), streaming: StreamingCell::empty() })
    }

    pub(crate) fn stored(&self) -> Option<&Place> {
        match &self.kind {
            Kind::Stored(place) => Some(place),
            Kind::Passing(_) => None,
        }
    }

    fn pass(&self) -> Option<&Passing> {
        match &self.kind {
            Kind::Stored(_) => None,
            Kind::Passing(passing) => Some(passing),
        }
    }

    /// The number that the index gave the object's storage ([`crate::Store::number`]); `None` = a
    /// passing object.
    #[must_use]
    pub fn store_number(&self) -> Option<u8> {
        self.stored().map(|place| place.store.number())
    }

    /// True if this is a passing object.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        self.pass().is_some()
    }

    /// Prefetches the index's words and the beginning of the head: for callers that are about to
    /// examine many objects, one after the other.
    #[inline]
    pub fn prefetch(&self) {
        if let Some(place) = self.stored() {
            place.store.memory.prefetch(place.at(0), PREFETCHED_LINES);
        }
    }

    /// The first 24 bytes of the digest that it was created with; the rest is not kept.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match &self.kind {
            Kind::Stored(place) => place.fixed(KEY, KEY_BYTES),
            Kind::Passing(passing) => &passing.attributes.key[..KEY_BYTES],
        }
    }

    /// The lower half of the fetch's vxid: with the origin, the identity of the object.
    #[must_use]
    pub fn xid(&self) -> u32 {
        match &self.kind {
            Kind::Stored(place) => low(place.word(IDENTITY)),
            Kind::Passing(passing) => passing.attributes.xid as u32,
        }
    }

    /// The fetch's vxid. A record has its lower half only; the upper half is that of the newest
    /// object with a vxid at least as large, so the result is wrong for an object that is older
    /// than the 2^32 last transactions.
    #[must_use]
    pub fn vxid(&self) -> u64 {
        match &self.kind {
            Kind::Stored(place) => {
                let newest = place.store.newest_vxid.load(Ordering::Relaxed);
                let lower = u64::from(low(place.word(IDENTITY)));
                let vxid = newest & !u64::from(u32::MAX) | lower;
                if vxid > newest { vxid.checked_sub(1 << 32).unwrap_or(lower) } else { vxid }
            }
            Kind::Passing(passing) => passing.attributes.xid,
        }
    }

    /// Time at which the response was generated, seconds since 1970.
    #[must_use]
    pub fn origin(&self) -> f64 {
        match &self.kind {
            Kind::Stored(place) => origin_seconds(place.word(ORIGIN)),
            Kind::Passing(passing) => passing.attributes.origin,
        }
    }

    /// Freshness lifetime from `origin`, seconds.
    #[must_use]
    pub fn ttl(&self) -> f64 {
        match &self.kind {
            Kind::Stored(place) => f64::from(f32::from_bits(low(place.word(LIFETIME)))),
            Kind::Passing(passing) => passing.lifetime().0,
        }
    }

    /// Seconds after `ttl` during which it may be served stale.
    #[must_use]
    pub fn grace(&self) -> f64 {
        match &self.kind {
            Kind::Stored(place) => f64::from(f32::from_bits(high(place.word(LIFETIME)))),
            Kind::Passing(passing) => passing.lifetime().1,
        }
    }

    /// Seconds after `ttl` + `grace` during which it is kept for revalidation.
    #[must_use]
    pub fn keep(&self) -> f64 {
        match &self.kind {
            Kind::Stored(place) => f64::from(f32::from_bits(low(place.word(KEEP_BAN)))),
            Kind::Passing(passing) => passing.lifetime().2,
        }
    }

    /// Its properties.
    #[must_use]
    pub fn flags(&self) -> ObjectFlags {
        match &self.kind {
            Kind::Stored(place) => ObjectFlags(place.head().object_flags()),
            Kind::Passing(passing) => passing.attributes.all_flags(),
        }
    }

    /// The variant key; empty = matches every request.
    #[must_use]
    pub fn vary(&self) -> &[u8] {
        match &self.kind {
            Kind::Stored(place) => place.fixed(RECORD_HEADER_BYTES, place.vary_bytes()),
            Kind::Passing(passing) => &passing.attributes.vary,
        }
    }

    /// The encoded response head (`message::Message::encode`).
    #[must_use]
    pub fn head(&self) -> &[u8] {
        match &self.kind {
            Kind::Stored(place) => place.fixed(RECORD_HEADER_BYTES + place.vary_bytes() as u64, place.head_bytes()),
            Kind::Passing(passing) => &passing.head,
        }
    }

    /// Number of lookups that found it.
    #[must_use]
    pub fn hits(&self) -> u32 {
        self.stored().map_or(0, |place| low(place.word(USE)))
    }

    /// Changes the lifetime, durably. Rounding as in [`ObjectAttributes`].
    pub fn set_lifetime(&self, ttl: f64, grace: f64, keep: f64) {
        match &self.kind {
            Kind::Stored(place) => {
                let memory = &place.store.memory;
                memory.store(place.at(LIFETIME), pair(seconds_down(ttl).to_bits(), seconds_near(grace).to_bits()));
                let keep = seconds_near(keep).to_bits();
                memory.update(place.at(KEEP_BAN), |word| pair(keep, high(word)));
                self.log_lifetime(place);
            }
            Kind::Passing(passing) => passing.set_lifetime(ttl, grace, keep),
        }
    }

    /// Adds bytes to the body. One writer at a time. A stored object takes them at once, evicting
    /// others as needed; a passing object waits for its reader, an overflowed one for its slowest
    /// reader. In these two cases not cancel-safe: some of the bytes may have been added.
    ///
    /// # Errors
    /// [`AppendError`]. Some of the bytes may have been added: as many as
    /// [`Object::available_bytes`] has grown by.
    pub async fn append(&self, bytes: &[u8]) -> Result<(), AppendError> {
        match &self.kind {
            Kind::Stored(place) if place.head().has(OVERFLOWED) => self.append_passing_on(bytes).await,
            Kind::Stored(place) if place.is_on_disk() => self.append_on_disk(place, bytes).await,
            Kind::Stored(place) => self.append_stored(place, bytes),
            Kind::Passing(passing) => passing.append(bytes).await,
        }
    }

    /// Passing objects: adds bytes to the body without copying them.
    ///
    /// # Errors
    /// The bytes, if there is no room for all of them now, there is no reader, or the object is
    /// stored: append them.
    pub fn hand_over(&self, bytes: Vec<u8>) -> Result<(), Vec<u8>> {
        match self.pass() {
            Some(passing) if !bytes.is_empty() => passing.hand_over(bytes),
            Some(_) | None => Err(bytes),
        }
    }

    /// Marks the body as complete. Does nothing when it has already ended.
    pub fn finish(&self) {
        match &self.kind {
            Kind::Stored(place) => {
                // Without a map the body cannot be found.
                let how = if self.write_map(place).is_ok() { COMPLETE } else { FAILED };
                self.end_stored(place, how, &[]);
            }
            Kind::Passing(passing) => passing.end(BodyState::Complete),
        }
    }

    /// Marks the body as failed: it will never be complete. Does nothing when it has already ended.
    pub fn fail(&self) {
        match &self.kind {
            Kind::Stored(place) => self.end_stored(place, FAILED, &[]),
            Kind::Passing(passing) => passing.end(BodyState::Failed),
        }
    }

    /// The progress of the body.
    #[must_use]
    pub fn state(&self) -> BodyState {
        match &self.kind {
            Kind::Stored(place) => {
                let head = place.head();
                if head.has(FAILED) {
                    BodyState::Failed
                } else if head.has(COMPLETE) {
                    BodyState::Complete
                } else {
                    BodyState::Writing
                }
            }
            Kind::Passing(passing) => passing.state(),
        }
    }

    /// True if the body is complete and stored: it stays in place as long as a handle exists.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.stored().is_some_and(|place| {
            let head = place.head();
            head.has(COMPLETE) && !head.has(OVERFLOWED)
        })
    }

    /// True if the body could not be kept ([`Object::overflow`]).
    #[must_use]
    pub fn has_overflowed(&self) -> bool {
        self.stored().is_some_and(|place| place.head().has(OVERFLOWED))
    }

    /// Body bytes written so far; the length of the body once complete.
    #[must_use]
    pub fn available_bytes(&self) -> u64 {
        match &self.kind {
            Kind::Stored(place) if place.head().has(OVERFLOWED) => self.passed_on_bytes(),
            Kind::Stored(place) => place.body_bytes(),
            Kind::Passing(passing) => passing.total_bytes(),
        }
    }

    /// The length that the whole body has or will have; `None` while it is unknown.
    #[must_use]
    pub fn promised_bytes(&self) -> Option<u64> {
        if self.state() == BodyState::Complete {
            return Some(self.available_bytes());
        }
        match &self.kind {
            Kind::Stored(_) => self.streaming.get().and_then(|streaming| streaming.promised_bytes),
            Kind::Passing(passing) => passing.attributes.body_bytes,
        }
    }

    /// Passing objects: takes the next chunks, until there are `count_max`, and not more than
    /// `bytes_max` unless the first is larger. Those taken before are considered used, which makes
    /// room for the writer. Returns the bytes; 0 when there are none (yet), and for stored objects.
    pub fn take_chunks(&self, into: &mut VecDeque<Vec<u8>>, count_max: usize, bytes_max: usize) -> usize {
        self.pass().map_or(0, |passing| passing.take_chunks(into, count_max, bytes_max))
    }

    /// Passing objects: bytes that were written and are not yet used; 0 for stored ones.
    #[must_use]
    pub fn under_way_bytes(&self) -> usize {
        self.pass().map_or(0, Passing::under_way_bytes)
    }

    /// Passing objects: limits the bytes under way (at least one) from now on; no effect on stored
    /// objects.
    pub fn limit_in_flight(&self, bytes: usize) {
        if let Some(passing) = self.pass() {
            passing.limit_in_flight(bytes.max(1));
        }
    }

    /// Returns once more than `seen_bytes` bytes are available, or the state is no longer Writing.
    /// Any number may wait; cancel-safe.
    pub async fn changed(&self, seen_bytes: u64) {
        let unchanged = || self.state() == BodyState::Writing && self.available_bytes() <= seen_bytes;
        while unchanged() {
            let streaming = self.streaming.get();
            let notify = match (&self.kind, &streaming) {
                (Kind::Passing(passing), _) => passing.changed(),
                (Kind::Stored(_), Some(streaming)) => &streaming.changed,
                // The body ended between the two checks.
                (Kind::Stored(_), None) => return,
            };
            let mut notified = std::pin::pin!(notify.notified());
            notified.as_mut().enable();
            if unchanged() {
                notified.await;
            }
        }
    }

    /// The reader of a passing object has gone: `append` fails from now on. No effect on stored
    /// objects.
    pub fn abandon(&self) {
        if let Some(passing) = self.pass() {
            passing.abandon();
        }
    }

    /// Marks it as taken by the index: once complete, the object survives its handles and this
    /// process.
    pub fn enter_index(&self) {
        if let Some(place) = self.stored() {
            place.set_bits(INDEXED);
            self.log_late(place);
        }
    }

    /// Removes the object durably: it never comes back. Its memory is freed with the last handle.
    pub fn remove(&self) {
        if let Some(place) = self.stored() {
            let before = place.head();
            place.set_bits(REMOVED);
            if !before.has(REMOVED) {
                self.log_removal(place);
            }
        }
    }

    /// True if it was removed.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.stored().is_some_and(|place| place.head().has(REMOVED))
    }

    /// Sequence number of the newest ban that it was tested against; 0 = none. Durable.
    #[must_use]
    pub fn ban(&self) -> u64 {
        self.stored().map_or(0, |place| u64::from(high(place.word(KEEP_BAN))))
    }

    /// Sets [`Object::ban`]. Numbers that do not fit 32 bits become the largest that does.
    pub fn set_ban(&self, ban: u64) {
        if let Some(place) = self.stored() {
            let ban = u32::try_from(ban).unwrap_or(u32::MAX);
            place.store.memory.update(place.at(KEEP_BAN), |word| pair(low(word), ban));
        }
    }

    /// For the index: a number that the index keeps with a stored object.
    #[must_use]
    pub fn slot(&self) -> u32 {
        self.stored().map_or(0, |place| place.slot.load(Ordering::Relaxed))
    }

    /// Sets [`Object::slot`].
    pub fn set_slot(&self, slot: u32) {
        if let Some(place) = self.stored() {
            place.slot.store(slot, Ordering::Relaxed);
        }
    }

    /// For the index: time of its last use, in the index's own units.
    #[must_use]
    pub fn last_use(&self) -> u32 {
        self.stored().map_or(0, |place| high(place.word(USE)))
    }

    /// For the index, which holds a lock around the call: adds `hits` to the hit count, and sets
    /// the time of last use if at least `interval` units have passed since then. Returns true if it
    /// was set.
    pub fn touch(&self, now: u32, hits: u32, interval: u32) -> bool {
        let Some(place) = self.stored() else { return false };
        let word = place.store.memory.word(place.at(USE));
        let old = word.load(Ordering::Relaxed);
        let moved = now.wrapping_sub(high(old)) >= interval;
        // Not a read-modify-write: the index's lock protects the word, and a lost count would be
        // harmless.
        word.store(pair(low(old).saturating_add(hits), if moved { now } else { high(old) }), Ordering::Relaxed);
        moved
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        let Kind::Stored(place) = &self.kind else { return };
        let store = &place.store;
        let streaming = self.streaming.take_mut();
        store.charge(-(HANDLE_BYTES + if streaming.is_some() { Streaming::PRIVATE_BYTES } else { 0 }));
        // A body being written to the file gives its room back itself.
        let is_on_its_way = streaming.as_ref().is_some_and(|streaming| streaming.disk_write.is_some());
        if let Some(streaming) = streaming {
            streaming.forget(store);
        }
        let flags = place.head();
        if flags.is_committed() {
            return;
        }
        self.remove();
        if !is_on_its_way {
            give_back_in_file(place);
        }
        let (mut at, mut head) = (place.record, flags);
        loop {
            let next = head.has(HAS_NEXT).then(|| {
                let end = store.geometry.byte(at + head.units());
                store.memory.load(end - LINK_BYTES) as u32
            });
            store.free(at, flags);
            let Some(next) = next else { return };
            at = next;
            head = Head(store.memory.load(store.geometry.byte(at)));
        }
    }
}
