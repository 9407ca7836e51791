//! The ban lurker: tests objects in the background against bans on obj.* alone, so that those bans
//! can be dropped.
//!
//! ```text
//! idle ──a ban is old enough──▶ pass over all shards ──▶ completion of its bans ──▶ idle
//!                               (in batches)             (in batches)
//! ```
//!
//! A pass examines each object once, for any number of bans, as far as these are in the index. Bans
//! on req.* need a request and are left to lookups. An object that arrives during a pass is tested
//! on arrival (`BanList::accept`). When a shard is locked the lurker skips it for now: lookups have
//! priority.

use super::indexed_list::{Scope, TestCounts};
use super::{Ban, BanList};
use crate::Inner;
use crate::ban::specification::ObjectView;
use crate::removal_history::RemovalCause;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::Object;
use surface::counter::Main;
use surface::reason::RemovalReason;
use surface::tag::Tag;

/// The bans that objects are tested against.
#[derive(Default)]
pub(super) struct Targets {
    /// The bans on objects alone after the first sequence number, up to the second.
    range: (u64, u64),
    /// Those of them that are not in the index, oldest first.
    walked: Vec<Arc<Ban>>,
}

/// A pass under way.
struct Pass {
    targets: Targets,
    /// Objects whose mark is older than this are removed, whether or not a ban hits them; 0 = off.
    cutoff: u64,
    shard: usize,
    slot: u32,
}

/// The state of the lurker.
#[derive(Default)]
pub(crate) struct Lurker {
    pass: Option<Pass>,
    resume_at: f64,
}

enum Verdict {
    Stays,
    Banned(Arc<Ban>),
    CutOff,
}

impl BanList {
    /// The bans that the lurker may test now, and the time at which the next ones may be old
    /// enough.
    pub(super) fn lurkable(&self, now: f64, age: f64) -> (Option<Targets>, f64) {
        // Usually there is nothing to test, so the write lock is held only briefly.
        let mut list = self.list.write();
        let due = list.ripen(now, age);
        if due <= now {
            // A pass examines every object, so it begins when all ripe bans are known.
            return (None, now);
        }
        (list.take_ripe().map(|(range, walked)| Targets { range, walked }), due)
    }

    /// The sequence number of the `count`th newest ban; 0 when there are no more than `count`.
    fn cutoff(&self, count: u64) -> u64 {
        let list = self.list.read();
        if count == 0 || list.gauges().bans <= count {
            return 0;
        }
        list.nth_newest(count as usize).map_or(0, |ban| ban.sequence)
    }

    /// Tests one object; moves its mark up to the last ban before which none is left untested.
    fn lurk_at(&self, object: &Object, pass: &Pass, now: f64, idle_seconds: f64) -> Verdict {
        let since = object.ban();
        if since < pass.cutoff {
            self.totals.add(Main::BansLurkerObjKilledCutoff, 1);
            return Verdict::CutOff;
        }
        let range = (since, pass.targets.range.1);
        if since >= range.1 {
            return Verdict::Stays;
        }
        let view = ObjectView::new(object, now, idle_seconds);
        let mut counts = TestCounts::default();
        let banned = self.lurk_hit(range, &view, &pass.targets.walked, &mut counts);
        self.totals.add(Main::BansLurkerTested, counts.bans);
        self.totals.add(Main::BansLurkerTestsTested, counts.tests);
        if let Some(ban) = banned {
            self.totals.add(Main::BansLurkerObjKilled, 1);
            return Verdict::Banned(ban);
        }
        let list = self.list.read();
        let reached = list.request_ban_after(since).map_or(range.1, |sequence| range.1.min(sequence - 1));
        if list.at(reached).is_some_and(|ban| ban.sequence > since) {
            Self::move_reference(&list, object, reached);
        }
        Verdict::Stays
    }

    /// A ban that hits an object. `walked`: the bans that are not in the index.
    fn lurk_hit(
        &self,
        range: (u64, u64),
        view: &ObjectView<'_>,
        walked: &[Arc<Ban>],
        counts: &mut TestCounts,
    ) -> Option<Arc<Ban>> {
        {
            let list = self.list.read();
            if list.is_short(range) {
                return list.hit(range, Scope::Lurker, view, counts).cloned();
            }
            if let Some(ban) = list.indexed_hit(range, Scope::Lurker, view, counts) {
                return Some(Arc::clone(ban));
            }
        }
        // There may be many, so this is done without the lock.
        let mut walked = walked.iter().rev().take_while(|ban| ban.sequence > range.0);
        walked.find(|ban| counts.hits(ban, view, None)).cloned()
    }

    /// Completes some of a pass's bans; returns true if all of them are complete.
    pub(super) fn complete(&self, targets: &mut Targets) -> bool {
        let mut list = self.list.write();
        let begin = targets.range.0;
        targets.range.0 = list.complete(targets.range);
        let oldest_fetch = self.fetches.lock().keys().next().copied().unwrap_or(u64::MAX);
        let dropped = list.thin((begin, targets.range.0), oldest_fetch);
        self.totals.add(Main::BansDeleted, dropped);
        self.cut_tail(&mut list);
        targets.range.0 == targets.range.1
    }

    /// Leaves the bans of a pass to a later one.
    fn give_back(&self, targets: &Targets) {
        self.list.write().give_back(targets.range);
    }
}

impl Inner {
    /// Does one step of the lurker; returns the time at which the next one is due.
    pub(crate) fn lurk(&self, now: f64) -> f64 {
        let sleep = self.parameters.lurker_sleep.get();
        let mut lurker = self.lurker.lock();
        if sleep <= 0.0 {
            if let Some(pass) = lurker.pass.take() {
                self.bans.give_back(&pass.targets);
            }
            // Without a lurker, lookups still advance the marks of objects; bans that become
            // unreferenced are dropped here.
            self.bans.clean_tail();
            return f64::INFINITY;
        }
        if now < lurker.resume_at {
            return lurker.resume_at;
        }
        self.bans.clean_tail();
        if lurker.pass.is_none() {
            let (targets, next) = self.bans.lurkable(now, self.parameters.lurker_age.get());
            let cutoff = self.bans.cutoff(self.parameters.ban_cutoff.load(Ordering::Relaxed));
            if targets.is_none() && cutoff == 0 {
                return next;
            }
            lurker.pass = Some(Pass { targets: targets.unwrap_or_default(), cutoff, shard: 0, slot: 0 });
        }
        let Some(mut pass) = lurker.pass.take() else { return f64::INFINITY };
        lurker.resume_at = now + sleep;
        match self.lurk_on(&mut pass, now) {
            Progress::Done if self.bans.complete(&mut pass.targets) => {}
            Progress::Done | Progress::Batch => lurker.pass = Some(pass),
            Progress::Contended => {
                self.totals.add(Main::BansLurkerContention, 1);
                lurker.resume_at = now + self.parameters.lurker_holdoff.get();
                lurker.pass = Some(pass);
            }
        }
        lurker.resume_at
    }

    /// Continues a pass by one batch.
    fn lurk_on(&self, pass: &mut Pass, now: f64) -> Progress {
        let mut left = self.parameters.lurker_batch.load(Ordering::Relaxed);
        while let Some(shard) = self.shards.get(pass.shard) {
            let Some(mut shard) = shard.try_lock() else { return Progress::Contended };
            let mut removed = Vec::new();
            while pass.slot < shard.slots.len() && left > 0 {
                let slot = pass.slot;
                pass.slot += 1;
                let Some(object) = shard.slots.get(slot) else { continue };
                left -= 1;
                let verdict = self.bans.lurk_at(object, pass, now, self.idle_seconds(object, now));
                let (killer, cause) = match &verdict {
                    Verdict::Stays => continue,
                    Verdict::Banned(ban) => ("lurker", RemovalCause::Banned(ban)),
                    Verdict::CutOff => ("lurker cutoff", RemovalCause::Other(RemovalReason::CutOff)),
                };
                self.log(Tag::ExpBan, format_args!("{} banned by {killer}", object.vxid()));
                let digest = self.digest_of_object(object);
                removed.extend(self.discard(&mut shard, &digest, slot, cause));
            }
            if pass.slot >= shard.slots.len() {
                pass.shard += 1;
                pass.slot = 0;
            }
            shard.settle(&self.stores);
            drop(shard);
            for removed in removed {
                self.log_removal(&removed);
            }
            if left == 0 {
                return Progress::Batch;
            }
        }
        Progress::Done
    }
}

enum Progress {
    Done,
    Batch,
    Contended,
}
