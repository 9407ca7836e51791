//! Random: a healthy member by chance, in proportion to its weight. Takes one value of the process's generator a choice.

use crate::director::Members;
use crate::directors::Directors;
use crate::random::TestableRandom;
use vcl_run::value::DirectorId;

/// The director.
#[derive(Debug, Default)]
pub struct Random {
    pub(crate) members: Members,
}

impl Random {
    pub(crate) fn choose(&self, directors: &Directors, random: &TestableRandom) -> Option<DirectorId> {
        self.members.choose_by_weight(directors, random.next_fraction())
    }
}
