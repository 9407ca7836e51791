//! What a request that changes something makes of what is stored: copies of its target are removed, and of what its response names.
//!
//! Called when the response to a pass has come, before the client sees it. The keys are those that vcl_hash makes, so the operator's rules
//! hold; of `Location` and `Content-Location` only what belongs to the same origin counts. Source: RFC 9111 §4.4.

use super::Run;
use crate::ruling::HashRuling;
use message::Message;
use semantics::{method, reference};
use sha2::Digest;
use store::Object;
use surface::reason::Reason;

/// The headers of a response that name what else has changed.
const LOCATIONS: [&str; 2] = ["Location", "Content-Location"];

impl Run<'_> {
    /// Whether the request was passed with a method that may have changed what is stored.
    pub(super) fn may_have_changed_something(&self) -> bool {
        let task = &self.request.task;
        task.found.is_passed && self.follows_rfc() && !method::is_safe(task.request.method())
    }

    /// Removes what the request has made invalid, if its response is no error.
    pub(super) async fn invalidate(&mut self, answer: &Object) {
        let mut head = Message::new();
        if head.decode(answer.head()).is_none() || !matches!(head.status(), 200..=399) {
            return;
        }
        let digest = self.request.task.life.digest;
        let mut count = self.invalidate_key(&digest, answer);
        for target in self.named_targets(&head) {
            if let Some(digest) = self.digest_of(&target).await
                && digest != self.request.task.life.digest
            {
                count += self.invalidate_key(&digest, answer);
            }
        }
        if count > 0 {
            let before = self.request.task.life.reason;
            self.why(Reason::Invalidated, b"");
            // How the request was handled is another question.
            self.request.task.life.reason = before;
        }
    }

    fn invalidate_key(&self, digest: &[u8; 32], answer: &Object) -> usize {
        self.context.engine.cache.invalidate(digest, answer.xid(), self.context.clock.now())
    }

    /// The targets of the same origin that a response names.
    fn named_targets(&self, head: &Message) -> Vec<Vec<u8>> {
        let original = &self.request.task.original;
        let host = original.get("Host").unwrap_or_default();
        let named = LOCATIONS.iter().filter_map(|name| head.get(name));
        named.filter_map(|value| reference::target(value, host, original.target())).collect()
    }

    /// The key that vcl_hash makes of another target; `None` when it fails. The request is the same afterwards.
    async fn digest_of(&mut self, target: &[u8]) -> Option<[u8; 32]> {
        let saved = self.request.task.request.clone();
        let task = &mut self.request.task;
        task.request.set_target(target);
        task.hasher.reset();
        let ruling = self.call_vcl::<HashRuling>().await;
        let task = &mut self.request.task;
        let digest = task.hasher.finalize_reset().into();
        task.request = saved;
        ruling.is_ok().then_some(digest)
    }
}
