//! Tags: labels of a response (`xkey: a b`, `Surrogate-Key`, `Cache-Tag`), by which many objects
//! are purged at once.
//!
//! An entry is a tag's hash and the location of an object: twelve bytes, ordered by tag, so that
//! the objects of a tag are a range and each is removed in logarithmic time. The names themselves
//! are only in the stored heads: an object found by its hash is purged only if its head contains
//! the tag, so a collision costs only a comparison. Objects without tags have no entry and cost
//! nothing. The entries are private memory, made when an object enters the index (after a restart
//! too) and charged to the storage of the object.
//!
//! A group (RFC 9875) is a tag too, but only the engine creates its name: a note behind the head
//! (`message::stored_notes`), which begins with a blank, as no tag of a list does.
//!
//! *Lock*: one short mutex for each part, taken inside a shard's. *Invariant*: an object in the
//! index has an entry for each of its tags. Every purge by tag starts at [`Cache::purge_tags`], one
//! by group at [`Cache::invalidate_groups`].

use crate::removal_history::RemovalCause;
use crate::{Cache, Inner};
use parking_lot::Mutex;
use semantics::Purge;
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use store::{Object, Store};
use surface::counter::Main;
use surface::header::TAG_HEADERS;
use surface::reason::RemovalReason;

/// Parts of the table, each with a lock; a power of two.
const PARTS: usize = 16;
/// Bits of a tag's hash; the rest of the word is the shard.
const HASH_BITS: u32 = 56;
/// Largest cost of an entry: nodes of the tree are at least five elevenths full, and every sixth is
/// an inner one.
const ENTRY_BYTES: i64 = 40;
/// Number of entries taken from the table at a time.
const BATCH: usize = 256;

/// Location of an object with a tag. Ordered by tag, then shard, then slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry {
    /// The tag's hash above the shard's number, in two halves so that an entry has twelve bytes.
    high: u32,
    low: u32,
    slot: u32,
}

const _: () = assert!(size_of::<Entry>() == 12 && crate::SHARDS <= 1 << (u64::BITS - HASH_BITS));

impl Entry {
    fn new(hash: u64, shard: usize, slot: u32) -> Entry {
        let word = hash << (u64::BITS - HASH_BITS) | shard as u64;
        Entry { high: (word >> 32) as u32, low: word as u32, slot }
    }

    fn shard(self) -> usize {
        self.low as usize % (1 << (u64::BITS - HASH_BITS))
    }
}

/// The first and last possible entry of a tag.
fn range(hash: u64) -> std::ops::RangeInclusive<Entry> {
    Entry::new(hash, 0, 0)..=Entry::new(hash, (1 << (u64::BITS - HASH_BITS)) - 1, u32::MAX)
}

/// Numbers about the tags of a cache.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct TagUsage {
    /// Different tags.
    pub tags: u64,
    /// Pairs of object and tag.
    pub entries: u64,
    /// Memory charged for them, in bytes.
    pub bytes: u64,
}

/// The table of tags.
#[derive(Default)]
pub(crate) struct Tags {
    parts: [Mutex<BTreeSet<Entry>>; PARTS],
    tags: AtomicU64,
    entries: AtomicU64,
}

/// A note behind a stored head (`message::encode_note`) that names no group, and equals the digest
/// of one with negligible probability: VCL has chosen the storage, so the body is not moved.
const PINNED_NOTE: [u8; message::NOTE_BYTES - 1] = *b"chosen by VCL...";

/// Marks an object, whose head is being encoded, as one whose body must stay in the storage that
/// VCL chose.
pub fn pin(head: &mut Vec<u8>) {
    message::encode_note(head, &PINNED_NOTE);
}

/// True if the object has that mark.
#[must_use]
pub fn is_pinned(object: &Object) -> bool {
    message::stored_notes(object.head()).any(|note| note[1..] == PINNED_NOTE)
}

/// A note of the same kind, for objects under a salted key: a tag by which all of them are removed
/// when their canary ends.
const SALTED_NOTE: [u8; message::NOTE_BYTES - 1] = *b"salted by canary";

/// Marks an object, whose head is being encoded, as one of a canary or its control group.
pub fn mark_salted(head: &mut Vec<u8>) {
    message::encode_note(head, &SALTED_NOTE);
}

/// The names in a list, separated by blanks and commas.
pub(crate) fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| matches!(byte, b' ' | b'\t' | b',')).filter(|name| !name.is_empty())
}

/// The tags that a stored head names, and its groups.
pub(crate) fn names_of(object: &Object) -> impl Iterator<Item = &[u8]> {
    message::stored_headers(object.head())
        .filter(|header| TAG_HEADERS.iter().any(|name| header.is(name)))
        .filter_map(|header| header.text())
        .flat_map(names)
        .chain(message::stored_notes(object.head()).filter(|note| note[1..] != PINNED_NOTE))
}

/// True if an object may have a tag or a group.
pub(crate) fn is_tagged(object: &Object) -> bool {
    let mut has_list = false;
    let is_list = |header: &[u8]| TAG_HEADERS.iter().any(|name| header.eq_ignore_ascii_case(name.as_bytes()));
    let has_group = message::visit_stored_names(object.head(), |header| has_list |= is_list(header))
        .any(|note| note[1..] != PINNED_NOTE);
    has_list || has_group
}

impl Tags {
    fn part(&self, hash: u64) -> &Mutex<BTreeSet<Entry>> {
        &self.parts[hash as usize % PARTS]
    }

    fn add(&self, hash: u64, entry: Entry, store: &Store) {
        let mut part = self.part(hash).lock();
        let is_new_tag = part.range(range(hash)).next().is_none();
        if part.insert(entry) {
            self.entries.fetch_add(1, Relaxed);
            self.tags.fetch_add(u64::from(is_new_tag), Relaxed);
            store.charge(ENTRY_BYTES);
        }
    }

    fn remove(&self, hash: u64, entry: Entry, store: &Store) {
        let mut part = self.part(hash).lock();
        if part.remove(&entry) {
            let is_last = part.range(range(hash)).next().is_none();
            self.entries.fetch_sub(1, Relaxed);
            self.tags.fetch_sub(u64::from(is_last), Relaxed);
            store.charge(-ENTRY_BYTES);
        }
    }

    /// The next entries of a tag, starting with `from`.
    fn next(&self, hash: u64, from: Entry, most: usize, into: &mut Vec<Entry>) {
        into.extend(self.part(hash).lock().range(from..=*range(hash).end()).take(most));
    }
}

impl Inner {
    fn tag_hash(&self, name: &[u8]) -> u64 {
        // Seeded, so that clients cannot choose names that collide.
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.hash_seed[0]);
        hasher.write_u64(self.hash_seed[1]);
        hasher.write(name);
        hasher.finish() >> (u64::BITS - HASH_BITS)
    }

    /// Adds the tags of an object that has just got its slot. The shard's lock is held.
    pub(crate) fn tag(&self, object: &Object, shard: usize) {
        // Most objects have none, and checking that is cheaper than reading the tags.
        let names = is_tagged(object).then(|| names_of(object));
        for name in names.into_iter().flatten() {
            let hash = self.tag_hash(name);
            self.tags.add(hash, Entry::new(hash, shard, object.slot()), self.store_of(object));
        }
    }

    /// Charges the tags of an object to another storage from now on: its body has moved there, and
    /// the entries stay.
    pub(crate) fn charge_tags(&self, object: &Object, from: &Store, to: &Store) {
        let mut names: Vec<_> = names_of(object).map(|name| self.tag_hash(name)).collect();
        names.sort_unstable();
        names.dedup();
        from.charge(-(names.len() as i64) * ENTRY_BYTES);
        to.charge(names.len() as i64 * ENTRY_BYTES);
    }

    /// Removes the tags of an object that leaves its slot. The shard's lock is held.
    pub(crate) fn untag(&self, object: &Object, shard: usize, slot: u32) {
        if self.tags.entries.load(Relaxed) > 0 {
            for name in names_of(object) {
                let hash = self.tag_hash(name);
                self.tags.remove(hash, Entry::new(hash, shard, slot), self.store_of(object));
            }
        }
    }
}

impl Inner {
    /// True if the predicate holds for any object with this tag; examines `batch` of them at a
    /// time.
    pub(crate) fn any_tagged(&self, name: &[u8], batch: usize, is_it: impl Fn(&Object) -> bool) -> bool {
        let hash = self.tag_hash(name);
        let (mut from, mut entries) = (*range(hash).start(), Vec::new());
        loop {
            entries.clear();
            self.tags.next(hash, from, batch, &mut entries);
            for entry in &entries {
                let shard = self.shards[entry.shard()].lock();
                let object = shard.slots.get(entry.slot);
                if object.is_some_and(|object| is_it(object) && names_of(object).any(|tag| tag == name)) {
                    return true;
                }
            }
            let Some(last) = entries.last().filter(|_| entries.len() == batch) else { return false };
            from = Entry { slot: last.slot.saturating_add(1), ..*last };
        }
    }
}

impl Cache {
    /// Starts a purge of the objects that carry any of the tags in a list (separated by blanks and
    /// commas). Nothing happens before [`TagPurge::step`]. Hard: they are removed, durably. Soft:
    /// their lifetimes are shortened, durably; objects that would not become less fresh are
    /// skipped. `now`: seconds since 1970.
    pub fn purge_tags(&self, list: &[u8], purge: Purge, now: f64) -> TagPurge {
        self.purge_names(names(list).map(Arc::from).collect(), purge, RemovalReason::Purged, now)
    }

    /// Starts to remove the objects of any of these groups (each in the form of
    /// `message::stored_notes`), because a request has changed the resources; but not `except`,
    /// which is the answer to that request. Source: RFC 9875 §3.
    pub fn invalidate_groups(&self, groups: &[u8], except: Option<&Arc<Object>>, now: f64) -> TagPurge {
        let names = groups.chunks_exact(message::NOTE_BYTES).map(Arc::from).collect();
        TagPurge { except: except.cloned(), ..self.purge_names(names, Purge::Hard, RemovalReason::Invalidated, now) }
    }

    /// Starts to remove the objects of a canary and of its control group ([`mark_salted`]): no
    /// request makes their keys any more.
    pub fn purge_salted(&self, now: f64) -> TagPurge {
        let mut note = Vec::new();
        mark_salted(&mut note);
        self.purge_names(vec![Arc::from(note)], Purge::Hard, RemovalReason::Dropped, now)
    }

    /// Starts to remove the objects that carry a note, because the head that led to them has gone.
    pub(crate) fn purge_orphans(&self, note: Arc<[u8]>, now: f64) -> TagPurge {
        self.purge_names(vec![note], Purge::Hard, RemovalReason::Dropped, now)
    }

    /// Starts to count the objects that carry any of the tags in a list; changes nothing.
    pub fn count_tags(&self, list: &[u8]) -> TagCount {
        TagCount { cache: self.clone(), names: names(list).map(Arc::from).collect(), at: 0, from: None, objects: 0 }
    }

    fn purge_names(&self, names: Vec<Arc<[u8]>>, purge: Purge, reason: RemovalReason, now: f64) -> TagPurge {
        let mut ahead = HashMap::new();
        for name in &names {
            *ahead.entry(Arc::clone(name)).or_default() += 1;
        }
        let cache = self.clone();
        TagPurge { cache, names, ahead, purge, reason, except: None, now, at: 0, from: None, count: 0, objects: 0 }
    }

    /// Number of tags, and their cost.
    #[must_use]
    pub fn tag_usage(&self) -> TagUsage {
        let tags = &self.inner.tags;
        let entries = tags.entries.load(Relaxed);
        TagUsage { tags: tags.tags.load(Relaxed), entries, bytes: entries * ENTRY_BYTES as u64 }
    }
}

/// A count of objects by tags under way.
#[must_use]
pub struct TagCount {
    cache: Cache,
    names: Vec<Arc<[u8]>>,
    /// Index of the name being worked on.
    at: usize,
    /// Position in its entries at which to continue; `None` = at the first.
    from: Option<Entry>,
    objects: usize,
}

impl TagCount {
    /// Continues until about `objects` objects have been examined. Returns true when the count is
    /// complete.
    pub fn step(&mut self, objects: usize) -> bool {
        let mut left = objects.max(1);
        let mut batch = Vec::new();
        while let Some(name) = self.names.get(self.at) {
            if left == 0 {
                return false;
            }
            let inner = &self.cache.inner;
            let hash = inner.tag_hash(name);
            let most = BATCH.min(left);
            batch.clear();
            inner.tags.next(hash, self.from.unwrap_or(*range(hash).start()), most, &mut batch);
            for entry in &batch {
                let shard = inner.shards[entry.shard()].lock();
                let Some(object) = shard.slots.get(entry.slot).filter(|object| !object.is_removed()) else { continue };
                // An object with several of the tags is counted with the first.
                let first = self.names.iter().position(|one| names_of(object).any(|tag| tag == &**one));
                self.objects += usize::from(first == Some(self.at));
            }
            left -= batch.len();
            self.from = batch.last().map(|last| Entry { slot: last.slot.saturating_add(1), ..*last });
            if batch.len() < most {
                self.at += 1;
                self.from = None;
            }
        }
        true
    }

    /// Number of objects found so far, each counted once.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.objects
    }
}

/// A purge by tags under way. Like any purge it does not touch a fetch under way.
#[must_use]
pub struct TagPurge {
    cache: Cache,
    names: Vec<Arc<[u8]>>,
    /// Number of times that each name is still to come.
    ahead: HashMap<Arc<[u8]>, usize>,
    purge: Purge,
    /// The kind of removal that is recorded.
    reason: RemovalReason,
    /// The object that stays.
    except: Option<Arc<Object>>,
    now: f64,
    /// Index of the name being worked on.
    at: usize,
    /// Position in its entries at which to continue; `None` = at the first.
    from: Option<Entry>,
    count: usize,
    objects: usize,
}

impl TagPurge {
    /// Continues until about `objects` objects have been examined. Returns true when the purge is
    /// complete.
    pub fn step(&mut self, objects: usize) -> bool {
        let mut left = objects.max(1);
        let mut batch = Vec::new();
        while let Some(name) = self.names.get(self.at).map(Arc::clone) {
            if left == 0 {
                return false;
            }
            let hash = self.cache.inner.tag_hash(&name);
            if self.from.is_none()
                && let Some(ahead) = self.ahead.get_mut(&name)
            {
                *ahead -= 1;
            }
            let from = self.from.unwrap_or(*range(hash).start());
            let most = BATCH.min(left);
            batch.clear();
            self.cache.inner.tags.next(hash, from, most, &mut batch);
            self.purge(&name, &batch);
            left -= batch.len();
            self.from = batch.last().map(|last| Entry { slot: last.slot.saturating_add(1), ..*last });
            if batch.len() < most {
                self.at += 1;
                self.from = None;
            }
        }
        true
    }

    /// Number of objects purged so far. Compat: a removed object counts once for every tag in the
    /// list that it carries, an object whose life was shortened counts once.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Number of objects purged so far, each counted once.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.objects
    }

    /// Purges the objects of a tag at these locations, shard by shard.
    fn purge(&mut self, name: &[u8], entries: &[Entry]) {
        let inner = Arc::clone(&self.cache.inner);
        inner.see(self.now);
        let mut removed = Vec::new();
        for group in entries.chunk_by(|one, other| one.shard() == other.shard()) {
            let mut shard = inner.shards[group[0].shard()].lock();
            for entry in group {
                let Some(object) = shard.slots.get(entry.slot) else { continue };
                let is_excepted = self.except.as_ref().is_some_and(|except| Arc::ptr_eq(except, object));
                if object.is_removed() || is_excepted || !names_of(object).any(|tag| tag == name) {
                    continue;
                }
                match self.purge {
                    Purge::Hard => {
                        let mut tags: Vec<&[u8]> = names_of(object).collect();
                        tags.sort_unstable();
                        tags.dedup();
                        self.count += 1 + tags.iter().filter_map(|tag| self.ahead.get(*tag)).sum::<usize>();
                        let digest = inner.digest_of_object(object);
                        removed.extend(inner.discard(
                            &mut shard,
                            &digest,
                            entry.slot,
                            RemovalCause::Other(self.reason),
                        ));
                    }
                    Purge::Soft { ttl, .. } => {
                        if object.ttl() > self.now - object.origin() + ttl {
                            inner.set_life(&mut shard, entry.slot, self.purge, self.now);
                            self.count += 1;
                            self.objects += 1;
                        }
                    }
                }
            }
            shard.settle(&inner.stores);
        }
        self.objects += removed.len();
        if self.reason == RemovalReason::Purged {
            // Compat: the VMOD xkey.
            inner.totals.add(Main::NExpired, removed.len() as u64);
        }
        for object in &removed {
            let left = object.origin() - self.now;
            inner.log_purge(object, self.now, left);
        }
    }
}
