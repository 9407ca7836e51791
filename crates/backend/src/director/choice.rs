//! The input of a director's choice. Independent of the kinds of directors.

mod candidates;
mod context;
mod hash_text;
mod members;
mod notes;
pub mod shard_parameters;

pub use candidates::Candidates;
pub(crate) use candidates::{first_that_takes_load, takes_load};
pub use context::{ClientName, ResolveContext};
pub use hash_text::hash_text;
pub use members::{Member, Members};
pub use notes::{Note, Notes};
