//! The challenge and its answer: SHA-256 of challenge, newline, secret, challenge, newline.

use rand::RngExt;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Length of a challenge, in bytes.
pub const CHALLENGE_BYTES: usize = 32;
/// Length of a secret that the manager generates, in bytes.
pub const SECRET_BYTES: usize = 256;

/// The challenge that a server sends: 32 lower-case letters.
pub type Challenge = [u8; CHALLENGE_BYTES];

/// A new challenge.
#[must_use]
pub fn challenge(random: &mut impl RngExt) -> Challenge {
    let mut challenge = [0; CHALLENGE_BYTES];
    challenge.fill_with(|| random.random_range(b'a'..=b'z'));
    challenge
}

/// The answer to a challenge in lower-case hexadecimal; `secret` is the whole content of the secret
/// file.
#[must_use]
pub fn answer(challenge: &Challenge, secret: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(challenge);
    hash.update(b"\n");
    hash.update(secret);
    hash.update(challenge);
    hash.update(b"\n");
    hash.finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// True if an answer is correct; the case of letters does not matter. Takes the same time for any
/// position of the first difference.
#[must_use]
pub fn is_right(challenge: &Challenge, secret: &[u8], given: &str) -> bool {
    let expected = answer(challenge, secret);
    if given.len() != expected.len() {
        return false;
    }
    let different = given.bytes().zip(expected.bytes()).fold(0, |sum, (a, b)| sum | (a.to_ascii_lowercase() ^ b));
    different == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_the_documented_hash() {
        // printf 'ixslvvxrgkjptxmcgnnsdxsvdmvfympg\nfoo\nixslvvxrgkjptxmcgnnsdxsvdmvfympg\n' |
        // sha256sum
        let challenge = *b"ixslvvxrgkjptxmcgnnsdxsvdmvfympg";
        let expected = "455ce847f0073c7ab3b1465f74507b75d3dc064c1e7de3b71e00de9092fdc89a";
        assert_eq!(answer(&challenge, b"foo\n"), expected);
        assert!(is_right(&challenge, b"foo\n", &expected.to_uppercase()));
        assert!(!is_right(&challenge, b"foo", expected));
        assert!(!is_right(&challenge, b"foo\n", ""));
    }

    #[test]
    fn challenges_are_letters_and_differ() {
        let mut random = rand::rng();
        let first = challenge(&mut random);
        assert!(first.iter().all(u8::is_ascii_lowercase));
        assert_ne!(first, challenge(&mut random));
    }
}
