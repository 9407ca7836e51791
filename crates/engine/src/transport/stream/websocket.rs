//! A client's request for a WebSocket, and the key with which it is passed on. Source: RFC 6455 §4.

use ::http1::HeadLimits;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

/// GUID that is hashed with the key. Source: RFC 6455 §1.3.
const ACCEPT_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// A client's request for a WebSocket.
#[derive(Clone, Debug)]
pub(in crate::transport) struct WebSocketRequest {
    /// The key for the origin, which the client of a stream does not send.
    pub(in crate::transport) key: String,
    /// Limits for the head of the origin's answer.
    pub(in crate::transport) limits: HeadLimits,
}

impl WebSocketRequest {
    /// A request with a key of these bits, which should be random.
    pub(in crate::transport) fn new(bits: [u32; 4], limits: HeadLimits) -> WebSocketRequest {
        let bytes: Vec<u8> = bits.iter().flat_map(|bits| bits.to_be_bytes()).collect();
        WebSocketRequest { key: STANDARD.encode(bytes), limits }
    }

    /// True if an origin's `Sec-WebSocket-Accept` matches the key.
    pub(super) fn is_answered_by(&self, accept: &[u8]) -> bool {
        let digest = Sha1::new().chain_update(&self.key).chain_update(ACCEPT_GUID).finalize();
        STANDARD.encode(digest).as_bytes() == accept
    }
}
