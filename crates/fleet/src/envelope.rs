//! The envelope of a message: who sent it to which fleet, and the signature over all.
//!
//! ```text
//! version (1) | fleet, node, incarnation, counter, wall time, body (postcard) | HMAC-SHA-256 (32)
//! ```
//!
//! The signature is checked before anything is decoded, with each accepted key. A valid signature
//! proves that a member made the message at some time, not that it is new: the receiver recognizes
//! replays by the counter.
//!
//! *Invariant:* no message is longer than `FLEET_MESSAGE_BYTES_MAX`, sent or accepted.

use crate::identity::{FleetId, Incarnation, NodeId};
use crate::message::Body;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::fmt;
use surface::fleet::MessageRefusal;
use surface::limits::FLEET_MESSAGE_BYTES_MAX;

/// Version of the format.
pub const VERSION: u8 = 1;
/// Length of a signature, in bytes.
const SIGNATURE_BYTES: usize = 32;

/// The keys of a fleet: the first signs, both are accepted. To replace a key, the new one is first
/// added as the second one on all nodes, then made the first one, and then the old one is removed.
#[derive(Clone)]
pub struct Keys {
    signing: Hmac<Sha256>,
    other: Option<Hmac<Sha256>>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

impl Keys {
    /// The key that signs, and another one that is accepted too, while keys are replaced.
    #[must_use]
    pub fn new(signing: &[u8; 32], other: Option<&[u8; 32]>) -> Keys {
        let keyed = |key: &[u8; 32]| Hmac::new_from_slice(key).expect("a key of any length");
        Keys { signing: keyed(signing), other: other.map(keyed) }
    }

    /// The signature of the parts, one after another.
    pub(crate) fn sign(&self, parts: &[&[u8]]) -> [u8; SIGNATURE_BYTES] {
        let mut mac = self.signing.clone();
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    }

    /// True if one of the keys made the signature, or the first bytes of it.
    pub(crate) fn verify(&self, parts: &[&[u8]], signature: &[u8]) -> bool {
        [Some(&self.signing), self.other.as_ref()].into_iter().flatten().any(|key| {
            let mut mac = key.clone();
            parts.iter().for_each(|part| mac.update(part));
            mac.verify_truncated_left(signature).is_ok()
        })
    }
}

/// The content with its signature.
#[must_use]
pub fn signed(content: &[u8], keys: &Keys) -> Vec<u8> {
    [content, &keys.sign(&[content])].concat()
}

/// A message, decoded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Envelope {
    /// The fleet.
    pub fleet: FleetId,
    /// The sender.
    pub node: NodeId,
    /// The run of the sender; for an entry of an outbox, the run that wrote the entry.
    pub incarnation: Incarnation,
    /// The number of the entry; for other bodies, the number of the message in the sender's run.
    pub counter: u64,
    /// Wall clock of the sender when it made the message, in milliseconds since 1970: for people.
    pub wall_ms: u64,
    /// The content.
    pub body: Body,
}

impl Envelope {
    /// The bytes to send; `None` if they would be longer than `FLEET_MESSAGE_BYTES_MAX`.
    #[must_use]
    pub fn seal(&self, keys: &Keys) -> Option<Vec<u8>> {
        let content = postcard::to_extend(self, vec![VERSION]).expect("strings and numbers can be encoded");
        let bytes = signed(&content, keys);
        (bytes.len() <= FLEET_MESSAGE_BYTES_MAX).then_some(bytes)
    }

    /// The message of these bytes.
    ///
    /// # Errors
    /// The cause for which it is refused.
    pub fn open(bytes: &[u8], fleet: FleetId, keys: &Keys) -> Result<Envelope, MessageRefusal> {
        if bytes.len() > FLEET_MESSAGE_BYTES_MAX {
            return Err(MessageRefusal::TooLong);
        }
        let Some((signed, signature)) = bytes.split_last_chunk::<SIGNATURE_BYTES>() else {
            return Err(MessageRefusal::Truncated);
        };
        if !keys.verify(&[signed], signature) {
            return Err(MessageRefusal::Signature);
        }
        let Some((&VERSION, encoded)) = signed.split_first() else {
            return Err(MessageRefusal::Version);
        };
        match postcard::take_from_bytes::<Envelope>(encoded) {
            Ok((envelope, [])) if envelope.fleet == fleet => Ok(envelope),
            Ok((_, [])) => Err(MessageRefusal::Fleet),
            Ok(_) | Err(_) => Err(MessageRefusal::Form),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLEET: FleetId = FleetId([1; 8]);

    fn envelope(bytes: usize) -> Envelope {
        Envelope {
            fleet: FLEET,
            node: NodeId::new("web-1").unwrap(),
            incarnation: Incarnation(3),
            counter: 4,
            wall_ms: 5,
            body: Body::Entry { after: Incarnation(3), invalidation: vec![9; bytes] },
        }
    }

    #[test]
    fn forged_truncated_or_foreign_message_is_refused_with_its_cause() {
        let (key, next) = ([1; 32], [2; 32]);
        let keys = Keys::new(&key, None);
        let sealed = envelope(10).seal(&keys).unwrap();
        assert_eq!(Envelope::open(&sealed, FLEET, &keys), Ok(envelope(10)));
        for length in 0..sealed.len() {
            let cause = if length < 32 { MessageRefusal::Truncated } else { MessageRefusal::Signature };
            assert_eq!(Envelope::open(&sealed[..length], FLEET, &keys), Err(cause), "{length}");
            let mut altered = sealed.clone();
            altered[length] ^= 0x10;
            assert_eq!(Envelope::open(&altered, FLEET, &keys), Err(MessageRefusal::Signature), "{length}");
        }
        assert_eq!(Envelope::open(&sealed, FleetId([2; 8]), &keys), Err(MessageRefusal::Fleet));
        assert_eq!(Envelope::open(&sealed, FLEET, &Keys::new(&next, None)), Err(MessageRefusal::Signature));
        assert_eq!(Envelope::open(&signed(&[VERSION + 1, 0], &keys), FLEET, &keys), Err(MessageRefusal::Version));
        assert_eq!(Envelope::open(&signed(&[VERSION, 0], &keys), FLEET, &keys), Err(MessageRefusal::Form));
        let with_rest = [&sealed[..sealed.len() - 32], b"x"].concat();
        assert_eq!(Envelope::open(&signed(&with_rest, &keys), FLEET, &keys), Err(MessageRefusal::Form));
    }

    #[test]
    fn key_can_be_replaced_while_messages_are_exchanged() {
        let (old, new) = ([1; 32], [2; 32]);
        let steps =
            [Keys::new(&old, None), Keys::new(&old, Some(&new)), Keys::new(&new, Some(&old)), Keys::new(&new, None)];
        for (one, next) in steps.iter().zip(&steps[1..]) {
            for (from, to) in [(one, next), (next, one), (one, one)] {
                assert!(Envelope::open(&envelope(1).seal(from).unwrap(), FLEET, to).is_ok());
            }
        }
        assert!(Envelope::open(&envelope(1).seal(&steps[0]).unwrap(), FLEET, &steps[3]).is_err());
    }

    #[test]
    fn message_of_64_kib_is_the_longest() {
        let keys = Keys::new(&[1; 32], None);
        let overhead = envelope(60_000).seal(&keys).unwrap().len() - 60_000;
        let longest = envelope(FLEET_MESSAGE_BYTES_MAX - overhead).seal(&keys).unwrap();
        assert_eq!(longest.len(), FLEET_MESSAGE_BYTES_MAX);
        assert!(Envelope::open(&longest, FLEET, &keys).is_ok());
        assert_eq!(envelope(FLEET_MESSAGE_BYTES_MAX - overhead + 1).seal(&keys), None);
        let longer = signed(&vec![VERSION; FLEET_MESSAGE_BYTES_MAX + 1 - 32], &keys);
        assert_eq!(Envelope::open(&longer, FLEET, &keys), Err(MessageRefusal::TooLong));
    }
}
