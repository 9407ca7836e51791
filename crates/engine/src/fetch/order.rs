//! What a request and its fetch exchange: the order, and the ticket that the answer comes on.

use super::aside::Aside;
use super::interest::Interested;
use super::legacy_order::{ClientRequest, PreparedRequest};
use super::mode::FetchMode;
use crate::bodies::fragment::Fragment;
use crate::bodies::request::RequestBody;
use crate::loaded_vcl::LoadedVcl;
use crate::peer::{EarlyPhase, Peer};
use crate::query_rules::QueryOrder;
use crate::request::delivered::Delivered;
use crate::slicing::Slicing;
use cache::Busy;
use message::Message;
use std::rc::Rc;
use std::sync::Arc;
use store::Object;
use tokio::sync::oneshot;
use vcl_run::value::DirectorId;

/// Everything a fetch needs to know from the request that orders it.
pub struct FetchOrder<'a> {
    /// The kind of fetch.
    pub mode: FetchMode,
    /// The client's request head as VCL left it.
    pub request: &'a Message,
    /// In an old dialect: the request to the origin, as VCL left it.
    pub prepared: Option<Box<PreparedRequest>>,
    /// In an old dialect: what vcl_fetch may use of the client's request.
    pub client: Option<Box<ClientRequest>>,
    /// vxid of the ordering request, for Begin.
    pub parent_vxid: u32,
    /// vxid already assigned to this fetch (the request logged `Link bereq <vxid> …` with it).
    pub vxid: u32,
    /// `req.hash`.
    pub digest: [u8; 32],
    /// What is known of queries that do not matter; `None` when that is not asked.
    pub(crate) query: Option<QueryOrder>,
    /// The promise to fetch; `None` for a pass.
    pub busy: Option<Busy>,
    /// An expired object that may be revalidated.
    pub stale: Option<Arc<Object>>,
    /// A stored part (206) of the response, which may be completed.
    pub part: Option<Arc<Object>>,
    /// The origin is asked for the range that the request wants, rather than for the whole.
    pub asks_for_part: bool,
    /// The slice of the resource that is wanted; `None` = not in slices.
    pub(crate) slice: Option<SliceOrder>,
    /// Lookup found a hit-for-miss marker.
    pub is_hit_for_miss: bool,
    /// Lookup found a hit-for-pass marker.
    pub is_hit_for_pass: bool,
    /// The VCL of the request.
    pub vcl: Arc<LoadedVcl>,
    /// `req.backend_hint`; `None` = no backend, so the fetch fails.
    pub director: Option<DirectorId>,
    /// The client's body (for passes, and for misses whose VCL keeps it).
    pub body: RequestBody,
    /// The request came as early data, and we told the origin so.
    pub early: Option<Rc<EarlyPhase>>,
    /// Addresses, for `client.ip` and the like.
    pub peer: Peer,
    /// `client.identity` when VCL set it.
    pub client_identity: Option<Vec<u8>>,
    /// vxid of the session (`sess.xid`).
    pub session_vxid: u32,
    /// `req.trace` when VCL set it.
    pub trace: Option<bool>,
    /// Where interim responses go; `None` when the client gets none.
    pub aside: Option<Aside>,
    /// The client can send its body and receive the response at the same time.
    pub is_duplex: bool,
    /// Tells when the client wants nothing more; `None` if that is learnt from what is sent only.
    pub interest: Option<Interested>,
    /// The fragment of a page that waits for it.
    pub(crate) fragment: Option<Rc<Fragment>>,
}

/// Which slice of a resource a fetch is to bring.
#[derive(Clone, Debug)]
pub(crate) struct SliceOrder {
    /// Its number.
    pub(crate) number: u64,
    /// How long slices are to be, in bytes.
    pub(crate) slice_bytes: u64,
    /// The head of the resource, whose version the slice must be of; `None` = it comes with this slice.
    pub(crate) head: Option<(Arc<Object>, Slicing)>,
}

/// What the client's side should do.
#[derive(Debug)]
pub enum FetchAnswer {
    /// Deliver this object, which may still be growing.
    Object(Box<Delivered>),
    /// The origin failed: deliver this stale object.
    Stale(Box<Delivered>),
    /// Answer 503: there is no object.
    Failed,
    /// Start again: `restart` in vcl_fetch.
    Restart,
    /// Make an error response: `error` in vcl_fetch, or a failed fetch of an old dialect.
    Synth {
        /// Status.
        status: u16,
        /// Reason; empty = the standard phrase.
        reason: Vec<u8>,
    },
}

/// The result of a fetch.
#[derive(Debug)]
pub struct FetchReport {
    /// What the client's side should do.
    pub answer: FetchAnswer,
    /// The client's request as vcl_fetch left it, in an old dialect.
    pub client: Option<Box<ClientRequest>>,
}

/// The client's side of a running fetch.
pub struct FetchTicket {
    /// Resolves when the object can be delivered (streaming or complete), or when it is certain that there will be none.
    pub ready: oneshot::Receiver<FetchReport>,
}
