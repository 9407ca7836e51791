//! Recordings of traffic: requests of clients as received, the origin's responses as received, and
//! the decisions of the cache. `copal record` writes them, `copal replay` tries a VCL with them.
//!
//! ```text
//! log records ──gather──▶ Exchange ──Masks──▶ Writer ──file──▶ Reader ──▶ Exchange
//! ```
//!
//! The same [`gather`] makes exchanges of a server's log and of a replay's log, so that the two can
//! be compared member by member. Bodies are not recorded, only their lengths.
//!
//! *Invariants:* a reader needs at most `RECORDING_FRAME_BYTES_MAX` of memory for a frame, whatever
//! the file holds, and yields everything before the first damaged frame. With [`Masks`], no value
//! of a cookie, of a credential, or of a query argument that may be a secret, and no address of a
//! client is in the file; equal values stay equal.
//!
//! Reading order: `exchange` → `gather` → `masks` → `file`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod exchange;
mod file;
mod gather;
mod masks;

pub use exchange::{Exchange, Fetch, Head, Said};
pub use file::{Item, Notes, Reader, Writer};
pub use gather::{Line, gather};
pub use masks::Masks;
