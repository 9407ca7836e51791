//! Idle connections to origins, kept by one event loop; the most recently used one is reused first.
//!
//! They are kept by destination ([`PoolKey`]), not by backend, so that they survive the reload of a
//! VCL. A connection is checked before it is reused: if its peer has closed it, or sent something
//! unsolicited, it is dropped. [`Pool::close_idle`] does the same for connections that are not
//! reused, and closes those whose destination no backend uses any more; the loop calls it about
//! once a second.
//!
//! *Invariant:* at most [`IDLE_BACKEND_CONNECTIONS_MAX`] per key; the connections of a key are
//! ordered by age.
//!
//! *Invariant:* a connection is kept only while its backend still has that destination.

use crate::dial::Stream;
use crate::pool_key::PoolKey;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Waker};
use surface::limits::IDLE_BACKEND_CONNECTIONS_MAX;
use tokio::io::ReadBuf;
use tokio::task::coop::unconstrained;

struct Idle {
    stream: Box<dyn Stream>,
    /// Seconds since 1970.
    since: f64,
    /// The idle timeout of its backend, if that has its own, in seconds.
    own_timeout: Option<f64>,
    /// Time for which its origin keeps it open, in seconds; infinite if unknown.
    kept_seconds: f64,
}

impl Idle {
    fn is_over(&self, now: f64, idle_timeout: f64) -> bool {
        now - self.since >= self.own_timeout.unwrap_or(idle_timeout).min(self.kept_seconds)
    }
}

/// The idle connections of one event loop.
#[derive(Default)]
pub struct Pool {
    /// By the number of the key.
    idle: RefCell<BTreeMap<u64, Kept>>,
}

/// The connections to one destination.
struct Kept {
    key: Arc<PoolKey>,
    queue: VecDeque<Idle>,
}

impl Pool {
    /// An empty pool.
    #[must_use]
    pub fn new() -> Pool {
        Pool::default()
    }

    /// Takes a usable connection; closes those that it finds dead or idle for `idle_timeout`
    /// seconds.
    pub fn take(&self, key: &PoolKey, now: f64, idle_timeout: f64) -> Option<Box<dyn Stream>> {
        let mut pools = self.idle.borrow_mut();
        let queue = &mut pools.get_mut(&key.number())?.queue;
        while let Some(mut idle) = queue.pop_back() {
            if !idle.is_over(now, idle_timeout) && is_quiet(idle.stream.as_mut()) {
                return Some(idle.stream);
            }
        }
        None
    }

    /// Keeps a connection on which nothing will happen before the next request. If there are too
    /// many, the oldest is closed. `own_timeout`: the idle timeout of its backend, if that has its
    /// own, in seconds. `kept_seconds`: time for which its origin keeps it, infinite if that is not
    /// known.
    pub fn put(
        &self,
        key: &Arc<PoolKey>,
        stream: Box<dyn Stream>,
        now: f64,
        own_timeout: Option<f64>,
        kept_seconds: f64,
    ) {
        let mut pools = self.idle.borrow_mut();
        let kept = pools.entry(key.number()).or_insert_with(|| Kept { key: Arc::clone(key), queue: VecDeque::new() });
        let queue = &mut kept.queue;
        if queue.len() >= IDLE_BACKEND_CONNECTIONS_MAX {
            queue.pop_front();
        }
        queue.push_back(Idle { stream, since: now, own_timeout, kept_seconds });
    }

    /// Closes connections that have been idle for `idle_timeout` seconds, that the peer has closed,
    /// or whose destination no backend uses any more; returns their number.
    pub fn close_idle(&self, now: f64, idle_timeout: f64) -> usize {
        let mut pools = self.idle.borrow_mut();
        let mut closed = 0;
        pools.retain(|_, Kept { key, queue }| {
            let before = queue.len();
            if !key.is_used() {
                queue.clear();
            }
            queue.retain_mut(|idle| !idle.is_over(now, idle_timeout) && is_quiet(idle.stream.as_mut()));
            closed += before - queue.len();
            !queue.is_empty()
        });
        closed
    }

    /// Number of connections that are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.idle.borrow().values().map(|kept| kept.queue.len()).sum()
    }

    /// True if no connection is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes all connections.
    pub fn clear(&self) {
        self.idle.borrow_mut().clear();
    }
}

/// True if the peer has neither closed the connection nor sent anything.
fn is_quiet(stream: &mut dyn Stream) -> bool {
    let mut byte = [0; 1];
    let mut into = ReadBuf::new(&mut byte);
    let mut context = Context::from_waker(Waker::noop());
    // Outside of the task's budget: an exhausted budget would make every connection look quiet.
    let look = pin!(unconstrained(poll_fn(|context| Pin::new(&mut *stream).poll_read(context, &mut into))));
    look.poll(&mut context).is_pending()
}
