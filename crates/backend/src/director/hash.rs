//! Hash: a healthy member by the hash of a text, in proportion to its weight; the same text falls to the same member for
//! as long as the set of healthy members is the same.

use crate::director::Members;
use crate::directors::Directors;
use sha2::{Digest, Sha256};
use vcl_run::value::DirectorId;

/// The director.
#[derive(Debug, Default)]
pub struct Hash {
    pub(crate) members: Members,
}

impl Hash {
    /// The member that the text falls to.
    #[must_use]
    pub fn choose(&self, directors: &Directors, text: &[u8]) -> Option<DirectorId> {
        self.members.choose_by_weight(directors, f64::from(hash_text(text)) / 4_294_967_296.0)
    }
}

/// The 32 bits that the hash and shard directors make of a text: the end of its SHA-256 digest, little-endian.
#[must_use]
pub fn hash_text(text: &[u8]) -> u32 {
    let digest = Sha256::digest(text);
    u32::from_le_bytes([digest[28], digest[29], digest[30], digest[31]])
}
