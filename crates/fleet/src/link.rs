//! Messages between the manager and `copal fleet-agent`, over a socket pair.
//!
//! Each is four bytes of length, big endian, then postcard. The agent is the less trusted side: the
//! manager takes nothing from it but these, and compiles, bounds and escapes what is in them.
//!
//! ```text
//! agent                                        manager
//!   ◀── Settings ──────────────────────────────  at the start, and when a parameter has changed
//!   ◀── Cache ─────────────────────────────────  the worker has started, or has ended
//!   ── Serve ─────────────────────────────────▶  whether the worker may serve from its cache
//!   ── Apply ─────────────────────────────────▶  carried out by the worker, durably
//!   ◀── Applied or NotApplied ─────────────────
//!   ◀── Command ───────────────────────────────  `fleet.*` of the CLI, or VCL of this node
//!   ── Answer ────────────────────────────────▶
//!   ── Say ───────────────────────────────────▶  a line for the operator
//! ```
//!
//! The process is started as `copal fleet-agent --inherited USER:GROUP|- sandbox|- OPTION…`, where
//! each option is a word and its value: `--folder PATH --servers URLS --fleet NAME --node NAME
//! --zone ZONE --address ADDRESS --creds FILE --nkey FILE --tls-ca FILE --replicas N`. Its standard
//! input is the socket of this link, at whose end it ends. The manager creates the folder, mode
//! 0700, for the user that the agent becomes. The agent reads the other files with the rights it is
//! started with, then becomes that user. The keys of the fleet come with the settings.

use crate::counters::{Counters, Status};
use crate::exchange::{Answer, ApplyId, RequestId, Serving};
use crate::identity::NodeId;
use crate::invalidation::Invalidation;
use crate::record::CacheMark;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, Read, Write};
use surface::fleet::WhenLost;
use surface::limits::FLEET_LINK_BYTES_MAX;

/// Bytes of the length before a message.
const LENGTH_BYTES: usize = 4;

/// A message of the manager.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ToAgent {
    /// The first message, and after each change of a parameter.
    Settings(Settings),
    /// The worker has started, or has ended: until this comes, nothing is applied.
    Cache {
        /// Its cache; `None` = no worker runs.
        mark: Option<CacheMark>,
        /// True if this worker ran with the agent before this one and has carried out all of its
        /// `Serve`: it goes on serving while this agent catches up. Read with the first cache only.
        is_continued: bool,
    },
    /// The cache has applied an order, durably.
    Applied {
        /// Of [`ToManager::Apply`].
        id: ApplyId,
        /// Number of objects that were removed.
        objects: u64,
        /// The cache after it.
        cache: CacheMark,
    },
    /// The cache cannot apply an order: everything is removed instead.
    NotApplied {
        /// Of [`ToManager::Apply`].
        id: ApplyId,
        /// The error, for the operator.
        error: String,
    },
    /// A command, answered by [`ToManager::Answer`] with the same number.
    Command {
        /// Its number, unique as long as it is not answered.
        request: RequestId,
        /// The command.
        command: Command,
        /// Time to wait for all members, in milliseconds; `None` = answer as soon as it is durable
        /// and applied here.
        wait_ms: Option<u64>,
    },
}

/// A command to the agent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Command {
    /// Removes objects on all nodes.
    Invalidate(Invalidation),
    /// Removes a node from the fleet.
    Forget(NodeId),
    /// Leaves the fleet for good.
    Leave,
    /// Prepares to leave, or no longer does. Answered at once.
    Drain(bool),
    /// Asks for the state. Answered at once with [`Reply::Status`].
    Status,
}

/// Parameters of the manager. Times are in milliseconds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// `fleet_lost_after`.
    pub lost_after_ms: u64,
    /// `fleet_when_lost`.
    pub when_lost: WhenLost,
    /// `fleet_join_timeout`.
    pub join_timeout_ms: u64,
    /// `fleet_history`.
    pub history_ms: u64,
    /// The keys, one or two: the first one signs. Only those of the first message count.
    pub keys: Vec<Key>,
}

/// A key of a fleet.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key(pub [u8; 32]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// A message of the agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ToManager {
    /// The worker serves under other conditions from now on. Before the first one: `Joining`.
    Serve(Serving),
    /// Apply this to the cache, durably, then answer with `Applied` or `NotApplied`. An agent that
    /// was restarted sends again what it has no answer for.
    Apply {
        /// Its number, unique in a run of the agent.
        id: ApplyId,
        /// The order.
        invalidation: Invalidation,
    },
    /// The result of a command.
    Answer {
        /// Of [`ToAgent::Command`].
        request: RequestId,
        /// The result.
        reply: Reply,
    },
    /// A line for the operator.
    Say {
        /// True = a warning.
        is_warning: bool,
        /// The text, which may hold bytes of other nodes: the manager escapes it.
        text: String,
    },
}

/// The result of a command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// Of an invalidation, and of `Forget` and `Leave`.
    Invalidation(Answer),
    /// Of `Drain`.
    Done,
    /// Of `Status`.
    Status(Box<State>),
}

/// The state of the agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    /// Its node.
    pub node: NodeId,
    /// The state of the machine.
    pub status: Status,
    /// Its counts since it was started.
    pub counters: Counters,
    /// The server it is connected to; `None` = out of contact.
    pub server: Option<String>,
    /// Version of that server; empty if not connected.
    pub server_version: String,
    /// Lag of the consumer: messages in the stream that it has not received.
    pub lag: u64,
}

/// Writes a message.
///
/// # Errors
/// Writing failed, or the message is longer than `FLEET_LINK_BYTES_MAX`.
pub fn write<M: Serialize>(to: &mut impl Write, message: &M) -> io::Result<()> {
    let mut bytes = vec![0; LENGTH_BYTES];
    bytes = postcard::to_extend(message, bytes).map_err(io::Error::other)?;
    let length = bytes.len() - LENGTH_BYTES;
    if length > FLEET_LINK_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the message to the fleet's agent is too long"));
    }
    bytes[..LENGTH_BYTES].copy_from_slice(&(length as u32).to_be_bytes());
    to.write_all(&bytes)
}

/// Reads a message; `None` at the end of the stream.
///
/// # Errors
/// Reading failed, the stream ended within a message, or the bytes are not a message.
pub fn read<M: for<'a> Deserialize<'a>>(from: &mut impl Read) -> io::Result<Option<M>> {
    let mut length = [0; LENGTH_BYTES];
    match from.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > FLEET_LINK_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message longer than allowed"));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    match postcard::take_from_bytes(&bytes) {
        Ok((message, [])) => Ok(Some(message)),
        Ok(_) | Err(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "bytes that are not a message")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_and_other_bytes_are_refused() {
        let first = ToAgent::Command { request: 7, command: Command::Status, wait_ms: Some(5) };
        let second = ToAgent::NotApplied { id: 1, error: "no".to_owned() };
        let mut bytes = Vec::new();
        write(&mut bytes, &first).unwrap();
        write(&mut bytes, &second).unwrap();
        let mut rest = &bytes[..];
        assert_eq!(read(&mut rest).unwrap(), Some(first));
        assert_eq!(read(&mut rest).unwrap(), Some(second));
        assert_eq!(read::<ToAgent>(&mut rest).unwrap(), None);
        for bytes in [&[0, 0, 0, 9, 1][..], &[0, 0, 0, 1, 99], &[255; 8], &[0, 0, 0, 6, 2, 1, 0, 0, 0, 0]] {
            assert!(read::<ToAgent>(&mut &bytes[..]).is_err(), "{bytes:?}");
        }
        let long = ToAgent::NotApplied { id: 1, error: "x".repeat(FLEET_LINK_BYTES_MAX) };
        assert!(write(&mut Vec::new(), &long).is_err());
    }
}
