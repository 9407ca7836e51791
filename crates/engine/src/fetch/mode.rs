//! What kind of fetch it is, and what of the client's request crosses to the origin for that.

use message::Message;
use semantics::filter::{Class, copy_filtered};

/// What kind of fetch.
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

/// Takes from `req` what an origin may see.
pub(crate) fn copy_request(request: &Message, mode: FetchMode, bereq: &mut Message) {
    let class = if mode == FetchMode::Pass { Class::Pass } else { Class::Fetch };
    bereq.set_method(request.method());
    bereq.set_target(request.target());
    bereq.set_protocol(request.protocol());
    copy_filtered(request, bereq, class);
    bereq.unset("Expect");
}
