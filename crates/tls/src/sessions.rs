//! Sessions that are stored here instead of in tickets: [`Sessions`], for listeners with early
//! data.
//!
//! A ticket can be sent twice, and early data with it. A session stored here is removed when it is
//! used, so a recorded first flight is not accepted again, neither later nor on another event loop:
//! all loops share one store, and it ends with the worker. *Invariant:* a store belongs to one
//! scope, as a ticket does. Source: RFC 8446 §8.1.

use rustls::server::StoresServerSessions;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use surface::limits::{TLS_SESSIONS_MAX, TLS_TICKET_SECONDS};

/// The sessions of a listener. Beyond [`TLS_SESSIONS_MAX`] the oldest are dropped.
pub(crate) struct Sessions {
    scope: Vec<u8>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    by_id: HashMap<Vec<u8>, Remembered>,
    /// Ids in the order of their arrival, including used ones.
    order: VecDeque<Vec<u8>>,
}

struct Remembered {
    session: Vec<u8>,
    since: Instant,
}

impl Remembered {
    /// True if it is within the lifetime of a ticket.
    fn is_good(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) <= Duration::from_secs(TLS_TICKET_SECONDS.into())
    }
}

impl Sessions {
    /// An empty store, for a listener and its demands on clients.
    pub(crate) fn new(scope: Vec<u8>) -> Sessions {
        Sessions { scope, state: Mutex::default() }
    }

    /// True if they belong to this scope.
    pub(crate) fn are_of(&self, scope: &[u8]) -> bool {
        self.scope == scope
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is complete before a panic is possible.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("count", &self.state().by_id.len()).finish_non_exhaustive()
    }
}

impl State {
    fn put(&mut self, id: Vec<u8>, session: Vec<u8>, now: Instant) {
        while self.order.len() >= TLS_SESSIONS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_id.remove(&oldest);
        }
        self.order.push_back(id.clone());
        self.by_id.insert(id, Remembered { session, since: now });
    }

    fn get(&self, id: &[u8], now: Instant) -> Option<Vec<u8>> {
        let found = self.by_id.get(id).filter(|found| found.is_good(now))?;
        Some(found.session.clone())
    }

    fn take(&mut self, id: &[u8], now: Instant) -> Option<Vec<u8>> {
        let found = self.by_id.remove(id).filter(|found| found.is_good(now))?;
        Some(found.session)
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, id: Vec<u8>, session: Vec<u8>) -> bool {
        self.state().put(id, session, Instant::now());
        true
    }

    /// For TLS 1.2, which has no early data and may use a session again.
    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.state().get(id, Instant::now())
    }

    fn take(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.state().take(id, Instant::now())
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_used_once_and_in_its_time() {
        let mut state = State::default();
        let now = Instant::now();
        let late = now + Duration::from_secs(u64::from(TLS_TICKET_SECONDS) + 1);
        state.put(vec![1], vec![7], now);
        state.put(vec![2], vec![8], now);
        assert_eq!(state.get(&[1], now), Some(vec![7]));
        assert_eq!(state.take(&[1], now), Some(vec![7]));
        assert_eq!(state.get(&[1], now), None);
        assert_eq!(state.take(&[1], now), None);
        assert_eq!(state.get(&[2], late), None);
        assert_eq!(state.take(&[2], late), None);
        assert!(state.by_id.is_empty());
    }

    #[test]
    fn the_oldest_are_forgotten_used_or_not() {
        let mut state = State::default();
        let now = Instant::now();
        let id = |number: usize| number.to_be_bytes().to_vec();
        for number in 0..TLS_SESSIONS_MAX + 10 {
            state.put(id(number), vec![1], now);
            if number == 20 {
                assert!(state.take(&id(20), now).is_some());
            }
        }
        assert_eq!((state.order.len(), state.by_id.len()), (TLS_SESSIONS_MAX, TLS_SESSIONS_MAX - 1));
        assert_eq!(state.take(&id(9), now), None);
        assert!(state.take(&id(10), now).is_some());
    }
}
