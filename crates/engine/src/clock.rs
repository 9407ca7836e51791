//! The time of day for the engine: wall-clock time that follows tokio's clock and stops when that
//! is paused.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::time::Instant;

/// Wall-clock time that follows tokio's (pausable) clock.
#[derive(Clone, Debug)]
pub struct Clock {
    base: Instant,
    /// Seconds since 1970 at `base`, as the bits of an `f64`; shared, so that a resync applies to
    /// every event loop.
    wall_at_base: Arc<AtomicU64>,
}

impl Clock {
    /// A clock that shows `wall` (seconds since 1970) now.
    #[must_use]
    pub fn starting_at(wall: f64) -> Clock {
        Clock { base: Instant::now(), wall_at_base: Arc::new(AtomicU64::new(wall.to_bits())) }
    }

    /// Seconds since 1970.
    #[must_use]
    pub fn now(&self) -> f64 {
        self.at(Instant::now())
    }

    /// The time at that instant, in seconds since 1970.
    #[must_use]
    pub fn at(&self, moment: Instant) -> f64 {
        let since_base = moment.saturating_duration_since(self.base);
        f64::from_bits(self.wall_at_base.load(Ordering::Relaxed)) + since_base.as_secs_f64()
    }

    /// Corrects the clock to show `wall` now. The worker does so every second, since the machine's
    /// clock may be adjusted.
    pub fn resync(&self, wall: f64) {
        let at_base = wall - self.base.elapsed().as_secs_f64();
        self.wall_at_base.store(at_base.to_bits(), Ordering::Relaxed);
    }
}
