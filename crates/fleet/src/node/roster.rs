//! The other nodes as this node knows them.

use super::intake::Intake;
use crate::exchange::Ticket;
use crate::identity::{Incarnation, NodeId, Position};
use crate::message::{Heartbeat, Standing};
use crate::record::KeptMember;
use std::collections::BTreeMap;

/// A member of the fleet, except this node.
#[derive(Default)]
pub(crate) struct Member {
    /// Its latest known run.
    pub(crate) incarnation: Incarnation,
    /// Its `Leave` is applied.
    pub(crate) has_left: bool,
    /// Its record is durable: only then it is listed, and may rely on being a member.
    pub(crate) is_durable: bool,
    pub(crate) writing: Option<Ticket>,
    /// Number of its latest message in this run, and when it was received.
    pub(crate) latest: u64,
    pub(crate) heard_ms: Option<u64>,
    /// Its latest heartbeat in this run of this node.
    pub(crate) seen: Option<Heartbeat>,
    /// True if that heartbeat lists this node with its current run: it is not a replay, and
    /// messages pass in both directions.
    pub(crate) is_mutual: bool,
    /// Wall clock of the member minus that of this node, in milliseconds.
    pub(crate) skew_ms: i64,
    /// Its entries.
    pub(crate) intake: Intake,
    /// Its last entry that any node has told of.
    pub(crate) claimed: Position,
    /// An entry that is missing here, and since when.
    pub(crate) awaited: Option<(u64, u64)>,
    /// An entry is missing before one that arrived, since.
    pub(crate) hole_since_ms: Option<u64>,
    /// This node's last entry that it has reported; `None` = nothing in this run.
    pub(crate) confirmed: Option<Position>,
    /// As above, in a message that names no member unknown here: it counts for waits.
    pub(crate) confirmed_closed: u64,
    /// Sending again: since when its place has not changed, up to where entries were sent, and the
    /// wait until the next attempt.
    pub(crate) stalled_since_ms: Option<u64>,
    pub(crate) sent_through: u64,
    pub(crate) patience_ms: u64,
}

impl Member {
    /// A member from the last run of this node, or from a list.
    pub(crate) fn new(kept: &KeptMember, is_durable: bool) -> Member {
        Member {
            incarnation: kept.incarnation,
            has_left: kept.has_left,
            is_durable,
            intake: Intake::new(kept.applied),
            claimed: kept.applied,
            ..Member::default()
        }
    }

    /// The record to keep.
    pub(crate) fn kept(&self) -> KeptMember {
        KeptMember { incarnation: self.incarnation, applied: self.intake.durable(), has_left: self.has_left }
    }

    /// True if a message was received from it within `lost_after_ms`.
    pub(crate) fn is_heard(&self, now_ms: u64, lost_after_ms: u64) -> bool {
        self.heard_ms.is_some_and(|heard| now_ms.saturating_sub(heard) < lost_after_ms)
    }

    /// Its entries up to this one exist, as a node has told.
    pub(crate) fn claim(&mut self, position: Position) {
        if position.counter > self.claimed.counter {
            self.claimed = position;
        }
    }

    /// True if entries that were told of are not applied here.
    pub(crate) fn is_behind(&self) -> bool {
        self.intake.durable().counter < self.claimed.counter
    }
}

/// The members by name.
pub(crate) type Roster = BTreeMap<NodeId, Member>;

/// The standing of a node in the latest heartbeat of a member.
pub(crate) fn standing(member: &Member, node: &NodeId) -> Option<Standing> {
    let members = &member.seen.as_ref()?.members;
    members.iter().find(|listed| listed.node == *node).map(|listed| listed.standing)
}
