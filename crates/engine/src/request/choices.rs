//! What VCL chose for a request: its own task's, or lent to the fetch of an old dialect.

use crate::bodies::filters::Filters;
use crate::world::decision::Noted;
use vcl_run::value::DirectorId;

/// What VCL chose for the request; it stays over restarts.
#[derive(Default)]
pub(crate) struct Choices {
    /// `req.backend_hint`, at first the VCL's default; `None` = none, and a fetch fails.
    pub(crate) director: Option<DirectorId>,
    /// `client.identity` when VCL set it.
    pub(crate) client_identity: Option<Vec<u8>>,
    /// `req.storage`.
    pub(crate) storage: Option<u32>,
    /// `req.ttl`.
    pub(crate) ttl_cap: Option<f64>,
    /// `req.grace`.
    pub(crate) grace_cap: Option<f64>,
    /// `req.hash_always_miss`.
    pub(crate) always_miss: bool,
    /// Where VCL said so.
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
    /// The filters of the body, once it is wanted.
    pub(crate) body_stages: Option<Filters>,
    /// Filters change the body, or have: the headers that describe it have been changed for that, once.
    pub(crate) is_body_filtered: bool,
}
