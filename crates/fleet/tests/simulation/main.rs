//! Fleets in virtual time: invalidations are never lost, by content, whatever fails.
//!
//! `FLEET_SEEDS` is the number of random runs, `FLEET_SEED` the first seed.

mod cache;
mod promises;
mod world;

use fleet::Invalidation;
use rand::RngExt;
use world::{Odds, World};

/// Default number of random runs.
const SEEDS: u64 = 300;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// An order of an operator.
fn order(world: &mut World) -> Invalidation {
    let key = world.random.random_range(0..cache::KEYS);
    match world.random.random_range(0..10) {
        0 => Invalidation::Tags { tags: vec![["even", "odd"][key % 2].to_owned()], is_soft: false },
        1 => Invalidation::Ban { expression: format!("u {key}") },
        2 => Invalidation::Ban { expression: format!("rare {key}") },
        3 => Invalidation::Prefix { prefix: "/".to_owned(), is_soft: false },
        _ => Invalidation::Url { url: format!("/{key}"), is_soft: false },
    }
}

/// One fault, chosen at random.
fn fault(world: &mut World) {
    let count = world.present();
    let of = world.random.random_range(0..count);
    match world.random.random_range(0..18) {
        0 => world.kill(of),
        1 => world.lose_power(of),
        2 => {
            // In the middle of one of the next writes.
            let changes = world.random.random_range(1..30);
            world.machines[of].files.0.borrow_mut().kill_after(changes);
        }
        3 => (0..count).for_each(|of| world.kill(of)),
        4 | 5 => world.set_side(of, 0),
        6 => {
            // The servers are split.
            let others = world.random.random_range(0..count);
            (0..count).for_each(|of| world.set_side(of, if of < others { 1 } else { 2 }));
        }
        7 | 8 => (0..count).for_each(|of| world.set_side(of, 1)),
        9 => world.recreate_stream(),
        10 => world.roll_stream_back(),
        11 => world.silence(of),
        12 => world.has_leader = !world.has_leader,
        13 | 14 => world.copy(of),
        15 => world.restore(of, false),
        16 => world.restore(of, true),
        17 => world.machines[of].skew_ms = world.random.random_range(-3_600_000..3_600_000),
        _ => {
            // A disk that lost what it had confirmed.
            world.kill(of);
            world.void_promises(of);
            let mut folder = world.machines[of].files.0.borrow_mut();
            for (name, bytes) in folder.files() {
                if name.starts_with("outbox") {
                    let lost = world.random.random_range(0..=bytes.len().min(400));
                    bytes.truncate(bytes.len() - lost);
                }
            }
        }
    }
}

/// A run with random faults; its numbers of hits and of completed waits.
fn run(seed: u64) -> (u64, u64) {
    let nodes = 2 + seed as usize % 4;
    let mut world = World::new(seed, nodes);
    // The last node joins later.
    world.machines[nodes - 1].is_absent = nodes > 2;
    world.heal(60_000);
    world.kills_starts = true;
    world.odds = match seed % 4 {
        0 => Odds::default(),
        1 => Odds { lost: 10, ..Odds::default() },
        2 => Odds { doubled: 10, late: 10, ..Odds::default() },
        _ => Odds { lost: 5, doubled: 5, late: 5, forged: 10 },
    };
    for _ in 0..world.random.random_range(20..60) {
        let duration_ms = world.random.random_range(0..1500);
        world.run(duration_ms);
        let (present, is_whole) = (world.present(), world.is_whole());
        let of = world.random.random_range(0..present);
        if present < nodes && is_whole && world.random.random_ratio(1, 8) {
            world.start(present);
            world.run(4000);
            if !world.is_whole() {
                // A new node that finds no member founds a fleet of its own.
                world.kill(present);
                world.machines[present].is_absent = true;
            }
        }
        match world.random.random_range(0..6) {
            0 => fault(&mut world),
            1 => _ = world.start(of),
            _ => {
                let wait_ms = world.random.random_bool(0.5).then_some(5000);
                for _ in 0..world.random.random_range(1..4) {
                    let order = order(&mut world);
                    world.command(of, order, wait_ms);
                }
            }
        }
    }
    world.heal(120_000);
    world.run(16_000);
    (world.served, world.completed)
}

#[test]
fn no_node_serves_what_was_removed_whatever_fails() {
    let (first, seeds) = (number("FLEET_SEED", 1), number("FLEET_SEEDS", SEEDS));
    let halves = [0, 1].map(|half| {
        std::thread::spawn(move || {
            (first..first + seeds).filter(|seed| seed % 2 == half).map(run).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
        })
    });
    let sums = halves.map(|half| half.join().unwrap());
    let (served, completed) = (sums[0].0 + sums[1].0, sums[0].1 + sums[1].1);
    println!("{served} hits, {completed} completed waits");
    assert!(served > seeds * 200 && completed > seeds, "the runs are worth something");
}
