//! Bodies under way between client, store and origin: each is pulled out of where it comes from, through filters, by whoever
//! gets rid of it.
//!
//! The filters themselves are machines of the crate `body`; here is what requests and fetches need around them. Reading order:
//! `pull`, `source`, `filters`, `request`.

pub(crate) mod filters;
pub(crate) mod pull;
pub mod request;
pub(crate) mod source;
