//! The circuit breaker of a backend: after too many failures it opens for a while, and a single
//! fetch then tests if the backend has recovered.
//!
//! ```text
//! Closed ──failures──▶ Open ──time is over, next fetch──▶ HalfOpen (trial) ──answered──▶ Closed
//!                       ▲───────failed: twice the time────┘
//! ```
//!
//! Only trials decide while the breaker is not closed: the outcomes of fetches from before it
//! opened are ignored. A trial that takes longer than the breaker was open is not waited for: the
//! next fetch may be a trial too, and the first outcome decides.
//!
//! Shared by all event loops. While the breaker is closed and fetches succeed, a use of the backend
//! costs one load, and a success one short lock (none if its VCL sets no limit: then there is no
//! [`Breaker`]). A trial that ends without an outcome, because its client has left, leaves the
//! breaker open until the next fetch tries. Next file: `backend.rs`.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use surface::limits::FAIL_WINDOW_SLOTS;
use tokio::time::Instant;
use vcl_run::program::BreakerDefinition;

/// Longest time open, whatever VCL sets.
const OPEN_MAX: Duration = Duration::from_secs(86_400);

/// The state of the breaker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Closed,
    /// Open: no fetch may use the backend before this time.
    Open {
        until: Instant,
    },
    /// Half-open: the fetch with this number is the trial; after this time there may be another
    /// one.
    HalfOpen {
        number: u64,
        until: Instant,
    },
}

/// Permission of the breaker for a fetch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Permit {
    /// It may be used.
    Granted,
    /// It may be used as a trial of its recovery: call [`Breaker::end_trial`] with this number when
    /// that is over.
    Trial(u64),
    /// It may not be used.
    Refused,
}

/// The change that an outcome has caused.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Transition {
    /// The breaker has opened.
    Opened {
        /// Time for which it is open.
        time: Duration,
        /// Failures in a row before that.
        in_row: u32,
        /// Failures in the window, and all fetches in it.
        share: (u32, u32),
    },
    /// The breaker has closed again.
    Closed,
}

/// Facts for operators.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BreakerFacts {
    /// Time for which it will still be open; `None` = closed, zero = half-open: the next fetch is
    /// the trial, or one is under way.
    pub open_for: Option<Duration>,
    /// Failures in a row.
    pub in_row: u32,
    /// Number of them that opens the breaker; 0 = not used.
    pub fail_limit: u32,
    /// Failures in the window, and all fetches in it.
    pub share: (u32, u32),
    /// Percentage of failures that opens the breaker; 0 = not used.
    pub fail_ratio: u32,
}

/// Fetches within a part of the window.
#[derive(Clone, Copy, Default, Debug)]
struct Slot {
    /// Number of the part, counted from the beginning.
    part: u64,
    all: u32,
    failed: u32,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    in_row: u32,
    slots: [Slot; FAIL_WINDOW_SLOTS],
    /// Number of times that it has opened without staying closed for long.
    times: u32,
    /// Time for which it was open last, and time at which it closed again.
    last: Option<(Duration, Instant)>,
    /// Trials with lower numbers began before it last opened.
    first_trial: u64,
    next_trial: u64,
}

/// The circuit breaker of one backend.
#[derive(Debug)]
pub struct Breaker {
    rules: BreakerDefinition,
    began: Instant,
    /// The breaker is not closed: read the state.
    is_not_closed: AtomicBool,
    state: Mutex<State>,
}

impl Breaker {
    pub(crate) fn new(rules: BreakerDefinition) -> Breaker {
        let state = State {
            phase: Phase::Closed,
            in_row: 0,
            slots: [Slot::default(); FAIL_WINDOW_SLOTS],
            times: 0,
            last: None,
            first_trial: 0,
            next_trial: 0,
        };
        Breaker { rules, began: Instant::now(), is_not_closed: AtomicBool::new(false), state: Mutex::new(state) }
    }

    /// True if responses of status 500, 502, 503 and 504 are failures.
    #[must_use]
    pub fn minds_errors(&self) -> bool {
        self.rules.fail_5xx
    }

    /// True if a fetch would be permitted.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        !self.is_not_closed.load(Relaxed)
            || match self.state.lock().phase {
                Phase::Closed => true,
                Phase::Open { until } | Phase::HalfOpen { until, .. } => Instant::now() >= until,
            }
    }

    /// Asks for permission to use the backend.
    pub(crate) fn ask(&self) -> Permit {
        if !self.is_not_closed.load(Relaxed) {
            return Permit::Granted;
        }
        let mut state = self.state.lock();
        let now = Instant::now();
        match state.phase {
            Phase::Closed => Permit::Granted,
            Phase::Open { until } | Phase::HalfOpen { until, .. } if now >= until => {
                let number = state.next_trial;
                state.next_trial += 1;
                // The trial's client may be slow at will, and the other fetches wait for its
                // outcome.
                let time = state.last.map_or(Duration::ZERO, |(time, _)| time);
                state.phase = Phase::HalfOpen { number, until: now + time };
                Permit::Trial(number)
            }
            Phase::Open { .. } | Phase::HalfOpen { .. } => Permit::Refused,
        }
    }

    /// Ends the trial with this number; if it has no outcome, the next fetch may be one.
    pub(crate) fn end_trial(&self, number: u64) {
        let mut state = self.state.lock();
        if matches!(state.phase, Phase::HalfOpen { number: last, .. } if last == number) {
            state.phase = Phase::Open { until: Instant::now() };
        }
    }

    /// Notes that the origin has begun to answer a fetch, which is this trial if it is one. Returns
    /// true if that closes the breaker.
    pub(crate) fn answered(&self, trial: Option<u64>) -> bool {
        if trial.is_none() || !self.is_not_closed.load(Relaxed) {
            return false;
        }
        let mut state = self.state.lock();
        if state.phase == Phase::Closed {
            return false;
        }
        state.phase = Phase::Closed;
        state.in_row = 0;
        state.slots = Default::default();
        if let Some(last) = &mut state.last {
            last.1 = Instant::now();
        }
        self.is_not_closed.store(false, Relaxed);
        true
    }

    /// Notes that a fetch has succeeded.
    pub(crate) fn succeeded(&self) {
        let mut state = self.state.lock();
        state.in_row = 0;
        self.slot(&mut state).all += 1;
    }

    /// Notes that a fetch has failed, which is this trial if it is one. Returns the change if that
    /// opens the breaker.
    pub(crate) fn failed(&self, trial: Option<u64>) -> Option<Transition> {
        let mut state = self.state.lock();
        state.in_row = state.in_row.saturating_add(1);
        let slot = self.slot(&mut state);
        slot.all += 1;
        slot.failed += 1;
        let share = self.share(&state);
        let is_too_much = match state.phase {
            Phase::Open { .. } | Phase::HalfOpen { .. } => trial.is_some_and(|number| number >= state.first_trial),
            Phase::Closed => self.is_in_row_enough(state.in_row) || self.is_share_enough(share),
        };
        if !is_too_much {
            return None;
        }
        let now = Instant::now();
        if state.phase == Phase::Closed && state.last.is_some_and(|(time, since)| now - since > time) {
            state.times = 0;
        }
        let longest = seconds(self.rules.aside_time_max);
        let time = seconds(self.rules.aside_time).saturating_mul(1 << state.times.min(20)).min(longest);
        state.times = state.times.saturating_add(1);
        state.last = Some((time, now + time));
        state.phase = Phase::Open { until: now + time };
        state.first_trial = state.next_trial;
        self.is_not_closed.store(true, Relaxed);
        Some(Transition::Opened { time, in_row: state.in_row, share })
    }

    fn is_in_row_enough(&self, in_row: u32) -> bool {
        self.rules.fail_limit > 0 && in_row >= self.rules.fail_limit
    }

    fn is_share_enough(&self, (failed, all): (u32, u32)) -> bool {
        let rules = &self.rules;
        rules.fail_ratio > 0
            && all >= rules.fail_minimum
            && u64::from(failed) * 100 >= u64::from(all) * u64::from(rules.fail_ratio)
    }

    /// The present part of the window.
    fn part(&self) -> u64 {
        let width = (self.rules.fail_window / FAIL_WINDOW_SLOTS as f64).max(0.001);
        (self.began.elapsed().as_secs_f64() / width) as u64
    }

    fn slot<'a>(&self, state: &'a mut State) -> &'a mut Slot {
        let part = self.part();
        let slot = &mut state.slots[(part % FAIL_WINDOW_SLOTS as u64) as usize];
        if slot.part != part {
            *slot = Slot { part, ..Slot::default() };
        }
        slot
    }

    /// Failures in the window, and all fetches in it.
    fn share(&self, state: &State) -> (u32, u32) {
        let part = self.part();
        let recent = state.slots.iter().filter(|slot| slot.part + FAIL_WINDOW_SLOTS as u64 > part);
        recent.fold((0, 0), |(failed, all), slot| (failed + slot.failed, all + slot.all))
    }

    /// Facts for operators.
    #[must_use]
    pub fn facts(&self) -> BreakerFacts {
        let state = self.state.lock();
        BreakerFacts {
            open_for: match state.phase {
                Phase::Closed => None,
                Phase::Open { until } => Some(until.saturating_duration_since(Instant::now())),
                Phase::HalfOpen { .. } => Some(Duration::ZERO),
            },
            in_row: state.in_row,
            fail_limit: self.rules.fail_limit,
            share: self.share(&state),
            fail_ratio: self.rules.fail_ratio,
        }
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(OPEN_MAX).min(OPEN_MAX)
}

#[cfg(test)]
mod tests;
