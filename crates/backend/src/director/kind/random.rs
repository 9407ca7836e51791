//! Random: a random healthy member, in proportion to the weights. Each choice takes one value of the process's generator.

use crate::director::choice::{Candidates, Members, ResolveContext};
use vcl_run::value::DirectorId;

/// The director.
#[derive(Debug, Default)]
pub struct Random {
    pub(crate) members: Members,
    retries: Option<u32>,
}

impl Random {
    /// A director without members. `retries`: how many members a fetch of an old dialect may try, see
    /// [`crate::director::trail`]; `None` = as many as the director has.
    #[must_use]
    pub fn with_retries(retries: Option<u32>) -> Random {
        Random { members: Members::default(), retries }
    }

    pub(crate) fn retries(&self) -> Option<usize> {
        self.retries.map(|retries| retries as usize)
    }

    pub(crate) fn choose(&self, candidates: &dyn Candidates, context: &ResolveContext<'_>) -> Option<DirectorId> {
        self.members.choose_by_warmth(candidates, context, context.random.next_fraction())
    }
}
