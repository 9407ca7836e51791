//! What VCL chose for a request: kept in its own task, or lent to the fetch of an old dialect.

use crate::bodies::filters::Filters;
use crate::world::decision::Noted;
use message::Message;
use semantics::Wishes;
use vcl_run::value::DirectorId;

/// What VCL chose for the request; kept across restarts.
#[derive(Default)]
pub(crate) struct Choices {
    /// `req.backend_hint`, initially the VCL's default; `None` = no backend, so a fetch fails.
    pub(crate) director: Option<DirectorId>,
    /// `client.identity` when VCL set it.
    pub(crate) client_identity: Option<Vec<u8>>,
    /// `req.storage`.
    pub(crate) storage: Option<u32>,
    /// `req.slice_bytes` when VCL set it.
    pub(crate) slice_bytes: Option<u64>,
    /// `req.ttl`.
    pub(crate) ttl_cap: Option<f64>,
    /// `req.grace`.
    pub(crate) grace_cap: Option<f64>,
    /// What the client asks of the cache, where that counts.
    pub(crate) wishes: Wishes,
    /// `req.hash_always_miss`.
    pub(crate) always_miss: bool,
    /// Where VCL set that.
    pub(crate) always_miss_by: Option<Noted>,
    /// `req.hash_ignore_busy`.
    pub(crate) ignore_busy: bool,
    /// `req.hash_ignore_vary`.
    pub(crate) ignore_vary: bool,
    /// `req.esi` is false.
    pub(crate) is_esi_forbidden: bool,
    /// `req.trace` when VCL set it.
    pub(crate) trace: Option<bool>,
    /// `req.filters` when VCL set it.
    pub(crate) body_filters: Option<Vec<u8>>,
    /// The filters of the body, once it is needed.
    pub(crate) body_stages: Option<Filters>,
    /// Filters change the body, or have changed it; the headers that describe it were adapted once.
    pub(crate) is_body_filtered: bool,
}

impl Choices {
    /// Hears what the client asks of the cache. The oldest response that it accepts becomes `req.ttl`.
    pub(crate) fn hear(&mut self, request: &Message) {
        self.wishes = Wishes::of(request);
        self.ttl_cap = self.wishes.age_cap();
    }

    /// Hears it again after vcl_recv, which may have changed the request. `req.ttl` follows, unless VCL has set it to something else.
    pub(crate) fn hear_again(&mut self, request: &Message) {
        if self.wishes == Wishes::default() {
            return;
        }
        let cap = self.wishes.age_cap();
        self.wishes = Wishes::of(request);
        if self.ttl_cap == cap {
            self.ttl_cap = self.wishes.age_cap();
        }
    }
}
