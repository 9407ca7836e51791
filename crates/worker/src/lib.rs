//! The worker process: serves traffic, unprivileged, and may die at any moment without costing more than the requests in
//! flight. The manager starts it with the descriptors it needs and speaks [`control`] with it.

#![warn(missing_docs)]

pub mod control;

/// Runs the worker: called for `copal worker --control FD`. Returns the exit status.
#[must_use]
pub fn run(_control_descriptor: i32) -> i32 {
    0
}
