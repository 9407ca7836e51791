//! Snefru with eight passes, which no library offers: a hash of 128 or 256 bits.
//!
//! Broken since 1993; useful only to compare with existing hashes. Source: R. C. Merkle, "A Fast Software One-Way Hash
//! Function", Journal of Cryptology 3, 1990. Compat: libmhash 0.9.9.

mod boxes;

use boxes::BOXES;

/// Words of a block: the hash so far, followed by text.
const BLOCK_WORDS: usize = 16;

/// How far the words are rotated after each round of a pass, in bits to the right.
const TURNS: [u32; 4] = [16, 8, 16, 24];

/// The hash of a text; `bits` is 128 or 256.
pub(super) fn digest(text: &[u8], bits: usize) -> Vec<u8> {
    let mut hash = vec![0_u32; bits / 32];
    let text_words = BLOCK_WORDS - hash.len();
    for piece in text.chunks(text_words * 4) {
        let mut padded = piece.to_vec();
        padded.resize(text_words * 4, 0);
        let words = padded.chunks_exact(4).map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
        add(&mut hash, words);
    }
    let text_bits = text.len() as u64 * 8;
    let length = [(text_bits >> 32) as u32, text_bits as u32];
    add(&mut hash, std::iter::repeat_n(0, text_words - length.len()).chain(length));
    hash.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Mixes the words of a block into the hash.
fn add(hash: &mut [u32], text: impl Iterator<Item = u32>) {
    let mut block = [0_u32; BLOCK_WORDS];
    for (place, word) in block.iter_mut().zip(hash.iter().copied().chain(text)) {
        *place = word;
    }
    for pair in BOXES.chunks_exact(2) {
        for turn in TURNS {
            for index in 0..BLOCK_WORDS {
                let entry = pair[index / 2 % 2][(block[index] & 0xff) as usize];
                block[(index + 1) % BLOCK_WORDS] ^= entry;
                block[(index + BLOCK_WORDS - 1) % BLOCK_WORDS] ^= entry;
            }
            for word in &mut block {
                *word = word.rotate_right(turn);
            }
        }
    }
    for (word, mixed) in hash.iter_mut().zip(block.iter().rev()) {
        *word ^= mixed;
    }
}
