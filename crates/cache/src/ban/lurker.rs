//! The ban lurker: tests objects in the background against bans on obj.* alone, so that those bans can be dropped.
//!
//! ```text
//! idle ──a ban is old enough──▶ pass over all shards, a batch at a time ──end──▶ its bans are completed ──▶ idle
//! ```
//!
//! Bans on req.* need a request and are left to lookups. An object that arrives during a pass is tested on arrival
//! (`BanList::accept`). When a shard is locked the lurker steps back: lookups come first.

use super::{Ban, BanList};
use crate::Inner;
use crate::ban::specification::ObjectView;
use crate::departure::Leaving;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::Object;
use surface::counter::Main;
use surface::reason::Departure;
use surface::tag::Tag;

/// A pass under way.
struct Pass {
    /// What objects are tested against, oldest first.
    targets: Vec<Arc<Ban>>,
    /// Objects whose mark is older than this are removed, whatever the bans say; 0 = off.
    cutoff: u64,
    shard: usize,
    slot: u32,
}

/// Where the lurker is.
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
    /// The bans that the lurker may test now, and when the next one will be old enough.
    pub(super) fn lurkable(&self, now: f64, age: f64) -> (Vec<Arc<Ban>>, f64) {
        // Usually there is nothing to test, so the write lock is held only briefly.
        let mut list = self.list.write();
        list.pass_over(|ban| ban.is_completed() || ban.specification.has_request_tests());
        let mut targets = Vec::new();
        for ban in list.unpassed() {
            if ban.time + age > now {
                return (targets, ban.time + age);
            }
            if !ban.is_completed() && !ban.specification.has_request_tests() {
                targets.push(Arc::clone(ban));
            }
        }
        (targets, f64::INFINITY)
    }

    /// The sequence number of the `count`th newest ban; 0 when there are no more than `count`.
    fn cutoff(&self, count: u64) -> u64 {
        let list = self.list.read();
        if count == 0 || list.gauges().bans <= count {
            return 0;
        }
        list.nth_newest(count as usize).map_or(0, |ban| ban.sequence)
    }

    /// Tests one object; moves its mark up to the last ban before which nothing is left untested.
    fn lurk_at(&self, object: &Object, pass: &Pass, now: f64, idle_seconds: f64) -> Verdict {
        let since = object.ban();
        if since < pass.cutoff {
            self.totals.add(Main::BansLurkerObjKilledCutoff, 1);
            return Verdict::CutOff;
        }
        let view = ObjectView::new(object, now, idle_seconds);
        for ban in pass.targets.iter().rev().take_while(|ban| ban.sequence > since) {
            let mut tests = 0;
            let banned = ban.specification.hits(&view, ban.time, None, &mut tests);
            self.totals.add(Main::BansLurkerTested, 1);
            self.totals.add(Main::BansLurkerTestsTested, tests);
            if banned {
                self.totals.add(Main::BansLurkerObjKilled, 1);
                return Verdict::Banned(Arc::clone(ban));
            }
        }
        let list = self.list.read();
        let mut reached = since;
        for ban in list.after(since) {
            let was_tested = pass.targets.binary_search_by_key(&ban.sequence, |target| target.sequence).is_ok();
            if !was_tested && !ban.is_completed() {
                break;
            }
            reached = ban.sequence;
        }
        if reached > since {
            Self::move_reference(&list, object, reached);
        }
        Verdict::Stays
    }

    pub(super) fn complete(&self, targets: &[Arc<Ban>]) {
        let mut list = self.list.write();
        for ban in targets {
            list.complete(ban);
        }
        self.cut_tail(&mut list);
    }
}

impl Inner {
    /// One step of the lurker; returns when the next one is due.
    pub(crate) fn lurk(&self, now: f64) -> f64 {
        let sleep = self.parameters.lurker_sleep.get();
        let mut lurker = self.lurker.lock();
        if sleep <= 0.0 {
            lurker.pass = None;
            return f64::INFINITY;
        }
        if now < lurker.resume_at {
            return lurker.resume_at;
        }
        if lurker.pass.is_none() {
            self.bans.clean_tail();
            let (targets, next) = self.bans.lurkable(now, self.parameters.lurker_age.get());
            let cutoff = self.bans.cutoff(self.parameters.ban_cutoff.load(Ordering::Relaxed));
            if targets.is_empty() && cutoff == 0 {
                return next;
            }
            lurker.pass = Some(Pass { targets, cutoff, shard: 0, slot: 0 });
        }
        let Some(mut pass) = lurker.pass.take() else { return f64::INFINITY };
        lurker.resume_at = now + sleep;
        match self.lurk_on(&mut pass, now) {
            Progress::Done => self.bans.complete(&pass.targets),
            Progress::Batch => lurker.pass = Some(pass),
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
                let (killer, leaving) = match &verdict {
                    Verdict::Stays => continue,
                    Verdict::Banned(ban) => ("lurker", Leaving::Banned(ban)),
                    Verdict::CutOff => ("lurker cutoff", Leaving::As(Departure::CutOff)),
                };
                self.log(Tag::ExpBan, format_args!("{} banned by {killer}", object.xid()));
                let digest = self.digest_of_object(object);
                removed.extend(self.discard(&mut shard, &digest, slot, leaving));
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
