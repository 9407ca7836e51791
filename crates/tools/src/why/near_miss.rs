//! An address that almost hit, and its difference from the requested one.

/// Difference between two addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Difference {
    /// Another host, the same URL.
    Host,
    /// Another query string.
    Query,
    /// The same parameters in another order.
    Order,
}

impl Difference {
    /// The word in JSON.
    pub(super) fn word(self) -> &'static str {
        match self {
            Difference::Host => "host",
            Difference::Query => "query",
            Difference::Order => "order",
        }
    }
}

/// An address whose response was in the cache.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stored {
    pub host: String,
    pub url: String,
    pub xid: u64,
    /// Start of that request, in seconds since 1970.
    pub start: f64,
}
