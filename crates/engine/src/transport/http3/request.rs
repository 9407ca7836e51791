//! One request of a connection, from its stream to the end of its work.

use super::quic::{ReceiveStream, SendStream};
use super::shared::{Live, Shared};
use super::stream::{Http3Stream, NoHead, Rest};
use super::unacknowledged::Unacknowledged;
use crate::context::Loop;
use crate::deadline::duration;
use crate::memory::{Held, MEMORY_SHORT};
use crate::request::{self, RequestSlot};
use crate::session::SessionView;
use crate::transport::http1::head_limits;
use crate::transport::stream::exchange::{StreamExchange, StreamNames};
use crate::transport::stream::request_head::Circumstances;
use crate::transport::stream::response_head::ResponseHead;
use crate::transport::stream::{RequestStream, Reset, shows_scheme};
use ::http2::Priority;
use ::http3::Code;
use ::http3::head::{self, HeadFault};
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use surface::counter::Main;
use surface::limits::{HTTP3_FIELD_BYTES_FACTOR, HTTP3_STREAM_BYTES};
use surface::tag::Tag;

/// Names of HTTP/3 in the log and in VCL.
const NAMES: StreamNames =
    StreamNames { transport: "HTTP/3", protocol: b"HTTP/3.0", body_source: "H3F", body_sink: "H3B" };

/// Request Header Fields Too Large.
const TOO_LARGE: u16 = 431;

/// Limit for the size of a request's fields, as RFC 9114 §4.2.2 counts them: the value that Copal
/// announces.
pub(super) fn field_section_bytes_max(context: &Loop) -> u64 {
    let parameters = context.engine.parameters.load();
    parameters.http_req_size + parameters.http_max_hdr * field_coding::FIELD_EXTRA_BYTES as u64
}

/// Serves the request on a stream.
pub(super) async fn serve<S: SendStream, R: ReceiveStream>(
    context: Rc<Loop>,
    shared: Rc<Shared>,
    unacknowledged: Rc<Unacknowledged<S>>,
    mut view: SessionView,
    send: S,
    receive: R,
    live: &Live,
) {
    let (block_bytes_max, timeout) = {
        let parameters = context.engine.parameters.load();
        (parameters.http_req_size as usize, duration(parameters.timeout_idle))
    };
    let mut stream =
        Http3Stream::new(send, receive, Rc::clone(&shared), unacknowledged, &live.priority, block_bytes_max);
    let now = view.now(&context);
    let received = tokio::time::timeout(timeout, receive_head(&context, &mut stream)).await;
    let parts = match received.unwrap_or(Err(Fault::TimedOut)) {
        Ok(parts) => parts,
        Err(fault) => {
            let given_up = give_up(&context, &view, &shared, stream, fault);
            // A client that does not read its answer gets none.
            let _ = tokio::time::timeout(timeout, given_up).await;
            return;
        }
    };
    // A frame with a priority takes precedence over the head.
    if live.priority.get().is_none() {
        live.priority.set(parts.headers.get("priority").map(|value| Priority::of_field(value.as_bytes())));
    }
    let may_wait = is_without_body(&parts);
    let rest = poll_fn(|wait| Poll::Ready(stream.poll_rest(wait))).await;
    let mut slot = context.requests.take(&context.engine.ring);
    slot.request.arrive(&context.engine.parameters.load(), now);
    let RequestSlot { request, .. } = &mut *slot;
    let mut exchange = {
        let circumstances = Circumstances {
            protocol: NAMES.protocol,
            is_last: rest == Poll::Ready(Rest::Nothing),
            limits: head_limits(&request.task.settings),
            shows_scheme: shows_scheme(&context),
            scheme: "https",
            websocket: None,
        };
        StreamExchange::new(stream, &NAMES, &parts, &circumstances, request)
    };
    let rest = match rest {
        Poll::Pending if may_wait && exchange.is_sound() => await_rest(&context, &mut exchange, timeout).await,
        Poll::Pending => Ok(Rest::Body),
        Poll::Ready(rest) => Ok(rest),
    };
    let is_ruined = match rest {
        Ok(Rest::Body | Rest::Nothing) => {
            let outcome = request::run(&context, &mut view, &mut exchange, request).await;
            if let Some(reason) = exchange.end(&outcome, &context) {
                shared.leave(reason);
            }
            outcome.is_ruined
        }
        Ok(Rest::Gone) => {
            context.count(Main::ReqReset);
            exchange.stream().refuse(Code::RequestIncomplete);
            false
        }
        Err(MemoryIsShort) => {
            refuse_for_memory(&context, &view, exchange.stream());
            false
        }
    };
    if !is_ruined {
        context.requests.put(slot);
    }
}

/// Fault of a head.
enum Fault {
    None(NoHead),
    Head(HeadFault),
    NoMemory,
    TimedOut,
}

async fn receive_head<S: SendStream, R: ReceiveStream>(
    context: &Loop,
    stream: &mut Http3Stream<S, R>,
) -> Result<Parts, Fault> {
    // A stream counts as long as its head is awaited, whatever part of it was received.
    let mut held = Held::default();
    let block = poll_fn(|wait| match stream.poll_head(wait) {
        Poll::Ready(block) => Poll::Ready(block.map_err(Fault::None)),
        Poll::Pending => {
            held.set_at_least(&context.memory, HTTP3_STREAM_BYTES + stream.held_bytes());
            if context.memory.is_full() { Poll::Ready(Err(Fault::NoMemory)) } else { Poll::Pending }
        }
    })
    .await?;
    let bytes_max = field_section_bytes_max(context) as usize;
    let fields_max = context.engine.parameters.load().http_max_hdr as usize;
    head::request(&block, bytes_max.saturating_mul(HTTP3_FIELD_BYTES_FACTOR), fields_max).map_err(Fault::Head)
}

/// Answers a malformed request. No part of it reaches VCL.
async fn give_up<S: SendStream, R: ReceiveStream>(
    context: &Loop,
    view: &SessionView,
    shared: &Shared,
    mut stream: Http3Stream<S, R>,
    fault: Fault,
) {
    let log = |text: &str| view.log(context, Tag::Error, format_args!("{text}"));
    match fault {
        Fault::None(NoHead::GivenUp) => stream.refuse(Code::RequestIncomplete),
        Fault::None(NoHead::Over) | Fault::TimedOut => stream.refuse_at_its_cost(Code::RequestIncomplete),
        Fault::None(NoHead::Fault) => {}
        Fault::Head(HeadFault::Broken(code)) => shared.fail(code),
        Fault::Head(HeadFault::Malformed) => {
            log("Malformed head of a request (HTTP/3)");
            stream.refuse_at_its_cost(Code::MessageError);
        }
        Fault::None(NoHead::TooLong) | Fault::Head(HeadFault::TooLong) => {
            log("Head of a request is too large, answered with 431 (HTTP/3, parameter http_req_size or http_max_hdr)");
            context.count(Main::ClientReq400);
            let answer = ResponseHead::bare(TOO_LARGE);
            let _ = poll_fn(|wait| stream.poll_send_head(wait, &answer, true)).await;
            stream.reset(Reset::Enough);
        }
        Fault::NoMemory => refuse_for_memory(context, view, &mut stream),
    }
}

/// Refuses the request for lack of memory: the client may send it elsewhere, or later, since
/// nothing has been done for it.
fn refuse_for_memory<S: SendStream, R: ReceiveStream>(
    context: &Loop,
    view: &SessionView,
    stream: &mut Http3Stream<S, R>,
) {
    context.count(Main::ReqRefused);
    view.log(context, Tag::Error, format_args!("{MEMORY_SHORT}"));
    stream.refuse(Code::RequestRejected);
}

/// True if a request announces no body and has a method without one. The end of most requests
/// arrives with their head, or right after it; it is waited for only in this case.
fn is_without_body(parts: &Parts) -> bool {
    semantics::method::is_safe(parts.method.as_str().as_bytes()) && !parts.headers.contains_key(CONTENT_LENGTH)
}

/// New requests must be refused.
struct MemoryIsShort;

/// Waits until it is known what follows the head of a request that should have no body. It counts
/// as a request under way.
async fn await_rest<S: SendStream, R: ReceiveStream>(
    context: &Rc<Loop>,
    exchange: &mut StreamExchange<Http3Stream<S, R>>,
    timeout: Duration,
) -> Result<Rest, MemoryIsShort> {
    let _work = context.work();
    let rest = poll_fn(|wait| match exchange.stream().poll_rest(wait) {
        Poll::Pending if context.memory.is_full() => Poll::Ready(Err(MemoryIsShort)),
        rest => rest.map(Ok),
    });
    let rest = tokio::time::timeout(timeout, rest).await.unwrap_or(Ok(Rest::Body))?;
    if rest == Rest::Nothing {
        exchange.end_with_head();
    }
    Ok(rest)
}
