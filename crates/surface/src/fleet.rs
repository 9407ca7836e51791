//! Words of a fleet: kinds of invalidations, and causes for which a message is refused.

use crate::closed_set::closed_set;

closed_set! {
    /// The kinds of invalidations that nodes of a fleet exchange.
    InvalidationKind {
        /// All objects of one URL.
        Url "url",
        /// All objects under one key.
        Key "key",
        /// All objects whose URL begins with a text.
        Prefix "prefix",
        /// All objects with one of the tags.
        Tags "tags",
        /// All objects that match a ban expression.
        Ban "ban",
        /// All objects whose fetch began earlier.
        Everything "everything",
        /// A node left the fleet in order.
        Leave "leave",
        /// A node was removed from the fleet by an operator.
        Forget "forget",
    }
}

closed_set! {
    /// The causes for which a node refuses a message.
    MessageRefusal {
        /// Longer than [`crate::limits::FLEET_MESSAGE_BYTES_MAX`].
        TooLong "too-long",
        /// Too short to be a message.
        Truncated "truncated",
        /// Signed with none of the accepted keys, or altered.
        Signature "signature",
        /// Of another version of the format.
        Version "version",
        /// Of another fleet.
        Fleet "fleet",
        /// Of an unknown form, or with values out of range.
        Form "form",
        /// Older than a message already received from its sender: a replay, or reordered.
        Replay "replay",
        /// From a node that was removed from the fleet.
        Forgotten "forgotten",
        /// An entry of a node of which no other message was received yet; it is sent again later.
        Unknown "unknown",
        /// From a node beyond [`crate::limits::FLEET_NODES_MAX`].
        TooManyNodes "too-many-nodes",
        /// Too far ahead of the messages that are missing; it is sent again later.
        TooFarAhead "too-far-ahead",
    }
}

closed_set! {
    /// The policies for a node that is out of contact with its fleet (parameter `fleet_when_lost`).
    WhenLost {
        /// Goes on to serve from the cache.
        Serve "serve",
        /// Serves nothing from the cache without revalidation that is older than `fleet_lost_ttl`.
        StaleLimit "stale-limit",
        /// Serves nothing from the cache.
        Refuse "refuse",
    }
}
