//! Idle sessions of an event loop, with the start of their wait for a request: they are closed when
//! descriptors run out.
//!
//! A session is identified by the descriptor of its connection; one without a descriptor, in memory
//! or over QUIC, is not listed. Private to one event loop, so nothing is locked. *Invariant:* an
//! active session is never dismissed: its connection is closed only if the client has sent nothing.
//! Next file: `transport/http1.rs`.
//!
//! *Invariant:* when descriptors are short, only sessions that wait for a request are closed.

use std::cell::RefCell;
use surface::limits::{DISMISSED_AT_ONCE_MAX, DISMISSED_IDLE_SECONDS_MIN, DISMISSED_PART};
use tokio::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
enum State {
    /// Active, or no session at all.
    Works,
    WaitsSince(Instant),
    /// Has to end, and will be notified.
    Dismissed,
}

/// The idle sessions of one event loop.
#[derive(Debug, Default)]
pub struct IdleSessions {
    /// States by descriptor.
    states: RefCell<Vec<State>>,
}

impl IdleSessions {
    /// Marks that the session waits for its next request from then on.
    pub(crate) fn wait(&self, descriptor: i32, since: Instant) {
        let Ok(number) = usize::try_from(descriptor) else { return };
        let mut states = self.states.borrow_mut();
        if states.len() <= number {
            states.resize(number + 1, State::Works);
        }
        if !matches!(states[number], State::Dismissed) {
            states[number] = State::WaitsSince(since);
        }
    }

    /// Marks that the session is active, or over. Returns true if it was dismissed while it waited.
    pub(crate) fn work(&self, descriptor: i32) -> bool {
        let Ok(number) = usize::try_from(descriptor) else { return false };
        let mut states = self.states.borrow_mut();
        let before = states.get_mut(number).map(|state| std::mem::replace(state, State::Works));
        matches!(before, Some(State::Dismissed))
    }

    /// Dismisses sessions that have waited longest, a part of all that have waited for a while, if
    /// these are more than `others`. `hang_up` notifies the one with that descriptor, and returns
    /// true if it has; it must not call this table. Returns the number of dismissed sessions.
    pub fn dismiss(&self, now: Instant, others: usize, hang_up: impl Fn(i32) -> bool) -> usize {
        let mut states = self.states.borrow_mut();
        let while_ago = Duration::from_secs(DISMISSED_IDLE_SECONDS_MIN);
        let mut idle: Vec<(Instant, usize)> = states
            .iter()
            .enumerate()
            .filter_map(|(number, state)| match state {
                State::WaitsSince(since) if now.duration_since(*since) >= while_ago => Some((*since, number)),
                _ => None,
            })
            .collect();
        if idle.len() <= others {
            return 0;
        }
        let most = (idle.len() / DISMISSED_PART).clamp(1, DISMISSED_AT_ONCE_MAX);
        if idle.len() > most {
            idle.select_nth_unstable(most - 1);
            idle.truncate(most);
        }
        let mut dismissed = 0;
        for (_, number) in idle {
            if hang_up(number as i32) {
                states[number] = State::Dismissed;
                dismissed += 1;
            }
        }
        dismissed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dismissed(sessions: &IdleSessions, now: Instant) -> Vec<i32> {
        let chosen = RefCell::new(Vec::new());
        let count = sessions.dismiss(now, 0, |descriptor| {
            chosen.borrow_mut().push(descriptor);
            true
        });
        let mut chosen = chosen.into_inner();
        assert_eq!(count, chosen.len());
        chosen.sort_unstable();
        chosen
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_wait_longest_are_dismissed_a_part_at_a_time() {
        let (sessions, start) = (IdleSessions::default(), Instant::now());
        for number in 0..20 {
            sessions.wait(100 - number, start + Duration::from_secs(number as u64));
        }
        assert!(!sessions.work(100), "it has begun to work");
        let now = start + Duration::from_secs(100);
        assert_eq!(dismissed(&sessions, now), [98, 99]);
        assert_eq!(dismissed(&sessions, now), [96, 97], "nobody is told twice");
        sessions.wait(98, now);
        assert!(sessions.work(98), "a dismissed session stays dismissed until it has heard of it");
        assert!(!sessions.work(98));
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_that_have_just_begun_to_wait_or_have_a_request_stay() {
        let (sessions, start) = (IdleSessions::default(), Instant::now());
        sessions.wait(7, start);
        sessions.wait(-1, start);
        assert_eq!(dismissed(&sessions, start), [0; 0]);
        let now = start + Duration::from_secs(DISMISSED_IDLE_SECONDS_MIN);
        assert_eq!(sessions.dismiss(now, 1, |_| true), 0, "others are as many");
        assert_eq!(sessions.dismiss(now, 0, |_| false), 0);
        assert!(!sessions.work(7), "the client had sent something");
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_a_named_number_is_dismissed_at_once() {
        let (sessions, start) = (IdleSessions::default(), Instant::now());
        for number in 0..10_000 {
            sessions.wait(number, start);
        }
        assert_eq!(dismissed(&sessions, start + Duration::from_secs(60)).len(), DISMISSED_AT_ONCE_MAX);
    }
}
