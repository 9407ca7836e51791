//! Random: a random healthy member, in proportion to the weights. Each choice takes one value of
//! the process's generator.

use crate::details::Details;
use crate::director::choice::{Candidates, Members, ResolveContext};
use crate::director::interface::{Director, Progress, share_after};
use surface::vcl::Generation;
use vcl_run::value::DirectorId;

/// The director.
#[derive(Debug, Default)]
pub struct Random {
    pub(crate) members: Members,
    retries: Option<u32>,
}

impl Random {
    /// A director without members. `retries`: number of members that a fetch of an old dialect may
    /// try, see [`crate::director::trail`]; `None` = as many as the director has.
    #[must_use]
    pub fn with_retries(retries: Option<u32>) -> Random {
        Random { members: Members::default(), retries }
    }
}

impl Director for Random {
    fn type_name(&self) -> &'static str {
        "random"
    }

    fn changeable(&self) -> Option<&Members> {
        Some(&self.members)
    }

    fn choose(&self, _: DirectorId, candidates: &dyn Candidates, context: &ResolveContext<'_>) -> Option<DirectorId> {
        self.members.choose_by_warmth(candidates, context, context.random.next_fraction())
    }

    fn details(&self, candidates: &dyn Candidates, _: f64) -> Details {
        Details::weighted(&self.members.list(), candidates)
    }

    fn tries(&self, _: &dyn Candidates, _: &ResolveContext<'_>, _: Generation) -> Option<usize> {
        Some(self.retries.map_or_else(|| self.members.list().len(), |retries| retries as usize))
    }

    fn choose_next(
        &self,
        _: DirectorId,
        progress: &mut Progress,
        candidates: &dyn Candidates,
        context: &ResolveContext<'_>,
        _: Generation,
    ) -> Option<DirectorId> {
        let share = progress.share.map_or_else(|| context.random.next_fraction(), share_after);
        progress.share = Some(share);
        self.members.choose_by_warmth(candidates, context, share)
    }
}
