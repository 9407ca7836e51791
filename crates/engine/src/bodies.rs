//! Bodies under way: between client, store and origin, each is pulled out of a source, through filters, into where it goes.
//!
//! The filters themselves are machines of the crate `body`; here is what a request and a fetch need around them. Reading
//! order: `source`, `filters`, `request`.

pub(crate) mod filters;
pub mod request;
pub(crate) mod source;
