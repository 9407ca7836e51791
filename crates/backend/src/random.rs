//! The generator behind directors.random and std.random: predictable after `debug.srandom` has
//! seeded it, as tests need.
//!
//! Additive feedback over 31 words, seeded by Lehmer's generator. Don't use it for secrets. Shared
//! by all event loops under one lock, held for a few instructions. Compat: the sequences of Varnish
//! 7.1.1 after `debug.srandom`, which are those of FreeBSD's random(3), not glibc's.

use parking_lot::Mutex;
use std::sync::Arc;

const DEGREE: usize = 31;
const SEPARATION: usize = 3;
/// Number of values that are discarded after seeding.
const DISCARDED: usize = 10 * DEGREE;
/// The modulus of the seeding generator.
const PRIME: u64 = (1 << 31) - 1;

/// The default seed of `debug.srandom`.
pub const DEFAULT_SEED: u32 = 1;

struct State {
    words: [u32; DEGREE],
    /// Index of the next value to write: that of the value 31 steps back.
    next: usize,
}

impl State {
    fn seeded(seed: u32) -> State {
        let mut words = [0; DEGREE];
        // Lehmer's generator modulo the prime 2^31 − 1, shifted by one so that 0 is a valid seed.
        let mut word = seed;
        words[0] = word;
        for place in &mut words[1..] {
            let start = u64::from(word) % (PRIME - 1) + 1;
            word = (16_807 * start % PRIME) as u32 - 1;
            *place = word;
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
    /// A generator with that seed.
    #[must_use]
    pub fn new(seed: u32) -> TestableRandom {
        TestableRandom(Arc::new(Mutex::new(State::seeded(seed))))
    }

    /// Restarts the sequence with that seed (`debug.srandom`).
    pub fn seed(&self, seed: u32) {
        *self.0.lock() = State::seeded(seed);
    }

    /// The next value, 31 bits.
    #[must_use]
    pub fn next_bits(&self) -> u32 {
        self.0.lock().step()
    }

    /// The next value as a fraction of 2^31, in [0, 1). Takes one value of the sequence.
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
    fn the_sequences_are_those_of_varnish() {
        let random = TestableRandom::new(DEFAULT_SEED);
        let tenths_of_thousandths = |value: f64| (value * 10_000_000.0).round() / 1000.0;
        // Four calls of std.random(0, 10000) in Varnish 7.1.1, after each debug.srandom.
        for (seed, expected) in [
            (1, [6561.134, 390.448, 2923.660, 6359.930]),
            (0, [7953.248, 7333.486, 8557.066, 2714.103]),
            (42, [3472.861, 4420.675, 827.536, 4341.318]),
        ] {
            random.seed(seed);
            let values: Vec<f64> = (0..4).map(|_| tenths_of_thousandths(random.next_real())).collect();
            assert_eq!(values, expected, "seed {seed}");
        }
    }

    #[test]
    fn seeding_starts_anew_for_all_clones() {
        let one = TestableRandom::new(7);
        let other = one.clone();
        let first = [one.next_bits(), other.next_bits()];
        other.seed(7);
        assert_eq!([one.next_bits(), one.next_bits()], first);
        one.seed(u32::MAX);
        assert_ne!([one.next_bits(), one.next_bits()], first);
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
