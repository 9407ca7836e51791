//! Bodies on their way between client, store and origin. Each is pulled from its source, through filters, by whoever sends or
//! stores it.
//!
//! The filters themselves are state machines of the crate `body`; here is what requests and fetches need around them. Reading
//! order: `pull`, `source`, `filters`, `request`, `fragment`, `page`.

pub(crate) mod codings;
pub(crate) mod filters;
pub(crate) mod fragment;
pub(crate) mod page;
pub(crate) mod pull;
pub mod request;
pub(crate) mod source;
