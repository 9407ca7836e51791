//! One request of a connection, from its stream to the end of its work.

use super::quic::{ReceiveStream, SendStream};
use super::shared::{Live, Shared};
use super::stream::{Http3Stream, NoHead, Rest};
use super::tails::Tails;
use crate::context::Loop;
use crate::deadline::duration;
use crate::memory::{Held, MEMORY_SHORT};
use crate::request::{self, RequestSlot};
use crate::session::SessionView;
use crate::transport::http1::head_limits;
use crate::transport::stream::exchange::{StreamExchange, StreamNames};
use crate::transport::stream::priority::Priority;
use crate::transport::stream::request_head::Circumstances;
use crate::transport::stream::{RequestStream, Reset, shows_scheme};
use ::http3::Code;
use ::http3::head::{self, HeadFault};
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{Response, StatusCode};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use surface::counter::Main;
use surface::limits::{HTTP3_FIELD_BYTES_FACTOR, HTTP3_STREAM_BYTES};
use surface::tag::Tag;

/// What distinguishes HTTP/3 in the log and in VCL.
const NAMES: StreamNames =
    StreamNames { transport: "HTTP/3", protocol: b"HTTP/3.0", body_source: "H3F", body_sink: "H3B" };

/// How large a request's fields may be, as RFC 9114 §4.2.2 counts them: what we announce.
pub(super) fn field_section_bytes_max(context: &Loop) -> u64 {
    let parameters = context.engine.parameters.load();
    parameters.http_req_size + parameters.http_max_hdr * ::http3::qpack::FIELD_EXTRA_BYTES as u64
}

/// Serves the request that comes on a stream.
pub(super) async fn serve<S: SendStream, R: ReceiveStream>(
    context: Rc<Loop>,
    shared: Rc<Shared>,
    tails: Rc<Tails<S>>,
    mut view: SessionView,
    send: S,
    receive: R,
    live: &Live,
) {
    let (block_bytes_max, timeout) = {
        let parameters = context.engine.parameters.load();
        (parameters.http_req_size as usize, duration(parameters.timeout_idle))
    };
    let mut stream = Http3Stream::new(send, receive, Rc::clone(&shared), tails, &live.priority, block_bytes_max);
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
    // A frame knows better than the head what is wanted.
    if live.priority.get().is_none() {
        live.priority.set(Priority::of_head(&parts.headers));
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
        StreamExchange::new(stream, &NAMES, parts, &circumstances, request)
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

/// What is wrong with a head.
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
    // A stream counts as long as its head is awaited, whatever has come of that.
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

/// Answers what is no request. Nothing of it reaches VCL.
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
            log("Head of a request is too large (HTTP/3, parameter http_req_size or http_max_hdr)");
            let mut answer = Response::new(());
            *answer.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            let _ = poll_fn(|wait| stream.poll_send_head(wait, &mut answer, true)).await;
            stream.reset(Reset::Enough);
        }
        Fault::NoMemory => refuse_for_memory(context, view, &mut stream),
    }
}

/// Tells the client to send the request elsewhere, or later: nothing has been done for it.
fn refuse_for_memory<S: SendStream, R: ReceiveStream>(
    context: &Loop,
    view: &SessionView,
    stream: &mut Http3Stream<S, R>,
) {
    context.count(Main::ReqRefused);
    view.log(context, Tag::Error, format_args!("{MEMORY_SHORT}"));
    stream.refuse(Code::RequestRejected);
}

/// Whether a request says nothing of a body and is of a kind that has none. The end of most requests comes with their head, or
/// right behind it; only for such a one it is waited for.
fn is_without_body(parts: &Parts) -> bool {
    semantics::method::is_safe(parts.method.as_str().as_bytes()) && !parts.headers.contains_key(CONTENT_LENGTH)
}

/// New requests must be refused.
struct MemoryIsShort;

/// Waits until it is known what follows the head of a request that should have no body. It counts as a request under way.
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
