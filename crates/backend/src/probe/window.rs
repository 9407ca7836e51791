//! The results of a probe's checks: eight masks of 64 bits, the newest result in bit 0, and the
//! average response time.
//!
//! A backend is healthy while at least `threshold` of the last `window` checks were happy.

use crate::probe::outcome::{Family, Outcome};
use vcl_run::program::ProbeDefinition;

/// Number of checks that a mask records.
pub const BITS: u32 = 64;
/// After this many good checks, each new one enters the average with a weight of one quarter.
const AVERAGE_RATE_MAX: f64 = 4.0;

/// One kind of result: its letter, its description in `backend.list -p`, and a flag for rows shown
/// without any bit set.
#[derive(Debug)]
pub struct FlagRow {
    /// Letter.
    pub letter: char,
    /// Description.
    pub text: &'static str,
    /// The row is shown even if no bit is set.
    pub always: bool,
}

/// The kinds of results in the order in which they are shown.
pub static FLAGS: [FlagRow; 8] = [
    FlagRow { letter: '4', text: "Good IPv4", always: false },
    FlagRow { letter: '6', text: "Good IPv6", always: false },
    FlagRow { letter: 'U', text: "Good UNIX", always: false },
    FlagRow { letter: 'x', text: "Error Xmit", always: false },
    FlagRow { letter: 'X', text: "Good Xmit", always: false },
    FlagRow { letter: 'r', text: "Error Recv", always: false },
    FlagRow { letter: 'R', text: "Good Recv", always: false },
    FlagRow { letter: 'H', text: "Happy", always: true },
];

const IPV4: usize = 0;
const IPV6: usize = 1;
const UNIX: usize = 2;
const XMIT_ERROR: usize = 3;
const XMIT_GOOD: usize = 4;
const RECV_ERROR: usize = 5;
const RECV_GOOD: usize = 6;
const HAPPY: usize = 7;

/// The results so far.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Window {
    masks: [u64; FLAGS.len()],
    size: u32,
    threshold: u32,
    last_seconds: f64,
    average_seconds: f64,
    rate: f64,
}

impl Window {
    /// A window that starts as if `initial` checks, but no more than the threshold, had been happy.
    #[must_use]
    pub fn new(definition: &ProbeDefinition) -> Window {
        let mut masks = [0; FLAGS.len()];
        let pretended = definition.initial.min(definition.threshold);
        masks[HAPPY] = low_bits(pretended);
        Window {
            masks,
            size: definition.window.min(BITS),
            threshold: definition.threshold,
            last_seconds: 0.0,
            average_seconds: 0.0,
            // They count as checks that took no time. Compat: Varnish 7.1.
            rate: f64::from(pretended).min(AVERAGE_RATE_MAX),
        }
    }

    /// A window that continues from the good checks of another one.
    #[must_use]
    pub fn resumed(definition: &ProbeDefinition, happy: u64, average_seconds: f64) -> Window {
        let mut window = Window::new(definition);
        window.masks[HAPPY] = happy;
        let is_time = average_seconds.is_finite() && average_seconds >= 0.0;
        window.average_seconds = if is_time { average_seconds } else { 0.0 };
        window.rate = f64::from(window.good()).min(AVERAGE_RATE_MAX);
        window
    }

    /// Adds a result.
    pub fn note(&mut self, outcome: &Outcome) {
        for mask in &mut self.masks {
            *mask <<= 1;
        }
        match outcome.family {
            Some(Family::Ipv4) => self.masks[IPV4] |= 1,
            Some(Family::Ipv6) => self.masks[IPV6] |= 1,
            Some(Family::Unix) => self.masks[UNIX] |= 1,
            None => {}
        }
        match outcome.sent {
            Some(true) => self.masks[XMIT_GOOD] |= 1,
            Some(false) => self.masks[XMIT_ERROR] |= 1,
            None => {}
        }
        match outcome.received {
            Some(true) => self.masks[RECV_GOOD] |= 1,
            Some(false) => self.masks[RECV_ERROR] |= 1,
            None => {}
        }
        self.last_seconds = outcome.seconds;
        if outcome.happy {
            self.masks[HAPPY] |= 1;
            self.rate = (self.rate + 1.0).min(AVERAGE_RATE_MAX);
            self.average_seconds += (outcome.seconds - self.average_seconds) / self.rate;
        }
    }

    /// Number of happy checks in the window.
    #[must_use]
    pub fn good(&self) -> u32 {
        (self.masks[HAPPY] & low_bits(self.size)).count_ones()
    }

    /// True if there are enough happy checks.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.good() >= self.threshold
    }

    /// The number of happy checks that are needed.
    #[must_use]
    pub fn threshold(&self) -> u32 {
        self.threshold
    }

    /// The number of checks in the window.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The mask of happy checks.
    #[must_use]
    pub fn happy(&self) -> u64 {
        self.masks[HAPPY]
    }

    /// The masks in the order of [`FLAGS`].
    #[must_use]
    pub fn masks(&self) -> [u64; FLAGS.len()] {
        self.masks
    }

    /// Seconds that the last check took.
    #[must_use]
    pub fn last_seconds(&self) -> f64 {
        self.last_seconds
    }

    /// Average of the happy checks, in seconds.
    #[must_use]
    pub fn average_seconds(&self) -> f64 {
        self.average_seconds
    }

    /// The letters of the newest result, with `-` for those that don't apply.
    #[must_use]
    pub fn newest_flags(&self) -> String {
        self.masks.iter().zip(&FLAGS).map(|(mask, row)| if mask & 1 == 1 { row.letter } else { '-' }).collect()
    }
}

fn low_bits(count: u32) -> u64 {
    if count >= BITS { u64::MAX } else { (1 << count) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::probe as definition;

    fn outcome(happy: bool, seconds: f64) -> Outcome {
        Outcome {
            family: Some(Family::Ipv4),
            sent: Some(true),
            received: Some(happy),
            happy,
            seconds,
            text: String::new(),
        }
    }

    #[test]
    fn health_follows_the_share_of_happy_checks_in_the_window() {
        let mut window = Window::new(&definition(2, 4, 3));
        assert!(!window.is_healthy());
        assert_eq!(window.newest_flags(), "-------H");
        window.note(&outcome(true, 0.1));
        assert!(window.is_healthy());
        assert_eq!(window.newest_flags(), "4---X-RH");
        window.note(&outcome(false, 0.1));
        assert!(window.is_healthy(), "three of four");
        window.note(&outcome(false, 0.1));
        assert_eq!((window.good(), window.is_healthy()), (2, false));
        assert_eq!(window.newest_flags(), "4---Xr--");
        assert_eq!(window.happy(), 0b11100);
    }

    #[test]
    fn pretended_checks_are_no_more_than_the_threshold() {
        assert_eq!(Window::new(&definition(8, 8, 3)).happy(), 0b111);
        assert_eq!(Window::new(&definition(64, 64, 64)).good(), 64);
    }

    #[test]
    fn pretended_checks_took_no_time() {
        for (initial, average) in [(1, 0.6), (2, 0.4), (3, 0.3), (8, 0.3)] {
            let mut window = Window::new(&definition(initial, 8, 3));
            window.note(&outcome(true, 1.2));
            assert!((window.average_seconds() - average).abs() < 1e-9, "{initial}: {}", window.average_seconds());
        }
    }

    #[test]
    fn the_average_settles_at_a_quarter_for_each_new_happy_check() {
        let mut window = Window::new(&definition(0, 8, 3));
        for (seconds, average) in [(0.4, 0.4), (0.2, 0.3), (0.6, 0.4), (0.8, 0.5), (0.5, 0.5), (0.9, 0.6)] {
            window.note(&outcome(true, seconds));
            assert!((window.average_seconds() - average).abs() < 1e-9, "{}", window.average_seconds());
        }
        window.note(&outcome(false, 60.0));
        assert!((window.average_seconds() - 0.6).abs() < 1e-9);
        assert_eq!(window.last_seconds(), 60.0);
    }
}
