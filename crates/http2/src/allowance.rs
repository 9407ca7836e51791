//! Allowance of frames without content: a bucket that fills with time, and with the data sent to
//! the client.
//!
//! A client that reads its responses sends WINDOW_UPDATE frames in proportion, some clients ping
//! after every few of them; an abusive one sends them without any data. That proportion is the
//! difference, not the type of the frame.

use std::time::Duration;
use surface::limits::{
    H2_EMPTY_FRAMES_EARNED, H2_EMPTY_FRAMES_EARNED_PER_KIB, H2_EMPTY_FRAMES_MAX, H2_EMPTY_FRAMES_PER_SECOND,
};

/// The bucket of one connection.
#[derive(Debug)]
pub struct Allowance {
    left: u32,
    /// Time up to which the bucket was filled.
    filled_at: Duration,
    /// Bytes sent that do not make a whole KiB yet.
    odd_bytes: u32,
}

impl Default for Allowance {
    /// A full bucket.
    fn default() -> Allowance {
        Allowance { left: H2_EMPTY_FRAMES_MAX, filled_at: Duration::ZERO, odd_bytes: 0 }
    }
}

impl Allowance {
    /// Takes the cost of a frame, at this time on the connection's clock; false if there is not
    /// enough.
    pub fn charge(&mut self, cost: u32, now: Duration) -> bool {
        if self.left < cost {
            self.fill(now);
        }
        match self.left.checked_sub(cost) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// Time is added only when the bucket is empty: an overflow is lost later rather than now.
    fn fill(&mut self, now: Duration) {
        let millis = now.saturating_sub(self.filled_at).as_millis().min(3_600_000) as u64;
        let frames = millis * u64::from(H2_EMPTY_FRAMES_PER_SECOND) / 1000;
        if frames > 0 {
            self.filled_at = now;
            self.add(u32::try_from(frames).unwrap_or(u32::MAX));
        }
    }

    /// Credits a request, or a DATA frame with `sent_bytes` bytes.
    pub fn earn(&mut self, sent_bytes: u32) {
        let bytes = self.odd_bytes.saturating_add(sent_bytes);
        self.odd_bytes = bytes % 1024;
        self.add(H2_EMPTY_FRAMES_EARNED + bytes / 1024 * H2_EMPTY_FRAMES_EARNED_PER_KIB);
    }

    fn add(&mut self, frames: u32) {
        self.left = self.left.saturating_add(frames).min(H2_EMPTY_FRAMES_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent() -> Allowance {
        let mut allowance = Allowance::default();
        assert!(allowance.charge(H2_EMPTY_FRAMES_MAX, Duration::ZERO));
        allowance
    }

    #[test]
    fn it_is_used_up_and_fills_with_time() {
        let mut allowance = spent();
        assert!(!allowance.charge(1, Duration::from_millis(1)));
        assert!((0..H2_EMPTY_FRAMES_PER_SECOND).all(|_| allowance.charge(1, Duration::from_secs(1))));
        assert!(!allowance.charge(1, Duration::from_secs(1)));
        assert!(allowance.charge(H2_EMPTY_FRAMES_MAX, Duration::from_secs(7200)));
        assert!(!allowance.charge(1, Duration::from_secs(7200)), "however long one waits");
    }

    #[test]
    fn it_fills_with_what_is_sent() {
        let mut allowance = spent();
        for _ in 0..16 {
            allowance.earn(64);
        }
        let earned = 16 * H2_EMPTY_FRAMES_EARNED + H2_EMPTY_FRAMES_EARNED_PER_KIB;
        assert!(allowance.charge(earned, Duration::ZERO) && !allowance.charge(1, Duration::ZERO));
    }
}
