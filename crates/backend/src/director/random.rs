//! Random: a healthy member by chance, in proportion to its weight. Takes one value of the process's generator a choice.

use crate::director::{Members, ResolveContext};
use crate::directors::Directors;
use vcl_run::value::DirectorId;

/// The director.
#[derive(Debug, Default)]
pub struct Random {
    pub(crate) members: Members,
}

impl Random {
    pub(crate) fn choose(&self, directors: &Directors, context: &ResolveContext<'_>) -> Option<DirectorId> {
        self.members.choose_by_weight(directors, context, context.random.next_fraction())
    }
}
