//! Orders of a fleet: they are durable before they are confirmed, and hit fetches under way too.
//! Next file: `arrivals.rs`.

use crate::ban::specification::BanSpecification;
use crate::tag::{TagPurge, names};
use crate::{Cache, Inner};
use semantics::Purge;

impl Cache {
    /// Starts to remove the objects that carry any of the tags in a list, or to shorten their
    /// lives; those whose fetch is under way are not stored.
    ///
    /// # Errors
    /// The ban journal cannot be written; the text is for the operator.
    pub fn purge_tags_and_fetches(&self, list: &[u8], purge: Purge, now: f64) -> Result<TagPurge, String> {
        let inner = &*self.inner;
        let at = inner.bans.add_nothing(now).map_err(|error| format!("Cannot record the purge: {error}"))?;
        let tags = names(list).map(Box::from).collect();
        inner.arrivals.add(at, tags, inner.bans.oldest_fetch());
        self.pass_through_shards();
        Ok(self.purge_tags(list, purge, now))
    }

    /// Removes everything whose fetch began before this call. Returns the number of objects at its
    /// time, some of which are removed when they are next looked up.
    ///
    /// # Errors
    /// The ban journal cannot be written; the text is for the operator.
    pub fn ban_everything(&self, now: f64) -> Result<u64, String> {
        let objects = self.inner.totals.get(surface::counter::Main::NObject);
        self.ban(BanSpecification::everything(), now)?;
        Ok(objects)
    }

    /// The identity of the ban journal, and the number of the newest entry. A later state of the
    /// same cache has the same identity and no smaller number.
    #[must_use]
    pub fn mark(&self) -> (u64, u64) {
        (self.inner.bans.journal_identity(), self.inner.bans.newest())
    }

    /// Waits until the arrivals that are in progress have ended.
    fn pass_through_shards(&self) {
        let Inner { shards, .. } = &*self.inner;
        shards.iter().for_each(|shard| drop(shard.lock()));
    }
}
