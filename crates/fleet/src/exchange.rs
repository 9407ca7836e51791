//! Inputs and outputs of a [`crate::Node`].
//!
//! The owner of a node (the agent, or a simulation) passes every event in as an [`Input`], and
//! carries out every [`Output`] in the order in which they come out. Nothing in this crate waits,
//! sends, writes or reads a clock.

use crate::identity::{FleetId, NodeId, Position};
use crate::invalidation::Invalidation;
use crate::message::StreamMark;
use crate::record::{CacheMark, Record};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use surface::fleet::{MessageRefusal, WhenLost};

/// The settings of a node. Times are in milliseconds.
#[derive(Clone, Debug)]
pub struct Config {
    /// The fleet.
    pub fleet: FleetId,
    /// This node.
    pub node: NodeId,
    /// Its zone; empty = none.
    pub zone: String,
    /// Address at which other nodes reach it; empty = none.
    pub address: String,
    /// Parameter `fleet_lost_after`: time without a message after which a node, or the fleet, is
    /// out of contact.
    pub lost_after_ms: u64,
    /// Parameter `fleet_when_lost`.
    pub when_lost: WhenLost,
    /// Parameter `fleet_join_timeout`: time after which a node that starts stops waiting for
    /// members that it does not hear, and for entries that do not come.
    pub join_timeout_ms: u64,
    /// Parameter `fleet_history`: age at which an entry that is not confirmed by all members is
    /// removed from the outbox.
    pub history_ms: u64,
    /// Most entries of the outbox (`FLEET_OUTBOX_ENTRIES_MAX`).
    pub outbox_entries_max: usize,
    /// Most bytes of the outbox (`FLEET_OUTBOX_BYTES_MAX`).
    pub outbox_bytes_max: u64,
}

/// A start of a [`crate::Node`].
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Unpredictable bits.
    pub random: u64,
    /// The cache that this node serves from.
    pub cache: CacheMark,
    /// True if the cache has been serving under this fleet's state all the time, so that only the
    /// agent was restarted: the node goes on serving while it catches up.
    pub is_continued: bool,
}

/// Number of a write. They grow by one.
pub type Ticket = u64;
/// Number of an application, unique in a run.
pub type ApplyId = u64;
/// Number of an operator's command, chosen by the owner.
pub type RequestId = u64;

/// An event.
#[derive(Clone, Debug)]
pub enum Input {
    /// Time has passed: at least every 100 ms, whatever else happens.
    Tick,
    /// A message was received, from whatever subject; its own messages too.
    Message {
        /// The bytes as received.
        bytes: Vec<u8>,
        /// Its sequence number in the stream; `None` if it did not come from the stream.
        sequence: Option<u64>,
    },
    /// An operator, or VCL of this node, removes objects.
    Invalidate {
        /// The command.
        request: RequestId,
        /// The order; the owner has checked that it compiles.
        invalidation: Invalidation,
        /// Time to wait for all members, in milliseconds; `None` = answer as soon as the order is
        /// durable and applied here.
        wait_ms: Option<u64>,
    },
    /// An operator removes a node from the fleet (`fleet.forget`).
    Forget {
        /// The command.
        request: RequestId,
        /// The node.
        node: NodeId,
        /// As for `Invalidate`.
        wait_ms: Option<u64>,
    },
    /// An operator lets this node leave for good: it publishes its last entry, and passes.
    Leave {
        /// The command.
        request: RequestId,
        /// As for `Invalidate`.
        wait_ms: Option<u64>,
    },
    /// This node prepares to leave, or no longer does: it gets no new keys, and stays a member
    /// (`fleet.drain`).
    Drain(bool),
    /// All writes up to this one are durable, except those reported in `NotWritten`.
    Written {
        /// The last durable write.
        through: Ticket,
    },
    /// A write failed and left no trace.
    NotWritten {
        /// The write.
        ticket: Ticket,
        /// The error, for the operator.
        error: String,
    },
    /// The cache has applied an order, durably.
    Applied {
        /// The application.
        id: ApplyId,
        /// Number of objects that were removed, or at least are covered, here.
        objects: u64,
        /// The cache after it.
        cache: CacheMark,
    },
    /// The cache cannot apply an order (a ban does not compile): everything is removed instead.
    NotApplied {
        /// The application.
        id: ApplyId,
        /// The error, for the operator.
        error: String,
    },
    /// The transport is connected.
    Connected,
    /// The transport has lost its connection.
    Disconnected,
    /// The answer to [`Output::AskStream`].
    Stream {
        /// The stream of the server; `sequence` is its last one.
        mark: StreamMark,
    },
    /// The stream has confirmed an entry.
    Published {
        /// Its number.
        counter: u64,
    },
    /// The stream has refused an entry, or did not answer in time.
    NotPublished {
        /// Its number.
        counter: u64,
    },
    /// An entry of the outbox could not be read again: it is lost.
    OutboxLost,
}

/// An order to the owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Make this durable, in the order of tickets, then report [`Input::Written`]. Several may be
    /// made durable at once.
    Write(Ticket, Record),
    /// Apply this to the cache, durably, then report [`Input::Applied`]. Until it succeeds, try
    /// again. An object whose fetch began earlier must not be stored later without being tested.
    Apply(ApplyId, Invalidation),
    /// Publish an entry of this node into the stream. `Nats-Msg-Id` is [`message_id`].
    Publish {
        /// Its position.
        position: Position,
        /// The message.
        bytes: Vec<u8>,
    },
    /// Read these entries from the outbox, and publish each into the stream, or send it to all
    /// nodes past the stream; `seal_entry` makes the messages. Report [`Input::OutboxLost`] if one
    /// cannot be read.
    Resend {
        /// Numbers of the entries. The node limits them to those that exist.
        counters: RangeInclusive<u64>,
        /// True: through the stream, with the same `Nats-Msg-Id` as before. False: past it.
        is_stored: bool,
    },
    /// Send this to all nodes, not stored.
    Send(Channel, Vec<u8>),
    /// Ask a server for the state of the stream ([`Input::Stream`]).
    AskStream,
    /// Make the consumer of the stream anew.
    Consume {
        /// The first sequence number to receive.
        from: u64,
    },
    /// Drop the connection and connect to another server.
    Reconnect,
    /// The cache serves under other conditions from now on.
    Serve(Serving),
    /// A command is done.
    Answer(RequestId, Answer),
    /// A line for the operator.
    Report(Report),
}

/// The subject of a message that is not stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channel {
    /// `node.<self>`: heartbeats.
    Heartbeat,
    /// `ack.<publisher>` or any other subject that the publisher reads.
    Acknowledgement,
    /// `ctl.<self>`: entries sent past the stream.
    Control,
}

/// The conditions under which the cache serves. Before the first [`Output::Serve`]: `Joining`,
/// or unchanged if the start is continued.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Serving {
    /// In step: may serve from the cache.
    InStep,
    /// Not in step yet: pass; serve and store nothing that was stored before.
    Joining,
    /// In contact, but invalidations are missing for too long: pass.
    Behind,
    /// Out of contact, under the policy `serve`.
    LostServe {
        /// Since when, on the node's monotone clock (of the agent: `CLOCK_BOOTTIME`).
        since_ms: u64,
    },
    /// Out of contact, under the policy `stale-limit`.
    LostStaleLimit {
        /// As above.
        since_ms: u64,
    },
    /// Out of contact, under the policy `refuse`: pass.
    LostRefuse {
        /// As above.
        since_ms: u64,
    },
}

impl Serving {
    /// True if stored objects may be served (under `stale-limit`, with its limit).
    #[must_use]
    pub fn may_serve(self) -> bool {
        match self {
            Serving::InStep | Serving::LostServe { .. } | Serving::LostStaleLimit { .. } => true,
            Serving::Joining | Serving::Behind | Serving::LostRefuse { .. } => false,
        }
    }
}

/// The result of a command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// The order is durable and applied here; the members will apply it.
    Kept {
        /// Its entry.
        position: Position,
        /// Objects removed here.
        objects: u64,
    },
    /// The answer to a command that waited.
    Waited {
        /// Its entry.
        position: Position,
        /// One row per member, this node first.
        receipts: Vec<Receipt>,
        /// True if all members have applied it: the command ends with 0, otherwise with 4.
        is_complete: bool,
        /// A reason why it is not complete although no member is missing.
        why: Option<String>,
    },
    /// The order was not accepted and has no effect.
    Refused(String),
}

/// The result of one member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Receipt {
    /// The member.
    pub node: NodeId,
    /// Milliseconds from the command to its confirmation; `None` = missing.
    pub applied_after_ms: Option<u64>,
    /// Objects removed there; `None` = not reported.
    pub objects: Option<u64>,
}

/// Events for the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Report {
    /// A message was refused.
    Refused(MessageRefusal),
    /// A node joined, or returned.
    Member(NodeId),
    /// A node was removed.
    Forgotten(NodeId),
    /// The stream is another one, or has lost messages.
    Epoch,
    /// The consumer delivers nothing and is made anew.
    ConsumerStuck,
    /// Entries of a publisher are gone: everything is removed from this cache.
    Dropping(Loss, NodeId),
    /// This many objects were removed for it.
    Dropped(u64),
    /// Another process uses this node's name.
    NameInUse,
    /// The node's files are damaged; entries or members may be lost.
    Damaged,
    /// A write failed.
    NotWritten(String),
    /// An order could not be applied, and everything was removed instead.
    NotApplied(String),
}

/// The causes for which everything is removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// Entries are older than the history, or the outbox was full.
    History,
    /// A publisher has lost its outbox, or a part of it.
    Outbox,
    /// A publisher was removed without leaving in order.
    Forgotten,
    /// Entries did not come within the time for joining.
    Unreachable,
    /// The cache, or this node's state, is an older copy.
    Cache,
    /// This node was removed from the fleet.
    Expelled,
    /// This node joins as a new member: earlier entries did not reach it.
    New,
    /// An entry of a later version.
    Unknown,
}

/// The value of `Nats-Msg-Id` for an entry.
#[must_use]
pub fn message_id(node: &NodeId, position: Position) -> String {
    format!("{node}-{:x}-{}", position.incarnation.0, position.counter)
}
