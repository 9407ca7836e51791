//! Index and store together, against a map: millions of operations, with kills in between.
//!
//! A found object must equal the one in the map, byte for byte, stored by this process or by an
//! earlier one. In a roomy store everything that the map has must be found, too; in a tight one
//! anything may have been evicted. A kill discards the process's memory in the middle of an
//! operation; the next process opens the same files.
//!
//! An ordinary run takes some seconds. `COPAL_STEPS=5000000 cargo test --release -p cache --test
//! cache property` takes as many steps in each store; `COPAL_SEED=n` begins with another seed.

use super::*;
use cache::Purge;
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use store::{Journal, Store};

/// Steps of an ordinary run in each store.
const STEPS: u64 = 20_000;
/// Steps between two kills, at most.
const LIFE: u64 = 4_000;
const KEYS: u32 = 150;
const GROUPS: [&str; 6] = ["g0", "g1", "g2", "g3", "g4", "g5"];

/// The map's record of an object.
#[derive(Clone, Copy, Debug)]
struct Known {
    xid: u32,
    bytes: usize,
    fresh_until: f64,
    group: usize,
    tag: usize,
}

/// A fetch under way, and the groups that were banned since it began.
struct Pending {
    busy: Busy,
    banned: HashSet<usize>,
}

/// The bytes of an object's body.
fn body(xid: u32, bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|at| (at.wrapping_mul(31) ^ xid.wrapping_mul(0x9e37_79b9)) as u8).collect()
}

fn body_of(object: &Object) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(chunk) = object.chunk_at(body.len() as u64) {
        body.extend_from_slice(chunk);
    }
    body
}

/// The files that survive a kill.
struct Files {
    arena: File,
    journal: File,
    limit_bytes: u64,
}

impl Files {
    fn new(limit_bytes: u64) -> Files {
        Files { arena: tempfile::tempfile().unwrap(), journal: tempfile::tempfile().unwrap(), limit_bytes }
    }

    /// Start of a process.
    fn open(&self, now: f64) -> Cache {
        let (store, recovered) = Store::open(self.arena.try_clone().unwrap().into(), "s0", self.limit_bytes).unwrap();
        let journal = Journal::open(self.journal.try_clone().unwrap().into()).unwrap();
        let cache = Cache::new(vec![store], journal, now).unwrap();
        cache.adopt(recovered.objects, now, 1);
        cache
    }
}

struct Run {
    bench: Bench,
    files: Files,
    random: SmallRng,
    known: HashMap<u32, Known>,
    pending: HashMap<u32, Pending>,
    /// Everything that the map has must be found.
    is_strict: bool,
    hits: u64,
    kills: u64,
}

impl Run {
    fn new(seed: u64, limit_bytes: u64, is_strict: bool) -> Run {
        let files = Files::new(limit_bytes);
        let bench = Bench::with(files.open(START));
        let random = SmallRng::seed_from_u64(seed);
        Run { bench, files, random, known: HashMap::new(), pending: HashMap::new(), is_strict, hits: 0, kills: 0 }
    }

    fn step(&mut self) {
        let number = self.random.random_range(0..KEYS);
        match self.random.random_range(0..1000) {
            0..700 => self.look(number),
            700..940 => self.publish(number),
            940..955 => self.purge(number),
            955..957 => self.ban(),
            957..959 => self.purge_tag(),
            959..965 => _ = self.pending.remove(&number),
            965..980 => self.lengthen(number),
            _ => {
                let seconds = self.random.random_range(0.0..0.5);
                self.bench.now += seconds;
                self.bench.cache.tick(self.bench.now);
            }
        }
        self.bench.log.borrow_mut().clear();
    }

    /// The map's record, if it is fresh.
    fn fresh(&self, number: u32) -> Option<Known> {
        self.known.get(&number).copied().filter(|known| known.fresh_until > self.bench.now)
    }

    fn look(&mut self, number: u32) {
        let expected = self.fresh(number);
        match self.bench.look(number) {
            Lookup::Hit(object) => {
                if !object.check() {
                    panic!("{number} is damaged");
                }
                let known = expected.unwrap_or_else(|| panic!("{number}: what was removed or has expired is back"));
                assert_eq!(object.xid(), known.xid, "{number} is another version");
                assert!(body_of(&object) == body(known.xid, known.bytes), "{number} has another body");
                self.hits += 1;
            }
            // At the very moment of its expiry.
            Lookup::Grace { object, fetch: None } if object.origin() + object.ttl() == self.bench.now => {}
            Lookup::Grace { object, fetch: Some(busy) } if object.origin() + object.ttl() == self.bench.now => {
                self.pending.insert(number, Pending { busy, banned: HashSet::new() });
            }
            Lookup::Miss { busy, .. } => {
                assert!(expected.is_none() || !self.is_strict, "{number} is gone: {expected:?}");
                let before = self.pending.insert(number, Pending { busy, banned: HashSet::new() });
                assert!(before.is_none(), "two fetches of {number}");
            }
            Lookup::Wait(_) => assert!(self.pending.contains_key(&number), "{number} waits for nobody"),
            other => panic!("{number}: {other:?}"),
        }
    }

    /// Ends a fetch, if one is under way.
    fn publish(&mut self, number: u32) {
        let Some(Pending { busy, banned }) = self.pending.remove(&number) else { return };
        let bytes = match self.random.random_range(0..20) {
            0 => 0,
            1..16 => self.random.random_range(1..2_000),
            16..19 => self.random.random_range(2_000..20_000),
            _ => self.random.random_range(20_000..100_000),
        };
        self.bench.xid += 1;
        let (group, tag) = (self.random.random_range(0..GROUPS.len()), self.random.random_range(0..GROUPS.len()));
        let attributes = ObjectAttributes {
            key: key(number),
            xid: self.bench.xid.into(),
            origin: self.bench.now,
            ttl: self.random.random_range(0.5..60.0),
            body_bytes: self.random.random_bool(0.5).then_some(bytes as u64),
            ..ObjectAttributes::default()
        };
        let head = head(&[("G", GROUPS[group]), ("xkey", GROUPS[tag])]);
        let Ok(object) = self.bench.cache.store().create(&attributes, &head) else {
            assert!(!self.is_strict, "no room");
            return;
        };
        let known = Known { xid: self.bench.xid, bytes, fresh_until: object.origin() + object.ttl(), group, tag };
        let streams_first = self.random.random_bool(0.3);
        if streams_first {
            busy.publish(&object);
        }
        let body = body(known.xid, bytes);
        let mut is_whole = true;
        for piece in body.chunks(self.random.random_range(500..30_000)) {
            is_whole &= block_on(object.append(piece)).is_ok();
        }
        // Now and then a fetch is aborted.
        if !is_whole || self.random.random_bool(0.05) {
            object.fail();
            if streams_first {
                self.known.remove(&number);
            }
            return;
        }
        object.finish();
        busy.publish(&object);
        if banned.contains(&group) {
            self.known.remove(&number);
        } else {
            self.known.insert(number, known);
        }
    }

    fn purge(&mut self, number: u32) {
        let is_soft = self.random.random_bool(0.3);
        let purge = if is_soft { Purge::Soft { ttl: 0.0, grace: 0.0, keep: 0.0 } } else { Purge::Hard };
        let count = self.bench.cache.purge(&key(number), purge, self.bench.now);
        assert!(count > 0 || self.fresh(number).is_none() || !self.is_strict, "{number} was not there");
        self.known.remove(&number);
    }

    fn ban(&mut self) {
        let group = self.random.random_range(0..GROUPS.len());
        self.bench.ban(&format!("obj.http.g == {}", GROUPS[group]));
        self.known.retain(|_, known| known.group != group);
        self.pending.values_mut().for_each(|pending| _ = pending.banned.insert(group));
    }

    fn purge_tag(&mut self) {
        let tag = self.random.random_range(0..GROUPS.len());
        let mut purge = self.bench.cache.purge_tags(GROUPS[tag].as_bytes(), Purge::Hard, self.bench.now);
        while !purge.step(50) {}
        self.known.retain(|_, known| known.tag != tag);
    }

    /// Gives an object a longer lifetime, which a kill must not undo.
    fn lengthen(&mut self, number: u32) {
        if self.fresh(number).is_none() {
            return;
        }
        if let Lookup::Hit(object) = self.bench.look(number) {
            let ttl = self.bench.now - object.origin() + 30.0;
            self.bench.cache.set_lifetime(&object, ttl, 0.0, 0.0);
            let fresh_until = object.origin() + object.ttl();
            self.known.entry(number).and_modify(|known| known.fresh_until = fresh_until);
        }
    }

    /// Ends the process, with an object half written; the next one opens the files in that state.
    fn kill(&mut self) {
        let number = KEYS + 1;
        let Lookup::Miss { busy, .. } = self.bench.look(number) else { panic!("half of an object was found") };
        let attributes = ObjectAttributes { key: key(number), origin: self.bench.now, ttl: 1e6, ..Default::default() };
        if let Ok(object) = self.bench.cache.store().create(&attributes, &head(&[])) {
            busy.publish(&object);
            let _ = block_on(object.append(&body(1, 5000)));
            std::mem::forget(object);
        }
        std::mem::forget(busy);
        std::mem::forget(std::mem::take(&mut self.pending));
        let next = self.files.open(self.bench.now);
        std::mem::forget(std::mem::replace(&mut self.bench.cache, next));
        self.kills += 1;
    }

    fn run(mut self, steps: u64) {
        let mut left = self.random.random_range(1..LIFE);
        for _ in 0..steps {
            self.step();
            left -= 1;
            if left == 0 {
                self.kill();
                left = self.random.random_range(1..LIFE);
            }
        }
        self.kill();
        for number in 0..KEYS {
            self.look(number);
        }
        self.pending.clear();
        self.bench.wait(200.0);
        let usage = self.bench.cache.store().usage();
        assert_eq!((self.bench.cache.object_count(), usage.g_bytes, usage.g_alloc), (0, 0, 0), "something is left");
        println!("{steps} steps, {} hits, {} kills", self.hits, self.kills);
        assert!(self.hits > steps / 10 && self.kills > steps / LIFE, "{} hits, {} kills", self.hits, self.kills);
    }
}

fn number_of(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn lookups_agree_with_a_map_across_workers_and_kills() {
    let (seed, steps) = (number_of("COPAL_SEED", 1), number_of("COPAL_STEPS", STEPS));
    Run::new(seed, 64 << 20, true).run(steps);
}

#[test]
fn that_holds_while_most_things_are_evicted_too() {
    let (seed, steps) = (number_of("COPAL_SEED", 1), number_of("COPAL_STEPS", STEPS));
    Run::new(seed, 512 << 10, false).run(steps);
}
