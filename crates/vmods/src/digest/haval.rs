//! HAVAL with three passes, which no library offers: a hash of 128 to 256 bits over blocks of 128 bytes.
//!
//! Broken since 2004; useful only to compare with existing hashes. Source: Y. Zheng, J. Pieprzyk, J. Seberry, "HAVAL: a
//! one-way hashing algorithm with variable length of output", AUSCRYPT '92; the constants are the binary digits of pi's
//! fraction.

/// Bytes of a block.
const BLOCK_BYTES: usize = 128;

/// How many times each block is processed.
const PASSES: u16 = 3;

const START: [u32; 8] =
    [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344, 0xa409_3822, 0x299f_31d0, 0x082e_fa98, 0xec4e_6c89];

#[rustfmt::skip]
const SECOND: [u32; 32] = [
    0x4528_21e6, 0x38d0_1377, 0xbe54_66cf, 0x34e9_0c6c, 0xc0ac_29b7, 0xc97c_50dd, 0x3f84_d5b5, 0xb547_0917,
    0x9216_d5d9, 0x8979_fb1b, 0xd131_0ba6, 0x98df_b5ac, 0x2ffd_72db, 0xd01a_dfb7, 0xb8e1_afed, 0x6a26_7e96,
    0xba7c_9045, 0xf12c_7f99, 0x24a1_9947, 0xb391_6cf7, 0x0801_f2e2, 0x858e_fc16, 0x6369_20d8, 0x7157_4e69,
    0xa458_fea3, 0xf493_3d7e, 0x0d95_748f, 0x728e_b658, 0x718b_cd58, 0x8215_4aee, 0x7b54_a41d, 0xc25a_59b5,
];

#[rustfmt::skip]
const THIRD: [u32; 32] = [
    0x9c30_d539, 0x2af2_6013, 0xc5d1_b023, 0x2860_85f0, 0xca41_7918, 0xb8db_38ef, 0x8e79_dcb0, 0x603a_180e,
    0x6c9e_0e8b, 0xb01e_8a3e, 0xd715_77c1, 0xbd31_4b27, 0x78af_2fda, 0x5560_5c60, 0xe655_25f3, 0xaa55_ab94,
    0x5748_9862, 0x63e8_1440, 0x55ca_396a, 0x2aab_10b6, 0xb4cc_5c34, 0x1141_e8ce, 0xa154_86af, 0x7c72_e993,
    0xb3ee_1411, 0x636f_bc2a, 0x2ba9_c55d, 0x7418_31f6, 0xce5c_3e16, 0x9b87_931e, 0xafd6_ba33, 0x6c24_cf5c,
];

/// The word of the block that each step uses, in the second pass and in the third.
#[rustfmt::skip]
const SECOND_ORDER: [usize; 32] = [
    5, 14, 26, 18, 11, 28, 7, 16, 0, 23, 20, 22, 1, 10, 4, 8, 30, 3, 21, 9, 17, 24, 29, 6, 19, 12, 15, 13, 2, 25, 31, 27,
];
#[rustfmt::skip]
const THIRD_ORDER: [usize; 32] = [
    19, 9, 4, 20, 28, 17, 8, 22, 29, 14, 25, 12, 24, 30, 16, 26, 31, 15, 7, 3, 1, 0, 18, 27, 13, 6, 21, 10, 23, 11, 5, 2,
];

/// How 256 bits become fewer: to word `n`, add the bits of words 7, 6, … that the masks select, rotated right.
type Fold = &'static [(&'static [u32], u32)];

const FOLD_TO_128: Fold = &[
    (&[0x0000_00ff, 0xff00_0000, 0x00ff_0000, 0x0000_ff00], 8),
    (&[0x0000_ff00, 0x0000_00ff, 0xff00_0000, 0x00ff_0000], 16),
    (&[0x00ff_0000, 0x0000_ff00, 0x0000_00ff, 0xff00_0000], 24),
    (&[0xff00_0000, 0x00ff_0000, 0x0000_ff00, 0x0000_00ff], 0),
];
const FOLD_TO_160: Fold = &[
    (&[0x0000_003f, 0xfe00_0000, 0x01f8_0000], 19),
    (&[0x0000_0fc0, 0x0000_003f, 0xfe00_0000], 25),
    (&[0x0007_f000, 0x0000_0fc0, 0x0000_003f], 0),
    (&[0x01f8_0000, 0x0007_f000, 0x0000_0fc0], 6),
    (&[0xfe00_0000, 0x01f8_0000, 0x0007_f000], 12),
];
const FOLD_TO_192: Fold = &[
    (&[0x0000_001f, 0xfc00_0000], 26),
    (&[0x0000_03e0, 0x0000_001f], 0),
    (&[0x0000_fc00, 0x0000_03e0], 5),
    (&[0x001f_0000, 0x0000_fc00], 10),
    (&[0x03e0_0000, 0x001f_0000], 16),
    (&[0xfc00_0000, 0x03e0_0000], 21),
];
const FOLD_TO_224: Fold = &[
    (&[0xf800_0000], 27),
    (&[0x07c0_0000], 22),
    (&[0x003c_0000], 18),
    (&[0x0003_e000], 13),
    (&[0x0000_1e00], 9),
    (&[0x0000_01f0], 4),
    (&[0x0000_000f], 0),
];

/// The digest, with 128, 160, 192, 224 or 256 bits.
pub(super) fn digest(text: &[u8], bits: u16) -> Vec<u8> {
    let mut state = START;
    let mut blocks = text.chunks_exact(BLOCK_BYTES);
    for block in &mut blocks {
        go_through(&mut state, block);
    }
    // The rest of the text, a 1 bit, zeros, and ten bytes with the parameters of the hash and the length of the text.
    let mut rest = blocks.remainder().to_vec();
    rest.push(1);
    let blocks_left = if rest.len() + 10 > BLOCK_BYTES { 2 } else { 1 };
    rest.resize(blocks_left * BLOCK_BYTES - 10, 0);
    rest.extend_from_slice(&(1 | PASSES << 3 | bits << 6).to_le_bytes());
    rest.extend_from_slice(&(text.len() as u64).wrapping_mul(8).to_le_bytes());
    for block in rest.chunks_exact(BLOCK_BYTES) {
        go_through(&mut state, block);
    }
    let fold = match bits {
        128 => FOLD_TO_128,
        160 => FOLD_TO_160,
        192 => FOLD_TO_192,
        224 => FOLD_TO_224,
        _ => &[],
    };
    let whole = state;
    for (word, (masks, rotation)) in state.iter_mut().zip(fold) {
        let chosen = masks.iter().zip(whole.iter().rev()).fold(0, |chosen, (mask, from)| chosen | mask & from);
        *word = word.wrapping_add(chosen.rotate_right(*rotation));
    }
    state.iter().take(usize::from(bits) / 32).flat_map(|word| word.to_le_bytes()).collect()
}

fn go_through(state: &mut [u32; 8], block: &[u8]) {
    let mut words = [0; 32];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    let mut t = *state;
    for (step, word) in words.into_iter().enumerate() {
        advance(&mut t, step, |[t0, t1, t2, t3, t4, t5, t6]| first(t4, t2, t6, t5, t3, t0, t1), word);
    }
    for (step, (place, constant)) in SECOND_ORDER.into_iter().zip(SECOND).enumerate() {
        let word = words[place].wrapping_add(constant);
        advance(&mut t, step, |[t0, t1, t2, t3, t4, t5, t6]| second(t6, t3, t5, t0, t1, t2, t4), word);
    }
    for (step, (place, constant)) in THIRD_ORDER.into_iter().zip(THIRD).enumerate() {
        let word = words[place].wrapping_add(constant);
        advance(&mut t, step, |[t0, t1, t2, t3, t4, t5, t6]| third(t0, t5, t4, t3, t2, t1, t6), word);
    }
    for (word, more) in state.iter_mut().zip(t) {
        *word = word.wrapping_add(more);
    }
}

/// One step: a function of the following seven words replaces the eighth; then all words move up by one.
fn advance(t: &mut [u32; 8], step: usize, mix: impl Fn([u32; 7]) -> u32, word: u32) {
    let place = |number: usize| (number + 32 - step) % 8;
    let mixed = mix(std::array::from_fn(|number| t[place(number)])).rotate_right(7);
    t[place(7)] = mixed.wrapping_add(t[place(7)].rotate_right(11)).wrapping_add(word);
}

fn first(x0: u32, x1: u32, x2: u32, x3: u32, x4: u32, x5: u32, x6: u32) -> u32 {
    x1 & x4 ^ x2 & x5 ^ x3 & x6 ^ x0 & x1 ^ x0
}

fn second(x0: u32, x1: u32, x2: u32, x3: u32, x4: u32, x5: u32, x6: u32) -> u32 {
    x1 & x2 & x3 ^ x2 & x4 & x5 ^ x1 & x2 ^ x1 & x4 ^ x2 & x6 ^ x3 & x5 ^ x4 & x5 ^ x0 & x2 ^ x0
}

fn third(x0: u32, x1: u32, x2: u32, x3: u32, x4: u32, x5: u32, x6: u32) -> u32 {
    x1 & x2 & x3 ^ x1 & x4 ^ x2 & x5 ^ x3 & x6 ^ x0 & x3 ^ x0
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn texts_around_the_length_of_a_block_differ() {
        let mut seen = std::collections::HashSet::new();
        for len in 100..300 {
            assert!(seen.insert(digest(&vec![b'x'; len], 256)), "{len}");
        }
    }
}
