//! Commit: the object is complete. It is published if that has not happened yet, and the object
//! that it replaces is removed.

use super::task::Attempt;
use super::{Fetch, Step};
use surface::tag::Tag;

impl Fetch {
    pub(super) fn commit(&mut self) -> Step {
        let is_synthetic = self.task.attempt.is_synthetic;
        if !is_synthetic {
            self.timestamp("BerespBody");
        }
        self.log.record(Tag::Length, itoa::Buffer::new().format(self.task.attempt.kept.body_bytes).as_bytes());
        self.publish();
        let Attempt { kept, verdict, .. } = &self.task.attempt;
        if (kept.is_stored || kept.is_marked)
            && (!is_synthetic || verdict.ttl > 0.0)
            && (kept.is_stored || !self.is_error_with_stale_object())
            && let Some(stale) = self.task.life.stale.take()
        {
            self.context.engine.cache.remove(&stale);
        }
        let is_stored = self.task.attempt.kept.is_stored;
        if let Some(part) = self.replaced_part().filter(|_| is_stored) {
            self.context.engine.cache.remove(&part);
        }
        self.task.life.stale = None;
        self.task.attempt.kept.object = None;
        self.task.life.busy = None;
        Step::Done
    }
}
