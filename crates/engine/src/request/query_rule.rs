//! `No-Vary-Search` on the client's side: the key of a target to which a rule applies.
//!
//! vcl_hash then sees the normalised target as `req.url`, so the operator's rules for keys apply;
//! before and after it VCL sees the client's target, which is also the one requested from the
//! origin. Only GET and HEAD are looked up in this way. Next file: `query_rules.rs`.

use super::{Run, Step};
use crate::fetch::FetchMode;
use crate::query_rules::{KnownRule, QueryOrder, Resource};
use crate::ruling::HashRuling;
use std::sync::Arc;

impl Run<'_> {
    /// The rule under which this request is to be looked up.
    #[inline]
    pub(super) fn rule_for_lookup(&self) -> Option<Arc<KnownRule>> {
        if self.context.engine.query_rules.are_used() { self.find_rule_for_lookup() } else { None }
    }

    #[cold]
    fn find_rule_for_lookup(&self) -> Option<Arc<KnownRule>> {
        let task = &self.request.task;
        let is_looked_up = task.life.after_hash == Step::Lookup && matches!(task.request.method(), b"GET" | b"HEAD");
        if is_looked_up && self.heeds_query_rules() { self.context.engine.query_rules.get(&task.request) } else { None }
    }

    /// Known query rules that a fetch for this request needs.
    pub(super) fn query_order(&self, mode: FetchMode) -> Option<QueryOrder> {
        let task = &self.request.task;
        (mode != FetchMode::Pass && self.heeds_query_rules())
            .then(|| QueryOrder { resource: Resource::of(&task.request), rule: task.found.query_rule.clone() })
    }

    /// True if VCL and parameters allow responses to define the meaning of their queries.
    pub(super) fn heeds_query_rules(&self) -> bool {
        self.request.task.settings.no_vary_search && self.follows_rfc()
    }

    /// The key that a lookup of another target would use by a rule; `None` if there is none. The
    /// request is unchanged afterwards.
    pub(super) async fn ruled_digest_of(&mut self, target: &[u8]) -> Option<[u8; 32]> {
        if !self.context.engine.query_rules.are_used() || !self.heeds_query_rules() {
            return None;
        }
        let saved = self.request.task.request.clone();
        self.request.task.request.set_target(target);
        let rule = self.context.engine.query_rules.get(&self.request.task.request);
        self.request.task.request = saved;
        let rule = rule?;
        let digest = self.digest_of(&rule.normalised(target)?).await?;
        Some(rule.key(digest))
    }

    /// Runs vcl_hash for the normalised target, if the rule applies to this one.
    pub(super) async fn hash_under(&mut self, rule: &Arc<KnownRule>) -> Option<Step> {
        let original = self.request.task.request.target().to_vec();
        let normalised = rule.normalised(&original)?;
        let task = &mut self.request.task;
        task.request.set_target(&normalised);
        task.hasher.reset();
        let ruling = self.call_vcl::<HashRuling>().await;
        let task = &mut self.request.task;
        // Unless VCL has set another target.
        if task.request.target() == normalised {
            task.request.set_target(&original);
        }
        let digest = task.hasher.finish();
        Some(match ruling {
            Ok(HashRuling::Lookup) => {
                let key = rule.key(digest);
                task.life.digest = self.request.member.as_ref().map_or(key, |member| member.key(key));
                task.found.query_rule = Some(Arc::clone(rule));
                task.life.after_hash
            }
            Err(_) => Step::VclFailed,
        })
    }
}
