//! Counters of a node, and its state for operators.

use crate::exchange::Serving;
use crate::identity::{Incarnation, NodeId};
use crate::message::{Standing, StreamMark};
use serde::{Deserialize, Serialize};
use surface::fleet::{InvalidationKind, MessageRefusal};

/// Counts since the start of the process.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub struct Counters {
    /// Invalidations applied here, by kind.
    pub applied: [u64; InvalidationKind::ALL.len()],
    /// Messages refused, by cause.
    pub refused: [u64; MessageRefusal::ALL.len()],
    /// Entries received more than once.
    pub duplicates: u64,
    /// Entries that were missing for a time although later ones had arrived.
    pub holes: u64,
    /// Changes of the stream: another one, or one that lost messages.
    pub epochs: u64,
    /// Consumers made anew since they delivered nothing.
    pub consumers: u64,
    /// Connections dropped by this node.
    pub reconnects: u64,
    /// Own entries sent again to members that missed them.
    pub resent: u64,
    /// Times that everything was removed since entries were gone.
    pub drops: u64,
    /// Objects removed by that.
    pub rejoin_dropped_objects: u64,
    /// Own entries removed from the outbox before all members had confirmed them.
    pub unconfirmed_dropped: u64,
}

/// The state of a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// The conditions under which it serves.
    pub serving: Serving,
    /// True if it has found all members of its fleet in this run.
    pub is_joined: bool,
    /// True if it prepares to leave.
    pub is_draining: bool,
    /// Its run.
    pub incarnation: Incarnation,
    /// Milliseconds since the last message from the fleet.
    pub silent_ms: u64,
    /// Entries in its outbox.
    pub outbox_entries: usize,
    /// Size of its outbox, in bytes.
    pub outbox_bytes: u64,
    /// Received entries that are not applied yet.
    pub backlog: usize,
    /// Its stream.
    pub stream: StreamMark,
    /// The other members.
    pub members: Vec<MemberStatus>,
}

/// The state of a member, as another node knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MemberStatus {
    /// The member.
    pub node: NodeId,
    /// Contact.
    pub standing: Standing,
    /// It has left in order.
    pub has_left: bool,
    /// It prepares to leave.
    pub is_draining: bool,
    /// It was in step with the fleet once.
    pub is_established: bool,
    /// Its zone; empty = none or not known.
    pub zone: String,
    /// Its address; empty = none or not known.
    pub address: String,
    /// Its wall clock minus that of this node, in milliseconds.
    pub skew_ms: i64,
    /// Its entries that are not applied here.
    pub missing_here: u64,
    /// Entries of this node that it has not confirmed; `None` = not heard yet.
    pub unconfirmed: Option<u64>,
}
