//! Upgrades: a manager starts the present program file, and passes it everything that must not be
//! lost.
//!
//! ```text
//!  predecessor                                    successor
//!  starts it ─────── document, descriptors ─────▶ checks it, compiles every VCL: changes nothing
//!      ◀──────────────────── ready ───────────────┘
//!  its worker comes to its end (drain_timeout);
//!  clients that connect wait in the sockets
//!      ─────────────────────── go ──────────────▶ starts its worker on the same sockets and arenas
//!      ◀──────────── working, at intervals ───────┤
//!                                                 is visible: index, pid files, CLI
//!      ◀─────────────────── serving ──────────────┘
//!  ends, and removes nothing
//! ```
//! If anything fails before "serving", the predecessor ends its successor and starts a worker again
//! with the resources that it still holds. A predecessor that dies after the document has arrived
//! is followed by its successor as if it had sent "go". *Invariant:* two workers never touch one
//! arena, whichever manager started them: the work directory lock (`worker/src/directory_lock.rs`).
//! *Invariant:* two managers never own one work directory: the lock of the pid file goes over with
//! its descriptor. *Invariant:* neither of the two cleans anything up unless it is the one that
//! stays: the other one leaves by [`leave`].
//!
//! Reading order: `passing` (bytes and descriptors) → `document` (their meaning) → `predecessor` →
//! `successor`.

pub mod document;
pub mod passing;
pub mod predecessor;
pub mod successor;
pub mod talk;

/// First argument of a successor. Its connection to the predecessor is [`DESCRIPTOR`].
pub const MARK: &str = "--take-over";
/// The first descriptor after the standard ones.
pub const DESCRIPTOR: i32 = 3;

/// Ends this process at once. No destructor runs, since files, locks and directories have another
/// owner.
pub fn leave(status: i32) -> ! {
    std::process::exit(status)
}
