//! Choice of the requested paths: a list in turn, or numbers inserted into a pattern, in turn or by
//! a Zipf law.

use std::sync::Arc;

/// Random numbers from a seed (splitmix64).
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// A generator for a seed; equal seeds give equal numbers.
    #[must_use]
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    /// Any number.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    /// A number from 0 to 1, without 1.
    pub fn share(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Ranks from 1 to a largest one, of which the `k`th is drawn in proportion to `k` to the power of
/// −skew.
///
/// Drawn by rejection under a curve, without a table, so that a billion ranks need no memory.
/// Source: Hörmann, Derflinger: Rejection-inversion to generate variates from monotone discrete
/// distributions (1996).
#[derive(Clone, Debug)]
pub struct Zipf {
    ranks: f64,
    skew: f64,
    /// The integral's values at the ends.
    first: f64,
    last: f64,
    /// Below this distance a drawn rank is accepted without evaluating the law.
    sure: f64,
}

impl Zipf {
    /// A law of `ranks` ranks; `skew` from 0 (uniform) on.
    #[must_use]
    pub fn new(ranks: u64, skew: f64) -> Zipf {
        let mut law = Zipf { ranks: ranks.max(1) as f64, skew: skew.max(0.0), first: 0.0, last: 0.0, sure: 0.0 };
        law.first = law.integral(1.5) - 1.0;
        law.last = law.integral(law.ranks + 0.5);
        law.sure = 2.0 - law.inverse(law.integral(2.5) - law.weight(2.0));
        law
    }

    fn weight(&self, at: f64) -> f64 {
        (-self.skew * at.ln()).exp()
    }

    fn integral(&self, at: f64) -> f64 {
        let log = at.ln();
        let part = (1.0 - self.skew) * log;
        // (e^x − 1) / x, also if x is nearly zero.
        log * if part.abs() > 1e-8 { part.exp_m1() / part } else { 1.0 + part / 2.0 }
    }

    fn inverse(&self, value: f64) -> f64 {
        let part = (value * (1.0 - self.skew)).max(-1.0);
        let log = if part.abs() > 1e-8 { part.ln_1p() / part } else { 1.0 - part / 2.0 };
        (value * log).exp()
    }

    /// A rank, from 1.
    pub fn draw(&self, chance: &mut Chance) -> u64 {
        loop {
            let drawn = self.last + chance.share() * (self.first - self.last);
            let at = self.inverse(drawn);
            let rank = at.round().clamp(1.0, self.ranks);
            if rank - at <= self.sure || drawn >= self.integral(rank + 0.5) - self.weight(rank) {
                return rank as u64;
            }
        }
    }
}

/// The requested paths.
#[derive(Clone, Debug)]
pub enum Choice {
    /// Paths, one after the other, again and again. Never empty.
    InTurn(Arc<[String]>),
    /// A path in which `{}` is replaced by 1, 2, 3 and so on, again and again.
    Counted {
        /// The path.
        pattern: String,
        /// The last number; at least 1.
        numbers: u64,
    },
    /// A path in which `{}` is replaced by a rank.
    Zipf {
        /// The path.
        pattern: String,
        /// The law of the ranks.
        law: Zipf,
    },
}

/// One thread's part of a choice.
pub(crate) struct Asker {
    choice: Choice,
    chance: Chance,
    at: usize,
    step: usize,
    path: String,
}

impl Asker {
    /// For thread `number` of `threads`.
    pub(crate) fn new(choice: &Choice, seed: u64, number: usize, threads: usize) -> Asker {
        let chance = Chance::new(seed ^ (number as u64).wrapping_mul(0xa076_1d64_78bd_642f));
        Asker { choice: choice.clone(), chance, at: number, step: threads, path: String::new() }
    }

    /// The next path.
    pub(crate) fn next(&mut self) -> &str {
        match &self.choice {
            Choice::InTurn(paths) => {
                let path = &paths[self.at % paths.len()];
                self.at = self.at.wrapping_add(self.step);
                path
            }
            Choice::Counted { pattern, numbers } => {
                let number = self.at as u64 % (*numbers).max(1) + 1;
                self.at = self.at.wrapping_add(self.step);
                self.path = pattern.replace("{}", &number.to_string());
                &self.path
            }
            Choice::Zipf { pattern, law } => {
                let rank = law.draw(&mut self.chance);
                self.path = pattern.replace("{}", &rank.to_string());
                &self.path
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws and compares with the law's own shares.
    fn check(ranks: u64, skew: f64) {
        let (law, mut chance) = (Zipf::new(ranks, skew), Chance::new(7));
        let mut counts = vec![0u32; ranks as usize];
        let draws = 200_000;
        for _ in 0..draws {
            counts[law.draw(&mut chance) as usize - 1] += 1;
        }
        let weight = |rank: u64| (rank as f64).powf(-skew);
        let all: f64 = (1..=ranks).map(weight).sum();
        for rank in [1, 2, 3, ranks / 2, ranks] {
            let share = weight(rank) / all;
            let drawn = f64::from(counts[rank as usize - 1]) / f64::from(draws);
            // Five standard deviations.
            let room = 5.0 * (share / f64::from(draws)).sqrt() + 1e-6;
            assert!((drawn - share).abs() < room, "rank {rank} of {ranks}, skew {skew}: {drawn} for {share}");
        }
    }

    #[test]
    fn ranks_are_drawn_by_the_law() {
        for skew in [0.0, 0.64, 0.99, 1.0, 1.2, 2.0] {
            check(100, skew);
        }
        check(7, 0.9);
        assert_eq!(Zipf::new(1, 1.0).draw(&mut Chance::new(1)), 1);
    }

    #[test]
    fn many_ranks_cost_no_memory_and_equal_seeds_are_equal() {
        let law = Zipf::new(1 << 40, 0.8);
        let draw = |seed| (0..50).scan(Chance::new(seed), |chance, _| Some(law.draw(chance))).collect::<Vec<_>>();
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
        assert!(draw(3).iter().all(|rank| (1..=1 << 40).contains(rank)));
    }

    #[test]
    fn threads_share_a_list_without_asking_twice() {
        let paths: Arc<[String]> = (0..6).map(|n| format!("/{n}")).collect();
        let choice = Choice::InTurn(paths);
        let mut all: Vec<String> = (0..2)
            .flat_map(|number| {
                let mut asker = Asker::new(&choice, 1, number, 2);
                (0..3).map(|_| asker.next().to_owned()).collect::<Vec<_>>()
            })
            .collect();
        all.sort();
        assert_eq!(all, ["/0", "/1", "/2", "/3", "/4", "/5"]);
        let mut asker = Asker::new(&Choice::Counted { pattern: "/a{}".into(), numbers: 3 }, 1, 0, 1);
        let counted: Vec<String> = (0..4).map(|_| asker.next().to_owned()).collect();
        assert_eq!(counted, ["/a1", "/a2", "/a3", "/a1"]);
        let law = Zipf::new(1, 1.0);
        assert_eq!(Asker::new(&Choice::Zipf { pattern: "/a{}?{}".into(), law }, 1, 0, 1).next(), "/a1?1");
    }
}
