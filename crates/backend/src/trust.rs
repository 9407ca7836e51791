//! What the fetches from a backend say about it: after too many failures it is set aside for a while, and a single fetch then
//! tries whether it has recovered.
//!
//! ```text
//! Trusted ──failures──▶ Aside ──time is over, next fetch──▶ Trial ──answered──▶ Trusted
//!                         ▲───────failed: twice as long──────┘
//! ```
//!
//! Only trials decide what becomes of a backend that is not trusted: what fetches from before it was set aside come to says nothing
//! new. A trial that takes longer than the backend was aside is not waited for: the next one may try, and whichever finds out first
//! decides.
//!
//! Shared by all event loops. While a backend is trusted and its fetches succeed, a use of it costs one load, and a success one
//! short lock (none if its VCL sets no limit: then there is no [`Trust`]). A trial that ends without an outcome, because its
//! client has gone, leaves the backend aside until the next fetch tries. Next file: `backend.rs`.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use surface::limits::FAIL_WINDOW_SLOTS;
use tokio::time::Instant;
use vcl_run::program::TrustDefinition;

/// The longest time aside, whatever VCL says.
const ASIDE_MAX: Duration = Duration::from_secs(86_400);

/// How the backend stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Trusted,
    /// Nobody may use it before this time.
    Aside {
        until: Instant,
    },
    /// The fetch with this number tries; after this time another one may, too.
    Trial {
        number: u64,
        until: Instant,
    },
}

/// What may be done with a backend now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leave {
    /// It may be used.
    Granted,
    /// It may be used to find out whether it has recovered: tell [`Trust::end_trial`] with this number when that is over.
    Trial(u64),
    /// It may not.
    Refused,
}

/// What an outcome has changed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Turn {
    /// The backend was set aside.
    Aside {
        /// For so long.
        time: Duration,
        /// After so many failures in a row.
        in_row: u32,
        /// Failures in the window, and all fetches in it.
        share: (u32, u32),
    },
    /// It is trusted again.
    Back,
}

/// Facts for operators.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TrustFacts {
    /// For how long it will be aside; `None` = it is trusted, zero = the next fetch tries, or one is trying.
    pub aside: Option<Duration>,
    /// Failures in a row.
    pub in_row: u32,
    /// How many of them are too many; 0 = that does not matter.
    pub fail_limit: u32,
    /// Failures in the window, and all fetches in it.
    pub share: (u32, u32),
    /// How many percent are too many; 0 = that does not matter.
    pub fail_ratio: u32,
}

/// Fetches within a part of the window.
#[derive(Clone, Copy, Default, Debug)]
struct Slot {
    /// Which part, counted from the beginning.
    part: u64,
    all: u32,
    failed: u32,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    in_row: u32,
    slots: [Slot; FAIL_WINDOW_SLOTS],
    /// How often it was set aside without having recovered for long.
    times: u32,
    /// How long it was aside last, and when it was trusted again.
    last: Option<(Duration, Instant)>,
    /// Trials with lower numbers began before it was set aside last.
    first_trial: u64,
    next_trial: u64,
}

/// The judgement on one backend.
#[derive(Debug)]
pub struct Trust {
    rules: TrustDefinition,
    began: Instant,
    /// It is not trusted: look at the state.
    is_doubted: AtomicBool,
    state: Mutex<State>,
}

impl Trust {
    pub(crate) fn new(rules: TrustDefinition) -> Trust {
        let state = State {
            phase: Phase::Trusted,
            in_row: 0,
            slots: [Slot::default(); FAIL_WINDOW_SLOTS],
            times: 0,
            last: None,
            first_trial: 0,
            next_trial: 0,
        };
        Trust { rules, began: Instant::now(), is_doubted: AtomicBool::new(false), state: Mutex::new(state) }
    }

    /// Whether responses of status 500, 502, 503 and 504 are failures.
    #[must_use]
    pub fn minds_errors(&self) -> bool {
        self.rules.fail_5xx
    }

    /// Whether a fetch would get leave to use it.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        !self.is_doubted.load(Relaxed)
            || match self.state.lock().phase {
                Phase::Trusted => true,
                Phase::Aside { until } | Phase::Trial { until, .. } => Instant::now() >= until,
            }
    }

    /// Asks for leave to use it.
    pub(crate) fn ask(&self) -> Leave {
        if !self.is_doubted.load(Relaxed) {
            return Leave::Granted;
        }
        let mut state = self.state.lock();
        let now = Instant::now();
        match state.phase {
            Phase::Trusted => Leave::Granted,
            Phase::Aside { until } | Phase::Trial { until, .. } if now >= until => {
                let number = state.next_trial;
                state.next_trial += 1;
                // Its client may be as slow as it likes, and the others wait for what it finds out.
                let time = state.last.map_or(Duration::ZERO, |(time, _)| time);
                state.phase = Phase::Trial { number, until: now + time };
                Leave::Trial(number)
            }
            Phase::Aside { .. } | Phase::Trial { .. } => Leave::Refused,
        }
    }

    /// The fetch with this number is over; if it has found out nothing, the next one may try.
    pub(crate) fn end_trial(&self, number: u64) {
        let mut state = self.state.lock();
        if matches!(state.phase, Phase::Trial { number: last, .. } if last == number) {
            state.phase = Phase::Aside { until: Instant::now() };
        }
    }

    /// The origin has begun to answer a fetch, which is this trial if it is one. Returns whether it is trusted again because of that.
    pub(crate) fn answered(&self, trial: Option<u64>) -> bool {
        if trial.is_none() || !self.is_doubted.load(Relaxed) {
            return false;
        }
        let mut state = self.state.lock();
        if state.phase == Phase::Trusted {
            return false;
        }
        state.phase = Phase::Trusted;
        state.in_row = 0;
        state.slots = Default::default();
        if let Some(last) = &mut state.last {
            last.1 = Instant::now();
        }
        self.is_doubted.store(false, Relaxed);
        true
    }

    /// A fetch has succeeded.
    pub(crate) fn succeeded(&self) {
        let mut state = self.state.lock();
        state.in_row = 0;
        self.slot(&mut state).all += 1;
    }

    /// A fetch has failed, which is this trial if it is one. Returns the turn if that sets the backend aside.
    pub(crate) fn failed(&self, trial: Option<u64>) -> Option<Turn> {
        let mut state = self.state.lock();
        state.in_row = state.in_row.saturating_add(1);
        let slot = self.slot(&mut state);
        slot.all += 1;
        slot.failed += 1;
        let share = self.share(&state);
        let is_too_much = match state.phase {
            Phase::Aside { .. } | Phase::Trial { .. } => trial.is_some_and(|number| number >= state.first_trial),
            Phase::Trusted => self.is_in_row_enough(state.in_row) || self.is_share_enough(share),
        };
        if !is_too_much {
            return None;
        }
        let now = Instant::now();
        if state.phase == Phase::Trusted && state.last.is_some_and(|(time, since)| now - since > time) {
            state.times = 0;
        }
        let longest = seconds(self.rules.aside_time_max);
        let time = seconds(self.rules.aside_time).saturating_mul(1 << state.times.min(20)).min(longest);
        state.times = state.times.saturating_add(1);
        state.last = Some((time, now + time));
        state.phase = Phase::Aside { until: now + time };
        state.first_trial = state.next_trial;
        self.is_doubted.store(true, Relaxed);
        Some(Turn::Aside { time, in_row: state.in_row, share })
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

    /// The part of the window that it is now.
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
    pub fn facts(&self) -> TrustFacts {
        let state = self.state.lock();
        TrustFacts {
            aside: match state.phase {
                Phase::Trusted => None,
                Phase::Aside { until } => Some(until.saturating_duration_since(Instant::now())),
                Phase::Trial { .. } => Some(Duration::ZERO),
            },
            in_row: state.in_row,
            fail_limit: self.rules.fail_limit,
            share: self.share(&state),
            fail_ratio: self.rules.fail_ratio,
        }
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(ASIDE_MAX).min(ASIDE_MAX)
}

#[cfg(test)]
mod tests;
