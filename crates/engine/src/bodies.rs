//! Bodies on their way between client, store and origin. Each is pulled from its source, through filters, by whoever sends or
//! stores it.
//!
//! The filters themselves are state machines of the crate `body`; here is what requests and fetches need around them. Reading
//! order: `pull`, `filed`, `source`, `filters`, `request`, `sliced`, `fragment`, `page`.

pub(crate) mod codings;
pub(crate) mod filed;
pub(crate) mod filters;
pub(crate) mod fragment;
pub(crate) mod page;
pub(crate) mod pull;
pub mod request;
pub(crate) mod sliced;
pub(crate) mod source;
