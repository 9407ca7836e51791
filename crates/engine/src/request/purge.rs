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
        let own = self.request.task.life.digest;
        let mut count = self.context.engine.cache.purge(&own, Purge::Hard, now);
        for key in self.keys_of_groups(&self.plain_key()).into_iter().flatten().filter(|key| *key != own) {
            count += self.context.engine.cache.purge(&key, Purge::Hard, now);
        }
        let target = self.request.task.request.target().to_vec();
        if let Some(digest) = Box::pin(self.ruled_digest_of(&target)).await {
            count += self.purge_key(&digest, now);
        }
        if let Some(digest) = Box::pin(self.digest_of_other_scheme()).await {
            count += self.purge_key(&digest, now);
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

    /// Purges the objects under a key, and under the keys that the groups of a canary make of it.
    fn purge_key(&self, key: &[u8; 32], now: f64) -> usize {
        let keys = self.keys_of_groups(key);
        keys.iter().flatten().map(|key| self.context.engine.cache.purge(key, Purge::Hard, now)).sum()
    }

    /// The keys of all groups for the key of a request in none of them; without a canary only that.
    pub(super) fn keys_of_groups(&self, key: &[u8; 32]) -> [Option<[u8; 32]>; 3] {
        match &self.context.engine.vcl.load().trial {
            None => [Some(*key), None, None],
            Some(trial) => trial.canary.keys(key),
        }
    }

    /// The key that the request would have if it were in no group.
    pub(super) fn plain_key(&self) -> [u8; 32] {
        let key = self.request.task.life.digest;
        self.request.member.as_ref().map_or(key, |member| member.key(key))
    }
}
