//! A fleet: nodes that exchange invalidations and know one another, as machines without sockets.
//!
//! A stream (NATS JetStream) carries invalidations, but it may lose confirmed messages, be wiped,
//! or deliver nothing without an error. So it is transport only. Each publisher keeps an entry in
//! its **outbox** until all members have confirmed it; heartbeats carry what each node has applied
//! of each publisher, and a publisher sends again what is missing. A node whose missing entries are
//! gone removes everything that it stored before (`docs/decisions`).
//!
//! The owner of a [`Node`] feeds it events and carries out its orders ([`exchange`]); a [`Keeper`]
//! carries out those that write. Not here: NATS, files other than the node's own, the cache.
//!
//! *Invariant:* after a command that waited has ended with 0, no node that knows the fleet serves
//! what it removed. The simulation (`crates/fleet/tests`) checks that by content.
//!
//! Reading order: `identity` → `invalidation` → `message` → `envelope` → `record` → `exchange` →
//! `node` → `outbox` → `keeper` → `link`; then `ring`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod counters;
pub mod envelope;
pub mod exchange;
pub mod folder;
mod frame;
pub mod identity;
mod invalidation;
mod keeper;
pub mod link;
pub mod memory_folder;
pub mod message;
mod node;
mod outbox;
pub mod record;
pub mod ring;
mod state;

pub use counters::{Counters, MemberStatus, Status};
pub use envelope::{Envelope, Keys};
pub use exchange::{Answer, Config, Input, Output, Serving, Start};
pub use identity::{FleetId, Incarnation, NodeId, Now, Position};
pub use invalidation::Invalidation;
pub use keeper::Keeper;
pub use node::Node;
