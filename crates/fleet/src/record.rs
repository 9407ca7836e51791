//! The durable records of a node: the entries of its outbox, and its state.

use crate::identity::{Incarnation, NodeId, Position};
use crate::message::StreamMark;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// An entry of a node's own outbox.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Its number, one more than that of the entry before, and the run that wrote it.
    pub position: Position,
    /// The run that wrote the entry before.
    pub after: Incarnation,
    /// Wall clock when it was written, in milliseconds since 1970.
    pub wall_ms: u64,
    /// An encoded [`crate::Invalidation`].
    pub invalidation: Vec<u8>,
}

/// The cache of a node, as its owner reports it: a cache that is older than the node's state has
/// lost invalidations.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct CacheMark {
    /// Identity of the ban journal; another one is another cache.
    pub identity: u64,
    /// Number of the last invalidation in it.
    pub sequence: u64,
}

/// A change that must be durable before it has effects elsewhere.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Record {
    /// Appends an entry to the outbox.
    Entry(Entry),
    /// Removes all entries up to this one from the outbox.
    Floor(Position),
    /// All entries of a publisher up to `applied` are applied here.
    Applied {
        /// The publisher; `None` = this node.
        node: Option<NodeId>,
        /// Its last applied entry.
        applied: Position,
        /// The cache to which they were applied.
        cache: CacheMark,
    },
    /// A member, added or changed.
    Member {
        /// The node.
        node: NodeId,
        /// Its state.
        member: KeptMember,
    },
    /// A node was removed.
    Forgotten(KeptForgotten),
    /// The stream, and the last message of it that is applied or will be sent again.
    Stream(StreamMark),
    /// This node.
    Own {
        /// Its run.
        incarnation: Incarnation,
        /// It was in step with its fleet once.
        is_established: bool,
    },
}

/// A member, as it is kept.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct KeptMember {
    /// Its latest known run.
    pub incarnation: Incarnation,
    /// Its last entry that is applied here.
    pub applied: Position,
    /// Its `Leave` is applied.
    pub has_left: bool,
}

/// A removed node, as it is kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeptForgotten {
    /// The node.
    pub node: NodeId,
    /// Its latest known run: messages of this run and earlier ones are refused.
    pub incarnation: Incarnation,
    /// Its last entry that is applied here, should it return.
    pub applied: Position,
}

/// The state of a node, as it is kept. The default is that of a new node.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct KeptState {
    /// Its last run.
    pub incarnation: Incarnation,
    /// It was in step with its fleet once.
    pub is_established: bool,
    /// Its last own entry that is applied here.
    pub applied: Position,
    /// The cache to which entries were applied.
    pub cache: CacheMark,
    /// Entries of the outbox up to here are gone.
    pub floor: Position,
    /// The stream, and the last message received from it.
    pub stream: StreamMark,
    /// The other nodes.
    pub members: BTreeMap<NodeId, KeptMember>,
    /// Removed nodes, the latest removed last.
    pub forgotten: VecDeque<KeptForgotten>,
}

/// An entry of the outbox without its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryMark {
    /// The run that wrote it.
    pub incarnation: Incarnation,
    /// Wall clock when it was written, in milliseconds since 1970.
    pub wall_ms: u64,
    /// Its size, in bytes.
    pub bytes: u32,
    /// True if it stands for all earlier ones.
    pub replaces: bool,
}

/// The files of a node, as it finds them at its start. The default is that of a new node.
#[derive(Clone, Default, Debug)]
pub struct Kept {
    /// The state.
    pub state: KeptState,
    /// The number of the first entry of the outbox; 0 = none.
    pub first: u64,
    /// The entries of the outbox, by number without gaps.
    pub entries: VecDeque<EntryMark>,
    /// The entries of the outbox that are not applied here yet, at most `FLEET_WINDOW_MAX`.
    pub unapplied: Vec<Entry>,
    /// True if the outbox has bytes that are not entries, except an unfinished one at the end.
    pub is_outbox_damaged: bool,
    /// True if the state has such bytes.
    pub is_state_damaged: bool,
}
