//! The origin's side: what origins are asked, what becomes of what they say, and of what they fail to say.

mod asking;
mod faults;
mod filters;
mod interim;
mod once;
mod private;
mod refresh;
mod rulings;
mod trailers;
