//! The origin's side: requests to origins, the handling of their responses, and of missing or
//! broken ones.

mod asking;
mod empty;
mod faults;
mod filters;
mod flushes;
mod interim;
mod markers;
mod once;
mod private;
mod refresh;
mod rulings;
mod trailers;
