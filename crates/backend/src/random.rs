//! The generator behind directors.random and std.random: predictable once `debug.srandom` has seeded it, as tests need.
//!
//! The sequence is that of the C library's additive-feedback generator with 31 words of state. Not for secrets.
//! Shared by all event loops under one lock, taken for a few instructions. Source: observed random(3) of glibc.

use parking_lot::Mutex;
use std::sync::Arc;

const DEGREE: usize = 31;
const SEPARATION: usize = 3;
/// Values thrown away after seeding.
const DISCARDED: usize = 310;

struct State {
    words: [u32; DEGREE],
    /// Where the next value goes: the place of the value 31 steps back.
    next: usize,
}

impl State {
    fn seeded(seed: u32) -> State {
        let mut words = [0; DEGREE];
        // Lehmer's generator modulo 2^31 − 1, on a signed word as C has it; a zero seed counts as 1.
        let mut word = i64::from(if seed == 0 { 1 } else { seed as i32 });
        words[0] = word as u32;
        for place in &mut words[1..] {
            word = (16_807 * word) % 0x7fff_ffff;
            if word < 0 {
                word += 0x7fff_ffff;
            }
            *place = word as u32;
        }
        let mut state = State { words, next: SEPARATION };
        for _ in 0..DISCARDED {
            state.step();
        }
        state
    }

    fn step(&mut self) -> u32 {
        let back_three = (self.next + DEGREE - SEPARATION) % DEGREE;
        let value = self.words[self.next].wrapping_add(self.words[back_three]);
        self.words[self.next] = value;
        self.next = (self.next + 1) % DEGREE;
        value >> 1
    }
}

/// The generator; clones share one sequence.
#[derive(Clone)]
pub struct TestableRandom(Arc<Mutex<State>>);

impl TestableRandom {
    /// A generator with that seed; 0 counts as 1.
    #[must_use]
    pub fn new(seed: u32) -> TestableRandom {
        TestableRandom(Arc::new(Mutex::new(State::seeded(seed))))
    }

    /// Starts the sequence of that seed (`debug.srandom`).
    pub fn seed(&self, seed: u32) {
        *self.0.lock() = State::seeded(seed);
    }

    /// The next value, 31 bits.
    #[must_use]
    pub fn next_bits(&self) -> u32 {
        self.0.lock().step()
    }

    /// The next value as a fraction of 2^31: in [0, 1). Takes one value of the sequence.
    #[must_use]
    pub fn next_fraction(&self) -> f64 {
        f64::from(self.next_bits()) / 2_147_483_648.0
    }

    /// A number in [0, 1) with 62 random bits; takes two values of the sequence.
    #[must_use]
    pub fn next_real(&self) -> f64 {
        let high = self.next_fraction();
        high + self.next_fraction() / 2_147_483_648.0
    }
}

impl std::fmt::Debug for TestableRandom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TestableRandom")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_c_library() {
        // srandom(1); random() … as printed by a C program.
        let random = TestableRandom::new(1);
        let values: Vec<u32> = (0..5).map(|_| random.next_bits()).collect();
        assert_eq!(values, [1_804_289_383, 846_930_886, 1_681_692_777, 1_714_636_915, 1_957_747_793]);
        random.seed(42);
        assert_eq!([random.next_bits(), random.next_bits()], [71_876_166, 708_592_740]);
        random.seed(4_000_000_000);
        assert_eq!([random.next_bits(), random.next_bits()], [1_111_130_805, 1_380_198_982]);
    }

    #[test]
    fn seed_zero_is_seed_one_and_seeding_starts_anew() {
        let zero = TestableRandom::new(0);
        let one = TestableRandom::new(1);
        for _ in 0..100 {
            assert_eq!(zero.next_bits(), one.next_bits());
        }
        zero.seed(7);
        one.seed(7);
        assert_eq!(zero.next_real(), one.next_real());
    }

    #[test]
    fn reals_stay_below_one() {
        let random = TestableRandom::new(3);
        for _ in 0..10_000 {
            let value = random.next_real();
            assert!((0.0..1.0).contains(&value), "{value}");
        }
    }
}
