//! vcl_hash: the digest under which the response is kept. It runs for every request, whatever
//! vcl_recv decided.
//!
//! Comes from: Receive. Continues with: the decision of vcl_recv, or VclFailed. Each `hash_data`
//! call feeds its pieces and one zero byte.

use super::{Run, Step};
use crate::ruling::{Failed, HashRuling};
use surface::tag::Tag;

impl Run<'_> {
    pub(super) async fn hash(&mut self) -> Step {
        if let Some(rule) = self.rule_for_lookup()
            && let Some(step) = Box::pin(self.hash_under(&rule)).await
        {
            return step;
        }
        self.request.task.hasher.reset();
        match self.call_vcl().await {
            Ok(HashRuling::Lookup) => {
                let task = &mut self.request.task;
                let key = task.hasher.finish();
                task.life.digest = self.request.member.as_ref().map_or(key, |member| member.key(key));
                if let Some(objection) = task.life.objection.take() {
                    self.log().record(Tag::VCLError, objection.as_bytes());
                }
                if self.is_query() {
                    return Box::pin(self.hash_query()).await;
                }
                self.request.task.life.after_hash
            }
            Err(Failed) => Step::VclFailed,
        }
    }
}
