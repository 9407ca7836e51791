//! The invalidations that nodes exchange.

use crate::identity::{Incarnation, NodeId};
use serde::{Deserialize, Serialize};
use surface::fleet::InvalidationKind;

/// An order to remove objects, as it is sent to all nodes.
///
/// Applying one twice, late or out of order removes at most too much. A node that does not know a
/// kind, or cannot apply one (a ban that it cannot compile), removes everything instead.
///
/// Variants are encoded by their place: new ones are appended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Invalidation {
    /// Removes all objects of a URL, as the CLI takes it.
    Url {
        /// `/path`, or `host/path` with a scheme.
        url: String,
        /// Makes them stale instead.
        is_soft: bool,
    },
    /// Removes all objects under a key (`purge` in VCL).
    Key {
        /// The digest that `vcl_hash` yields.
        digest: [u8; 32],
        /// Makes them stale instead.
        is_soft: bool,
    },
    /// Removes all objects whose URL begins with a text.
    Prefix {
        /// As in `Url`.
        prefix: String,
        /// Makes them stale instead.
        is_soft: bool,
    },
    /// Removes all objects that have one of the tags.
    Tags {
        /// Surrogate keys.
        tags: Vec<String>,
        /// Makes them stale instead.
        is_soft: bool,
    },
    /// Removes all objects that match an expression, as `ban` of the CLI takes it.
    Ban {
        /// The expression. The publisher has compiled it.
        expression: String,
    },
    /// Removes all objects whose fetch began before it is applied, and replaces all entries of its
    /// publisher with smaller numbers, which are gone.
    Everything,
    /// The publisher leaves the fleet, and this is its last entry. When all members have applied
    /// it, the node can be forgotten without a loss.
    Leave,
    /// An operator has removed a node, which will not return as it was. If it did not leave in
    /// order, its last entries may be lost: then everything is removed.
    Forget {
        /// The removed node.
        node: NodeId,
        /// Its latest known run. Messages from this run and earlier ones are refused.
        incarnation: Incarnation,
    },
}

impl Invalidation {
    /// The kind, for counters and messages.
    #[must_use]
    pub fn kind(&self) -> InvalidationKind {
        match self {
            Invalidation::Url { .. } => InvalidationKind::Url,
            Invalidation::Key { .. } => InvalidationKind::Key,
            Invalidation::Prefix { .. } => InvalidationKind::Prefix,
            Invalidation::Tags { .. } => InvalidationKind::Tags,
            Invalidation::Ban { .. } => InvalidationKind::Ban,
            Invalidation::Everything => InvalidationKind::Everything,
            Invalidation::Leave => InvalidationKind::Leave,
            Invalidation::Forget { .. } => InvalidationKind::Forget,
        }
    }

    /// The bytes that are stored and sent.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("strings and numbers can be encoded")
    }

    /// The invalidation of these bytes; `None` for a kind of a later version, or other bytes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Invalidation> {
        let (invalidation, rest) = postcard::take_from_bytes(bytes).ok()?;
        rest.is_empty().then_some(invalidation)
    }
}

/// True for the encoding of [`Invalidation::Everything`].
pub(crate) fn is_everything(encoded: &[u8]) -> bool {
    Invalidation::decode(encoded) == Some(Invalidation::Everything)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalidation_comes_back_from_its_bytes_and_a_later_kind_is_unknown() {
        let ban = Invalidation::Ban { expression: "obj.http.x ~ y".to_owned() };
        assert_eq!(Invalidation::decode(&ban.encode()), Some(ban.clone()));
        assert_eq!(Invalidation::decode(&[InvalidationKind::ALL.len() as u8, 1, 2, 3]), None);
        assert_eq!(Invalidation::decode(&[&ban.encode()[..], b"x"].concat()), None, "a rest is not ignored");
        assert_eq!(Invalidation::decode(&[]), None);
    }
}
