//! The arena that holds cached objects, and the journal that holds what was banned.
#![warn(missing_docs)]

mod journal;
mod object;
mod storage;

pub use journal::Journal;
pub use object::{AppendError, BodyCursor, BodyState, Object, ObjectAttributes, ObjectFlags};
pub use storage::{Recovered, Store, StoreFull, Usage};
