//! What VMODs keep for the duration of one task. Empty and without allocation until one of them needs it.

use crate::cookie::Cookies;
use crate::debug::DebugState;
use crate::re::Captures;
use crate::var::Variables;
use backend::director::choice::shard_parameters::TaskParameters;
use backend::director::kind::shard::{Change, DEFAULT_REPLICAS};
use backend::{Directors, Notes};
use vcl_run::value::{DirectorId, Scratch, Text};

/// State of all VMODs in one task.
#[derive(Debug, Default)]
pub struct TaskState {
    /// Why the last `std.ban()` failed; empty when it did not.
    pub(crate) ban_error: String,
    /// What `cookie.parse()` read.
    pub(crate) cookies: Cookies,
    /// What the task has set for shard directors.
    pub(crate) shard_parameters: TaskParameters,
    /// Changes of shard directors that wait for `.reconfigure()`.
    pub(crate) shard_changes: Vec<(DirectorId, Vec<Change>)>,
    /// Where the bytes of blob objects stand in the scratch of that generation.
    pub(crate) shown_blobs: (u64, Vec<(u32, Text)>),
    /// What `vtc.workspace_alloc()` took of the task's memory, and how much that was at the last snapshot; bytes.
    pub(crate) taken_bytes: usize,
    pub(crate) taken_bytes_before: usize,
    /// `vtc.workspace_overflow()` of session or thread.
    pub(crate) is_overflow_marked: bool,
    /// The last matches of the VMOD `re`.
    pub(crate) captures: Captures,
    /// What debug keeps.
    pub(crate) debug: DebugState,
    /// What `var.set()` set.
    pub(crate) variables: Variables,
}

impl TaskState {
    /// The state of a task that begins.
    #[must_use]
    pub fn new() -> TaskState {
        TaskState::default()
    }

    /// What the task has set for shard directors.
    #[must_use]
    pub fn shard_parameters(&self) -> &TaskParameters {
        &self.shard_parameters
    }

    /// Bytes of the task's memory that VCL has taken without using them.
    #[must_use]
    pub fn taken_bytes(&self) -> usize {
        self.taken_bytes
    }

    /// Bytes that VMODs may keep for the task, each of them.
    pub(crate) fn room_bytes(&self, scratch: &Scratch) -> usize {
        scratch.limit_bytes().saturating_sub(self.taken_bytes)
    }

    /// The task leaves the VCL with these directors, for another or because it is over: changes that still wait for
    /// `.reconfigure()` are made, and what belongs to objects and backends of this VCL is forgotten.
    pub fn leave(&mut self, directors: &Directors, notes: &Notes) {
        for (director, changes) in std::mem::take(&mut self.shard_changes) {
            directors.reconfigure_shard(director, &changes, DEFAULT_REPLICAS as u32, notes);
        }
        self.debug.leave(notes);
        self.shard_parameters.clear();
        self.captures.clear();
        self.variables.clear();
    }

    /// Forgets all, for the next task.
    pub fn clear(&mut self) {
        *self = TaskState::default();
    }
}
