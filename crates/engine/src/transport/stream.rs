//! What a stream of HTTP/2 or HTTP/3 is to the request machine: [`RequestStream`], implemented by each of the two.
//!
//! `exchange.rs` makes an [`Exchange`](crate::exchange::Exchange) of it, once for both: pseudo headers become a head
//! (`request_head.rs`) and the other way round (`response_head.rs`), what a head must not contain is refused (RFC 9113 §8, RFC
//! 9114 §4), a body is counted against its content-length. *Invariant:* a stream holds at most a window of a body, whoever is
//! slow. A stream may become a
//! WebSocket (`tunnel.rs`). Next file: `stream/exchange.rs`.

pub(super) mod exchange;
pub(super) mod priority;
pub(super) mod request_head;
mod response_head;
pub(super) mod tunnel;
pub(super) mod websocket;
mod wire;

use crate::context::Loop;
use bytes::Bytes;
use http::HeaderMap;
use semantics::HttpPolicy;
use std::task::{Context, Poll};

/// Whether requests show VCL a header `scheme`. Compat: Varnish 7.1, policy `varnish`.
pub(super) fn shows_scheme(context: &Loop) -> bool {
    let table = context.engine.vcl.load();
    table.active.as_ref().is_none_or(|vcl| vcl.policy != HttpPolicy::Rfc)
}

/// The stream is over: reset by one side, or its connection is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StreamGone;

/// Why we end a stream before its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reset {
    /// The request is malformed (PROTOCOL_ERROR, H3_MESSAGE_ERROR).
    Malformed,
    /// The response cannot be completed (INTERNAL_ERROR, H3_INTERNAL_ERROR).
    Incomplete,
    /// The rest of the request's body is not wanted: the response is complete (NO_ERROR, H3_NO_ERROR).
    Enough,
    /// The client takes too long to read the response (CANCEL, H3_REQUEST_CANCELLED).
    Stalled,
}

/// One stream with a request on it, whose head has been received. The functions that wait are polled with the same arguments
/// until they are ready.
pub(super) trait RequestStream: Unpin {
    /// Waits for bytes of the request's body; `None` at its end.
    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamGone>>>;

    /// Lets the client send `count` more bytes.
    fn release(&mut self, count: usize);

    /// The trailers, once the body has ended.
    fn poll_trailers(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<HeaderMap>, StreamGone>>;

    /// Sends a response's head, interim or final; it may be taken. `is_last` if nothing follows it.
    fn poll_send_head(
        &mut self,
        context: &mut Context<'_>,
        head: &mut http::Response<()>,
        is_last: bool,
    ) -> Poll<Result<(), StreamGone>>;

    /// Sends some of a piece of the body, as much as the client's windows allow, and returns how many bytes those were; at
    /// least one, unless the piece is empty. `is_last` if the body ends with the piece.
    fn poll_send_data(
        &mut self,
        context: &mut Context<'_>,
        piece: &[u8],
        is_last: bool,
    ) -> Poll<Result<usize, StreamGone>>;

    /// How many seconds a response may wait because the client gives it no window; `None` if that is no limit of its own, or
    /// something else than the window keeps it waiting.
    fn window_seconds(&self) -> Option<f64> {
        None
    }

    /// Ends the response with trailers.
    fn poll_send_trailers(&mut self, context: &mut Context<'_>, trailers: &HeaderMap) -> Poll<Result<(), StreamGone>>;

    /// Ready when the client has given the stream up, or its connection is gone.
    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()>;

    /// Ends the stream early.
    fn reset(&mut self, why: Reset);
}
