//! Whole canaries on simulated traffic, seeded.

use super::judge::Limits;
use super::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use surface::canary::Stick;
use surface::histogram::{BUCKETS, Scale};

fn plan(seconds: u64) -> Plan {
    Plan {
        name: "new".into(),
        share: 500,
        lasting: Duration::from_secs(seconds),
        stick: Stick::Ip,
        limits: Limits::default(),
        shares_cache: false,
    }
}

/// Shares of the requests of a VCL.
#[derive(Clone, Copy)]
struct Nature {
    errors: f64,
    hits: f64,
    seconds: f64,
}

const OLD: Nature = Nature { errors: 0.004, hits: 0.8, seconds: 0.02 };

fn serve(nature: Nature, requests: u32, counts: &mut Counts, random: &mut StdRng) {
    for _ in 0..requests {
        let is_error = random.random_bool(nature.errors);
        let is_hit = random.random_bool(nature.hits);
        let seconds = if is_hit { 1e-4 } else { -nature.seconds * (1.0 - random.random::<f64>()).ln() };
        let mut durations = [0; BUCKETS];
        durations[Scale::Seconds.bucket((seconds * 1e9) as u64)] = 1;
        *counts += Counts {
            requests: 1,
            errors: is_error.into(),
            failures: is_error.into(),
            lookups: 1,
            hits: is_hit.into(),
            durations,
        };
    }
}

/// Runs a canary with so many requests a second in each group. Returns the decision and its second.
fn run(seed: u64, seconds: u64, per_second: u32, new: Nature) -> (Decision, f64) {
    let random = &mut StdRng::seed_from_u64(seed);
    let mut canary = Running::begin(plan(seconds), "test", 0.0, 0.0, random);
    let mut counts = [Counts::default(); 2];
    for second in 1..=seconds + 1 {
        serve(new, per_second, &mut counts[0], random);
        serve(OLD, per_second, &mut counts[1], random);
        canary.report(1, counts);
        let decision = canary.look(second as f64);
        if decision != Decision::Wait {
            return (decision, second as f64);
        }
    }
    panic!("no decision at the end");
}

#[test]
fn a_hundred_canaries_of_an_identical_vcl_are_all_promoted() {
    for seed in 0..100 {
        assert_eq!(run(seed, 600, 10, OLD), (Decision::Promote, 600.0), "seed {seed}");
    }
}

#[test]
fn a_vcl_that_fails_one_request_in_twenty_goes_back_within_half_a_minute() {
    for seed in 0..100 {
        let (decision, second) = run(seed, 600, 50, Nature { errors: 0.05, ..OLD });
        assert!(matches!(decision, Decision::Back(_)) && second <= 30.0, "seed {seed}: {decision:?} after {second}");
    }
}

#[test]
fn a_vcl_that_fails_always_goes_back_after_fifty_requests() {
    for seed in 0..20 {
        let (decision, second) = run(seed, 600, 50, Nature { errors: 1.0, ..OLD });
        assert!(matches!(decision, Decision::Back(_)) && second <= 2.0, "seed {seed}: {decision:?} after {second}");
    }
}

#[test]
fn fewer_hits_and_slow_responses_are_noticed() {
    let (decision, _) = run(1, 600, 20, Nature { hits: 0.6, ..OLD });
    assert!(matches!(&decision, Decision::Back(why) if why.starts_with("hit-ratio ")), "{decision:?}");
    let (decision, _) = run(1, 600, 20, Nature { seconds: 0.2, ..OLD });
    assert!(matches!(&decision, Decision::Back(why) if why.starts_with("p95 ")), "{decision:?}");
}

#[test]
fn too_little_traffic_is_no_reason_to_go_on() {
    let (decision, second) = run(1, 52, 6, OLD);
    assert_eq!(decision, Decision::Back("not enough traffic: 312 of 500 requests".into()));
    assert_eq!(second, 52.0);
}

#[test]
fn counts_survive_workers() {
    let mut canary = Running::begin(plan(60), "test", 0.0, 0.0, &mut StdRng::seed_from_u64(1));
    let counts = |requests| [Counts { requests, ..Counts::default() }; 2];
    canary.report(10, counts(5));
    canary.report(10, counts(8));
    canary.report(11, counts(2));
    canary.report(11, counts(3));
    canary.report(10, counts(1));
    assert_eq!(canary.total, counts(12));
    assert_eq!(canary.recent(), counts(12));
}

#[test]
fn the_window_forgets_and_its_length_is_bounded() {
    let mut canary = Running::begin(plan(100_000), "test", 0.0, 0.0, &mut StdRng::seed_from_u64(1));
    for second in 0..2_000_u64 {
        let requests = second * 10;
        canary.report(1, [Counts { requests, ..Counts::default() }; 2]);
        assert_eq!(canary.look(second as f64), Decision::Wait);
    }
    assert_eq!(canary.window.len(), WINDOW_INTERVALS);
    let recent = canary.recent()[0].requests;
    assert!((2_900..=3_000).contains(&recent), "{recent}");
}

#[test]
fn a_canary_continues_in_the_next_manager() {
    let mut canary = Running::begin(plan(60), "test", 5.0, 0.0, &mut StdRng::seed_from_u64(1));
    canary.report(1, [Counts { requests: 7, ..Counts::default() }; 2]);
    let handed = || serde_json::to_vec(&canary.hand_over(20.0)).unwrap();
    let read = |bytes: &[u8]| serde_json::from_slice::<HandedCanary>(bytes).unwrap();
    let mut table = VclTable::default();
    assert!(read(&handed()).take_over(&table, 100.0).is_none(), "its VCL is unknown");
    crate::vcl_table::tests::add(&mut table, "new");
    let next = read(&handed()).take_over(&table, 100.0).unwrap();
    assert_eq!(next.configuration(), canary.configuration());
    assert_eq!((next.ends_at, next.total, next.plan.clone()), (140.0, canary.total, canary.plan.clone()));
    let mut wild = read(&handed());
    wild.seconds_left = f64::MAX;
    assert!(wild.take_over(&table, 0.0).unwrap().ends_at <= CANARY_TIME_MAX.as_secs_f64());
    let mut wild = read(&handed());
    wild.plan.share = u32::MAX;
    assert!(wild.take_over(&table, 0.0).is_none());
}
