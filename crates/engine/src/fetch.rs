//! The origin's side of a request: prepare, send, response, revalidate, body, commit, retry, error.
//!
//! A fetch is a task of its own on the loop of the request that ordered it; the client's side waits on the [`FetchTicket`].

use crate::context::{Loop, Peer};
use crate::loaded_vcl::LoadedVcl;
use crate::request_body::RequestBody;
use cache::Busy;
use message::Message;
use std::rc::Rc;
use std::sync::Arc;
use store::Object;
use vcl_run::value::DirectorId;

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

/// Everything a fetch needs to know from the request that orders it.
pub struct FetchOrder {
    /// Kind.
    pub mode: FetchMode,
    /// The client's request head as VCL left it.
    pub request: Message,
    /// The client's original method (before a miss made it GET).
    pub is_head: bool,
    /// vxid of the ordering request, for Begin.
    pub parent_vxid: u32,
    /// vxid already drawn for this fetch (the request logged `Link bereq <vxid> …` with it).
    pub vxid: u32,
    /// `req.hash`.
    pub digest: [u8; 32],
    /// The promise to fetch; `None` for a pass.
    pub busy: Option<Busy>,
    /// An expired object that may be revalidated.
    pub stale: Option<Arc<Object>>,
    /// Lookup gave hit-for-miss.
    pub is_hit_for_miss: bool,
    /// Lookup gave hit-for-pass.
    pub is_hit_for_pass: bool,
    /// The VCL of the request.
    pub vcl: Arc<LoadedVcl>,
    /// `req.backend_hint`; `None` = the VCL's default.
    pub director: Option<DirectorId>,
    /// The client's body (passes, and misses whose VCL keeps it).
    pub body: RequestBody,
    /// Addresses, for `client.ip` and the like.
    pub peer: Peer,
    /// `client.identity` when VCL set it.
    pub client_identity: Option<Vec<u8>>,
    /// vxid of the session (`sess.xid`).
    pub session_vxid: u32,
}

/// Why a fetch gave no object: the client's side answers 503.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FetchFailed;

/// The client's side of a running fetch.
pub struct FetchTicket {
    /// Resolves when the object can be delivered (streaming or complete), or failed.
    pub ready: tokio::sync::oneshot::Receiver<Result<Arc<Object>, FetchFailed>>,
}

/// Starts a fetch as a task of this loop (`tokio::task::spawn_local`).
pub fn start(_context: &Rc<Loop>, _order: FetchOrder) -> FetchTicket {
    let (_sender, ready) = tokio::sync::oneshot::channel();
    FetchTicket { ready }
}
