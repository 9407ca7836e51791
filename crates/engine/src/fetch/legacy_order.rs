//! Additional parts of an order of the old dialects (1.x to 3.0): the request to the origin, which
//! VCL has already seen, and the client's own request, on loan until the answer.

use super::mode::{FetchMode, copy_request};
use crate::legacy_rules::forwards_address;
use crate::request::choices::Choices;
use message::Message;
use semantics::HttpPolicy;
use surface::vcl::Generation;
use vmods::TaskState;

/// State of a client's request that VCL may read and change during its fetch.
pub struct ClientRequest {
    /// `req`.
    pub message: Message,
    /// The request as it was received, for rollbacks.
    pub original: Message,
    /// VCL's choices for the request, as far as vcl_fetch can see them.
    pub(crate) choices: Choices,
    /// `req.restarts`.
    pub restarts: u64,
    /// `req.esi_level`.
    pub esi_level: u64,
    /// `req.xid`.
    pub vxid: u64,
    /// State that VMODs keep for the request.
    pub vmod_state: TaskState,
    /// The origin's status, which `return (error)` uses when VCL names none. 0 = there was no
    /// response.
    pub response_status: u16,
}

/// A request to an origin that VCL sees before it is sent.
#[derive(Debug)]
pub struct PreparedRequest {
    /// vxid of the fetch, already assigned.
    pub vxid: u64,
    /// `bereq`.
    pub bereq: Message,
    /// `bereq.connect_timeout`, seconds; 0 = not set.
    pub connect_timeout: f64,
    /// `bereq.first_byte_timeout`, seconds; 0 = not set.
    pub first_byte_timeout: f64,
    /// `bereq.between_bytes_timeout`, seconds; 0 = not set.
    pub between_bytes_timeout: f64,
}

impl PreparedRequest {
    /// Makes the request to an origin from the client's. `gzip_support`: accept gzip, whatever the
    /// client accepts; `client` is the client's address as text.
    #[must_use]
    pub fn new(
        vxid: u64,
        mode: FetchMode,
        request: &Message,
        generation: Generation,
        gzip_support: bool,
        client: &[u8],
    ) -> PreparedRequest {
        let mut bereq = Message::new();
        copy_request(request, mode, HttpPolicy::Varnish3, &mut bereq);
        bereq.set_protocol(b"HTTP/1.1");
        if mode != FetchMode::Pass {
            bereq.set_method(b"GET");
            if gzip_support {
                bereq.set("Accept-Encoding", b"gzip");
            }
        }
        bereq.set("X-Varnish", itoa::Buffer::new().format(vxid).as_bytes());
        if forwards_address(generation) {
            bereq.append(b"X-Forwarded-For", client);
        }
        PreparedRequest { vxid, bereq, connect_timeout: 0.0, first_byte_timeout: 0.0, between_bytes_timeout: 0.0 }
    }
}

impl std::fmt::Debug for ClientRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientRequest").field("vxid", &self.vxid).finish_non_exhaustive()
    }
}
