//! The memory that requests and fetches hold, and the limit for all of it: parameter
//! `requests_memory_max`.
//!
//! Each event loop has a [`Ledger`] that only it writes. The ledger takes memory from the sum of
//! all loops ([`RequestMemory`]) in grants, ahead of need, so that a plain hit changes two numbers
//! of its own loop and nothing shared. Counted are a base for every request or fetch in progress
//! ([`REQUEST_BASE_BYTES`]) and the memory that it reports beyond that ([`Held`]): filters, bodies
//! that bypass the cache, long heads, large VCL values. Bytes that connections have encrypted and
//! their clients do not accept are counted, too ([`SentAhead`]). Bodies kept by
//! `std.cache_req_body` are counted by their storage.
//!
//! *Invariant:* once any of a response was sent, it is never given up for lack of memory. It is
//! counted even beyond the limit, and uses less where possible (a body that is only passed on is
//! sent piece by piece). Only new work is refused, and the decompression of a body with a window
//! that is not small, of which nothing was read yet. A filter counts as much as it holds
//! (`Machine::held_bytes`), so that a short body is not charged for a long one. The last
//! [`BASE_SHARE`]th of the limit is kept for requests that need no more than their base.
//!
//! *Invariant:* the memory of requests is counted by their loop and limited for all loops together,
//! and a plain hit writes no shared data for that.

use shm::counters::MainCounters;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use surface::counter::Main;
use surface::limits::{
    REQUEST_BASE_BYTES, REQUEST_GRANT_BYTES, REQUEST_SLACK_BYTES_MAX, TLS_SEND_AHEAD_BYTES, TLS_SEND_AHEAD_BYTES_SHORT,
};

/// The record for a refused request.
pub(crate) const MEMORY_SHORT: &str = "Out of memory for requests (parameter requests_memory_max)";
/// One part in `BASE_SHARE` of the limit is reserved for requests that need only their base.
const BASE_SHARE: u64 = 8;

/// The sum over all event loops.
#[derive(Debug, Default)]
pub struct RequestMemory {
    granted_bytes: AtomicU64,
    /// The largest sum since the last call of [`RequestMemory::peak_and_now`].
    peak_bytes: AtomicU64,
}

impl RequestMemory {
    /// The most memory held since the last call, and the memory held now, in bytes. These are the
    /// loops' grants, which are slightly more than they use.
    pub fn peak_and_now(&self) -> (u64, u64) {
        let now = self.granted_bytes.load(Relaxed);
        (self.peak_bytes.swap(now, Relaxed).max(now), now)
    }
}

/// Room that is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Room {
    /// Enough for all requests.
    Enough,
    /// Enough for requests that need only their base.
    Little,
    /// None for new requests.
    None,
}

/// The limit for all loops together. Used when a grant is taken or returned, and while memory is
/// short, but never for a request that finds enough.
pub trait Bound {
    /// The sum over all loops.
    fn memory(&self) -> &RequestMemory;

    /// The current value of parameter `requests_memory_max`.
    fn limit_bytes(&self) -> u64;
}

/// The memory that one event loop holds.
pub struct Ledger {
    bound: Arc<dyn Bound>,
    counters: Arc<MainCounters>,
    held_bytes: Cell<u64>,
    /// This loop's share of the sum: never less than `held_bytes`.
    granted_bytes: Cell<u64>,
    room: Cell<Room>,
    /// The part of a grant that may stay unused before half of it is given back. Wide while there
    /// is enough room, so that requests of varying size leave the words that all loops share alone.
    slack_bytes: Cell<u64>,
}

const SLACK_BYTES_MIN: u64 = 2 * REQUEST_GRANT_BYTES as u64;
/// One loop's slack is at most one part in `SLACK_SHARE` of the limit.
const SLACK_SHARE: u64 = 1024;

impl Ledger {
    /// Creates a ledger that holds nothing; `counters` are those of the loop.
    pub fn new(bound: Arc<dyn Bound>, counters: Arc<MainCounters>) -> Rc<Ledger> {
        let none = Cell::new(0);
        Rc::new(Ledger {
            bound,
            counters,
            held_bytes: none.clone(),
            granted_bytes: none,
            room: Cell::new(Room::Enough),
            slack_bytes: Cell::new(SLACK_BYTES_MIN),
        })
    }

    /// Begins a request or fetch.
    pub(crate) fn begin(&self) {
        self.grow(REQUEST_BASE_BYTES as u64);
    }

    /// Ends a request or fetch.
    pub(crate) fn end(&self) {
        self.shrink(REQUEST_BASE_BYTES as u64);
    }

    /// True if even a request that needs only its base must be refused.
    pub(crate) fn is_full(&self) -> bool {
        self.room.get() == Room::None && self.look() == Room::None
    }

    /// True if a request that needs more than its base must be refused or use less.
    pub(crate) fn is_short(&self) -> bool {
        self.room.get() != Room::Enough && self.look() != Room::Enough
    }

    fn grow(&self, bytes: u64) {
        let held = self.held_bytes.get() + bytes;
        self.hold(held);
        if held > self.granted_bytes.get() {
            self.extend(held);
        }
    }

    fn shrink(&self, bytes: u64) {
        let held = self.held_bytes.get().saturating_sub(bytes);
        self.hold(held);
        if self.granted_bytes.get() > held + self.slack_bytes.get() {
            self.give_back(held);
        }
    }

    fn hold(&self, bytes: u64) {
        self.held_bytes.set(bytes);
        self.counters.set(Main::ReqBytes, bytes);
    }

    #[cold]
    fn extend(&self, held: u64) {
        let more = (held - self.granted_bytes.get()).next_multiple_of(REQUEST_GRANT_BYTES as u64);
        self.granted_bytes.set(self.granted_bytes.get() + more);
        let memory = self.bound.memory();
        let sum = memory.granted_bytes.fetch_add(more, Relaxed) + more;
        memory.peak_bytes.fetch_max(sum, Relaxed);
        self.look();
    }

    #[cold]
    fn give_back(&self, held: u64) {
        let kept = held + self.slack_bytes.get() / 2;
        let less = self.granted_bytes.replace(kept) - kept;
        self.bound.memory().granted_bytes.fetch_sub(less, Relaxed);
        self.look();
    }

    /// Compares the sum of all loops with the current limit.
    #[cold]
    fn look(&self) -> Room {
        let limit = self.bound.limit_bytes();
        let granted = self.bound.memory().granted_bytes.load(Relaxed);
        let room = match granted {
            granted if granted > limit => Room::None,
            granted if granted > limit - limit / BASE_SHARE => Room::Little,
            _ => Room::Enough,
        };
        self.room.set(room);
        self.slack_bytes.set(match room {
            Room::Enough => (limit / SLACK_SHARE).clamp(SLACK_BYTES_MIN, REQUEST_SLACK_BYTES_MAX as u64),
            Room::Little | Room::None => SLACK_BYTES_MIN,
        });
        room
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.bound.memory().granted_bytes.fetch_sub(self.granted_bytes.get(), Relaxed);
    }
}

/// Memory that one request or fetch holds beyond its base. Counted until it is dropped.
#[derive(Default)]
pub(crate) struct Held {
    ledger: Option<Rc<Ledger>>,
    bytes: u64,
}

impl Held {
    /// Sets the total.
    pub(crate) fn set(&mut self, ledger: &Rc<Ledger>, bytes: usize) {
        let bytes = bytes as u64;
        if bytes >= self.bytes {
            ledger.grow(bytes - self.bytes);
        } else {
            ledger.shrink(self.bytes - bytes);
        }
        self.bytes = bytes;
        self.ledger = (bytes > 0).then(|| Rc::clone(ledger));
    }

    /// Adds to the total.
    pub(crate) fn add(&mut self, ledger: &Rc<Ledger>, bytes: usize) {
        self.set(ledger, self.bytes() + bytes);
    }

    /// Raises the total to at least `bytes`.
    pub(crate) fn set_at_least(&mut self, ledger: &Rc<Ledger>, bytes: usize) {
        if bytes > self.bytes() {
            self.set(ledger, bytes);
        }
    }

    /// A value other than the default.
    #[cfg(test)]
    pub(crate) fn foreign() -> Held {
        Held { ledger: None, bytes: 1 }
    }

    /// The total in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes as usize
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(ledger) = &self.ledger {
            ledger.shrink(self.bytes);
        }
    }
}

/// Bytes that a connection has encrypted, or is about to encrypt, and its client has not accepted.
/// Counted until it is dropped.
pub struct SentAhead {
    ledger: Rc<Ledger>,
    held: Held,
}

impl SentAhead {
    /// Creates a count of zero.
    #[must_use]
    pub fn new(ledger: Rc<Ledger>) -> SentAhead {
        SentAhead { ledger, held: Held::default() }
    }

    /// The largest allowed number of these bytes: less while memory is short.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        if self.ledger.is_short() { TLS_SEND_AHEAD_BYTES_SHORT } else { TLS_SEND_AHEAD_BYTES }
    }

    /// Sets the current number of bytes.
    pub fn set(&mut self, bytes: usize) {
        self.held.set(&self.ledger, bytes);
    }
}
