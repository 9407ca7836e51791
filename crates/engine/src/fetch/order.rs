//! Messages between a request and its fetch: the order, and the ticket that the answer arrives on.

use super::interest::Interested;
use super::legacy_order::{ClientRequest, PreparedRequest};
use super::mode::FetchMode;
use super::out_of_band::OutOfBand;
use crate::bodies::fragment::Fragment;
use crate::bodies::request::RequestBody;
use crate::canary::Canary;
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
use surface::parameter::Parameters;
use surface::vcl::Generation;
use tokio::sync::oneshot;
use vcl_run::value::DirectorId;

/// Inputs of a fetch from the request that orders it.
pub struct FetchOrder<'a> {
    /// The part that never changes during the fetch.
    pub(crate) order: Ordered,
    /// The client's request head as VCL left it.
    pub request: &'a Message,
    /// In an old dialect: the request to the origin, as VCL left it.
    pub prepared: Option<Box<PreparedRequest>>,
    /// In an old dialect: the part of the client's request that vcl_fetch may use.
    pub client: Option<Box<ClientRequest>>,
    /// vxid already assigned to this fetch (the request logged `Link bereq <vxid> …` with it).
    pub vxid: u64,
    /// The busy mark; `None` for a pass.
    pub busy: Option<Busy>,
    /// An expired object that may be revalidated.
    pub stale: Option<Arc<Object>>,
    /// A stored part (206) of the response, which may be completed.
    pub part: Option<Arc<Object>>,
    /// The origin is sent the range of the request instead of a request for the whole.
    pub asks_for_part: bool,
    /// The requested slice of the resource; `None` = not in slices.
    pub(crate) slice: Option<SliceOrder>,
    /// `req.backend_hint`; `None` = no backend, so the fetch fails.
    pub director: Option<DirectorId>,
    /// The client's body (for passes, and for misses whose VCL keeps it).
    pub body: RequestBody,
    /// The request was received as early data, and is marked as such for the origin.
    pub early: Option<Rc<EarlyPhase>>,
    /// `client.identity` when VCL set it.
    pub client_identity: Option<Vec<u8>>,
    /// `req.trace` when VCL set it.
    pub trace: Option<bool>,
    /// Destination of interim responses; `None` if the client gets none.
    pub out_of_band: Option<OutOfBand>,
}

/// The part of an order that never changes, with the parameters for it.
pub(crate) struct Ordered {
    /// Copied once, so that a change midway cannot cause inconsistencies.
    pub(crate) parameters: Arc<Parameters>,
    /// `http_gzip_support`; always false for the dialects before 3.0.
    pub(crate) gzip_support: bool,
    /// The kind of fetch.
    pub(crate) mode: FetchMode,
    /// vxid of the ordering request, for Begin.
    pub(crate) parent_vxid: u64,
    /// vxid of the session (`sess.xid`).
    pub(crate) session_vxid: u64,
    /// `req.hash`, which is also `bereq.hash`.
    pub(crate) digest: [u8; 32],
    /// The group of a canary, if it does not share the cache: its objects are marked.
    pub(crate) salted: Option<Arc<Canary>>,
    /// Known rules about insignificant query parts; `None` if none are looked up.
    pub(crate) query: Option<QueryOrder>,
    /// Lookup found a hit-for-miss marker (`bereq.is_hitmiss`).
    pub(crate) is_hit_for_miss: bool,
    /// Lookup found a hit-for-pass marker (`bereq.is_hitpass`).
    pub(crate) is_hit_for_pass: bool,
    /// The VCL of the request.
    pub(crate) vcl: Arc<LoadedVcl>,
    /// Addresses of the client's connection, for `client.ip` and the like.
    pub(crate) peer: Peer,
    /// The client can send its body and receive the response at the same time.
    pub(crate) is_duplex: bool,
    /// Reports that the client no longer needs the response; `None` if that shows only when bytes
    /// are sent.
    pub(crate) interest: Option<Interested>,
    /// The fragment of a page that waits for it.
    pub(crate) fragment: Option<Rc<Fragment>>,
}

impl Ordered {
    /// An order for a key without any marker. `vxids` are those of the ordering request and of its
    /// session.
    pub(crate) fn new(
        parameters: Arc<Parameters>,
        mode: FetchMode,
        digest: [u8; 32],
        vcl: Arc<LoadedVcl>,
        peer: Peer,
        vxids: [u64; 2],
    ) -> Ordered {
        Ordered {
            gzip_support: parameters.http_gzip_support && vcl.generation >= Generation::V3,
            parameters,
            mode,
            parent_vxid: vxids[0],
            session_vxid: vxids[1],
            digest,
            salted: None,
            query: None,
            is_hit_for_miss: false,
            is_hit_for_pass: false,
            vcl,
            peer,
            is_duplex: false,
            interest: None,
            fragment: None,
        }
    }
}

/// Slice of a resource that a fetch is to bring.
#[derive(Clone, Debug)]
pub(crate) struct SliceOrder {
    /// Number of the slice.
    pub(crate) number: u64,
    /// Length of a slice, bytes.
    pub(crate) slice_bytes: u64,
    /// The head of the resource, whose version the slice must be of; `None` = it is received with
    /// this slice.
    pub(crate) head: Option<(Arc<Object>, Slicing)>,
}

/// Action of the client's side.
#[derive(Debug)]
pub enum FetchAnswer {
    /// Deliver this object, which may still be growing.
    Object(Box<Delivered>),
    /// The origin failed: deliver this stale object.
    Stale(Box<Delivered>),
    /// Answer 503: there is no object.
    Failed,
    /// The origin has not processed the request: the client may send it again.
    Refused,
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
    /// Action of the client's side.
    pub answer: FetchAnswer,
    /// The client's request as vcl_fetch left it, in an old dialect.
    pub client: Option<Box<ClientRequest>>,
}

/// The client's side of a running fetch.
pub struct FetchTicket {
    /// Resolves when the object can be delivered (streaming or complete), or when it is certain
    /// that there will be none.
    pub ready: oneshot::Receiver<FetchReport>,
}
