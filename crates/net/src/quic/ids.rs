//! Connection ids that contain the event loop and the worker of a connection: [`LoopIds`].
//!
//! ```text
//! | 6 unique bytes | loop | worker | 4 bytes of proof |
//!                  └─ masked by a function of the first six and the key
//! ```
//!
//! Without the key they are random, so two ids of one connection are unlinkable. The proof prevents
//! stateless resets for ids that were never ours. Source: RFC 9000 §5.1, §10.3.

use quinn::{ConnectionId, ConnectionIdGenerator};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of an id.
pub(super) const ID_BYTES: usize = 12;
const NONCE_BYTES: usize = 6;

/// Key and number that all event loops of a worker share.
#[derive(Clone, Debug)]
pub struct WorkerIds {
    key: (u64, u64),
    /// Distinguishes this worker from the one before it; they may be equal by chance.
    worker: u8,
    /// Generates unique and unpredictable ids.
    random: Arc<(RandomState, AtomicU64)>,
}

impl WorkerIds {
    /// The ids of a worker; the key is that of all workers.
    #[must_use]
    pub fn new(key: [u8; 16]) -> WorkerIds {
        let (first, last) = key.split_at(8);
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let random = RandomState::new();
        let worker = random.hash_one(0) as u8;
        WorkerIds { key: (number(first), number(last)), worker, random: Arc::new((random, AtomicU64::new(1))) }
    }

    /// The ids of an event loop. The largest distinguishable number is 254.
    #[must_use]
    pub(super) fn of_loop(&self, number: usize) -> LoopIds {
        LoopIds { all: self.clone(), number: u8::try_from(number).unwrap_or(u8::MAX) }
    }

    /// SipHash-2-4 with our key, which the standard library has under this name only.
    #[expect(deprecated)]
    fn mask(&self, nonce: &[u8]) -> [u8; 8] {
        let mut hasher = std::hash::SipHasher::new_with_keys(self.key.0, self.key.1);
        hasher.write(nonce);
        hasher.finish().to_be_bytes()
    }
}

/// Owner of an id's connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    /// An event loop of this worker.
    Loop(u8),
    /// An earlier worker.
    Former,
    /// None: we have never issued such an id.
    Nobody,
}

/// Makes and reads the ids of one event loop.
#[derive(Clone, Debug)]
pub(super) struct LoopIds {
    all: WorkerIds,
    number: u8,
}

impl LoopIds {
    fn make(&self) -> [u8; ID_BYTES] {
        let (state, count) = &*self.all.random;
        let nonce = state.hash_one(count.fetch_add(1, Ordering::Relaxed)).to_be_bytes();
        let mut id = [0; ID_BYTES];
        id[..NONCE_BYTES].copy_from_slice(&nonce[..NONCE_BYTES]);
        let mask = self.all.mask(&id[..NONCE_BYTES]);
        let said = [self.number, self.all.worker, 0, 0, 0, 0];
        for (byte, (said, mask)) in id[NONCE_BYTES..].iter_mut().zip(said.iter().zip(mask)) {
            *byte = said ^ mask;
        }
        id
    }

    /// Owner of an id's connection.
    pub(super) fn owner(&self, id: &[u8]) -> Owner {
        if id.len() != ID_BYTES {
            return Owner::Nobody;
        }
        let (nonce, masked) = id.split_at(NONCE_BYTES);
        let mask = self.all.mask(nonce);
        let is_proven = masked[2..] == mask[2..ID_BYTES - NONCE_BYTES];
        match (is_proven, masked[1] ^ mask[1] == self.all.worker) {
            (false, _) => Owner::Nobody,
            (true, true) => Owner::Loop(masked[0] ^ mask[0]),
            (true, false) => Owner::Former,
        }
    }
}

impl ConnectionIdGenerator for LoopIds {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.make())
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

/// Recipient of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Recipient {
    /// This event loop: its connection, or a new client.
    Here,
    /// Another event loop of this worker.
    Other(u8),
    /// This event loop, which sends the client a stateless reset.
    Former,
    /// None.
    Nobody,
}

/// In a long header the id follows the first byte, four of the version, and its length.
const LONG_ID_AT: usize = 6;

impl LoopIds {
    /// The recipient of a datagram that arrived at this event loop. Source: RFC 8999 §5, RFC 9000
    /// §17.3.
    pub(super) fn recipient(&self, datagram: &[u8]) -> Recipient {
        let Some(first) = datagram.first() else { return Recipient::Nobody };
        let is_long = first & 0x80 != 0;
        let id = if is_long {
            match datagram.get(LONG_ID_AT - 1) {
                Some(length) => datagram.get(LONG_ID_AT..LONG_ID_AT + usize::from(*length)),
                None => None,
            }
        } else {
            datagram.get(1..1 + ID_BYTES)
        };
        let Some(id) = id else { return Recipient::Nobody };
        match self.owner(id) {
            Owner::Loop(number) if number != self.number => Recipient::Other(number),
            Owner::Loop(_) => Recipient::Here,
            // A new client chooses an id itself.
            Owner::Nobody | Owner::Former if is_long => Recipient::Here,
            Owner::Former => Recipient::Former,
            Owner::Nobody => Recipient::Nobody,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const KEY: [u8; 16] = [7; 16];

    /// As in another process.
    fn another_worker(than: &WorkerIds) -> WorkerIds {
        WorkerIds { worker: than.worker ^ 1, ..WorkerIds::new(KEY) }
    }

    fn short(id: &[u8]) -> Vec<u8> {
        [&[0x40], id, &[0; 30]].concat()
    }

    fn long(id: &[u8]) -> Vec<u8> {
        [&[0xc0, 0, 0, 0, 1, id.len() as u8], id, &[0; 30]].concat()
    }

    #[test]
    fn connection_ids_identify_their_worker_with_the_key() {
        let worker = WorkerIds::new(KEY);
        let mut third = worker.of_loop(3);
        let id = third.generate_cid();
        assert_eq!(worker.of_loop(0).owner(&id), Owner::Loop(3));
        assert_eq!(another_worker(&worker).of_loop(3).owner(&id), Owner::Former);
        assert_eq!(WorkerIds::new([8; 16]).of_loop(3).owner(&id), Owner::Nobody);
        assert_eq!(third.owner(&[0; ID_BYTES]), Owner::Nobody);
        assert_eq!(third.owner(&id[1..]), Owner::Nobody);
    }

    #[test]
    fn ids_never_come_twice_and_have_nothing_in_common() {
        let mut ids = WorkerIds::new(KEY).of_loop(1);
        let made: BTreeSet<_> = (0..10_000).map(|_| ids.generate_cid().to_vec()).collect();
        assert_eq!(made.len(), 10_000);
        for place in 0..ID_BYTES {
            let values: BTreeSet<_> = made.iter().map(|id| id[place]).collect();
            assert!(values.len() > 250, "byte {place} gives something away");
        }
    }

    #[test]
    fn datagram_goes_to_the_loop_of_its_connection() {
        let worker = WorkerIds::new(KEY);
        let (here, mut there) = (worker.of_loop(0), worker.of_loop(1));
        let id = there.generate_cid();
        for datagram in [short(&id), long(&id)] {
            assert_eq!(here.recipient(&datagram), Recipient::Other(1));
            assert_eq!(there.recipient(&datagram), Recipient::Here);
        }
        let gone = another_worker(&worker).of_loop(1).generate_cid();
        assert_eq!(here.recipient(&short(&gone)), Recipient::Former);
    }

    #[test]
    fn unknown_packets_are_accepted_only_from_possible_new_clients() {
        let here = WorkerIds::new(KEY).of_loop(0);
        assert_eq!(here.recipient(&long(b"chosen by it")), Recipient::Here);
        assert_eq!(here.recipient(&long(b"")), Recipient::Here);
        assert_eq!(here.recipient(&short(b"chosen by it")), Recipient::Nobody);
        for garbage in [&[][..], &[0x40], &[0xc0, 0, 0], &[0xc0, 0, 0, 0, 1, 20, 1]] {
            assert_eq!(here.recipient(garbage), Recipient::Nobody, "{garbage:?}");
        }
    }
}
