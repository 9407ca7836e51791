//! The upgrade: a manager starts the program that is there now, and hands it everything that must not be lost.
//!
//! ```text
//!  predecessor                                    successor
//!  starts it ─────── document, descriptors ─────▶ checks it, compiles every VCL: changes nothing
//!      ◀──────────────────── ready ───────────────┘
//!  its worker comes to its end (drain_timeout);
//!  clients that connect wait in the sockets
//!      ─────────────────────── go ──────────────▶ starts its worker on the same sockets and arenas
//!      ◀──────────── working, now and then ───────┤
//!                                                 is seen: index, pid files, CLI
//!      ◀─────────────────── serving ──────────────┘
//!  ends, and removes nothing
//! ```
//! Whatever fails before "serving", the predecessor ends its successor and starts a worker again on what it still holds. A predecessor that
//! dies after the document has arrived is followed by its successor as if it had said "go". *Invariant:* two workers never touch one arena,
//! whoever started them: the seat (`worker/src/seat.rs`). *Invariant:* two managers never own one work directory: the lock of the pid file
//! goes over with its descriptor. *Invariant:* neither of the two cleans anything up unless it is the one that stays: the other one leaves
//! by [`leave`].
//!
//! Reading order: `passing` (bytes and descriptors) → `document` (what they mean) → `predecessor` → `successor`.

pub mod document;
pub mod passing;
pub mod predecessor;
pub mod successor;
pub mod talk;

/// First argument of a successor. Its connection to the predecessor is [`DESCRIPTOR`].
pub const MARK: &str = "--take-over";
/// The first descriptor after the standard ones.
pub const DESCRIPTOR: i32 = 3;

/// Ends this process at once. No destructor runs, since files, locks and directories have another owner.
pub fn leave(status: i32) -> ! {
    std::process::exit(status)
}
