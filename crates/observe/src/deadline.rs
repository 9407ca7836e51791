//! A time limit for a whole exchange over blocking sockets.

use std::io;
use std::time::{Duration, Instant};

/// A moment after which an exchange is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// The moment after this time.
    pub fn after(limit: Duration) -> Deadline {
        Deadline(Instant::now() + limit)
    }

    /// The earlier one of this moment and the one after this time.
    pub fn at_most(self, limit: Duration) -> Deadline {
        Deadline(self.0.min(Instant::now() + limit))
    }

    /// The time that is left.
    ///
    /// # Errors
    /// `TimedOut`: none is left.
    pub fn left(self) -> io::Result<Duration> {
        let left = self.0.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}
