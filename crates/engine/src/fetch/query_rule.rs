//! `No-Vary-Search` on the origin's side: the rule of a response about the queries of its resource.
//!
//! It is read after vcl_backend_response, so VCL may set, change or remove the field. Only a 200
//! that may be stored changes a rule; a response made here does not. A response that was looked up
//! under a rule and does not state it is for one client: other queries have the same key. Next
//! file: `query_rules.rs`.

use super::{Fetch, FetchMode};

impl Fetch {
    /// Applies the rule of the response; must be called before the decision to store the response.
    pub(super) fn heed_query_rule(&mut self) {
        if self.task.order.query.is_some() && !self.task.attempt.is_synthetic {
            self.compare_query_rules();
        }
    }

    fn compare_query_rules(&mut self) {
        let Some(query) = &self.task.order.query else { return };
        let (beresp, verdict) = (&self.task.attempt.beresp, &self.task.attempt.verdict);
        let is_other = query.rule.as_ref().is_some_and(|rule| !rule.is_of(beresp));
        let may_be_stored = !self.task.is_uncacheable()
            && self.task.order.mode != FetchMode::Pass
            && self.task.life.busy.is_some()
            && verdict.lives_at(self.now());
        if may_be_stored && beresp.status() == 200 {
            self.context.engine.query_rules.learn(query.resource, beresp, self.now());
        }
        if is_other {
            self.task.life.uncacheable = true;
            self.task.life.is_for_other_queries = true;
        }
    }
}
