//! Details of backends and directors, as `backend.list -p` shows them.

use crate::director::choice::{Candidates, Member};
use crate::dns_names::settings::MakerSettings;
use crate::probe::window::Window;
use std::sync::Arc;

/// Details of a backend, a director or a name that is looked up.
#[derive(Clone, Debug)]
pub enum Details {
    /// Nothing.
    Nothing,
    /// A hash director: the member depends on the hashed text.
    Hash,
    /// A backend with a probe.
    Probe(Window),
    /// A name that is looked up.
    Name {
        /// The settings of its object.
        settings: Arc<MakerSettings>,
        /// Its backends.
        backends: Vec<MemberFacts>,
    },
    /// A director whose members take turns.
    RoundRobin(Vec<MemberFacts>),
    /// A fallback director.
    Fallback {
        /// It keeps its choice.
        is_sticky: bool,
        /// The position of the member that was chosen last.
        current: usize,
        /// Its members.
        members: Vec<MemberFacts>,
    },
    /// A director with weights.
    Weighted {
        /// Total weight of the healthy members.
        total: f64,
        /// Its members.
        members: Vec<MemberFacts>,
    },
    /// A shard director.
    Shard {
        /// Probability of using the next member instead of the chosen one.
        warmup: f64,
        /// Seconds of ramp-up for members that set none.
        rampup: f64,
        /// Its members.
        members: Vec<ShardMemberFacts>,
    },
}

impl Details {
    /// The details of a director with weights.
    pub(crate) fn weighted(members: &[Member], candidates: &dyn Candidates) -> Details {
        let members = MemberFacts::of(members, candidates);
        Details::Weighted { total: members.iter().fold(0.0, |total, member| total + member.weight), members }
    }
}

/// A member of a director, or a backend of a name.
#[derive(Clone, PartialEq, Debug)]
pub struct MemberFacts {
    /// The VCL name.
    pub name: String,
    /// True if it can be used.
    pub is_healthy: bool,
    /// Its weight; 0 while it is sick.
    pub weight: f64,
}

impl MemberFacts {
    /// The facts about these members.
    pub(crate) fn of(members: &[Member], candidates: &dyn Candidates) -> Vec<MemberFacts> {
        let facts = |member: &Member| {
            let (is_healthy, _) = candidates.health(member.director);
            let name = candidates.name(member.director).into_owned();
            MemberFacts { name, is_healthy, weight: if is_healthy { member.weight } else { 0.0 } }
        };
        members.iter().map(facts).collect()
    }
}

/// A member of a shard director.
#[derive(Clone, PartialEq, Debug)]
pub struct ShardMemberFacts {
    /// The VCL name.
    pub name: String,
    /// The text from which its points are made.
    pub ident: String,
    /// True if it can be used.
    pub is_healthy: bool,
    /// The completed part of its ramp-up, 0 to 1; 0 while it is sick.
    pub ramped: f64,
    /// Seconds of ramp-up that remain.
    pub remaining: f64,
}
