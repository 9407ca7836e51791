//! Fragments of a page: the fragment's request is made from the page's, and run as an exchange of
//! its own.
//!
//! The request is a copy of the page's as it was received, for another target. Its response is
//! written to a [`Fragment`], from which the page takes it when it is its turn; only the body
//! matters. It is a task of the page's event loop, so a panic, a restart or a slow origin affects
//! only the fragment. *Invariant:* nothing here reaches the client's connection. Compat: headers,
//! records and counters of Varnish 7.1.1 (transport ESI_INCLUDE). Next file: `page.rs`.

use super::inclusion::{Inclusion, Top};
use super::{Outcome, RequestSlot, Run, Task};
use crate::bodies::fragment::{Fragment, FragmentState};
use crate::bodies::page::{Include, Page};
use crate::context::{Loop, Work};
use crate::exchange::{
    BodyAnnounced, BodyBroken, ClientEvent, Exchange, Malformed, Refusal, SendError, SendLimits, Sent, Wire,
};
use crate::logged::{self, REQ};
use crate::memory::Ledger;
use crate::session::SessionView;
use message::Message;
use shm::log::{LogBuffer, LogId};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::reason::Reason;
use surface::tag::Tag;

/// The transport's name for `req.transport`.
pub(super) const NAME: &str = "ESI_INCLUDE";

/// Headers of the page's request that do not apply to a fragment: its request has no body, and the
/// page needs the whole response.
const NOT_COPIED: [&str; 3] = ["If-Modified-Since", "If-None-Match", "Range"];

impl Run<'_> {
    /// Starts the request for a fragment of the page. `None` if the fragment is not to be included.
    pub(super) fn start_fragment(&mut self, include: &Include, top: &Rc<Top>, page: &mut Page) -> Option<Rc<Fragment>> {
        let inclusion = self.request.task.life.inclusion.as_ref();
        let level = inclusion.map_or(0, |inclusion| inclusion.level);
        let parent = inclusion.map(|inclusion| Rc::clone(&inclusion.fragment));
        if self.is_beyond_limits(include, level, page) {
            return None;
        }
        let vxid = self.context.next_vxid();
        let depth =
            if self.context.engine.ring.layout().states_depth() { format!(" {}", level + 1) } else { String::new() };
        self.log().record_fmt(Tag::Link, format_args!("req {vxid} esi{depth}"));
        self.context.count(Main::EsiReq);
        // Counted from here on, since it may be a while before the task runs for the first time.
        let work = self.context.work();
        let fragment = Fragment::new(parent);
        let mut slot = self.context.requests.take(&self.context.engine.ring);
        let now = self.session.now(self.context);
        let request = &mut slot.request;
        request.arrive(&self.context.engine.parameters.load(), now);
        request.vcl = top.vcl.clone().or_else(|| self.request.vcl.clone());
        request.member.clone_from(&self.request.member);
        let parent = &self.request.task;
        request.log.start(LogId::client(vxid), now);
        request.log.record_fmt(Tag::Begin, format_args!("req {} esi{depth}", parent.life.vxid));
        request.log.timestamp("Start", now);
        let life = &mut request.task.life;
        life.vxid = vxid;
        life.previous = now;
        life.received_at = parent.life.received_at;
        life.inclusion =
            Some(Box::new(Inclusion { level: level + 1, top: Rc::clone(top), fragment: Rc::clone(&fragment) }));
        make_head(&parent.original, include, page.is_gzipped(), &mut request.task, &mut request.log);
        let (context, session) = (Rc::clone(self.context), self.session.clone());
        tokio::task::spawn_local(serve(context, session, slot, Rc::clone(&fragment), work));
        Some(fragment)
    }

    /// True if a limit forbids including a fragment in a page on that level. Then that is counted,
    /// and logged.
    fn is_beyond_limits(&mut self, include: &Include, level: u64, page: &mut Page) -> bool {
        let parameters = self.context.engine.parameters.load();
        let (depth_max, in_all_max) = (parameters.max_esi_depth, parameters.esi_fragments_max);
        drop(parameters);
        let is_too_deep = level >= depth_max;
        if !is_too_deep && !include.is_beyond {
            return false;
        }
        self.context.count(Main::EsiLeftOut);
        let is_first = page.leave_out();
        if is_too_deep {
            // Compat: Varnish writes this for every include.
            let text = format_args!("ESI depth limit reach (param max_esi_depth = {depth_max})");
            self.log().record_fmt(Tag::VCLError, text);
        } else if is_first {
            let text = format_args!("ESI fragment limit reached (param esi_fragments_max = {in_all_max})");
            self.log().record_fmt(Tag::VCLError, text);
        }
        if is_first {
            let (name, max) =
                if is_too_deep { ("max_esi_depth", depth_max) } else { ("esi_fragments_max", in_all_max) };
            self.why(Reason::EsiLimit, format!("limit={name} max={max}").as_bytes());
        }
        true
    }

    /// True if this is a fragment that no longer belongs to any page: nothing that it begins would
    /// be used.
    pub(super) fn is_given_up(&self) -> bool {
        self.request.task.life.inclusion.as_ref().is_some_and(|inclusion| inclusion.fragment.is_given_up())
    }
}

/// Makes the head of the request from that of the page, as it was received.
fn make_head(original: &Message, include: &Include, is_gzipped: bool, task: &mut Task, log: &mut LogBuffer) {
    let head = &mut task.request;
    head.copy_from(original);
    head.set_target(&include.target);
    log.record(REQ.url, &include.target);
    if let Some(host) = include.host.as_ref().filter(|host| !host.is_empty()) {
        logged::set(log, REQ, head, "Host", host);
    }
    if head.method() != b"GET" {
        head.set_method(b"GET");
        log.record(REQ.method, b"GET");
    }
    if head.protocol() != b"HTTP/1.1" {
        head.set_protocol(b"HTTP/1.1");
        log.record(REQ.protocol, b"HTTP/1.1");
    }
    for name in NOT_COPIED {
        logged::unset(log, REQ, head, name);
    }
    if is_gzipped {
        logged::force(log, REQ, head, "Accept-Encoding", b"gzip");
    } else {
        logged::unset(log, REQ, head, "Accept-Encoding");
    }
    // Without its length there is no body. A chunked one belongs to the page as well.
    for name in ["Content-Length", "Transfer-Encoding"] {
        logged::unset(log, REQ, head, name);
    }
}

/// Runs the request. Boxed, since requests that include others would contain their own type.
fn serve(
    context: Rc<Loop>,
    mut session: SessionView,
    mut slot: Box<RequestSlot>,
    fragment: Rc<Fragment>,
    work: Work,
) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async move {
        let mut exchange = FragmentExchange {
            fragment,
            ledger: Rc::clone(&context.memory),
            gone: 0,
            sent: Sent::default(),
            is_failed: false,
        };
        let outcome = super::run_begun(&context, &mut session, &mut exchange, &mut slot.request, work).await;
        exchange.end(outcome);
        if !outcome.is_ruined {
            context.requests.put(slot);
        }
    })
}

/// The exchange of a fragment.
struct FragmentExchange {
    fragment: Rc<Fragment>,
    ledger: Rc<Ledger>,
    /// Number of bytes of the current piece that were handed over.
    gone: usize,
    sent: Sent,
    /// The response is an error that the page cannot use.
    is_failed: bool,
}

impl FragmentExchange {
    fn finish(&self, is_failed: bool) {
        let is_failed = is_failed || self.is_failed;
        self.fragment.end(if is_failed { FragmentState::Failed } else { FragmentState::Complete });
    }

    /// Marks the request as over.
    fn end(&self, outcome: Outcome) {
        let is_cut_short = matches!(
            outcome.close,
            Some(CloseReason::TxError | CloseReason::RemClose | CloseReason::RangeShort | CloseReason::Overload)
        );
        self.finish(outcome.is_ruined || is_cut_short);
    }
}

impl Drop for FragmentExchange {
    /// If the task ends otherwise, no page is left waiting.
    fn drop(&mut self) {
        self.fragment.end(FragmentState::Failed);
    }
}

impl Exchange for FragmentExchange {
    fn protocol(&self) -> &'static str {
        NAME
    }

    fn open(&mut self, _head: &mut Message, _log: &mut LogBuffer) -> Result<BodyAnnounced, Malformed> {
        Ok(BodyAnnounced::None)
    }

    fn garbage(&self) -> &[u8] {
        b""
    }

    fn admit(&mut self, _head: &mut Message, _log: &mut LogBuffer) -> Result<Option<CloseReason>, Refusal> {
        Ok(None)
    }

    fn take_continue(&mut self) -> bool {
        false
    }

    fn poll_body(&mut self, _context: &mut Context<'_>, _idle_seconds: f64) -> Poll<Result<usize, BodyBroken>> {
        Poll::Ready(Ok(0))
    }

    fn body(&self) -> &[u8] {
        b""
    }

    fn consume_body(&mut self, _count: usize) {}

    fn is_body_begun(&self) -> bool {
        false
    }

    fn must_drain(&self, _response: &Message) -> bool {
        false
    }

    fn body_source(&self) -> &'static str {
        NAME
    }

    fn describe_synthetic(&self, _response: &mut Message, _log: &mut LogBuffer) {}

    fn frame(
        &mut self,
        _response: &mut Message,
        _log: &mut LogBuffer,
        _has_body: bool,
        _close: &mut Option<CloseReason>,
    ) {
    }

    fn begin(&mut self, response: &Message, _limits: SendLimits) {
        let coding = response.get("Content-Encoding");
        self.fragment.begin(coding.is_some_and(|coding| coding.eq_ignore_ascii_case(b"gzip")));
    }

    fn begin_bare(&mut self, status: u16, _limits: SendLimits) {
        self.fragment.begin(false);
        // No VCL was involved in it.
        self.is_failed |= status >= 500;
    }

    fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        piece: &[u8],
        is_last: bool,
        _log: &mut LogBuffer,
    ) -> Poll<Result<(), SendError>> {
        let Some(count) = self.fragment.push(context, &piece[self.gone..], &self.ledger) else {
            return Poll::Ready(Err(SendError));
        };
        self.gone += count;
        self.sent.body_bytes += count as u64;
        if self.gone < piece.len() {
            return Poll::Pending;
        }
        self.sent.pieces += u64::from(!piece.is_empty());
        self.gone = 0;
        if is_last {
            self.finish(false);
        }
        Poll::Ready(Ok(()))
    }

    fn sent(&self) -> Sent {
        self.sent
    }

    fn body_sink(&self) -> &'static str {
        "VED"
    }

    fn poll_client_event(&mut self, context: &mut Context<'_>) -> Poll<ClientEvent> {
        self.fragment.poll_given_up(context).map(|()| ClientEvent::Gone)
    }

    fn has_wire(&self) -> bool {
        false
    }

    fn wire(&mut self) -> Option<Wire<'_>> {
        None
    }
}
