//! Results of the steps of a thread.

/// Reason why a thread stops. All details have already been logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The test has failed.
    Failed,
    /// The test is skipped, or this thread was requested to end.
    Ended,
}

/// The result of a step in a thread.
pub type Outcome<T = ()> = Result<T, Stop>;
