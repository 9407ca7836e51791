//! Bodies on their way between client, store and origin. Each is pulled from its source, through
//! filters, by its sender or storer.
//!
//! The filters themselves are state machines of the crate `body`; these modules are the parts
//! around them that requests and fetches need. Reading order: `pull`, `disk_tier`, `source`,
//! `filters`, `request`, `sliced`, `fragment`, `page`.

pub(crate) mod codings;
pub(crate) mod disk_tier;
pub(crate) mod filters;
pub(crate) mod fragment;
pub(crate) mod page;
pub(crate) mod pull;
pub mod request;
pub(crate) mod sliced;
pub(crate) mod source;
