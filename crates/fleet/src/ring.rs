//! Where a key belongs: a stable hash of names and keys.

/// A stable hash with well-mixed bits, the same in all versions: nodes compare results of it.
#[must_use]
pub fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mut state = mix(seed ^ 0x9e37_79b9_7f4a_7c15 ^ bytes.len() as u64);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = mix(state ^ u64::from_le_bytes(word)).wrapping_mul(0x9fb2_1c65_1e98_df25);
    }
    mix(state)
}

/// Mixes all bits into all (the finalizer of SplitMix64).
#[must_use]
pub(crate) fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
