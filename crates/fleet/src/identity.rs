//! Names and positions: a fleet, a node, the process that wrote an entry, a place in an outbox.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;
use surface::limits::FLEET_NODE_NAME_BYTES_MAX;

/// A fleet: a digest of its name. Messages of other fleets are refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FleetId(pub [u8; 8]);

impl FleetId {
    /// The fleet with this name.
    #[must_use]
    pub fn of_name(name: &str) -> FleetId {
        let digest = Sha256::new().chain_update(b"copal fleet ").chain_update(name).finalize();
        let mut id = [0; 8];
        id.copy_from_slice(&digest[..8]);
        FleetId(id)
    }
}

/// The name of a node: 1 to 64 letters, digits, `-` and `_`, so that it is one token of a subject,
/// a file name and a word on a terminal. It must be unique in a fleet and stay the same for life.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeId(Arc<str>);

/// A text that cannot name a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAName;

impl fmt::Display for NotAName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the name of a node has 1 to {FLEET_NODE_NAME_BYTES_MAX} letters, digits, '-' or '_'")
    }
}

impl std::error::Error for NotAName {}

impl NodeId {
    /// The node with this name.
    ///
    /// # Errors
    /// The text is empty, longer than 64 bytes, or has other characters.
    pub fn new(name: &str) -> Result<NodeId, NotAName> {
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let has_length = (1..=FLEET_NODE_NAME_BYTES_MAX).contains(&name.len());
        if has_length && name.bytes().all(is_valid) { Ok(NodeId(name.into())) } else { Err(NotAName) }
    }

    /// A name from a host name, whose other characters become `-`, and a stable number.
    #[must_use]
    pub fn of_host(host: &str, number: u64) -> NodeId {
        let is_valid = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        let host: String = host.chars().take(40).map(|letter| if is_valid(letter) { letter } else { '-' }).collect();
        NodeId(format!("{host}-{number:08x}").into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for NodeId {
    type Error = NotAName;

    fn try_from(name: String) -> Result<NodeId, NotAName> {
        NodeId::new(&name)
    }
}

impl From<NodeId> for String {
    fn from(node: NodeId) -> String {
        node.0.as_ref().to_owned()
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One run of a node's process: a number of starts in the upper half, so that later runs compare
/// greater, and random bits in the lower half, so that two runs that continue from the same copy of
/// a node's files differ. 0 = before the first entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct Incarnation(pub u64);

impl Incarnation {
    /// The run after `previous`, with the given random bits.
    #[must_use]
    pub fn after(previous: Incarnation, random: u64) -> Incarnation {
        Incarnation(((previous.0 >> 32) + 1).min(u64::from(u32::MAX) - 1) << 32 | (random & 0xffff_ffff))
    }
}

/// Largest number of an entry. A greater one is refused, so that the next number always exists.
pub const COUNTER_MAX: u64 = u64::MAX >> 1;

/// A place in a publisher's sequence of invalidations: the number of an entry, from 1, and the run
/// that wrote it. Equal numbers of different runs are different entries: one of them was lost, and
/// its number was given a second time. The default is the place before the first entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
pub struct Position {
    /// The number of the entry; 0 = before the first.
    pub counter: u64,
    /// The run that wrote it.
    pub incarnation: Incarnation,
}

/// Time as a node sees it, given with every input. Order never depends on `wall_ms`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    /// Milliseconds of a clock that never goes backwards and goes on while the machine sleeps.
    pub monotone_ms: u64,
    /// Milliseconds since 1970, for the age of entries and for people.
    pub wall_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_node_is_one_token_anywhere() {
        for name in ["", "a.b", "a b", "a/b", "a*", "é", &"a".repeat(65)] {
            assert_eq!(NodeId::new(name), Err(NotAName), "{name}");
        }
        assert_eq!(NodeId::new("web-1_b").unwrap().as_str(), "web-1_b");
        assert_eq!(NodeId::of_host("web1.shop.example", 0xabc).as_str(), "web1-shop-example-00000abc");
        assert!(NodeId::new(NodeId::of_host(&"ü".repeat(300), u64::MAX).as_str()).is_ok());
    }

    #[test]
    fn later_run_compares_greater_whatever_its_random_bits() {
        let first = Incarnation::after(Incarnation::default(), u64::MAX);
        assert!(Incarnation::after(first, 0) > first);
        assert_ne!(Incarnation::after(first, 1), Incarnation::after(first, 2));
        assert!(Incarnation::after(Incarnation(u64::MAX), 0) > Incarnation(u64::MAX >> 1), "it does not start over");
    }
}
