//! vcl_purge: everything under the digest has been purged; VCL decides about the answer, unless a
//! disk failed to record the purge.
//!
//! Comes from: Receive (over Hash). Continues with: Synth or Restart.

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
        if let Some(digest) = Box::pin(self.digest_of_other_scheme()).await {
            count += self.context.engine.cache.purge(&digest, Purge::Hard, now);
        }
        self.context.count(Main::NPurges);
        self.context.counters.add(Main::NObjPurged, count as u64);
        if !Box::pin(self.settle()).await {
            // The objects are gone from the cache, but may return after a start, so the client must
            // not take the purge for done. VCL does not run: its answer would report success.
            return self.own_synth(503, b"Purge not on disk");
        }
        match self.call_vcl().await {
            Ok(PurgeRuling::Synth(line)) => self.synth_ruling(line),
            Ok(PurgeRuling::Restart) => Step::Restart,
            Err(Failed) => Step::VclFailed,
        }
    }
}
