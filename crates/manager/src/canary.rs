//! The canary that runs: its plan, the counts that workers report, and the decision.
//!
//! ```text
//! vcl.use NEW --percent … ──▶ running ──▶ promoted   by vcl.promote, or at its end within limits
//!                                │
//!                                └──▶ back           by vcl.rollback, a figure, too little traffic
//! ```
//! State and decisions only: `commands/vcl_canary.rs` asks the worker, and carries them out. It
//! outlives workers: the counts of each are added up. It is handed to a successor, and ends with
//! the manager. Reading order: `options.rs`, `judge.rs`, `proportions.rs`.

pub mod judge;
pub mod options;
mod proportions;

use crate::vcl_table::VclTable;
use control::canary::{CanaryConfiguration, Counts};
use judge::{Finding, Thresholds, broken, conclude, judge};
use options::Plan;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;
use surface::canary::{CANARY_TIME_MAX, SHARE_MAX};

/// Number of intervals of [`judge::INTERVAL`] in the sliding window.
const WINDOW_INTERVALS: usize = 30;

/// A running canary. All times are in seconds of a clock that the caller chooses.
#[derive(Debug)]
pub struct Running {
    /// The operator's plan.
    pub plan: Plan,
    /// The connection that began it.
    pub who: String,
    /// Time of its begin, seconds since 1970.
    pub began_at: f64,
    /// Time of its end, on the caller's clock.
    pub ends_at: f64,
    /// Secret and salts of the choice.
    secret: [u64; 2],
    salts: Option<[[u8; 32]; 2]>,
    /// Counts from the beginning, canary first.
    pub total: [Counts; 2],
    /// Counts of the last intervals, the current one last.
    window: VecDeque<[Counts; 2]>,
    /// End of the current interval, on the caller's clock.
    interval_ends_at: f64,
    /// Number of workers that died of their own fault meanwhile.
    pub deaths: u32,
    /// The last report of the worker with this process number.
    reported: Option<(u32, [Counts; 2])>,
}

/// The result of a look at a canary.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// It goes on.
    Wait,
    /// It becomes the active VCL.
    Promote,
    /// It ends, for this reason.
    Back(String),
}

/// A canary as it is handed to a successor.
#[derive(Debug, Serialize, Deserialize)]
pub struct HandedCanary {
    plan: Plan,
    who: String,
    began_at: f64,
    seconds_left: f64,
    secret: [u64; 2],
    salts: Option<[[u8; 32]; 2]>,
    #[serde(default)]
    total: [Counts; 2],
}

impl Running {
    /// A canary that begins `now`, with secrets from `random`.
    pub fn begin(plan: Plan, who: &str, began_at: f64, now: f64, random: &mut impl rand::RngExt) -> Running {
        let salts = (!plan.shares_cache).then(|| [random.random(), random.random()]);
        let handed = HandedCanary {
            who: who.to_owned(),
            began_at,
            seconds_left: plan.lasting.as_secs_f64(),
            secret: [random.random(), random.random()],
            salts,
            total: [Counts::default(); 2],
            plan,
        };
        Running::of(handed, now)
    }

    fn of(handed: HandedCanary, now: f64) -> Running {
        let HandedCanary { plan, who, began_at, seconds_left, secret, salts, total } = handed;
        Running {
            plan,
            who,
            began_at,
            ends_at: now + seconds_left,
            secret,
            salts,
            total,
            window: VecDeque::from([[Counts::default(); 2]]),
            interval_ends_at: now + judge::INTERVAL.as_secs_f64(),
            deaths: 0,
            reported: None,
        }
    }

    /// The part that identifies this canary.
    #[must_use]
    pub fn id(&self) -> [u64; 2] {
        self.secret
    }

    /// The configuration for a worker.
    #[must_use]
    pub fn configuration(&self) -> CanaryConfiguration {
        CanaryConfiguration {
            name: self.plan.name.clone(),
            share: self.plan.share,
            stick: self.plan.stick.clone(),
            secret: self.secret,
            salts: self.salts,
        }
    }

    /// Adds the counts that the worker `process` reports; it counts from its start, or from the
    /// last `begin`.
    pub fn report(&mut self, process: u32, counts: [Counts; 2]) {
        let earlier = match self.reported {
            Some((same, earlier))
                if same == process && (0..2).all(|group| counts[group].continues(&earlier[group])) =>
            {
                earlier
            }
            Some(_) | None => Default::default(),
        };
        self.reported = Some((process, counts));
        for group in 0..2 {
            let new = counts[group] - earlier[group];
            self.total[group] += new;
            if let Some(interval) = self.window.back_mut() {
                interval[group] += new;
            }
        }
    }

    /// The counts of the window, or all if the window has too few requests.
    fn recent(&self) -> [Counts; 2] {
        let mut recent = [Counts::default(); 2];
        for interval in &self.window {
            recent.iter_mut().zip(interval).for_each(|(sum, counts)| *sum += *counts);
        }
        let is_enough = recent.iter().all(|counts| counts.requests >= judge::CASES_MIN);
        if is_enough { recent } else { self.total }
    }

    /// Decides; to be called about once a second, after [`Running::report`].
    pub fn look(&mut self, now: f64) -> Decision {
        let thresholds = Thresholds::of(self.plan.lasting);
        let back = |finding: Finding| Decision::Back(finding.to_string());
        let recent = self.recent();
        if let Some(finding) = broken(&recent, thresholds.each_second) {
            return back(finding);
        }
        if now >= self.interval_ends_at {
            if let Some(finding) = judge(&recent, &self.plan.limits, thresholds.at_intervals) {
                return back(finding);
            }
            self.interval_ends_at = now + judge::INTERVAL.as_secs_f64();
            self.window.push_back(Default::default());
            while self.window.len() > WINDOW_INTERVALS {
                self.window.pop_front();
            }
        }
        if now < self.ends_at {
            return Decision::Wait;
        }
        match conclude(&self.total, &self.plan.limits, thresholds.at_end) {
            Ok(()) => Decision::Promote,
            Err(why) => Decision::Back(why),
        }
    }

    /// The canary for a successor.
    #[must_use]
    pub fn hand_over(&self, now: f64) -> HandedCanary {
        HandedCanary {
            plan: self.plan.clone(),
            who: self.who.clone(),
            began_at: self.began_at,
            seconds_left: self.ends_at - now,
            secret: self.secret,
            salts: self.salts,
            total: self.total,
        }
    }
}

impl HandedCanary {
    /// Continues it `now`; `None` if it cannot run with these VCLs, or its numbers are out of
    /// range.
    #[must_use]
    pub fn take_over(mut self, table: &VclTable, now: f64) -> Option<Running> {
        let is_known = table.check_canary(&self.plan.name).is_ok();
        let is_sane = (1..=SHARE_MAX).contains(&self.plan.share) && self.plan.lasting <= CANARY_TIME_MAX;
        self.seconds_left = self.seconds_left.clamp(0.0, CANARY_TIME_MAX.as_secs_f64());
        (is_known && is_sane).then(|| Running::of(self, now))
    }
}

/// Monotonic seconds since the first call: the clock of the manager for [`Running`].
#[must_use]
pub fn clock() -> f64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_secs_f64()
}

/// A time in the largest unit that divides it.
#[must_use]
pub fn shown(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds >= 3600 && seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        seconds if seconds >= 60 && seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests;
