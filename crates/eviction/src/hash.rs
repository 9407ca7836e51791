//! A hash of numbers: for keys that are numbers, and for independent positions from hashes that are
//! used already.

/// A hash of a number, every bit of which depends on all of the number.
#[must_use]
pub fn mix(number: u64) -> u64 {
    let mut word = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
