//! The time of day.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
#[must_use]
pub fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |elapsed| elapsed.as_secs_f64())
}
