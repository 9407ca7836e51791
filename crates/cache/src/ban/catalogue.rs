//! The bans themselves, oldest first, with what is needed often: which bans say the same, how many there are of each
//! kind, and how far the lurker has got. All of it is updated as bans come and go, so only listing the bans walks the
//! whole list. *Lock*: the ban list's.

use super::Ban;
use super::specification::BanSpecification;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;

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

/// A ban, compared by what it says.
struct Saying(Arc<Ban>);

impl PartialEq for Saying {
    fn eq(&self, other: &Saying) -> bool {
        self.0.specification == other.0.specification
    }
}

impl Eq for Saying {}

impl Hash for Saying {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.specification.hash(state);
    }
}

impl std::borrow::Borrow<BanSpecification> for Saying {
    fn borrow(&self) -> &BanSpecification {
        &self.0.specification
    }
}

/// See the module header.
#[derive(Default)]
pub(super) struct Catalogue {
    list: VecDeque<Arc<Ban>>,
    /// The bans that are not completed and could be repeated, grouped by what they say, oldest first. A group has more
    /// than one member only if `ban_dups` was off.
    sayings: HashMap<Saying, VecDeque<Arc<Ban>>>,
    gauges: Gauges,
    /// No ban up to this sequence number will ever concern the lurker.
    passed_over: u64,
}

impl Catalogue {
    /// Adds a ban that is newer than all others.
    pub(super) fn push(&mut self, ban: Arc<Ban>) {
        self.count(&ban, 1);
        if !ban.is_completed() && ban.specification.can_be_repeated() {
            self.sayings.entry(Saying(Arc::clone(&ban))).or_default().push_back(Arc::clone(&ban));
        }
        self.list.push_back(ban);
    }

    /// Adds a ban that is older than all others.
    pub(super) fn reach_back(&mut self, ban: Arc<Ban>) {
        self.count(&ban, 1);
        self.list.push_front(ban);
    }

    fn count(&mut self, ban: &Ban, change: i64) {
        let add = |gauge: &mut u64, counts: bool| *gauge = gauge.saturating_add_signed(change * i64::from(counts));
        add(&mut self.gauges.bans, true);
        add(&mut self.gauges.completed, ban.is_completed());
        add(&mut self.gauges.object, ban.specification.has_object_tests());
        add(&mut self.gauges.request, ban.specification.has_request_tests());
    }

    /// Completes the bans that a new one makes redundant; returns how many.
    pub(super) fn complete_equals(&mut self, specification: &BanSpecification) -> u64 {
        if !specification.can_be_repeated() {
            return 0;
        }
        let equals = self.sayings.remove(specification).unwrap_or_default();
        equals.iter().map(|ban| u64::from(self.mark(ban))).sum()
    }

    /// Completes a ban, unless it has been dropped meanwhile.
    pub(super) fn complete(&mut self, ban: &Arc<Ban>) {
        if self.oldest().is_some_and(|oldest| oldest.sequence <= ban.sequence) {
            self.mark(ban);
            self.silence(ban);
        }
    }

    fn mark(&mut self, ban: &Ban) -> bool {
        let is_new = !ban.completed.swap(true, Ordering::AcqRel);
        self.gauges.completed += u64::from(is_new);
        is_new
    }

    /// Removes a ban from those that could be repeated.
    fn silence(&mut self, ban: &Ban) {
        let Some(equals) = self.sayings.get_mut(&ban.specification) else { return };
        // Oldest bans are dropped first, so this nearly always finds the first entry.
        if let Ok(at) = equals.binary_search_by_key(&ban.sequence, |equal| equal.sequence) {
            equals.remove(at);
        }
        if equals.is_empty() {
            self.sayings.remove(&ban.specification);
        }
    }

    /// Whether the oldest ban is older than every reference. The last ban is never dropped.
    pub(super) fn has_unreferenced_tail(&self) -> bool {
        self.list.len() > 1 && self.oldest().is_some_and(|ban| ban.references.load(Ordering::Acquire) == 0)
    }

    /// Drops the oldest ban.
    pub(super) fn forget_oldest(&mut self) {
        if let Some(ban) = self.list.pop_front() {
            self.count(&ban, -1);
            self.silence(&ban);
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
        self.list.get(self.list.partition_point(|ban| ban.sequence <= sequence).saturating_sub(1))
    }

    /// The bans newer than `sequence`, oldest first.
    pub(super) fn after(&self, sequence: u64) -> impl DoubleEndedIterator<Item = &Arc<Ban>> {
        let first = self.list.partition_point(|ban| ban.sequence <= sequence);
        #[cfg(test)]
        return self.list.range(first..).inspect(|_| steps::count());
        #[cfg(not(test))]
        self.list.range(first..)
    }

    /// Skips the bans that will never concern the lurker, up to the first that may.
    pub(super) fn pass_over(&mut self, is_nothing: impl Fn(&Ban) -> bool) {
        let passed = self.after(self.passed_over).take_while(|ban| is_nothing(ban)).last().map(|ban| ban.sequence);
        self.passed_over = passed.unwrap_or(self.passed_over);
    }

    /// The bans that have not been skipped, oldest first.
    pub(super) fn unpassed(&self) -> impl Iterator<Item = &Arc<Ban>> {
        self.after(self.passed_over)
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

    /// A list with an object that refers to its first ban, so that nothing is forgotten.
    fn held(journal: Journal) -> (BanList, Arc<Totals>) {
        let totals = Arc::new(Totals::default());
        let bans = BanList::open(journal, 1.0, Arc::clone(&totals)).unwrap();
        bans.refer(0);
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
        // A growing table may compare entries whose hashes collide; walking the list would cost millions.
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

    #[test]
    fn the_lurker_looks_at_no_ban_twice_that_is_nothing_for_it() {
        let (bans, _) = held(Journal::in_memory().unwrap());
        for number in 0..BANS {
            bans.add(saying(&format!("req.url ~ /{number}/")), 2.0, true).unwrap();
            bans.add(saying(&format!("obj.http.x == {number}")), 2.0, true).unwrap();
        }
        let (targets, _) = bans.lurkable(1000.0, 60.0);
        assert_eq!(targets.len() as u64, BANS);
        bans.complete(&targets);
        steps::taken();
        for _ in 0..100 {
            assert!(bans.lurkable(1000.0, 60.0).0.is_empty());
        }
        let steps = steps::taken();
        assert!(steps <= 2 * BANS + 1, "{steps}");
        // Young bans wait, and the first of them determines how long.
        bans.add(saying("obj.http.x == y"), 990.0, true).unwrap();
        bans.add(saying("obj.http.x == z"), 995.0, true).unwrap();
        assert_eq!(bans.lurkable(1000.0, 60.0).1, 1050.0);
        assert_eq!(bans.lurkable(1052.0, 60.0).0.len(), 1);
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
                        bans.refer(0);
                    }
                    bans.complete(&targets);
                }
                _ => {
                    bans.release(0);
                    bans.clean_tail();
                    bans.refer(0);
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
            assert_eq!(list.sayings.values().map(|equals| equals.len() as u64).sum::<u64>(), repeatable);
            assert_eq!(totals.get(Main::BansReq), walked.request);
        }
    }

    #[test]
    fn what_says_the_same_is_one_whatever_the_words_unless_its_time_matters() {
        for (one, other, is_same) in [
            ("obj.grace > 60s", "obj.grace > 1m", true),
            ("req.url == a", "req.urlx == a", true),
            ("obj.keep > 0s", "obj.keep > 0ms", true),
            ("obj.status == 200", "obj.status != 200", false),
            ("req.http.Foo == x", "req.http.foo == x", false),
            ("req.url ~ a", "req.url == a", false),
            ("req.url ~ a && obj.status == 200", "obj.status == 200 && req.url ~ a", false),
            // Each refers to what was there at its own time.
            ("obj.ttl > 1h", "obj.ttl > 1h", false),
            ("obj.age > 1h && obj.status == 200", "obj.age > 1h && obj.status == 200", false),
        ] {
            let (bans, totals) = held(Journal::in_memory().unwrap());
            bans.add(saying(one), 2.0, true).unwrap();
            bans.add(saying(other), 3.0, true).unwrap();
            assert_eq!(totals.get(Main::BansDups), u64::from(is_same), "{one}, {other}");
        }
    }
}
