//! What VMODs keep for the duration of one task. Empty and without allocation until one of them needs it.

use crate::cookie::Cookies;

/// State of all VMODs in one task.
#[derive(Debug, Default)]
pub struct TaskState {
    /// Why the last `std.ban()` failed; empty when it did not.
    pub(crate) ban_error: String,
    /// What `cookie.parse()` read.
    pub(crate) cookies: Cookies,
}

impl TaskState {
    /// The state of a task that begins.
    #[must_use]
    pub fn new() -> TaskState {
        TaskState::default()
    }

    /// Forgets all, for the next task.
    pub fn clear(&mut self) {
        self.ban_error.clear();
        self.cookies.clear();
    }
}
