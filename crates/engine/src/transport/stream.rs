//! Interface of an HTTP/2 or HTTP/3 stream to the request machine: [`RequestStream`], implemented
//! by each of the two.
//!
//! `exchange.rs` makes an [`Exchange`](crate::exchange::Exchange) of it, once for both: pseudo
//! headers become a head (`request_head.rs`) and the other way round (`response_head.rs`), a head
//! with forbidden fields is refused (RFC 9113 §8, RFC 9114 §4), a body is counted against its
//! content-length. *Invariant:* a stream holds at most a window of a body, whichever side is slow.
//! A stream may become a WebSocket (`tunnel.rs`). Next file: `stream/exchange.rs`.
//!
//! *Invariant:* a stream counts until its work is done, whatever reset it. Resets by a client and
//! resets that it provokes use one budget.

pub(super) mod exchange;
pub(super) mod request_head;
pub(super) mod response_head;
pub(super) mod tunnel;
pub(super) mod websocket;
mod wire;

use crate::context::Loop;
use bytes::Bytes;
use field_coding::FieldList;
use response_head::ResponseHead;
use semantics::HttpPolicy;
use std::task::{Context, Poll};

/// True if requests show VCL a header `scheme`. Compat: Varnish 7.1, policy `varnish`.
pub(super) fn shows_scheme(context: &Loop) -> bool {
    let table = context.engine.vcl.load();
    table.active.as_ref().is_none_or(|vcl| vcl.policy != HttpPolicy::Rfc)
}

/// The stream is over: reset by one side, or its connection is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StreamGone;

/// Reason for ending a stream early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reset {
    /// The request is malformed (PROTOCOL_ERROR, H3_MESSAGE_ERROR).
    Malformed,
    /// The request was not processed (REFUSED_STREAM, H3_REQUEST_REJECTED).
    Refused,
    /// The response cannot be completed (INTERNAL_ERROR, H3_INTERNAL_ERROR).
    Incomplete,
    /// The rest of the request's body is not needed: the response is complete (NO_ERROR,
    /// H3_NO_ERROR).
    Enough,
    /// The client takes too long to read the response (CANCEL, H3_REQUEST_CANCELLED).
    Stalled,
}

/// One stream with a request on it, whose head has been received. The functions that wait are
/// polled with the same arguments until they are ready.
pub(super) trait RequestStream: Unpin {
    /// Waits for bytes of the request's body; `None` at its end.
    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamGone>>>;

    /// Lets the client send `count` more bytes.
    fn release(&mut self, count: usize);

    /// The trailers, once the body has ended.
    fn poll_trailers(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<FieldList>, StreamGone>>;

    /// Sends a response's head, interim or final. `is_last` if nothing follows it.
    fn poll_send_head(
        &mut self,
        context: &mut Context<'_>,
        head: &ResponseHead,
        is_last: bool,
    ) -> Poll<Result<(), StreamGone>>;

    /// Sends some of a piece of the body, as much as the client's windows allow, and returns the
    /// number of bytes; at least one, unless the piece is empty. `is_last` if the body ends with
    /// the piece.
    fn poll_send_data(
        &mut self,
        context: &mut Context<'_>,
        piece: &[u8],
        is_last: bool,
    ) -> Poll<Result<usize, StreamGone>>;

    /// Time that a response may wait because the client gives it no window, in seconds; `None` if
    /// there is no separate limit for that, or the wait has another cause.
    fn window_seconds(&self) -> Option<f64> {
        None
    }

    /// Ends the response with trailers.
    fn poll_send_trailers(&mut self, context: &mut Context<'_>, trailers: &FieldList) -> Poll<Result<(), StreamGone>>;

    /// Ready when the client has cancelled the stream, or its connection is gone.
    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()>;

    /// Ready when a response that is complete has left for the client, or the stream is gone.
    fn poll_flushed(&mut self, _context: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    /// Ends the stream early.
    fn reset(&mut self, why: Reset);
}
