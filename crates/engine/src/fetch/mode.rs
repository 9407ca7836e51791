//! The kinds of fetch, and what each passes to the origin of the client's request.

use message::Message;
use semantics::HttpPolicy;
use semantics::filter::{Class, copy_filtered};

/// The kind of fetch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FetchMode {
    /// A miss: the object goes into the cache.
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

/// Copies which part of the response the client wants.
pub(crate) fn copy_range(request: &Message, bereq: &mut Message) {
    for name in ["Range", "If-Range"] {
        if let Some(value) = request.get(name) {
            bereq.set(name, value);
        }
    }
}

/// Copies from the client's request what an origin may see.
pub(crate) fn copy_request(request: &Message, mode: FetchMode, policy: HttpPolicy, bereq: &mut Message) {
    let class = if mode == FetchMode::Pass { Class::Pass } else { Class::Fetch };
    bereq.reserve_for(request);
    bereq.set_method(request.method());
    bereq.set_target(request.target());
    bereq.set_protocol(request.protocol());
    copy_filtered(request, bereq, class);
    bereq.unset("Expect");
    // What the client asks of caches is for those on the way as well. Source: RFC 9111 §5.2.
    if policy == HttpPolicy::Rfc && mode != FetchMode::Pass {
        for value in request.get_all("Cache-Control") {
            bereq.append(b"Cache-Control", value);
        }
    }
}
