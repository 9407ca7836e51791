//! The clock and node of version 1 identifiers.

use parking_lot::Mutex;
use uuid::Uuid;

/// Steps of 100 ns from 15 October 1582, where version 1 starts counting, to 1970.
const STEPS_TO_1970: u64 = 0x01b2_1dd2_1381_4000;

/// State that makes version 1 identifiers unique.
#[derive(Debug)]
pub(crate) struct Clock {
    pub(crate) node: [u8; 6],
    pub(crate) sequence: u16,
    /// The time used last, in steps of 100 ns.
    last: Mutex<u64>,
}

impl Default for Clock {
    fn default() -> Clock {
        let [a, b, c, d, e, f, high, low, ..] = *Uuid::new_v4().as_bytes();
        // The lowest bit of the first byte marks the node as not being a machine's address.
        Clock { node: [a | 1, b, c, d, e, f], sequence: u16::from_be_bytes([high, low]), last: Mutex::new(0) }
    }
}

impl Clock {
    /// A time at or after `now` (seconds since 1970) that was not used before.
    pub(crate) fn moment(&self, now: f64) -> u64 {
        // `as` saturates.
        let steps = STEPS_TO_1970.saturating_add((now * 1e7) as u64);
        let mut last = self.last.lock();
        *last = steps.max(last.saturating_add(1));
        *last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopped_or_reversed_clock_still_yields_increasing_times() {
        let clock = Clock::default();
        let moments = [1000.0, 1000.0, 1000.0, 5.0, f64::NAN, -1.0, 2000.0].map(|now| clock.moment(now));
        assert!(moments.is_sorted_by(|one, next| one < next), "{moments:?}");
        assert_eq!(moments[6], STEPS_TO_1970 + 20_000_000_000);
    }
}
