//! Start and join of threads.

use std::sync::Arc;
use std::thread::JoinHandle;

use crate::journal::Journal;
use crate::test::{Cancel, Outcome};

/// The cancel of a new thread.
///
/// # Errors
/// The system has no descriptor left: the test fails.
pub fn cancel(journal: &Journal) -> Outcome<Arc<Cancel>> {
    journal.test.cancel().map_err(|error| journal.fail(format!("no descriptor left: {error}")))
}

/// Starts a thread.
///
/// # Errors
/// The system has no thread left: the test fails.
pub fn start<T: Send + 'static>(
    journal: &Journal,
    work: impl FnOnce() -> T + Send + 'static,
) -> Outcome<JoinHandle<T>> {
    let started = std::thread::Builder::new().name(journal.name.clone()).spawn(work);
    started.map_err(|error| journal.fail(format!("no thread left: {error}")))
}

/// Waits until a thread has ended.
///
/// # Errors
/// The test has failed, by this thread or another.
pub fn join<T>(journal: &Journal, thread: JoinHandle<Outcome<T>>) -> Outcome {
    match thread.join() {
        Ok(Ok(_)) if journal.test.is_stopping() => Err(journal.test.stop_reason()),
        Ok(Ok(_)) => Ok(()),
        Ok(Err(stop)) => Err(stop),
        Err(_) => Err(journal.fail("a fault in the runner: this thread panicked")),
    }
}
