//! The digest of a key: SHA-256 of everything that vcl_hash feeds, in one go where that is short.
//!
//! Most keys are a path and a host, fed in four pieces. Collecting them costs less than the
//! streaming hasher's work for each.

use sha2::{Digest, Sha256};

/// Longest key that is collected, in bytes.
const SHORT_BYTES_MAX: usize = 192;

/// A key that is being fed.
pub(crate) struct KeyHasher {
    short: [u8; SHORT_BYTES_MAX],
    /// Bytes collected.
    used: usize,
    /// The streaming hasher, which gets everything once the key is too long.
    long: Option<Sha256>,
}

impl Default for KeyHasher {
    fn default() -> KeyHasher {
        KeyHasher { short: [0; SHORT_BYTES_MAX], used: 0, long: None }
    }
}

impl KeyHasher {
    /// Begins another key.
    #[inline]
    pub(crate) fn reset(&mut self) {
        self.used = 0;
        self.long = None;
    }

    /// Adds to the key.
    #[inline]
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self.short.get_mut(self.used..self.used + bytes.len()) {
            Some(room) if self.long.is_none() => {
                room.copy_from_slice(bytes);
                self.used += bytes.len();
            }
            _ => self.update_long(bytes),
        }
    }

    #[cold]
    fn update_long(&mut self, bytes: &[u8]) {
        let collected = &self.short[..self.used];
        self.long.get_or_insert_with(|| Sha256::new_with_prefix(collected)).update(bytes);
    }

    /// Returns the digest; the next feed begins another key.
    pub(crate) fn finish(&mut self) -> [u8; 32] {
        let digest = match self.long.take() {
            Some(long) => long.finalize(),
            None => Sha256::digest(&self.short[..self.used]),
        };
        self.used = 0;
        digest.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_the_digest_of_its_bytes_however_long_it_is_and_however_it_was_fed() {
        let text: Vec<u8> = (0..700).map(|number| number as u8).collect();
        let mut hasher = KeyHasher::default();
        for length in
            [0, 1, 20, 55, 56, 63, 64, 65, 128, SHORT_BYTES_MAX - 1, SHORT_BYTES_MAX, SHORT_BYTES_MAX + 1, 700]
        {
            let key = &text[..length];
            for piece in [1, 7, 64, SHORT_BYTES_MAX, 700] {
                hasher.update(b"what is not wanted");
                hasher.reset();
                key.chunks(piece).for_each(|piece| hasher.update(piece));
                assert_eq!(hasher.finish(), <[u8; 32]>::from(Sha256::digest(key)), "{length} in pieces of {piece}");
            }
        }
    }
}
