//! The bodies of messages.

use crate::identity::{Incarnation, NodeId, Position};
use serde::{Deserialize, Serialize};

/// The content of a message. Variants are encoded by their place: new ones are appended, and a node
/// that does not know one refuses the message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Body {
    /// An entry of the sender's outbox; its number and run are those of the envelope.
    Entry {
        /// The run that wrote the entry before this one: a receiver whose last entry is of another
        /// run has missed some that are lost.
        after: Incarnation,
        /// An encoded [`crate::Invalidation`]; a kind that is unknown here removes everything.
        invalidation: Vec<u8>,
    },
    /// Sent every second, not stored.
    Heartbeat(Heartbeat),
    /// Confirms entries of one publisher, not stored.
    Acknowledgement(Acknowledgement),
}

/// The state of the sender.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The stream that the sender reads.
    pub stream: StreamMark,
    /// The last durable entry of the sender.
    pub last: Position,
    /// True if the sender was in step with the fleet once: it may introduce others.
    pub is_established: bool,
    /// True if the sender prepares to leave: it gets no new keys.
    pub is_draining: bool,
    /// Zone of the sender; empty = none.
    pub zone: String,
    /// Address at which other nodes reach the sender; empty = none.
    pub address: String,
    /// All nodes that the sender knows, except itself, by name.
    pub members: Vec<Listed>,
}

/// A node as another one knows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Listed {
    /// The node.
    pub node: NodeId,
    /// Its latest known run: it recognizes by this that its messages arrive.
    pub incarnation: Incarnation,
    /// Up to here all its entries are applied, durably.
    pub applied: Position,
    /// Membership and contact.
    pub standing: Standing,
}

/// Membership and contact of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Standing {
    /// A member that was heard recently.
    Present,
    /// A member that was not heard for `fleet_lost_after`.
    Missing,
    /// Removed by an operator: messages from the listed run and earlier ones are refused.
    Forgotten,
}

/// Confirms that entries are applied, durably.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Acknowledgement {
    /// The node whose entries were applied.
    pub publisher: NodeId,
    /// Up to here, all are applied.
    pub applied: Position,
    /// The numbers of entries applied since the last confirmation, with the numbers of objects that
    /// they removed here.
    pub objects: Vec<(u64, u64)>,
    /// Digest of the names of all members that the sender knows, itself included
    /// ([`roster_digest`]).
    pub roster: u64,
}

/// The stream as a node sees it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct StreamMark {
    /// Time of creation, as the server reports it, in nanoseconds since 1970; 0 = not known. Only
    /// compared for equality: another value is another stream.
    pub created: u64,
    /// Sequence number of the last message received from it, or its last one in answers of a
    /// server.
    pub sequence: u64,
}

/// A digest of a set of names, independent of their order.
#[must_use]
pub fn roster_digest<'a>(nodes: impl Iterator<Item = &'a NodeId>) -> u64 {
    nodes.fold(0, |sum, node| sum.wrapping_add(crate::ring::hash(0, node.as_str().as_bytes())))
}
