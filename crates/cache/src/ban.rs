//! The ban list: conditions under which objects must no longer be served. Listed newest first, kept
//! in memory oldest first.
//!
//! A ban gets a sequence number from the journal and is durable before the command is answered.
//! Each object records, durably, the newest ban it was tested against, and counts as a reference to
//! that ban; bans older than the oldest reference are no longer needed and are dropped. A fetch
//! under way refers to the ban that was newest when it began. After a restart objects are tested
//! against the bans that are newer than their mark, so nothing banned comes back.
//!
//! A journal on a disk and objects on a disk are written at different times. So an entry leaves the
//! journal only when the removals that it caused are on the disk too ([`Cache::trim_bans`]), and an
//! object never has a mark newer than the journal ([`BanList::adopt`]).
//!
//! *Lock*: one read-write lock around the list, taken inside a shard's; in it a short one around
//! the fetches. The number of the newest ban is an atomic, so the lookup of an object that is
//! already tested takes no lock. *Invariants*: adding or dropping a ban costs the same, however
//! many there are; so does testing an object against those that are in the index. Next files:
//! `ban/pattern.rs`, `ban/specification.rs`, `ban/table.rs`, `ban/index.rs`, `ban/indexed_list.rs`,
//! `ban/lurker.rs`.

mod index;
mod indexed_list;
pub(crate) mod listing;
pub(crate) mod lurker;
pub(crate) mod pattern;
pub(crate) mod specification;
mod table;

use crate::{Cache, Totals};
use indexed_list::{IndexedList, Scope, TestCounts};
use message::Message;
use parking_lot::Mutex;
use shm::locks::ClassRwLock;
use specification::{BanSpecification, IndexCondition, ObjectView};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use store::{Journal, Object};
use surface::counter::{LockClass, Main};
use surface::limits::BAN_LIST_STEP_MAX;

/// One ban.
pub(crate) struct Ban {
    pub(crate) sequence: u64,
    /// Time at which it was added, seconds since 1970.
    pub(crate) time: f64,
    pub(crate) specification: BanSpecification,
    /// Objects and fetches whose newest tested ban is this one.
    pub(crate) references: AtomicU64,
    /// All objects have been tested, or an equal newer ban replaces it. Set by the indexed list.
    completed: AtomicBool,
    /// The number of the condition under which it is filed in the index.
    index_condition: Option<u16>,
}

impl Ban {
    /// A ban that is in no index.
    fn new(sequence: u64, time: f64, mut specification: BanSpecification, completed: bool) -> Ban {
        specification.forget_words();
        Ban {
            sequence,
            time,
            specification,
            references: AtomicU64::new(0),
            completed: AtomicBool::new(completed),
            index_condition: None,
        }
    }

    /// The clue by which the index finds it; `None` when it is not in the index.
    fn index_condition(&self) -> Option<IndexCondition<'_>> {
        self.specification.index_condition(self.index_condition?)
    }

    pub(crate) fn is_completed(&self) -> bool {
        self.completed.load(Ordering::Acquire)
    }
}

/// The ban list; see the module header.
pub(crate) struct BanList {
    /// Never empty.
    list: ClassRwLock<IndexedList>,
    newest: AtomicU64,
    /// Number of fetches under way, by the ban that was newest when they began.
    fetches: Mutex<BTreeMap<u64, usize>>,
    journal: Journal,
    /// True if the journal is on a disk.
    pub(crate) is_on_disk: bool,
    /// A ban waits for [`Cache::sync_bans`], and a caller has taken that on.
    is_sync_ordered: AtomicBool,
    /// The journal has been cut up to this sequence number.
    trimmed: AtomicU64,
    totals: Arc<Totals>,
}

impl BanList {
    /// Reads the bans of a journal. A new journal starts with a ban that bans nothing, since the
    /// list is never empty.
    pub(crate) fn open(journal: Journal, now: f64, totals: Arc<Totals>) -> io::Result<BanList> {
        if journal.entries()?.is_empty() {
            journal.append(&BanSpecification::nothing().to_journal(now))?;
            totals.add(Main::BansAdded, 1);
        }
        let mut list = IndexedList::default();
        for (sequence, entry) in journal.entries()? {
            let (time, specification) = BanSpecification::from_journal(&entry);
            let is_nothing = specification.is_nothing();
            list.push(Ban::new(sequence, time, specification, is_nothing));
        }
        let newest = list.newest().map_or(0, |ban| ban.sequence);
        let bans = BanList {
            list: ClassRwLock::new(LockClass::Ban, list),
            newest: AtomicU64::new(newest),
            fetches: Mutex::default(),
            journal,
            is_on_disk: false,
            is_sync_ordered: AtomicBool::new(false),
            trimmed: AtomicU64::new(0),
            totals,
        };
        bans.publish_gauges(&bans.list.read());
        Ok(bans)
    }

    /// The number of the newest ban.
    pub(crate) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    fn publish_gauges(&self, list: &IndexedList) {
        let gauges = list.gauges();
        self.totals.set(Main::Bans, gauges.bans);
        self.totals.set(Main::BansCompleted, gauges.completed);
        self.totals.set(Main::BansObj, gauges.object);
        self.totals.set(Main::BansReq, gauges.request);
        self.totals.set(Main::BansPersistedBytes, self.journal.bytes());
    }

    fn add(&self, specification: BanSpecification, now: f64, drop_equal: bool) -> io::Result<()> {
        let mut list = self.list.write();
        let sequence = self.journal.append(&specification.to_journal(now))?;
        if drop_equal {
            self.totals.add(Main::BansDups, list.complete_equals(&specification));
        }
        list.push(Ban::new(sequence, now, specification, false));
        self.totals.add(Main::BansAdded, 1);
        self.newest.store(sequence, Ordering::Release);
        self.cut_tail(&mut list);
        Ok(())
    }

    /// Adds a ban that bans nothing, for its number.
    pub(crate) fn add_nothing(&self, now: f64) -> io::Result<u64> {
        let mut list = self.list.write();
        let specification = BanSpecification::nothing();
        let sequence = self.journal.append(&specification.to_journal(now))?;
        list.push(Ban::new(sequence, now, specification, true));
        self.totals.add(Main::BansAdded, 1);
        self.newest.store(sequence, Ordering::Release);
        self.cut_tail(&mut list);
        Ok(sequence)
    }

    /// The oldest ban that a fetch under way refers to.
    pub(crate) fn oldest_fetch(&self) -> Option<u64> {
        self.fetches.lock().first_key_value().map(|(sequence, _)| *sequence)
    }

    pub(crate) fn journal_identity(&self) -> u64 {
        self.journal.identity()
    }

    /// Drops the bans that are older than every reference.
    pub(crate) fn clean_tail(&self) {
        let is_due = self.list.read().has_unreferenced_tail();
        if is_due {
            self.cut_tail(&mut self.list.write());
        }
    }

    /// Drops a bounded number of them, since readers wait for the lock. The next call continues.
    fn cut_tail(&self, list: &mut IndexedList) {
        for _ in 0..BAN_LIST_STEP_MAX {
            if !list.has_unreferenced_tail() {
                break;
            }
            list.forget_oldest();
            self.totals.add(Main::BansDeleted, 1);
        }
        if let Some(oldest) = list.oldest().filter(|_| !self.is_on_disk) {
            // If this fails, the journal stays larger than necessary; the next call tries again.
            let _ = self.journal.drop_older_than(oldest.sequence);
        }
        self.publish_gauges(list);
    }

    /// Makes the list begin no later than `sequence`, the mark of the oldest recovered object, so
    /// that references to it have something to point at.
    pub(crate) fn reach_back_to(&self, sequence: u64) {
        let mut list = self.list.write();
        if let Some(oldest) = list.oldest().filter(|oldest| oldest.sequence > sequence) {
            let base = Ban::new(sequence, oldest.time, BanSpecification::nothing(), true);
            list.reach_back(base);
            self.publish_gauges(&list);
        }
    }

    /// Adds the references of `count` objects that were tested up to `sequence`.
    fn refer(&self, sequence: u64, count: u64) {
        if let Some(ban) = self.list.read().at(sequence) {
            ban.references.fetch_add(count, Ordering::AcqRel);
        }
    }

    /// Adds the references of objects that an earlier process stored. If the mark of one is newer
    /// than every ban, those bans were lost in a power failure before they were on the disk: their
    /// numbers will be used again, for bans that the object has not been tested against.
    pub(crate) fn adopt<'a>(&self, objects: impl Iterator<Item = &'a Object>) {
        let newest = self.newest();
        let mut references: HashMap<u64, u64> = HashMap::new();
        for object in objects {
            let mark = object.ban();
            if mark > newest {
                object.set_ban(newest);
            }
            *references.entry(mark.min(newest)).or_default() += 1;
        }
        references.into_iter().for_each(|(mark, count)| self.refer(mark, count));
    }

    /// The oldest ban, if the journal has older ones.
    fn untrimmed(&self) -> Option<u64> {
        let oldest = self.list.read().oldest()?.sequence;
        (self.is_on_disk && oldest > self.trimmed.load(Ordering::Relaxed)).then_some(oldest)
    }

    fn trim(&self, oldest: u64) -> io::Result<()> {
        self.journal.drop_older_than(oldest)?;
        self.trimmed.fetch_max(oldest, Ordering::Relaxed);
        self.publish_gauges(&self.list.read());
        Ok(())
    }

    /// Adds the reference of a fetch that begins now; returns the number for
    /// [`BanList::release_fetch`].
    pub(crate) fn refer_to_newest(&self) -> u64 {
        let list = self.list.read();
        let Some(ban) = list.newest() else { return 0 };
        ban.references.fetch_add(1, Ordering::AcqRel);
        *self.fetches.lock().entry(ban.sequence).or_default() += 1;
        ban.sequence
    }

    /// Undoes [`BanList::refer_to_newest`].
    pub(crate) fn release_fetch(&self, sequence: u64) {
        // The reference is released last: without it the ban may be dropped, and a fetch that still
        // counts only delays the dropping of others.
        if let Entry::Occupied(mut count) = self.fetches.lock().entry(sequence) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        self.release(sequence);
    }

    /// Puts an object that enters the index without a fetch behind the newest ban.
    pub(crate) fn refer_copy(&self, copy: &Object) {
        let list = self.list.read();
        if let Some(newest) = list.newest() {
            newest.references.fetch_add(1, Ordering::AcqRel);
            copy.set_ban(newest.sequence);
        }
    }

    /// Undoes [`BanList::adopt`] and [`BanList::refer_copy`].
    pub(crate) fn release(&self, sequence: u64) {
        if let Some(ban) = self.list.read().at(sequence) {
            ban.references.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn move_reference(list: &IndexedList, object: &Object, to: u64) {
        if let (Some(from), Some(to)) = (list.at(object.ban()), list.at(to)) {
            to.references.fetch_add(1, Ordering::AcqRel);
            from.references.fetch_sub(1, Ordering::AcqRel);
            object.set_ban(to.sequence);
        }
    }

    /// Marks an object of the index as tested against all bans: the caller has made sure that none
    /// can hit it. The lock of the object's shard is held.
    pub(crate) fn pass(&self, object: &Object) {
        if object.ban() != self.newest() {
            let list = self.list.read();
            if let Some(newest) = list.newest() {
                Self::move_reference(&list, object, newest.sequence);
            }
        }
    }

    /// Tests an object of the index against the bans that it has not been tested against; returns
    /// the ban that hits it. The lock of the object's shard is held.
    pub(crate) fn check(&self, object: &Object, request: &Message, now: f64, idle_seconds: f64) -> Option<Arc<Ban>> {
        let list = self.list.read();
        let view = ObjectView::new(object, now, idle_seconds);
        let mut counts = TestCounts::default();
        let banned = list.hit((object.ban(), u64::MAX), Scope::Lookup(request), &view, &mut counts).cloned();
        self.totals.add(Main::BansTested, 1);
        self.totals.add(Main::BansTestsTested, counts.tests);
        if banned.is_some() {
            self.totals.add(Main::BansObjKilled, 1);
        } else if let Some(newest) = list.newest() {
            Self::move_reference(&list, object, newest.sequence);
        }
        banned
    }

    /// Takes in a new object; `since` was the newest ban when its fetch began. `false` when a later
    /// ban on obj.* alone hits it. Later bans on req.* are left to the lookups.
    pub(crate) fn accept(&self, object: &Object, since: u64, now: f64) -> bool {
        let list = self.list.read();
        // The object has not been used yet.
        let view = ObjectView::new(object, now, 0.0);
        if list.hit((since, u64::MAX), Scope::Arrival, &view, &mut TestCounts::default()).is_some() {
            return false;
        }
        let newest = list.newest().map_or(since, |ban| ban.sequence);
        let tested_up_to = list.request_ban_after(since).map_or(newest, |sequence| sequence - 1);
        let Some(ban) = list.at(tested_up_to) else { return true };
        ban.references.fetch_add(1, Ordering::AcqRel);
        object.set_ban(ban.sequence);
        true
    }
}

impl Cache {
    /// Adds a ban. On return it survives the worker's death; if the journal is on a disk, a power
    /// failure may undo it until [`Cache::sync_bans`].
    ///
    /// # Errors
    /// The journal cannot be written; the text is for the CLI.
    pub fn ban(&self, specification: BanSpecification, now: f64) -> Result<(), String> {
        self.inner.see(now);
        let drop_equal = self.inner.parameters.ban_dups.load(Ordering::Relaxed);
        self.inner.bans.add(specification, now, drop_equal).map_err(|error| format!("Cannot record the ban: {error}"))
    }

    /// True if a ban has been added that may not be on the disk yet, and no other caller has taken
    /// that on: the caller that gets `true` calls [`Cache::sync_bans`] soon.
    #[must_use]
    pub fn orders_sync(&self) -> bool {
        self.inner.bans.is_on_disk && !self.inner.bans.is_sync_ordered.swap(true, Ordering::AcqRel)
    }

    /// Waits until no power failure can undo the bans that were added before the call. Blocks.
    ///
    /// # Errors
    /// Any error that the disk reports.
    pub fn sync_bans(&self) -> io::Result<()> {
        self.inner.bans.is_sync_ordered.store(false, Ordering::Release);
        self.inner.bans.journal.sync()
    }

    /// Cuts off the bans that are no longer needed, for a journal on a disk: the objects that they
    /// removed must be gone from the disk first, or they would come back with no ban against them.
    /// Call it now and then.
    pub async fn trim_bans(&self) {
        let Some(oldest) = self.inner.bans.untrimmed() else { return };
        for store in self.stores() {
            if !store.settle().await {
                return;
            }
        }
        let inner = Arc::clone(&self.inner);
        // If it fails, the journal stays larger than necessary; the next call tries again.
        let _ = tokio::task::spawn_blocking(move || inner.bans.trim(oldest)).await;
    }
}
