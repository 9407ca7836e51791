//! Commit: the object is whole; whoever has not heard of it does now, and what it replaces goes.

use super::{Fetch, Step};
use surface::tag::Tag;

impl Fetch {
    pub(super) fn commit(&mut self) -> Step {
        if !self.is_synthetic {
            self.timestamp("BerespBody");
        }
        self.log.record(Tag::Length, itoa::Buffer::new().format(self.body_bytes).as_bytes());
        self.publish();
        if (self.is_stored || self.is_marked)
            && (!self.is_synthetic || self.verdict.ttl > 0.0)
            && let Some(stale) = self.stale.take()
        {
            self.context.engine.cache.remove(&stale);
        }
        self.stale = None;
        self.object = None;
        self.busy = None;
        Step::Done
    }
}
