//! Finished requests, kept for reuse on the same event loop. Idle connections hold none.
//!
//! The parameter `pool_req` limits the number that are kept, and the time. At least its minimum is
//! allocated in advance; [`RequestPool::adjust`] frees surplus requests and those not needed for a
//! while, and shrinks the buffers of the rest. Counted as section MEMPOOL; the counters are shared
//! with their publisher.

use super::slot::{FIRST_READ_BYTES, RequestSlot};
use crate::mempool_counts::PoolCounters;
use shm::log::LogRing;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use surface::counter::Mempool;

/// Largest buffer that a request keeps if it was not needed for a while, in bytes.
const IDLE_BUFFER_BYTES_MAX: usize = FIRST_READ_BYTES;
/// Up to this number of active requests of an event loop, they and their fetches keep the memory
/// that they do not need while they wait.
const FEW: usize = 128;
/// Most requests allocated at a time to reach the minimum.
const MADE_AT_ONCE_MAX: usize = 1000;

/// The value of a parameter such as `pool_req`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PoolLimits {
    /// Number of requests that are kept even if they are not needed.
    pub least: usize,
    /// Largest number of requests that are kept.
    pub most: usize,
    /// Time, in seconds, for which requests beyond `least` are kept.
    pub age_seconds: f64,
}

impl Default for PoolLimits {
    fn default() -> Self {
        PoolLimits { least: 10, most: 100, age_seconds: 10.0 }
    }
}

impl PoolLimits {
    /// Parses `least,most,age`; anything else yields the default.
    #[must_use]
    pub fn parse(text: &str) -> PoolLimits {
        let mut numbers = text.split(',').map(|number| number.trim().parse::<f64>().ok());
        match (numbers.next().flatten(), numbers.next().flatten(), numbers.next().flatten()) {
            (Some(least), Some(most), Some(age_seconds)) => {
                PoolLimits { least: least as usize, most: most as usize, age_seconds }
            }
            _ => PoolLimits::default(),
        }
    }
}

/// The requests kept by one event loop, the least recently used first, each with the time of its
/// return.
#[derive(Default)]
pub struct RequestPool {
    kept: RefCell<VecDeque<(f64, Box<RequestSlot>)>>,
    /// Number of requests that were taken and not yet returned.
    taken: Cell<usize>,
    limits: Cell<PoolLimits>,
    /// Time of the last adjustment, seconds since 1970: precise enough for ages.
    now: Cell<f64>,
    counters: Arc<PoolCounters>,
}

impl RequestPool {
    /// A pool with these counters.
    #[must_use]
    pub fn counting(counters: Arc<PoolCounters>) -> RequestPool {
        counters.set(Mempool::SzWanted as usize, size_of::<RequestSlot>() as u64);
        counters.set(Mempool::SzActual as usize, (size_of::<RequestSlot>() + FIRST_READ_BYTES) as u64);
        RequestPool { counters, ..RequestPool::default() }
    }

    /// Only this event loop writes its counters.
    fn count(&self, counter: Mempool) {
        self.counters.change_alone(counter as usize, 1);
    }

    fn uncount(&self, counter: Mempool) {
        self.counters.change_alone(counter as usize, -1);
    }

    /// As [`RequestPool::take`], with room for a first read.
    pub(crate) fn take_to_read(&self, ring: &LogRing) -> Box<RequestSlot> {
        let mut slot = self.take(ring);
        slot.buffers.received.reserve(FIRST_READ_BYTES);
        slot
    }

    /// Returns a request with clean, empty buffers.
    pub fn take(&self, ring: &LogRing) -> Box<RequestSlot> {
        self.taken.set(self.taken.get() + 1);
        self.count(Mempool::Live);
        self.count(Mempool::Allocs);
        match self.kept.borrow_mut().pop_back() {
            Some((_, request)) => {
                self.count(Mempool::Recycle);
                self.uncount(Mempool::Pool);
                request
            }
            None => {
                self.count(Mempool::Randry);
                RequestSlot::new(ring)
            }
        }
    }

    /// True if the number of active requests is so large that freeing the memory that they do not
    /// need while they wait is worth the time.
    pub(crate) fn are_many(&self) -> bool {
        self.taken.get() > FEW
    }

    /// Takes back a request that was not used since it was taken.
    pub(crate) fn put_unused(&self, request: Box<RequestSlot>) {
        self.count_back();
        self.keep(request);
    }

    fn count_back(&self) {
        self.taken.set(self.taken.get().saturating_sub(1));
        self.uncount(Mempool::Live);
        self.count(Mempool::Frees);
    }

    fn keep(&self, request: Box<RequestSlot>) {
        self.count(Mempool::Pool);
        self.kept.borrow_mut().push_back((self.now.get(), request));
    }

    /// Allocates as many requests as the limits require, and frees those not needed for a while.
    /// Must be called periodically; `now` is seconds since 1970.
    pub fn adjust(&self, limits: PoolLimits, ring: &LogRing, now: f64) {
        self.limits.set(limits);
        self.now.set(now);
        let wanted = limits.least.min(limits.most).min(self.len() + MADE_AT_ONCE_MAX);
        for _ in self.len()..wanted {
            self.keep(RequestSlot::new(ring));
        }
        loop {
            let count = self.len();
            let Some(since) = self.kept.borrow().front().map(|(since, _)| *since) else { break };
            let why = if count > limits.most {
                Mempool::Surplus
            } else if count > limits.least && now - since >= limits.age_seconds {
                Mempool::Timeout
            } else {
                break;
            };
            self.count(why);
            self.uncount(Mempool::Pool);
            self.kept.borrow_mut().pop_front();
        }
        let mut kept = self.kept.borrow_mut();
        for (_, request) in kept.iter_mut().take_while(|(since, _)| now - since >= limits.age_seconds) {
            request.retire_to(IDLE_BUFFER_BYTES_MAX);
        }
    }

    /// Takes back a finished request.
    pub fn put(&self, mut slot: Box<RequestSlot>) {
        self.count_back();
        if self.len() >= self.limits.get().most {
            self.count(Mempool::Surplus);
            return;
        }
        slot.retire();
        self.keep(slot);
    }

    /// Number of requests that are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.borrow().len()
    }

    /// True if no request is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use surface::limits::KEPT_BUFFER_BYTES_MAX;

    fn pool() -> (RequestPool, Arc<PoolCounters>, LogRing) {
        let counters = Arc::new(PoolCounters::new());
        (RequestPool::counting(Arc::clone(&counters)), counters, LogRing::in_memory(1 << 16))
    }

    #[test]
    fn as_many_requests_are_kept_as_the_limits_say() {
        let (pool, counters, ring) = pool();
        let adjust = |text: &str, now: f64| {
            pool.adjust(PoolLimits::parse(text), &ring, now);
            counters.get(Mempool::Pool as usize)
        };
        assert_eq!(adjust("10,100,10", 0.0), 10);
        assert_eq!(adjust("90,100,100", 1.0), 90);
        assert_eq!(adjust("50,80,100", 2.0), 80);
        assert_eq!(counters.get(Mempool::Surplus as usize), 10);
        assert_eq!(adjust("10,80,1", 3.0), 10);
        assert_eq!(counters.get(Mempool::Timeout as usize), 70);
        assert_eq!(pool.len(), 10);
    }

    #[test]
    fn requests_in_use_are_counted_and_come_back() {
        let (pool, counters, ring) = pool();
        pool.adjust(PoolLimits::parse("1,2,10"), &ring, 0.0);
        let used: Vec<_> = (0..4).map(|_| pool.take(&ring)).collect();
        let get = |counter: Mempool| counters.get(counter as usize);
        assert_eq!((get(Mempool::Live), get(Mempool::Recycle), get(Mempool::Randry)), (4, 1, 3));
        used.into_iter().for_each(|slot| pool.put(slot));
        assert_eq!((get(Mempool::Live), get(Mempool::Frees), get(Mempool::Surplus), get(Mempool::Pool)), (0, 4, 2, 2));
    }

    #[test]
    fn unneeded_request_frees_its_grown_memory() {
        let (pool, _, ring) = pool();
        let adjust = |now: f64| pool.adjust(PoolLimits::parse("1,2,10"), &ring, now);
        adjust(0.0);
        let mut slot = pool.take(&ring);
        slot.buffers.head = Vec::with_capacity(KEPT_BUFFER_BYTES_MAX);
        slot.buffers.received.reserve(KEPT_BUFFER_BYTES_MAX);
        slot.request.task.synthetic.reserve(2 * KEPT_BUFFER_BYTES_MAX);
        pool.put(slot);
        let room = || {
            let kept = pool.kept.borrow();
            let RequestSlot { buffers, request } = &*kept.front().unwrap().1;
            (buffers.head.capacity(), buffers.received.capacity(), request.task.synthetic.capacity())
        };
        adjust(9.0);
        assert_eq!(room(), (KEPT_BUFFER_BYTES_MAX, KEPT_BUFFER_BYTES_MAX, 0), "what is used again soon keeps its room");
        adjust(10.0);
        assert_eq!(room(), (0, 0, 0));
    }

    #[test]
    fn limits_that_make_no_sense_are_the_default() {
        for text in ["", "1,2", "a,b,c"] {
            assert_eq!(PoolLimits::parse(text), PoolLimits::default(), "{text}");
        }
    }
}
