//! The index's representation of a key.

/// Number of bytes of a key that distinguish keys: as many as the store keeps.
pub(crate) const KEY_BYTES: usize = 24;

/// A key with its hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Digest {
    pub(crate) key: [u8; KEY_BYTES],
    pub(crate) hash: u64,
}

impl Digest {
    /// Only the first bytes of the key count; a shorter one is padded with zeros.
    pub(crate) fn new(bytes: &[u8], seed: &[u64; 2]) -> Digest {
        let mut key = [0; KEY_BYTES];
        let len = bytes.len().min(KEY_BYTES);
        key[..len].copy_from_slice(&bytes[..len]);
        let hash = hash_of(&key, seed);
        Digest { key, hash }
    }

    /// The bits that no table of a shard uses: a table takes the lowest bits for the position, as
    /// many as its size needs, and the uppermost seven for a first comparison.
    pub(crate) fn shard(&self, shards: usize) -> usize {
        (self.hash >> 40) as usize % shards
    }
}

fn word(key: &[u8; KEY_BYTES], at: usize) -> u64 {
    key[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// A keyed multiplication: keys are digests already, this only hides which of them collide.
pub(crate) fn hash_of(key: &[u8; KEY_BYTES], seed: &[u64; 2]) -> u64 {
    let product = u128::from(word(key, 0) ^ seed[0]) * u128::from(word(key, 8) ^ seed[1]);
    (product as u64 ^ (product >> 64) as u64).wrapping_add(word(key, 16))
}
