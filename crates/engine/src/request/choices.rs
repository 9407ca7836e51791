//! VCL's choices for a request: kept in its own task, or lent to the fetch of an old dialect.

use crate::bodies::filters::Filters;
use crate::world::decision::Noted;
use message::Message;
use semantics::RequestDirectives;
use vcl_run::value::DirectorId;

/// VCL's choices for the request; kept across restarts.
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
    /// Request directives of the client, where they apply.
    pub(crate) request_directives: RequestDirectives,
    /// `req.hash_always_miss`.
    pub(crate) always_miss: bool,
    /// Place where VCL set `req.hash_always_miss`.
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
    /// Reads the request directives of the client. The age of the oldest response that it accepts
    /// becomes `req.ttl`.
    pub(crate) fn hear(&mut self, request: &Message) {
        self.request_directives = RequestDirectives::of(request);
        self.ttl_cap = self.request_directives.age_cap();
    }

    /// Reads them again after vcl_recv, which may have changed the request. `req.ttl` follows,
    /// unless VCL has set it to another value.
    pub(crate) fn hear_again(&mut self, request: &Message) {
        if self.request_directives == RequestDirectives::default() {
            return;
        }
        let cap = self.request_directives.age_cap();
        self.request_directives = RequestDirectives::of(request);
        if self.ttl_cap == cap {
            self.ttl_cap = self.request_directives.age_cap();
        }
    }
}
