//! The promises of the cache: one binary, one module for each area.

mod bans;
mod demotion;
mod eviction;
mod lives;
mod lookup_conditions;
mod lookups;
mod many_bans;
mod markers;
mod parts;
mod policies;
mod property;
mod random;
mod removal_history;
mod slices;
mod tags;
mod waiting;

use cache::{Busy, Cache, ListedBan, Lookup, LookupRequest};
use message::Message;
use semantics::vary::Sameness;
use shm::counters::MainCounters;
use std::cell::RefCell;
use std::sync::Arc;
use store::{Object, ObjectAttributes, ObjectFlags};
use surface::counter::Main;
use surface::parameter::Parameters;
use surface::tag::Tag;

/// The time at which tests begin.
const START: f64 = 1_700_000_000.0;

fn key(number: u32) -> [u8; 32] {
    let mut key = [0; 32];
    key[..4].copy_from_slice(&number.to_le_bytes());
    key[10] = number as u8;
    key
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(future)
}

fn request(target: &str, headers: &[(&str, &str)]) -> Message {
    let mut message = Message::new();
    message.set_method(b"GET");
    message.set_target(target.as_bytes());
    message.set_protocol(b"HTTP/1.1");
    for (name, value) in headers {
        message.append(name.as_bytes(), value.as_bytes());
    }
    message
}

fn head(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut message = Message::new();
    message.set_protocol(b"HTTP/1.1");
    message.set_status(200);
    message.set_reason(b"OK");
    for (name, value) in headers {
        message.append(name.as_bytes(), value.as_bytes());
    }
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}

/// A variant key of one header, as `semantics::vary` makes it.
fn vary(name: &str, value: &str) -> Vec<u8> {
    let response = request("", &[("Vary", name)]);
    semantics::vary::encode(&response, &request("", &[(name, value)]), true).unwrap().unwrap()
}

/// A cache with a clock that the test moves.
struct Bench {
    cache: Cache,
    counters: MainCounters,
    now: f64,
    log: RefCell<Vec<(Tag, String)>>,
    xid: u32,
}

/// An object to be made.
#[derive(Clone, Default)]
struct Made {
    ttl: f64,
    grace: f64,
    keep: f64,
    flags: ObjectFlags,
    vary: Vec<u8>,
    headers: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
    xid: u32,
    /// The number of its storage.
    store: usize,
}

fn fresh(ttl: f64) -> Made {
    Made { ttl, body: b"body".to_vec(), ..Made::default() }
}

impl Bench {
    fn new() -> Bench {
        Bench::with(Cache::in_memory(4 << 20, START).unwrap())
    }

    fn with(cache: Cache) -> Bench {
        Bench { cache, counters: MainCounters::new(), now: START, log: RefCell::default(), xid: 1000 }
    }

    fn set(&self, change: impl FnOnce(&mut Parameters)) {
        let mut parameters = Parameters::default();
        change(&mut parameters);
        self.cache.configure(&parameters);
    }

    /// Looks up with default settings, except those that `change` sets.
    fn ask(&self, key: &[u8; 32], message: &Message, change: impl FnOnce(&mut LookupRequest<'_>)) -> Lookup {
        let mut lookup_request = LookupRequest {
            key,
            now: self.now,
            request: message,
            ttl_cap: None,
            grace_cap: None,
            always_miss: false,
            ignore_busy: false,
            ignore_vary: false,
            gzip_support: true,
            parts: false,
            sameness: Sameness::Bytes,
            conditions: None,
            vary_notice: 10,
            unused_seconds: None,
        };
        change(&mut lookup_request);
        let mut log = |tag, payload: &[u8]| {
            self.log.borrow_mut().push((tag, String::from_utf8_lossy(payload).into_owned()));
        };
        self.cache.lookup(&lookup_request, &self.counters, &mut log)
    }

    fn look(&self, number: u32) -> Lookup {
        self.ask(&key(number), &request(&format!("/{number}"), &[]), |_| {})
    }

    fn miss(&self, number: u32) -> Busy {
        match self.look(number) {
            Lookup::Miss { busy, stale: None, .. } => busy,
            other => panic!("{number}: {other:?}"),
        }
    }

    fn hit(&self, number: u32) -> Arc<Object> {
        match self.look(number) {
            Lookup::Hit(object) => object,
            other => panic!("{number}: {other:?}"),
        }
    }

    fn make(&mut self, number: u32, made: &Made) -> Arc<Object> {
        self.xid += 1;
        let attributes = ObjectAttributes {
            key: key(number),
            xid: u64::from(if made.xid == 0 { self.xid } else { made.xid }),
            origin: self.now,
            ttl: made.ttl,
            grace: made.grace,
            keep: made.keep,
            flags: made.flags,
            vary: made.vary.clone(),
            body_bytes: Some(made.body.len() as u64),
            ..ObjectAttributes::default()
        };
        let object = self.cache.stores()[made.store].create(&attributes, &head(&made.headers)).unwrap();
        block_on(object.append(&made.body)).unwrap();
        object.finish();
        object
    }

    /// Fetches and publishes an object, even if others are stored.
    fn put(&mut self, number: u32, made: &Made) -> Arc<Object> {
        let Lookup::Miss { busy, .. } =
            self.ask(&key(number), &request("/", &[]), |lookup_request| lookup_request.always_miss = true)
        else {
            panic!("hash_always_miss must miss");
        };
        let object = self.make(number, made);
        busy.publish(&object);
        object
    }

    fn total(&self, wanted: Main) -> u64 {
        let mut found = self.counters.get(wanted);
        self.cache.counters(&mut |counter, amount| {
            if counter as usize == wanted as usize {
                found = found.wrapping_add(amount);
            }
        });
        found
    }

    fn ban(&self, text: &str) {
        let words: Vec<&str> = text.split(' ').collect();
        self.cache.ban(cache::BanSpecification::parse(&words).unwrap(), self.now).unwrap();
    }

    /// Advances the clock, with the housekeeping that is due in between.
    fn wait(&mut self, seconds: f64) {
        let end = self.now + seconds;
        loop {
            let next = self.cache.tick(self.now);
            if next > end {
                break;
            }
            self.now = next;
        }
        self.now = end;
        self.cache.tick(end);
    }
}
