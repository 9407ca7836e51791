//! Sequences of requests, generated from seeds.
//!
//! Sizes of the `web` traces are those published for SURGE (Barford, Crovella, 1998): log-normal
//! bodies with μ = 9.357, σ = 1.318, and seven in a hundred from a Pareto tail with α = 1.1 from
//! 133 KB on. The skews 0.64 and 0.83 are the ends of the range that Breslau et al. (1999) found in
//! six proxies.

use eviction::mix;
use eviction::replay::Request;

/// Size of a response if sizes are equal.
const PAGE_BYTES: u64 = 10_000;
/// Largest response.
const BODY_BYTES_MAX: f64 = 50e6;

pub struct Trace {
    /// Name for a file.
    pub file: &'static str,
    /// Name for readers.
    pub name: String,
    pub requests: Vec<Request>,
}

impl Trace {
    /// Number of keys, and the share of them that is requested once.
    pub fn wonders(&self) -> (usize, f64) {
        let mut counts = std::collections::HashMap::new();
        for request in &self.requests {
            *counts.entry(request.key).or_insert(0u32) += 1;
        }
        let once = counts.values().filter(|count| **count == 1).count();
        (counts.len(), once as f64 / counts.len().max(1) as f64)
    }
}

/// Random numbers from a seed.
struct Chance(u64);

impl Chance {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    /// A number from 0 to 1.
    fn share(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Ranks by a Zipf law.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(ranks: usize, skew: f64) -> Zipf {
        let mut sum = 0.0;
        let add = |rank: usize| {
            sum += (rank as f64).powf(-skew);
            sum
        };
        Zipf((1..=ranks).map(add).collect())
    }

    fn draw(&self, chance: &mut Chance) -> u64 {
        let drawn = chance.share() * self.0.last().copied().unwrap_or(0.0);
        self.0.partition_point(|sum| *sum <= drawn) as u64
    }
}

/// A size that belongs to a key.
fn body_bytes(key: u64) -> u64 {
    let mut chance = Chance(mix(key ^ 0x517e));
    let bytes = if chance.share() < 0.07 {
        133_000.0 * chance.share().max(1e-9).powf(-1.0 / 1.1)
    } else {
        // Box–Muller transform.
        let normal = (-2.0 * chance.share().max(1e-12).ln()).sqrt() * (std::f64::consts::TAU * chance.share()).cos();
        (9.357 + 1.318 * normal).exp()
    };
    bytes.clamp(100.0, BODY_BYTES_MAX) as u64
}

/// Keys that occur nowhere else.
const ONCE: u64 = 1 << 48;

fn page(number: u64) -> Request {
    Request { key: mix(number), bytes: PAGE_BYTES }
}

fn sized(number: u64) -> Request {
    Request { key: mix(number), bytes: body_bytes(number) }
}

/// Every trace, with that many requests.
pub fn all(count: usize) -> Vec<Trace> {
    let objects = (count / 5).max(100);
    let trace = |file, name: &str, requests: Vec<Request>| Trace { file, name: name.to_owned(), requests };
    let zipf = |skew: f64, seed: u64| {
        let (law, mut chance) = (Zipf::new(objects, skew), Chance(seed << 32));
        (0..count).map(|_| page(law.draw(&mut chance))).collect::<Vec<_>>()
    };
    let mut all = vec![
        trace("zipf64", "Zipf 0.64", zipf(0.64, 1)),
        trace("zipf83", "Zipf 0.83", zipf(0.83, 2)),
        trace("zipf100", "Zipf 1.0", zipf(1.0, 3)),
    ];

    // Ten times, the most popular tenth of ranks goes to other pages.
    let (law, mut chance) = (Zipf::new(objects, 0.9), Chance(4 << 32));
    let shifting = |number: usize, rank: u64| {
        let epoch = (number * 10 / count) as u64;
        if rank < objects as u64 / 10 { rank + ONCE * epoch } else { rank }
    };
    let requests = (0..count).map(|number| page(shifting(number, law.draw(&mut chance)))).collect();
    all.push(trace("shifting", "Zipf 0.9, popularity shifts ten times", requests));

    // Pages are popular while they are new, and each day brings others: ranks drift through the
    // numbers.
    let mut chance = Chance(5 << 32);
    let drift = |number: usize| (number * objects / count) as u64;
    let requests = (0..count).map(|number| page(drift(number) + law.draw(&mut chance) / 4)).collect();
    all.push(trace("news", "news: popularity drifts all the time", requests));

    let mut chance = Chance(6 << 32);
    let requests = (0..count)
        .map(|number| match chance.share() < 0.3 {
            true => page(ONCE + number as u64),
            false => page(law.draw(&mut chance)),
        })
        .collect();
    all.push(trace("once", "Zipf 0.9, three in ten are asked for once", requests));

    // Half of the requests belong to a bot that reads the whole site, twice as large as the hot
    // set, again and again.
    let mut chance = Chance(7 << 32);
    let mut at = 0;
    let requests = (0..count)
        .map(|_| match chance.share() < 0.5 {
            true => {
                at += 1;
                page(at % (objects as u64 * 2))
            }
            false => page(law.draw(&mut chance)),
        })
        .collect();
    all.push(trace("scan", "Zipf 0.9, half is a traversal", requests));

    let requests = (0..count).map(|number| page(number as u64 % (objects as u64 / 8))).collect();
    all.push(trace("loop", "a loop", requests));

    let (law, mut chance) = (Zipf::new(objects, 0.83), Chance(9 << 32));
    let requests = (0..count).map(|_| sized(law.draw(&mut chance))).collect();
    all.push(trace("web", "web: Zipf 0.83, sizes of SURGE", requests));

    let mut chance = Chance(10 << 32);
    let requests = (0..count)
        .map(|number| match chance.share() < 0.2 {
            true => sized(ONCE + number as u64),
            false => sized(drift(number) / 4 + law.draw(&mut chance)),
        })
        .collect();
    all.push(trace("site", "site: sizes of SURGE, slow drift, two in ten are asked for once", requests));
    all
}

/// The hot set, and a bot that reads pages once.
pub struct Bot {
    requests: usize,
    pages: usize,
}

impl Bot {
    const HOT: usize = 100_000;

    pub fn new(requests: usize, pages: usize) -> Bot {
        Bot { requests, pages }
    }

    /// Room for a fifth of the hot set.
    pub fn capacity_bytes(&self) -> u64 {
        Bot::HOT as u64 / 5 * PAGE_BYTES
    }

    /// Calls `ask` with each request, true if it is for the hot set, and true if the cache is warm:
    /// it has received as many requests for the hot set as are counted afterwards.
    pub fn run(&self, mut ask: impl FnMut(Request, bool, bool)) {
        let (law, mut chance) = (Zipf::new(Bot::HOT, 0.9), Chance(11 << 32));
        for _ in 0..self.requests {
            ask(page(law.draw(&mut chance)), true, false);
        }
        let mut read = 0;
        for number in 0..self.requests {
            ask(page(law.draw(&mut chance)), true, true);
            while read < self.pages * (number + 1) / self.requests {
                ask(page(ONCE + read as u64), false, true);
                read += 1;
            }
        }
    }
}
