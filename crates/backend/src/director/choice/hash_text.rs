//! The hash of a text, shared by the hash and shard directors.

use sha2::{Digest, Sha256};

/// The 32-bit hash of a text for the hash and shard directors: the end of its SHA-256 digest,
/// little-endian.
#[must_use]
pub fn hash_text(text: &[u8]) -> u32 {
    let digest = Sha256::digest(text);
    u32::from_le_bytes([digest[28], digest[29], digest[30], digest[31]])
}
