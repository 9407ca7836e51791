//! The kinds of fetch, and the parts of the client's request that each passes to the origin.

use message::Message;
use semantics::HttpPolicy;
use semantics::filter::{Class, copy_filtered};

/// The kind of fetch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FetchMode {
    /// A miss: the object is stored in the cache.
    Fetch,
    /// A pass: the object is private to the request.
    Pass,
    /// Refresh of an object in grace while the old one is delivered.
    Background,
}

impl FetchMode {
    /// The reason in Begin and Link records.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            FetchMode::Fetch => "fetch",
            FetchMode::Pass => "pass",
            FetchMode::Background => "bgfetch",
        }
    }
}

/// Copies the range that the client requests.
pub(crate) fn copy_range(request: &Message, bereq: &mut Message) {
    for name in ["Range", "If-Range"] {
        if let Some(value) = request.get(name) {
            bereq.set(name, value);
        }
    }
}

/// Copies the parts of the client's request that an origin may see.
pub(crate) fn copy_request(request: &Message, mode: FetchMode, policy: HttpPolicy, bereq: &mut Message) {
    let class = if mode == FetchMode::Pass { Class::Pass } else { Class::Fetch };
    bereq.reserve_for(request);
    bereq.set_method(request.method());
    bereq.set_target(request.target());
    bereq.set_protocol(request.protocol());
    copy_filtered(request, bereq, class);
    bereq.unset("Expect");
    // The client's cache directives are for the caches on the way as well. Source: RFC 9111 §5.2.
    if policy == HttpPolicy::Rfc && mode != FetchMode::Pass {
        for value in request.get_all("Cache-Control") {
            bereq.append(b"Cache-Control", value);
        }
    }
}
