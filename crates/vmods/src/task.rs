//! The state that VMODs keep for one task. Empty and without an allocation until a VMOD needs it.

use crate::cookie::Cookies;
use crate::crypto::Messages;
use crate::debug::state::DebugState;
use crate::json::JsonTexts;
use crate::jwt::Tokens;
use crate::re::Captures;
use crate::var::Variables;
use backend::director::choice::shard_parameters::TaskParameters;
use backend::director::kind::shard::{Change, DEFAULT_REPLICAS};
use backend::{Directors, Notes};
use vcl_run::host::Failure;
use vcl_run::value::{DirectorId, Scratch, Text};

/// State of all VMODs in one task. Requests that wait have one each, so it is small until a VMOD
/// keeps something.
#[derive(Debug, Default)]
pub struct TaskState {
    /// Parameters that the task has set for shard directors.
    pub(crate) shard_parameters: TaskParameters,
    /// Bytes of the task's memory that `vtc.workspace_alloc()` took, and that number at the last
    /// snapshot.
    pub(crate) taken_bytes: usize,
    pub(crate) taken_bytes_before: usize,
    kept: Option<Box<Kept>>,
}

/// State that few tasks have.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// The error of the last `std.ban()`; empty if it succeeded.
    pub(crate) ban_error: String,
    /// The cookies that `cookie.parse()` read.
    pub(crate) cookies: Cookies,
    /// Changes to shard directors that wait for `.reconfigure()`.
    pub(crate) shard_changes: Vec<(DirectorId, Vec<Change>)>,
    /// The positions of blob objects' bytes in the scratch of this generation.
    pub(crate) shown_blobs: (u64, Vec<(u32, Text)>),
    /// `vtc.workspace_overflow()` was called for the session or thread.
    pub(crate) is_overflow_marked: bool,
    /// The last matches of the VMOD `re`.
    pub(crate) captures: Captures,
    /// The state of debug.
    pub(crate) debug: DebugState,
    /// The variables of `var.set()`.
    pub(crate) variables: Variables,
    /// The texts of json and jq.
    pub(crate) json: JsonTexts,
    /// The tokens of jwt.
    pub(crate) tokens: Tokens,
    /// The data that verifiers of crypto have got.
    pub(crate) messages: Messages,
}

impl TaskState {
    /// The state at the start of a task.
    #[must_use]
    pub fn new() -> TaskState {
        TaskState::default()
    }

    /// The state of those VMODs that need more than a number.
    pub(crate) fn kept(&mut self) -> &mut Kept {
        self.kept.get_or_insert_default()
    }

    /// Parameters that the task has set for shard directors.
    #[must_use]
    pub fn shard_parameters(&self) -> &TaskParameters {
        &self.shard_parameters
    }

    /// Bytes of the task's memory that VCL has reserved without using them.
    #[must_use]
    pub fn taken_bytes(&self) -> usize {
        self.taken_bytes
    }

    /// The most bytes that each VMOD may keep for the task.
    pub(crate) fn room_bytes(&self, scratch: &Scratch) -> usize {
        scratch.limit_bytes().saturating_sub(self.taken_bytes)
    }

    /// Stored data that clients can make grow, in bytes.
    #[inline]
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let bytes = |kept: &Kept| {
            kept.cookies.bytes()
                + kept.captures.bytes()
                + kept.variables.bytes()
                + kept.json.bytes()
                + kept.tokens.bytes()
                + kept.messages.bytes()
        };
        self.kept.as_deref().map_or(0, bytes)
    }

    /// Drops that data once no VCL that could read it runs any more.
    pub fn rest(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.cookies.clear();
            kept.captures.clear();
            kept.variables.clear();
            kept.json.clear();
            kept.tokens.clear();
            kept.messages.clear();
        }
    }

    /// Called when the task leaves the VCL with these directors, for another VCL or at its end, and
    /// when it is rolled back: applies the changes that wait for `.reconfigure()`, and drops the
    /// data that VCL has stored. Compat: as Varnish, which ends all PRIV_TASK then.
    pub fn leave(&mut self, directors: &Directors, notes: &Notes) {
        self.shard_parameters.clear();
        let Some(kept) = &mut self.kept else { return };
        for (director, changes) in std::mem::take(&mut kept.shard_changes) {
            directors.reconfigure_shard(director, &changes, DEFAULT_REPLICAS as u32, notes);
        }
        kept.debug.leave(notes);
        kept.ban_error.clear();
        self.rest();
    }

    /// Failure of the task at its end, if VCL has requested one. Called once.
    pub fn take_failure(&mut self) -> Option<Failure> {
        self.kept.as_mut().and_then(|kept| kept.debug.take_failure())
    }

    /// Drops everything, for the next task.
    pub fn clear(&mut self) {
        *self = TaskState::default();
    }
}
