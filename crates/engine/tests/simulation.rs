//! The simulation: seeded clients, origins and faults around one engine, in memory, under the
//! virtual clock.
//!
//! A seed decides everything: the resources and the behaviour of their origin, the requests of
//! clients and their aborts, separate connections or streams of one, the number of storages and
//! their sizes. Bodies are made from URL, version, variant and client, so that any byte of one
//! response in another is detected. The checks are in `simulation/client.rs` (each response) and in
//! [`expect_nothing_left`] (the end).
//!
//! `COPAL_SEED=n` runs one seed and prints its log; `COPAL_SEEDS=n` runs that many.

mod book;
mod client;
mod origin;
mod resource;

use crate::support::World;
use book::Book;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use resource::Resource;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use surface::eviction::POLICIES;
use surface::parameter::Parameters;
use surface::tag::Tag;
use tokio::task::LocalSet;

/// Seeds that an ordinary run takes.
const SEEDS: u64 = 200;
/// The same for the simulation of VCL 3.0: some in which a storage is full now and then.
const LEGACY_SEEDS: Range<u64> = 140..200;
/// The same for the simulation of slices.
const SLICED_SEEDS: Range<u64> = 200..230;
/// Controls fetches as requested by the clients and the origin in headers.
const VCL: &str = r#"vcl 4.1;
import std;
backend default { .host = "10.0.0.1"; .port = "80"; .first_byte_timeout = 20s; .between_bytes_timeout = 10s; }
backend refused { .host = "10.0.0.2"; .port = "80"; }
sub vcl_recv {
    if (req.method == "PURGE") { return (purge); }
    if (req.method == "BAN") { ban("obj.http.x-url == " + req.url); return (synth(200)); }
}
sub vcl_backend_fetch {
    if (bereq.http.X-Refuse) { set bereq.backend = refused; }
    if (bereq.http.X-Ruling == "abandon early") { return (abandon); }
    if (bereq.http.X-Ruling == "error early") { return (error(503)); }
}
sub vcl_backend_response {
    if (bereq.http.X-Ruling == "abandon") { return (abandon); }
    if (bereq.http.X-Ruling == "fail") { return (fail); }
    if (bereq.http.X-Ruling == "error") { return (error(503)); }
    if (bereq.http.X-Ruling == "retry" && bereq.retries < 2) { return (retry); }
    if (beresp.http.X-Keep) { set beresp.keep = std.duration(beresp.http.X-Keep, 0s); }
    if (beresp.http.X-Pass) { return (pass(5s)); }
    if (bereq.url ~ "whole") { set beresp.do_stream = false; }
    if (bereq.url ~ "zip") { set beresp.do_gzip = true; set beresp.storage = storage.s0; }
}
"#;

/// The same controls in VCL 3.0, as far as it can express them.
const LEGACY_VCL: &str = r#"
import std;
backend default { .host = "10.0.0.1"; .port = "80"; .first_byte_timeout = 20s; .between_bytes_timeout = 10s; }
backend refused { .host = "10.0.0.2"; .port = "80"; }
sub vcl_recv {
    if (req.request == "PURGE") { return (lookup); }
    if (req.request == "BAN") { ban("obj.http.x-url == " + req.url); error 200; }
    if (req.http.X-Refuse) { set req.backend = refused; }
    if (req.http.X-Ruling ~ "early") { error 503 "Early"; }
}
sub vcl_hit { if (req.request == "PURGE") { purge; error 200 "Purged"; } }
sub vcl_miss { if (req.request == "PURGE") { purge; error 200 "Purged"; } }
sub vcl_pass { if (req.request == "PURGE") { ban("obj.http.x-url == " + req.url); error 200 "Banned"; } }
sub vcl_fetch {
    if (req.http.X-Ruling == "retry" && req.restarts < 2) { return (restart); }
    if (req.http.X-Ruling && req.http.X-Ruling != "retry") { error 503; }
    set beresp.grace = std.duration(regsub(beresp.http.Cache-Control, ".*revalidate=", "") + "s", 0s);
    if (req.url !~ "whole") { set beresp.do_stream = true; }
    if (req.url ~ "zip") { set beresp.do_gzip = true; set beresp.storage = "s1"; }
    if (beresp.http.Cache-Control ~ "private") { set beresp.ttl = 5s; return (hit_for_pass); }
    if (beresp.http.X-Pass) { set beresp.ttl = 5s; return (hit_for_pass); }
}
"#;

/// The state shared by all tasks of one run.
struct Stage {
    world: Rc<World>,
    /// Resources are fetched in slices, if the origin supports ranges.
    has_slices: bool,
    book: Book,
    resources: Vec<Resource>,
}

impl Stage {
    /// Milliseconds since the run began.
    fn now(&self) -> u64 {
        ((self.world.context.clock.now() - crate::support::START) * 1000.0).round() as u64
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn every_client_gets_its_own_fresh_and_whole_response_or_an_error() {
    if let Some(seed) = number("COPAL_SEED") {
        play(seed, VCL, true);
        return;
    }
    play_many(0..number("COPAL_SEEDS").unwrap_or(SEEDS), VCL).expect_variety(&[]);
}

#[test]
fn every_client_of_old_vcl_gets_its_own_response_or_an_error() {
    if let Some(seed) = number("COPAL_SEED") {
        play(seed, LEGACY_VCL, true);
        return;
    }
    // It neither revalidates nor marks responses as hit-for-miss.
    play_many(LEGACY_SEEDS, LEGACY_VCL).expect_variety(&[Main::Fetch304, Main::CacheHitmiss]);
}

#[test]
fn every_client_of_a_sliced_resource_gets_its_own_response_or_an_error() {
    let vcl = VCL.replacen("sub vcl_recv {", "sub vcl_recv { set req.slice_bytes = 64KB; ", 1);
    if let Some(seed) = number("COPAL_SEED") {
        play(seed, &vcl, true);
        return;
    }
    let outcome = play_many(SLICED_SEEDS, &vcl);
    println!("{} slices that were not the first, {} good answers", outcome.slices, outcome.answers);
    assert!(outcome.slices > 50 && outcome.answers > 500, "too tame");
}

fn play_many(seeds: Range<u64>, vcl: &str) -> Outcome {
    let mut total = Outcome::default();
    for seed in seeds {
        match std::panic::catch_unwind(AssertUnwindSafe(|| play(seed, vcl, false))) {
            Ok(outcome) => total.add(&outcome),
            Err(_) => panic!("seed {seed} fails: run it alone with COPAL_SEED={seed}"),
        }
    }
    total
}

/// Events that must occur at least once in an ordinary run, or the simulation has lost its variety.
const VARIETY: &[(Main, &str)] = &[
    (Main::CacheHit, "hits"),
    (Main::CacheHitGrace, "stale hits"),
    (Main::CacheHitpass, "hits for pass"),
    (Main::CacheHitmiss, "hits for miss"),
    (Main::BusySleep, "waiting requests"),
    (Main::BackendRetry, "reused connections found dead"),
    (Main::BackendReuse, "reused connections"),
    (Main::BackendFail, "refused connections"),
    (Main::Fetch304, "revalidations"),
    (Main::FetchChunked, "chunked bodies"),
    (Main::FetchLength, "bodies of known length"),
    (Main::FetchNone, "empty bodies"),
    (Main::FetchFailed, "failed fetches"),
    (Main::NGzip, "bodies compressed"),
    (Main::NObjPurged, "purges"),
    (Main::BansAdded, "bans"),
    (Main::BansObjKilled, "banned objects"),
    (Main::NLruNuked, "evictions"),
    (Main::NExpired, "expiries"),
];

/// The results of runs.
#[derive(Default)]
struct Outcome {
    /// Responses other than errors.
    answers: u64,
    /// Bodies that could not be kept and became pass-through in mid-stream.
    passed_on: u64,
    /// Requests to the origin for slices of resources that have a head.
    slices: u64,
    /// Counters, by their index in [`VARIETY`].
    counts: [u64; VARIETY.len()],
}

impl Outcome {
    fn of(stage: &Stage) -> Outcome {
        let mut outcome = Outcome { answers: stage.book.answers(), ..Outcome::default() };
        let mut add = |counter: Main, amount: u64| {
            for (place, _) in VARIETY.iter().enumerate().filter(|(_, row)| row.0 == counter) {
                outcome.counts[place] += amount;
            }
        };
        for (counter, _) in VARIETY {
            add(*counter, stage.world.count(*counter));
        }
        stage.world.engine.cache.counters(&mut add);
        let is_slice = |payload: &[u8]| payload.starts_with(b"If-Range: ");
        outcome.slices = stage.world.records().iter().filter(|record| is_slice(&record.payload)).count() as u64;
        let is_passed_on = |payload: &[u8]| payload.starts_with(b"Could not get storage for the whole body");
        outcome.passed_on = stage.world.records().iter().filter(|record| is_passed_on(&record.payload)).count() as u64;
        outcome
    }

    fn add(&mut self, other: &Outcome) {
        self.answers += other.answers;
        self.passed_on += other.passed_on;
        self.slices += other.slices;
        for (sum, count) in self.counts.iter_mut().zip(other.counts) {
            *sum += count;
        }
    }

    /// Asserts that every event happened except the impossible ones.
    fn expect_variety(&self, impossible: &[Main]) {
        assert!(self.answers > 1000, "only {} good answers", self.answers);
        println!("{:8} bodies passed on in mid-stream", self.passed_on);
        assert!(self.passed_on > 0, "no body was too large to be kept");
        for ((_, what), count) in VARIETY.iter().zip(self.counts) {
            println!("{count:8} {what}");
        }
        for ((counter, what), count) in VARIETY.iter().zip(self.counts) {
            assert!(count > 0 || impossible.contains(counter), "no {what} in {} good answers", self.answers);
        }
    }
}

fn play(seed: u64, vcl: &str, is_told: bool) -> Outcome {
    let mut rng = SmallRng::seed_from_u64(seed);
    let parameters = Parameters {
        first_byte_timeout: 20.0,
        between_bytes_timeout: 10.0,
        rush_exponent: rng.random_range(2..5),
        shortlived: if rng.random_bool(0.5) { 10.0 } else { 0.0 },
        timeout_idle: 30.0,
        eviction_policy: POLICIES[(seed / 4 % 4) as usize].name.to_owned(),
        ..Parameters::default()
    };
    let storage_bytes: &[u64] = match rng.random_range(0..6) {
        0 => &[128 << 10],
        1 => &[384 << 10],
        2 => &[32 << 20],
        3 => &[128 << 10, 256 << 10],
        4 => &[256 << 10, 128 << 10, 32 << 20],
        _ => &[32 << 20, 128 << 10],
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let world = Rc::new(World::with_storages(parameters, storage_bytes));
        world.load("boot", vcl);
        let mut resources: Vec<_> =
            (0..rng.random_range(4..16)).map(|index| Resource::random(index, &mut rng)).collect();
        let has_slices = vcl.contains("slice_bytes");
        if has_slices {
            resources.iter_mut().for_each(Resource::grow);
        }
        let stage = Rc::new(Stage { world: Rc::clone(&world), has_slices, book: Book::default(), resources });
        let fragments = if rng.random_bool(0.2) { rng.random_range(1..2000) } else { 0 };
        world.engine.fragment_fetch_bytes.store(fragments, std::sync::atomic::Ordering::Relaxed);
        origin::start(&stage, rng.random());
        let ticker = tokio::task::spawn_local(tick(Rc::clone(&world)));
        let publisher = tokio::task::spawn_local(publish(Rc::clone(&stage), rng.random()));
        let streams = (seed % 4 == 3).then(|| Rc::new(world.stream_client()));
        let clients: Vec<_> = (0..rng.random_range(2..9))
            .map(|index| client::run(Rc::clone(&stage), index, rng.random(), streams.clone()))
            .map(tokio::task::spawn_local)
            .collect();
        drop(streams);
        let all = async {
            for client in clients {
                if let Err(error) = client.await {
                    if is_told {
                        println!("{}", stage.world.story());
                    }
                    panic!("seed {seed}: a client fails: {error}");
                }
            }
        };
        let limit = Duration::from_secs(24 * 3600);
        let ended = tokio::time::timeout(limit, all).await.is_ok();
        assert!(ended, "seed {seed}: a request never ended\n{}", world.story());
        publisher.abort();
        ticker.abort();
        if is_told {
            println!("{}", world.story());
        }
        assert!(stage.book.faults().is_empty(), "seed {seed}: {:?}", stage.book.faults());
        expect_nothing_left(&stage, seed).await;
        Outcome::of(&stage)
    })
}

/// The worker's housekeeping.
async fn tick(world: Rc<World>) {
    loop {
        let now = world.context.clock.now();
        let due = world.engine.cache.tick(now);
        tokio::time::sleep(Duration::from_secs_f64((due - now).clamp(0.05, 1.0))).await;
        world.context.pool.close_idle(now, 60.0);
    }
}

/// Changes resources at the origin from time to time.
async fn publish(stage: Rc<Stage>, seed: u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    loop {
        tokio::time::sleep(Duration::from_millis(rng.random_range(100..8_000))).await;
        let resource = &stage.resources[rng.random_range(0..stage.resources.len())];
        resource.version.set(resource.version.get() + 1);
    }
}

/// After everything has expired: no object, no byte, no fetch, no open transaction.
async fn expect_nothing_left(stage: &Stage, seed: u64) {
    let world = &stage.world;
    // Longer than any ttl, grace and keep, and than any timeout of a fetch without waiters.
    tokio::time::sleep(Duration::from_secs(2 * 3600)).await;
    for _ in 0..1000 {
        // At least once: the head of slices that leaves an empty index is kept until the next tick.
        world.engine.cache.tick(world.context.clock.now());
        if world.engine.cache.object_count() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(world.context.in_flight(), 0, "seed {seed}: something is still under way\n{}", world.story());
    assert_eq!(world.engine.cache.object_count(), 0, "seed {seed}: objects stay beyond their time");
    let storages = &world.engine.storages;
    for index in storages.all() {
        let (name, usage) = (&storages.name(index).unwrap().name, storages.usage(index).unwrap());
        assert_eq!((usage.g_alloc, usage.g_bytes), (0, 0), "seed {seed}: {name} holds what belongs to no object");
        assert_eq!(usage.c_bytes, usage.c_freed, "seed {seed}: {name}: given and returned");
    }
    let backend = world.engine.vcl.load().active.as_ref().unwrap().directors.backends()[0].clone();
    assert_eq!(backend.connections(), 0, "seed {seed}: connections in use");
    let mut open = std::collections::BTreeMap::<u64, i32>::new();
    for record in world.records() {
        match record.tag {
            Tag::Begin => *open.entry(record.id.vxid()).or_default() += 1,
            Tag::End => *open.entry(record.id.vxid()).or_default() -= 1,
            _ => {}
        }
    }
    let unbalanced: Vec<_> = open.iter().filter(|(_, count)| **count != 0).collect();
    assert!(unbalanced.is_empty(), "seed {seed}: transactions without Begin or End: {unbalanced:?}");
}
