//! `rot13`, of the VMOD debug: each letter becomes the one thirteen places on.

use super::{Coding, Effect, Opened, Opening};
use crate::machine::{FilterError, Machine, Progress};
use crate::staging::Staging;

pub(super) fn open(opening: &mut Opening<'_>) -> Option<Opened> {
    let effect = Effect { length: opening.length, coding: Coding::Untold, counter: None };
    Some(Opened { machine: Box::new(Rot13), effect })
}

struct Rot13;

impl Machine for Rot13 {
    fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, FilterError> {
        let taken = out.copy_from(input.unwrap_or_default());
        out.bytes_mut().iter_mut().for_each(|byte| *byte = rotated(*byte));
        Ok(Progress { taken, has_ended: input.is_none(), ..Progress::default() })
    }
}

fn rotated(byte: u8) -> u8 {
    match byte {
        b'a'..=b'm' | b'A'..=b'M' => byte + 13,
        b'n'..=b'z' | b'N'..=b'Z' => byte - 13,
        _ => byte,
    }
}

#[cfg(test)]
mod tests {
    use super::rotated;

    #[test]
    fn letters_turn_by_half_an_alphabet_and_twice_is_never() {
        assert_eq!(b"Mnemosyne, 13!".map(rotated), *b"Zarzbflar, 13!");
        assert!((0..=255).all(|byte| rotated(rotated(byte)) == byte));
    }
}
