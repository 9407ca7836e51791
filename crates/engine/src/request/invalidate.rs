//! Invalidation: after an unsafe request, the copies of its target are removed, and those of the
//! targets and groups that its response names.
//!
//! Called when the response to a pass was received, before the client gets it. The keys are those
//! that vcl_hash makes, so the operator's rules apply; of `Location` and `Content-Location` only
//! targets of the same origin count. A group belongs to the origin of the request (`groups.rs`); a
//! fetch under way is not touched, and groups of removed objects are not followed. Source: RFC 9111
//! §4.4; RFC 9875 §3.

use super::Run;
use crate::forwarded::{PROTO, Scheme};
use crate::groups;
use crate::ruling::HashRuling;
use message::{Message, NOTE_BYTES};
use semantics::groups::CACHE_GROUP_INVALIDATION;
use semantics::{method, reference};
use std::sync::Arc;
use store::Object;
use surface::reason::Reason;

/// The headers of a response that name other changed targets.
const LOCATIONS: [&str; 2] = ["Location", "Content-Location"];
/// Number of objects of groups that are examined before other tasks of the event loop get a turn.
const GROUPED_OBJECTS: usize = 1000;

impl Run<'_> {
    /// True if the request was passed with a method that may have changed a stored resource.
    pub(super) fn may_have_changed_something(&self) -> bool {
        let task = &self.request.task;
        task.found.is_passed && self.follows_rfc() && !method::is_safe(task.request.method())
    }

    /// Removes the objects that the request has made invalid, if its response is not an error.
    pub(super) async fn invalidate(&mut self, answer: &Arc<Object>) {
        let mut head = Message::new();
        if head.decode(answer.head()).is_none() || !matches!(head.status(), 200..=399) {
            return;
        }
        let digest = self.plain_key();
        let mut count = self.invalidate_key(&digest, answer);
        let own = self.request.task.request.target().to_vec();
        count += self.invalidate_under_rule(&own, answer).await;
        if let Some(digest) = self.digest_of_other_scheme().await {
            count += self.invalidate_key(&digest, answer);
        }
        for target in self.named_targets(&head) {
            count += self.invalidate_under_rule(&target, answer).await;
            if let Some(digest) = self.digest_of(&target).await
                && digest != self.plain_key()
            {
                count += self.invalidate_key(&digest, answer);
            }
        }
        let host = self.request.task.request.get("Host");
        let groups = groups::notes(&head, CACHE_GROUP_INVALIDATION, host);
        count += self.invalidate_groups(&groups, answer).await;
        if count > 0 {
            self.settle().await;
            let before = self.request.task.life.reason;
            let groups = groups.len() / NOTE_BYTES;
            self.why(Reason::Invalidated, format!("copies={count} groups={groups}").as_bytes());
            // The reason describes how the request was handled, which is another matter.
            self.request.task.life.reason = before;
        }
    }

    /// Removes the objects that responses with `No-Vary-Search` have stored under another key.
    async fn invalidate_under_rule(&mut self, target: &[u8], answer: &Arc<Object>) -> usize {
        match self.ruled_digest_of(target).await {
            Some(digest) => self.invalidate_key(&digest, answer),
            None => 0,
        }
    }

    fn invalidate_key(&self, digest: &[u8; 32], answer: &Arc<Object>) -> usize {
        let (cache, now) = (&self.context.engine.cache, self.context.clock.now());
        self.keys_of_groups(digest).iter().flatten().map(|key| cache.invalidate(key, Some(answer), now)).sum()
    }

    async fn invalidate_groups(&self, groups: &[u8], answer: &Arc<Object>) -> usize {
        if groups.is_empty() {
            return 0;
        }
        let mut purge = self.context.engine.cache.invalidate_groups(groups, Some(answer), self.context.clock.now());
        while !purge.step(GROUPED_OBJECTS) {
            tokio::task::yield_now().await;
        }
        purge.objects()
    }

    /// The targets of the same origin that a response names.
    fn named_targets(&self, head: &Message) -> Vec<Vec<u8>> {
        let original = &self.request.task.original;
        let host = original.get("Host").unwrap_or_default();
        let named = LOCATIONS.iter().filter_map(|name| head.get(name));
        named.filter_map(|value| reference::target(value, host, original.target())).collect()
    }

    /// The key that vcl_hash makes of the same target by the other scheme, under `http_policy=rfc`;
    /// `None` if it is the same key. The request is unchanged afterwards.
    pub(super) async fn digest_of_other_scheme(&mut self) -> Option<[u8; 32]> {
        if !self.follows_rfc() {
            return None;
        }
        let task = &mut self.request.task;
        let other = Scheme::named(task.request.get(PROTO)?)?.other();
        let saved = task.request.clone();
        task.request.set(PROTO, other.name().as_bytes());
        let target = saved.target().to_vec();
        let digest = self.digest_of(&target).await;
        self.request.task.request = saved;
        digest.filter(|digest| *digest != self.plain_key())
    }

    /// The key that vcl_hash makes of another target; `None` if it fails. The request is unchanged
    /// afterwards.
    pub(super) async fn digest_of(&mut self, target: &[u8]) -> Option<[u8; 32]> {
        let saved = self.request.task.request.clone();
        let task = &mut self.request.task;
        task.request.set_target(target);
        task.hasher.reset();
        let ruling = self.call_vcl::<HashRuling>().await;
        let task = &mut self.request.task;
        let digest = task.hasher.finish();
        task.request = saved;
        ruling.is_ok().then_some(digest)
    }
}
