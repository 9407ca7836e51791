//! Values that one thread writes while others read neighbouring ones.

use std::ops::Deref;

/// A value that shares no cache line with anything else: writing it does not delay readers of its
/// neighbours. Two lines, since CPUs fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct OwnLine<T>(
    /// The value.
    pub T,
);

impl<T> Deref for OwnLine<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
