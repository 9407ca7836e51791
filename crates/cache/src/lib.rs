//! The index of stored responses: lookup and waiting lists, variants, expiry, eviction, purges and
//! bans.
//!
//! Private memory of the worker, about objects in one or several [`store::Store`]s; rebuilt with
//! [`Cache::adopt`] after a restart. Sharded by digest, with one short mutex for each shard; a hit
//! takes one of them, allocates nothing, and reads the body without a lock. The memory of the index
//! is charged to the stores' limits, to each in proportion to its objects. The cache depends on
//! requests only as far as Vary and bans need.
//!
//! *Locks*, in the order in which they may nest: policies → shard → tags, orphans or ban list → the
//! store's heap. The evictor runs inside `Store::create` and `Object::append`, so these must not be
//! called with a shard locked. *Invariants*: an object in the index has a slot in the shard of its
//! key; a removed, purged or banned object is marked in the arena before it leaves the index; as
//! long as requests wait under a key, one of them will be woken.
//!
//! Reading order: `shard` (table, heads) → `slots` → `ranking` → `wheel` → `lookup_request` →
//! `parts` → `lookup_conditions` → `lookup` → `busy` → `removal` → `copies` → `removal_history` →
//! `tag` → `slices` → `eviction` → `demotion` → `adoption` → `housekeeping`; then `ban` and in it
//! `pattern`, `specification`, `index`, `indexed_list`, `listing`, `lurker`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod adoption;
mod arrivals;
mod ban;
mod busy;
mod checks;
mod copies;
mod demotion;
mod digest;
mod eviction;
mod expiry_log;
mod fleet_orders;
mod housekeeping;
mod lookup;
mod lookup_conditions;
mod lookup_request;
mod markers;
mod parameters;
mod parts;
mod ranking;
mod removal;
mod removal_history;
mod shard;
mod slices;
mod slots;
mod tag;
mod waiting;
mod wheel;

pub use ban::listing::{BanAddresses, ListedBan};
pub use ban::pattern::{PatternVerdict, judge as judge_ban_pattern};
pub use ban::specification::BanSpecification;
pub use busy::{Busy, Waiter};
pub use lookup::{Lookup, MissCause};
pub use lookup_request::{LookupConditions, LookupRequest};
pub use parts::may_ask_for_part;
pub use removal_history::{Absence, BanNote, RemovalRecord};
pub use semantics::Purge;
pub use slices::SliceLookup;
pub use tag::{TagCount, TagPurge, TagUsage, is_pinned, mark_salted, pin};

use ::eviction::EvictionPolicy;
use arrivals::Arrivals;
use ban::BanList;
use ban::lurker::Lurker;
use digest::Digest;
use parameters::CacheParameters;
use parking_lot::{Mutex, MutexGuard, RwLock};
use shard::Shard;
use shm::counters::{MAIN_COUNT, SharedCounters};
use shm::locks::CountedMutex;
use shm::own_line::OwnLine;
use std::hash::BuildHasher;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use store::{Journal, Object, Store};
use surface::counter::{LCK, LockClass, Main};
use surface::parameter::Parameters;
use surface::tag::Tag;

/// Receives log records that belong to no transaction: `ExpKill`, and the lurker's `ExpBan`.
pub type LogSink = Box<dyn Fn(Tag, &[u8]) + Send + Sync>;

/// Number of shards of the index; a power of two.
const SHARDS: usize = 256;
/// Units of last use per second.
const USE_UNITS: f64 = 128.0;

/// The counters and gauges that the cache keeps for all event loops together.
const OWN_COUNTERS: [Main; 26] = [
    Main::NObject,
    Main::NObjectcore,
    Main::NObjecthead,
    Main::NExpired,
    Main::NLruNuked,
    Main::NLruMoved,
    Main::Demoted,
    Main::ExpMailed,
    Main::ExpReceived,
    Main::BusyWakeup,
    Main::Bans,
    Main::BansCompleted,
    Main::BansObj,
    Main::BansReq,
    Main::BansAdded,
    Main::BansDeleted,
    Main::BansTested,
    Main::BansObjKilled,
    Main::BansLurkerTested,
    Main::BansTestsTested,
    Main::BansLurkerTestsTested,
    Main::BansLurkerObjKilled,
    Main::BansLurkerObjKilledCutoff,
    Main::BansDups,
    Main::BansLurkerContention,
    Main::BansPersistedBytes,
];

/// Precision of the recorded time of the latest request, in seconds.
const SEEN_SECONDS: f64 = 0.001;

/// Counters written by any thread.
#[derive(Default)]
pub(crate) struct Totals(SharedCounters<MAIN_COUNT>);

impl Totals {
    pub(crate) fn add(&self, counter: Main, amount: u64) {
        self.0.add(counter as usize, amount);
    }

    pub(crate) fn sub(&self, counter: Main, amount: u64) {
        self.0.sub(counter as usize, amount);
    }

    pub(crate) fn set(&self, counter: Main, value: u64) {
        self.0.set(counter as usize, value);
    }

    pub(crate) fn get(&self, counter: Main) -> u64 {
        self.0.get(counter as usize)
    }
}

pub(crate) struct Inner {
    /// The storages, each at the index that is its number.
    stores: Box<[Store]>,
    /// Number of objects of each storage in the index.
    objects: Box<[AtomicU64]>,
    shards: Box<[CountedMutex<Shard>]>,
    /// Prevents clients from choosing keys that collide in the tables.
    hash_seed: [u64; 2],
    /// The start of the ticks, in seconds since 1970.
    base: f64,
    /// The latest time seen, as the bits of an `f64`, seconds since 1970, for callers that do not
    /// get the time.
    recent: OwnLine<AtomicU64>,
    next_busy: OwnLine<AtomicU64>,
    bans: BanList,
    arrivals: Arrivals,
    lurker: Mutex<Lurker>,
    tags: tag::Tags,
    orphans: slices::Orphans,
    checks: checks::Checks,
    totals: Arc<Totals>,
    parameters: CacheParameters,
    timeline: expiry_log::Timeline,
    log_sink: RwLock<Option<LogSink>>,
    eviction: eviction::Sampler,
    /// By storage.
    pools: Box<[eviction::Pool]>,
    policies: eviction::Policies,
}

/// The index. Clones share it.
#[derive(Clone)]
pub struct Cache {
    pub(crate) inner: Arc<Inner>,
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Cache").field("objects", &self.object_count()).finish_non_exhaustive()
    }
}

impl Cache {
    /// Creates an empty index over storages, at least one and at most
    /// `surface::limits::STORAGES_MAX`, with the bans of `journal`. Numbers the storages and
    /// becomes the evictor of each. `now`: seconds since 1970.
    ///
    /// # Errors
    /// The journal cannot be read or written; `InvalidInput` when there are no storages or too
    /// many.
    pub fn new(stores: Vec<Store>, journal: Journal, now: f64) -> io::Result<Cache> {
        let random = std::hash::RandomState::new();
        Cache::with_seed(stores, journal, now, [random.hash_one(1), random.hash_one(2)])
    }

    /// Like [`Cache::new`]; equal seeds cause equal choices of objects to evict.
    fn with_seed(stores: Vec<Store>, journal: Journal, now: f64, hash_seed: [u64; 2]) -> io::Result<Cache> {
        if stores.is_empty() || stores.len() > surface::limits::STORAGES_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let totals = Arc::new(Totals::default());
        let mut bans = BanList::open(journal, now, Arc::clone(&totals))?;
        bans.is_on_disk = stores.iter().any(Store::is_on_disk);
        let pools = stores.iter().map(|_| eviction::Pool::default()).collect();
        let inner = Arc::new(Inner {
            bans,
            arrivals: Arrivals::default(),
            policies: eviction::Policies::new(stores.len()),
            objects: stores.iter().map(|_| AtomicU64::new(0)).collect(),
            shards: (0..SHARDS)
                .map(|_| CountedMutex::new(LockClass::Hcb, Shard::new(hash_seed, stores.len(), now)))
                .collect(),
            stores: stores.into(),
            hash_seed,
            base: now,
            recent: OwnLine(AtomicU64::new(now.to_bits())),
            next_busy: OwnLine(AtomicU64::new(1)),
            lurker: Mutex::new(Lurker::default()),
            tags: tag::Tags::default(),
            orphans: slices::Orphans::default(),
            checks: checks::Checks::default(),
            totals,
            parameters: CacheParameters::default(),
            timeline: expiry_log::Timeline::default(),
            log_sink: RwLock::new(None),
            eviction: eviction::Sampler::default(),
            pools,
        });
        for (store, number) in inner.stores.iter().zip(0..) {
            store.set_number(number);
            let weak = Arc::downgrade(&inner);
            store.set_evictor(Box::new(move |bytes, what| {
                weak.upgrade().is_some_and(|inner| inner.evict(number, bytes, what))
            }));
            let weak = Arc::downgrade(&inner);
            store.set_reclaimer(Box::new(move |objects| {
                if let Some(inner) = weak.upgrade() {
                    objects.iter().for_each(|object| inner.reclaim(object));
                }
            }));
        }
        let cache = Cache { inner };
        cache.configure(&Parameters::default());
        Ok(cache)
    }

    /// A cache in memory of its own, for tests and simulation: the same calls always have the same
    /// effects.
    ///
    /// # Errors
    /// The memory files could not be created.
    pub fn in_memory(limit_bytes: u64, now: f64) -> io::Result<Cache> {
        Cache::in_memory_of(&[limit_bytes], now)
    }

    /// The same with a storage for each limit: `s0`, `s1`, ….
    ///
    /// # Errors
    /// As [`Cache::in_memory`] and [`Cache::new`].
    pub fn in_memory_of(limits_bytes: &[u64], now: f64) -> io::Result<Cache> {
        let made = limits_bytes.iter().enumerate();
        let stores = made.map(|(number, limit)| Store::in_memory_as(&format!("s{number}"), *limit));
        let stores = stores.collect::<io::Result<_>>()?;
        Cache::with_seed(stores, Journal::in_memory()?, now, [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9])
    }

    /// The first storage: transient objects are in it.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.inner.stores[0]
    }

    /// All storages, each at the index that is its number.
    #[must_use]
    pub fn stores(&self) -> &[Store] {
        &self.inner.stores
    }

    /// Sets the receiver of records without a transaction.
    pub fn set_log_sink(&self, sink: LogSink) {
        *self.inner.log_sink.write() = Some(sink);
    }

    /// Applies parameter values: eviction_policy, rush_exponent, lru_interval, unsized_body_share,
    /// the ban ones, debug. Call it at the start and at every change.
    pub fn configure(&self, parameters: &Parameters) {
        self.inner.parameters.configure(parameters);
        if !self.inner.is_told() {
            self.inner.timeline.clear();
        }
        for store in &self.inner.stores {
            store.set_unsized_share(parameters.unsized_body_share);
        }
        // The parameter has no other values.
        self.inner.follow(EvictionPolicy::named(&parameters.eviction_policy).unwrap_or(EvictionPolicy::Lru));
    }

    /// Objects in the index.
    #[must_use]
    pub fn object_count(&self) -> usize {
        self.inner.totals.get(Main::NObject) as usize
    }

    /// Calls `add` with the amounts of the `MAIN` counters and gauges that the cache keeps for all
    /// event loops together: n_object, n_objectcore, n_objecthead, n_expired, n_lru_*, exp_*,
    /// busy_wakeup, bans*. The publisher adds them to the sums over the loops.
    pub fn counters(&self, add: &mut dyn FnMut(Main, u64)) {
        for counter in OWN_COUNTERS {
            add(counter, self.inner.totals.get(counter));
        }
    }

    /// The counts of the locks of the index, in the order of section `LCK`.
    #[must_use]
    pub fn lock_counts(&self) -> [u64; LCK.counters.len()] {
        let mut sums = [0; LCK.counters.len()];
        for shard in &self.inner.shards {
            for (sum, count) in sums.iter_mut().zip(shard.counts()) {
                *sum += count;
            }
        }
        sums
    }
}

impl Inner {
    pub(crate) fn digest(&self, key: &[u8]) -> Digest {
        Digest::new(key, &self.hash_seed)
    }

    pub(crate) fn digest_of_object(&self, object: &Object) -> Digest {
        self.digest(object.key())
    }

    pub(crate) fn lock(&self, digest: &Digest) -> MutexGuard<'_, Shard> {
        self.shards[digest.shard(SHARDS)].lock()
    }

    /// The storage of an object; the first one if it is in none.
    pub(crate) fn store_of(&self, object: &Object) -> &Store {
        &self.stores[usize::from(object.store_number().unwrap_or(0))]
    }

    /// The object count of the object's storage.
    fn objects_of(&self, object: &Object) -> &AtomicU64 {
        &self.objects[usize::from(object.store_number().unwrap_or(0))]
    }

    /// Records the time, to a millisecond: every request calls this, and all event loops would
    /// write the same cache line for each. A request that waited brings an old time, so only later
    /// times count.
    pub(crate) fn see(&self, now: f64) {
        if now >= self.recent() + SEEN_SECONDS {
            self.recent.store(now.to_bits(), Relaxed);
        }
    }

    /// The latest time seen, seconds since 1970.
    pub(crate) fn recent(&self) -> f64 {
        f64::from_bits(self.recent.load(Relaxed))
    }

    /// A time in units of last use, the same in every process. Wraps after more than a year: ages
    /// are differences.
    pub(crate) fn use_units(&self, now: f64) -> u32 {
        (now.max(0.0) * USE_UNITS) as u64 as u32
    }

    /// Time since an object was last used, or stored if never used; in seconds, as precise as the
    /// parameter `lru_interval`.
    pub(crate) fn idle_seconds(&self, object: &Object, now: f64) -> f64 {
        f64::from(self.use_units(now).wrapping_sub(object.last_use())) / USE_UNITS
    }

    /// Writes a record that belongs to no transaction.
    pub(crate) fn log(&self, tag: Tag, payload: std::fmt::Arguments<'_>) {
        if let Some(sink) = self.log_sink.read().as_ref() {
            sink(tag, payload.to_string().as_bytes());
        }
    }

    /// Puts an object into the index as the newest of its key.
    pub(crate) fn insert(&self, shard: &mut Shard, digest: &Digest, object: &Arc<Object>) {
        object.enter_index();
        object.touch(self.use_units(self.recent()), 0, 0);
        self.log_arrival(object);
        let due = self.tick_of(removal::dies_at(object));
        let is_first = shard.insert(digest, Arc::clone(object), due);
        self.tag(object, digest.shard(SHARDS));
        self.objects_of(object).fetch_add(1, Relaxed);
        self.count_arrivals(1, u64::from(is_first));
    }

    /// Counts objects that have entered the index, and the keys that were new.
    pub(crate) fn count_arrivals(&self, objects: u64, keys: u64) {
        self.totals.add(Main::NObject, objects);
        self.totals.add(Main::NObjectcore, objects);
        self.totals.add(Main::NObjecthead, keys);
        self.totals.add(Main::ExpMailed, objects);
        self.totals.add(Main::ExpReceived, objects);
    }
}
