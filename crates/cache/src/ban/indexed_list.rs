//! The bans themselves, oldest first, with the derived state that is needed often: the bans that
//! may hit an object, equal bans, the number of bans of each kind, and the progress of the lurker.
//! All of it is updated as bans are added and dropped, so only listing the bans walks the whole
//! list. *Lock*: the ban list's. *Invariant*: a ban that may still hit something is in the index or
//! in `walked`, never in both.

use super::Ban;
use super::index::Index;
use super::specification::{BanSpecification, ObjectView};
use super::table::Table;
use message::Message;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound::{Excluded, Included};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use surface::limits::{BAN_LIST_STEP_MAX, BAN_WALK_MAX};

/// The number of bans of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Gauges {
    pub(super) bans: u64,
    pub(super) completed: u64,
    /// Bans that test the object.
    pub(super) object: u64,
    /// Bans that test the request.
    pub(super) request: u64,
}

/// The bans that count for an object.
#[derive(Clone, Copy)]
pub(super) enum Scope<'a> {
    /// A lookup for a request: all bans that are not completed.
    Lookup(&'a Message),
    /// The lurker: of those, the bans on objects alone.
    Lurker,
    /// A new object: the bans on objects alone, even completed ones, since they cover only the
    /// objects that were in the index then.
    Arrival,
}

impl Scope<'_> {
    fn has(&self, ban: &Ban) -> bool {
        match self {
            Scope::Lookup(_) => !ban.is_completed(),
            Scope::Lurker => is_for_lurker(ban),
            Scope::Arrival => !ban.specification.has_request_tests(),
        }
    }

    fn request(&self) -> Option<&Message> {
        if let Scope::Lookup(request) = self { Some(request) } else { None }
    }
}

/// Numbers of tests made.
#[derive(Default)]
pub(super) struct TestCounts {
    pub(super) bans: u64,
    pub(super) tests: u64,
}

impl TestCounts {
    /// True if a ban hits an object.
    pub(super) fn hits(&mut self, ban: &Ban, object: &ObjectView<'_>, request: Option<&Message>) -> bool {
        self.bans += 1;
        ban.specification.hits(object, ban.time, request, &mut self.tests)
    }
}

/// The bans after a sequence number, up to another.
type Range = (u64, u64);

fn is_for_lurker(ban: &Ban) -> bool {
    !ban.is_completed() && !ban.specification.has_request_tests()
}

/// The bans; see the module header.
#[derive(Default)]
pub(super) struct IndexedList {
    list: VecDeque<Arc<Ban>>,
    index: Index,
    /// The bans that are not in the index, by sequence number.
    walked: BTreeMap<u64, Arc<Ban>>,
    /// The sequence numbers of the bans on requests that are not completed.
    of_requests: BTreeSet<u64>,
    /// The bans that are not completed and could be repeated, by their text.
    sayings: Table,
    gauges: Gauges,
    /// No ban up to this sequence number will concern the lurker again, except one of the current
    /// pass.
    lurked: u64,
    /// The bans up to this sequence number are old enough for the lurker.
    ripe: u64,
    /// There are bans between the two.
    has_ripe: bool,
}

impl IndexedList {
    /// Adds a ban that is newer than all others.
    pub(super) fn push(&mut self, mut ban: Ban) {
        if !ban.specification.is_nothing() {
            ban.index_condition = self.index.choose(ban.specification.clues());
        }
        let ban = Arc::new(ban);
        self.count(&ban, 1);
        if !ban.is_completed() {
            if ban.index_condition.is_some() {
                self.index.add(&ban);
            } else {
                self.walked.insert(ban.sequence, Arc::clone(&ban));
            }
            if ban.specification.has_request_tests() {
                self.of_requests.insert(ban.sequence);
            }
            if ban.specification.can_be_repeated() {
                let hash = self.sayings.hash(&ban.specification);
                self.sayings.push(hash, &ban);
            }
        }
        self.list.push_back(ban);
    }

    /// Adds a ban that is older than all others and hits nothing.
    pub(super) fn reach_back(&mut self, ban: Ban) {
        self.count(&ban, 1);
        self.list.push_front(Arc::new(ban));
    }

    /// A ban that hits an object, among those in `range`. Short ranges are walked, newest first.
    pub(super) fn hit(
        &self,
        range: Range,
        scope: Scope<'_>,
        object: &ObjectView<'_>,
        counts: &mut TestCounts,
    ) -> Option<&Arc<Ban>> {
        let request = scope.request();
        if self.is_short(range) {
            let mut bans = self.between(range).rev();
            return bans.find(|ban| scope.has(ban) && counts.hits(ban, object, request));
        }
        let found = self.indexed_hit(range, scope, object, counts);
        found.or_else(|| {
            let mut bans = self.walked_between(range).rev();
            bans.find(|ban| scope.has(ban) && counts.hits(ban, object, request))
        })
    }

    /// The same among those in the index only.
    pub(super) fn indexed_hit(
        &self,
        range: Range,
        scope: Scope<'_>,
        object: &ObjectView<'_>,
        counts: &mut TestCounts,
    ) -> Option<&Arc<Ban>> {
        let request = scope.request();
        self.index.newest(range, object, request, |ban| scope.has(ban) && counts.hits(ban, object, request))
    }

    /// True if there are so few bans that testing each of them costs no more than a query of the
    /// index.
    pub(super) fn is_short(&self, range: Range) -> bool {
        self.places(range).len() <= BAN_WALK_MAX
    }

    fn walked_between(&self, (since, until): Range) -> impl DoubleEndedIterator<Item = &Arc<Ban>> {
        self.walked.range((Excluded(since), Included(until.max(since)))).map(|(_, ban)| ban)
    }

    /// The oldest ban on requests after `since` that is not completed.
    pub(super) fn request_ban_after(&self, since: u64) -> Option<u64> {
        self.of_requests.range(since.saturating_add(1)..).next().copied()
    }

    fn count(&mut self, ban: &Ban, change: i64) {
        let add = |gauge: &mut u64, counts: bool| *gauge = gauge.saturating_add_signed(change * i64::from(counts));
        add(&mut self.gauges.bans, true);
        add(&mut self.gauges.completed, ban.is_completed());
        add(&mut self.gauges.object, ban.specification.has_object_tests());
        add(&mut self.gauges.request, ban.specification.has_request_tests());
    }

    /// Completes the bans that a new one makes redundant; returns their number.
    pub(super) fn complete_equals(&mut self, specification: &BanSpecification) -> u64 {
        if !specification.can_be_repeated() {
            return 0;
        }
        let hash = self.sayings.hash(specification);
        let alike = self.sayings.bans(hash).iter();
        let equals: SmallVec<[_; 1]> = alike.filter(|ban| ban.specification == *specification).cloned().collect();
        let mut completed = 0;
        for ban in &equals {
            completed += u64::from(self.mark(ban));
            // The new ban hits everything that the old one hits, including later arrivals.
            self.withdraw(ban);
            self.sayings.remove(hash, ban.sequence);
        }
        completed
    }

    /// Takes out a ban that need not be tested any more.
    fn withdraw(&mut self, ban: &Ban) {
        self.index.remove(ban);
        self.walked.remove(&ban.sequence);
        self.of_requests.remove(&ban.sequence);
    }

    fn mark(&mut self, ban: &Ban) -> bool {
        let is_new = !ban.completed.swap(true, Ordering::AcqRel);
        self.gauges.completed += u64::from(is_new);
        is_new
    }

    /// Removes a ban from those that could be repeated.
    fn silence(&mut self, ban: &Ban) {
        let hash = self.sayings.hash(&ban.specification);
        self.sayings.remove(hash, ban.sequence);
    }

    /// True if the oldest ban is older than every reference. The last ban is never dropped.
    pub(super) fn has_unreferenced_tail(&self) -> bool {
        self.list.len() > 1 && self.oldest().is_some_and(|ban| ban.references.load(Ordering::Acquire) == 0)
    }

    /// Drops the oldest ban.
    pub(super) fn forget_oldest(&mut self) {
        if let Some(ban) = self.list.pop_front() {
            self.count(&ban, -1);
            self.silence(&ban);
            self.withdraw(&ban);
        }
    }

    pub(super) fn oldest(&self) -> Option<&Arc<Ban>> {
        self.list.front()
    }

    pub(super) fn newest(&self) -> Option<&Arc<Ban>> {
        self.list.back()
    }

    /// The `count`th newest ban; 1 is the newest.
    pub(super) fn nth_newest(&self, count: usize) -> Option<&Arc<Ban>> {
        self.list.get(self.list.len().checked_sub(count)?)
    }

    /// The newest ban that is not newer than `sequence`.
    pub(super) fn at(&self, sequence: u64) -> Option<&Arc<Ban>> {
        self.list.get(self.place_after(sequence).saturating_sub(1))
    }

    /// The position of the oldest ban newer than `sequence`.
    fn place_after(&self, sequence: u64) -> usize {
        let count = self.list.len();
        let newest = self.newest().map_or(0, |newest| newest.sequence);
        if sequence >= newest {
            return count;
        }
        // Numbers rarely have gaps.
        let distance = usize::try_from(newest - sequence).unwrap_or(usize::MAX);
        match count.checked_sub(distance) {
            Some(place) if place > 0 && self.list[place - 1].sequence == sequence => place,
            _ => self.list.partition_point(|ban| ban.sequence <= sequence),
        }
    }

    fn places(&self, (since, until): Range) -> std::ops::Range<usize> {
        let end = self.place_after(until);
        self.place_after(since).min(end)..end
    }

    fn between(&self, range: Range) -> impl DoubleEndedIterator<Item = &Arc<Ban>> {
        let found = self.list.range(self.places(range));
        #[cfg(test)]
        return found.inspect(|_| steps::count());
        #[cfg(not(test))]
        found
    }

    /// The bans newer than `sequence`, oldest first.
    pub(super) fn after(&self, sequence: u64) -> impl DoubleEndedIterator<Item = &Arc<Ban>> {
        self.between((sequence, u64::MAX))
    }

    /// Looks for bans that have become old enough for the lurker, a bounded number at a time;
    /// returns the time at which to look again.
    pub(super) fn ripen(&mut self, now: f64, age: f64) -> f64 {
        let (mut ripe, mut has_ripe, mut due) = (self.ripe, self.has_ripe, f64::INFINITY);
        for (count, ban) in self.after(self.ripe).enumerate() {
            if count == BAN_LIST_STEP_MAX {
                due = now;
                break;
            }
            if ban.time + age > now {
                due = ban.time + age;
                break;
            }
            ripe = ban.sequence;
            has_ripe |= is_for_lurker(ban);
        }
        (self.ripe, self.has_ripe) = (ripe, has_ripe);
        due
    }

    /// The bans that are ripe for the lurker, if any: the range, and the bans in it that are not in
    /// the index.
    pub(super) fn take_ripe(&mut self) -> Option<(Range, Vec<Arc<Ban>>)> {
        let range = (self.lurked, self.ripe);
        self.lurked = self.ripe;
        let has_ripe = std::mem::take(&mut self.has_ripe);
        has_ripe.then(|| (range, self.walked_between(range).filter(|ban| is_for_lurker(ban)).cloned().collect()))
    }

    /// Undoes [`IndexedList::take_ripe`].
    pub(super) fn give_back(&mut self, (since, _): Range) {
        (self.lurked, self.has_ripe) = (since, true);
    }

    /// Completes some of the bans that the lurker has tested every object against; returns the last
    /// one completed.
    pub(super) fn complete(&mut self, (since, until): Range) -> u64 {
        let some: Vec<_> = self.between((since, until)).take(BAN_LIST_STEP_MAX).cloned().collect();
        for ban in some.iter().filter(|ban| is_for_lurker(ban)) {
            self.mark(ban);
            self.silence(ban);
        }
        if some.len() < BAN_LIST_STEP_MAX { until } else { some.last().map_or(until, |ban| ban.sequence) }
    }

    /// Drops the completed bans of a range from a long list although older ones have to stay;
    /// returns their number. The oldest fetch under way began after `oldest_fetch`: it may still
    /// need the newer ones.
    pub(super) fn thin(&mut self, range: Range, oldest_fetch: u64) -> u64 {
        if self.list.len() <= BAN_LIST_STEP_MAX {
            return 0;
        }
        // The first and the last ban always stay.
        let places = self.places(range);
        let (start, end) = (places.start.max(1), places.end.min(self.list.len() - 1));
        if start >= end {
            return 0;
        }
        let behind = self.list.split_off(end);
        let some = self.list.split_off(start);
        let mut dropped = 0;
        for ban in some {
            if !ban.is_completed() || ban.sequence > oldest_fetch {
                self.list.push_back(ban);
                continue;
            }
            // References to it count for the ban before it from now on: see `at`.
            if let Some(before) = self.newest() {
                before.references.fetch_add(ban.references.load(Ordering::Acquire), Ordering::AcqRel);
            }
            self.count(&ban, -1);
            self.withdraw(&ban);
            dropped += 1;
        }
        self.list.extend(behind);
        dropped
    }

    pub(super) fn gauges(&self) -> Gauges {
        self.gauges
    }
}

/// Counts the bans looked at and compared, so that tests can check that number.
#[cfg(test)]
pub(super) mod steps {
    use std::cell::Cell;

    thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    pub(in crate::ban) fn count() {
        STEPS.set(STEPS.get() + 1);
    }

    /// The count since the last call.
    pub(super) fn taken() -> u64 {
        STEPS.take()
    }
}

#[cfg(test)]
mod tests {
    use super::super::BanList;
    use super::*;
    use crate::Totals;
    use store::Journal;
    use surface::counter::Main;

    const BANS: u64 = 5000;

    fn saying(text: &str) -> BanSpecification {
        BanSpecification::parse_text(text).unwrap()
    }

    /// A list with an object that refers to its first ban, so that nothing is dropped.
    fn held(journal: Journal) -> (BanList, Arc<Totals>) {
        let totals = Arc::new(Totals::default());
        let bans = BanList::open(journal, 1.0, Arc::clone(&totals)).unwrap();
        bans.refer(0, 1);
        (bans, totals)
    }

    #[test]
    fn the_ten_thousandth_ban_costs_no_more_than_the_first() {
        let (bans, totals) = held(Journal::in_memory().unwrap());
        steps::taken();
        for number in 0..BANS {
            bans.add(saying(&format!("obj.http.x == {number}")), 2.0, true).unwrap();
            bans.add(saying(&format!("req.url ~ /{number}/")), 2.0, true).unwrap();
        }
        // A growing table may compare entries whose hashes collide; walking the list would cost
        // millions.
        let steps = steps::taken();
        assert!(steps < BANS, "{steps} bans were looked at for {} new ones", 2 * BANS);
        assert_eq!(totals.get(Main::Bans), 2 * BANS + 1);
        assert_eq!((totals.get(Main::BansObj), totals.get(Main::BansReq)), (BANS, BANS));
        // Each ban again: each one completes its predecessor.
        for number in 0..BANS {
            bans.add(saying(&format!("obj.http.x == {number}")), 3.0, true).unwrap();
        }
        let steps = steps::taken();
        assert!(steps <= 4 * BANS, "{steps} bans were looked at for {BANS} new ones");
        assert_eq!((totals.get(Main::BansDups), totals.get(Main::BansCompleted)), (BANS, BANS + 1));
    }

    #[test]
    fn a_journal_of_many_bans_is_read_without_comparing_them() {
        let journal = Journal::in_memory().unwrap();
        for number in 0..BANS {
            journal.append(&saying(&format!("obj.http.x == {number}")).to_journal(1.0)).unwrap();
        }
        steps::taken();
        let (bans, totals) = held(journal);
        assert!(steps::taken() < BANS);
        assert_eq!(totals.get(Main::Bans), BANS);
        bans.add(saying("obj.http.x == 7"), 2.0, true).unwrap();
        assert_eq!(totals.get(Main::BansDups), 1, "what was read is known, too");
    }

    /// Runs passes of the lurker over no objects until there is nothing to do; returns their
    /// number.
    fn lurk(bans: &BanList) -> usize {
        let mut passes = 0;
        loop {
            let (targets, due) = bans.lurkable(1000.0, 1.0);
            if let Some(mut targets) = targets {
                passes += 1;
                while !bans.complete(&mut targets) {}
            } else if due > 1000.0 {
                return passes;
            }
        }
    }

    #[test]
    fn the_lurker_looks_at_no_ban_twice_that_is_nothing_for_it() {
        let (bans, _) = held(Journal::in_memory().unwrap());
        for number in 0..BANS {
            bans.add(saying(&format!("req.url ~ /{number}/")), 2.0, true).unwrap();
            bans.add(saying(&format!("obj.http.x == {number}")), 2.0, true).unwrap();
        }
        assert_eq!(lurk(&bans), 1, "one pass is for all bans, since it looks at every object");
        assert_eq!(bans.list.read().gauges().object, 1, "only the newest is left");
        let steps = steps::taken();
        assert!(steps <= 7 * BANS, "{steps}");
        for _ in 0..100 {
            assert!(bans.lurkable(1000.0, 60.0).0.is_none());
        }
        assert_eq!(steps::taken(), 0);
        // Young bans wait until the first of them is old enough.
        bans.add(saying("obj.http.x == y"), 990.0, true).unwrap();
        bans.add(saying("obj.http.x == z"), 995.0, true).unwrap();
        assert_eq!(bans.lurkable(1000.0, 60.0).1, 1050.0);
        assert!(bans.lurkable(1052.0, 60.0).0.is_some());
    }

    #[test]
    fn completed_bans_leave_a_long_list_even_if_an_old_one_stays() {
        let (bans, totals) = held(Journal::in_memory().unwrap());
        bans.add(saying("req.url == /never"), 2.0, true).unwrap();
        for number in 0..BANS {
            bans.add(saying(&format!("obj.http.x == {number}")), 2.0, true).unwrap();
        }
        // A fetch begins, and an object refers to a ban in the middle.
        let fetch = bans.refer_to_newest();
        let middle = fetch - 100;
        bans.refer(middle, 1);
        for number in 0..BANS {
            bans.add(saying(&format!("obj.http.y == {number}")), 2.0, true).unwrap();
        }
        lurk(&bans);
        let left = totals.get(Main::Bans);
        assert_eq!(left, 2 + BANS, "the oldest two, and what came after the fetch began");
        assert_eq!(totals.get(Main::BansDeleted), BANS);
        // The references are counted where `at` looks for them.
        let references = |bans: &BanList| -> u64 {
            bans.list.read().list.iter().map(|ban| ban.references.load(Ordering::Relaxed)).sum()
        };
        assert_eq!(references(&bans), 3);
        bans.release_fetch(fetch);
        bans.release(middle);
        assert_eq!(references(&bans), 1);
        let is_zero =
            |bans: &BanList, sequence| bans.list.read().at(sequence).unwrap().references.load(Ordering::Relaxed) == 0;
        assert!(is_zero(&bans, fetch) && is_zero(&bans, middle));
        bans.release(0);
        while bans.list.read().has_unreferenced_tail() {
            bans.clean_tail();
        }
        assert_eq!(totals.get(Main::Bans), 1);
    }

    #[test]
    fn gauges_are_what_a_walk_would_count() {
        let (bans, totals) = held(Journal::in_memory().unwrap());
        let mut random = 1u64;
        for step in 0..3000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = (random >> 33) % 7;
            match (random >> 40) % 5 {
                0 => bans.add(saying(&format!("obj.status == {number}")), 2.0, true).unwrap(),
                1 => bans.add(saying(&format!("obj.ttl > {number}s && req.url ~ {number}")), 2.0, true).unwrap(),
                2 => bans.add(saying(&format!("obj.status == {number}")), 2.0, false).unwrap(),
                3 => {
                    let (targets, _) = bans.lurkable(1000.0, 1.0);
                    // A ban that the lurker is working on may be dropped before it is done.
                    if step % 2 == 0 {
                        bans.release(0);
                        bans.clean_tail();
                        bans.refer(0, 1);
                    }
                    if let Some(mut targets) = targets {
                        while !bans.complete(&mut targets) {}
                    }
                }
                _ => {
                    bans.release(0);
                    bans.clean_tail();
                    bans.refer(0, 1);
                }
            }
            let list = bans.list.read();
            let count = |test: &dyn Fn(&Ban) -> bool| list.list.iter().filter(|ban| test(ban)).count() as u64;
            let walked = Gauges {
                bans: list.list.len() as u64,
                completed: count(&Ban::is_completed),
                object: count(&|ban| ban.specification.has_object_tests()),
                request: count(&|ban| ban.specification.has_request_tests()),
            };
            assert_eq!(list.gauges(), walked);
            let repeatable = count(&|ban| !ban.is_completed() && ban.specification.can_be_repeated());
            assert_eq!(list.sayings.len() as u64, repeatable);
            let pending = |ban: &Ban| !ban.is_completed();
            for ban in list.list.iter().filter(|ban| pending(ban)) {
                assert_eq!(
                    list.walked.contains_key(&ban.sequence),
                    ban.index_condition.is_none(),
                    "in one of the two places"
                );
            }
            let of_requests = count(&|ban| pending(ban) && ban.specification.has_request_tests());
            assert_eq!(list.of_requests.len() as u64, of_requests);
            assert_eq!(totals.get(Main::BansReq), walked.request);
        }
    }

    #[test]
    fn equivalent_bans_are_duplicates_unless_they_depend_on_their_time() {
        for (one, other, is_same) in [
            ("obj.grace > 60s", "obj.grace > 1m", true),
            ("obj.keep > 0s", "obj.keep > 0ms", true),
            ("obj.status == 200", "obj.status != 200", false),
            ("req.http.Foo == x", "req.http.foo == x", false),
            ("req.url ~ a", "req.url == a", false),
            ("req.url ~ a && obj.status == 200", "obj.status == 200 && req.url ~ a", false),
            // Each refers to the values of its own time.
            ("obj.ttl > 1h", "obj.ttl > 1h", false),
            ("obj.age > 1h && obj.status == 200", "obj.age > 1h && obj.status == 200", false),
        ] {
            let (bans, totals) = held(Journal::in_memory().unwrap());
            bans.add(saying(one), 2.0, true).unwrap();
            bans.add(saying(other), 3.0, true).unwrap();
            assert_eq!(totals.get(Main::BansDups), u64::from(is_same), "{one}, {other}");
        }
    }

    #[test]
    fn journal_on_a_disk_is_trimmed_only_on_request() {
        let totals = Arc::new(Totals::default());
        let mut bans = BanList::open(Journal::in_memory().unwrap(), 1.0, Arc::clone(&totals)).unwrap();
        bans.is_on_disk = true;
        for number in 0..5 {
            bans.add(saying(&format!("obj.http.x == {number}")), 2.0, true).unwrap();
        }
        // Nothing refers to any of them, so only the newest is needed.
        assert_eq!((totals.get(Main::Bans), bans.journal.entries().unwrap().len()), (1, 6));
        assert_eq!(bans.untrimmed(), Some(6));
        bans.trim(6).unwrap();
        assert_eq!((bans.journal.entries().unwrap().len(), bans.untrimmed()), (1, None));
    }
}
