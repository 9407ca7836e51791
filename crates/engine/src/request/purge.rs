//! vcl_purge: everything under the digest has been purged; VCL decides what to answer, unless a disk did not take it.
//!
//! Comes from: Receive (over Hash). Goes to: Synth or Restart.

use super::{Run, Step};
use crate::ruling::{Failed, PurgeRuling};
use cache::Purge;
use surface::counter::Main;

impl Run<'_> {
    pub(super) async fn purge(&mut self) -> Step {
        let now = self.context.clock.now();
        let mut count = self.context.engine.cache.purge(&self.request.task.life.digest, Purge::Hard, now);
        let target = self.request.task.request.target().to_vec();
        if let Some(digest) = Box::pin(self.ruled_digest_of(&target)).await {
            count += self.context.engine.cache.purge(&digest, Purge::Hard, now);
        }
        self.context.count(Main::NPurges);
        self.context.counters.add(Main::NObjPurged, count as u64);
        if !Box::pin(self.settle()).await {
            // It has gone from the cache, but a start may bring it back, so whoever asked must not take it for done. VCL is not
            // asked: what it answers says that all went well.
            return self.own_synth(503, b"Purge not on disk");
        }
        match self.call_vcl().await {
            Ok(PurgeRuling::Synth(line)) => self.synth_ruling(line),
            Ok(PurgeRuling::Restart) => Step::Restart,
            Err(Failed) => Step::VclFailed,
        }
    }
}
