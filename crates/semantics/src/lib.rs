//! RFC 9110 and 9111 as pure functions: storing, freshness, forwarding of fields, and answers from
//! stored responses.
//!
//! No I/O, no clock (time is an argument), no state. Where Varnish 7.1 and the RFCs differ, the
//! only switch is [`HttpPolicy`], which selects between them; everything else holds under every
//! policy.
//!
//! Reading order: `calendar`, `date`, `reason`, `list`, `method` (grammar); `lifetime`, `rfc`,
//! `filter`, `language`, `vary`, `revalidate` (storing); `request_directives`, `conditional`,
//! `precondition`, `range`, `ranges`, `part`, `encoding` (answering); `reference`, `groups`,
//! `no_vary_search` (other resources that a request has changed, and equivalent requests);
//! `trace_context` (traces that continue at the origin).

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod byte_range;
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
mod request_directives;
pub mod revalidate;
pub mod rfc;
pub mod trace_context;
pub mod trailers;
pub mod vary;

pub use lifetime::{Lifetime, LifetimeDefaults, Purge, is_cacheable_of_old, lifetime, lifetime_of_pass, log_ttl_rfc};
pub use policy::HttpPolicy;
pub use request_directives::RequestDirectives;
