//! RFC 9110 and 9111 as pure functions: what may be stored and for how long, what is passed on, what answers a request.
//!
//! No I/O, no clock (time is an argument), no state. Where Varnish 7.1 and the RFCs differ, the only seam is
//! [`HttpPolicy`], which selects between them; everything else holds under every policy.
//!
//! Reading order: `calendar`, `date`, `reason`, `list`, `method` (grammar); `lifetime`, `rfc`, `filter`, `language`, `vary`, `revalidate`
//! (storing); `wishes`, `conditional`, `precondition`, `range`, `ranges`, `part`, `encoding` (answering); `reference`, `groups`,
//! `no_vary_search` (what else a request has changed, and which are the same).

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod calendar;
pub mod conditional;
pub mod date;
pub mod encoding;
pub mod filter;
pub mod groups;
pub mod language;
mod lifetime;
pub mod list;
pub mod method;
pub mod no_vary_search;
pub mod part;
mod policy;
pub mod precondition;
pub mod range;
pub mod ranges;
pub mod reason;
pub mod reference;
pub mod revalidate;
pub mod rfc;
pub mod trailers;
pub mod vary;
mod wishes;

pub use lifetime::{Lifetime, LifetimeDefaults, is_cacheable_of_old, lifetime, lifetime_of_pass, log_ttl_rfc};
pub use policy::HttpPolicy;
pub use wishes::Wishes;
