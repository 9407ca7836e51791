//! One client's session: state shared by all exchanges of a connection, and the session's own log
//! records.
//!
//! A transport opens a session, runs exchanges (each with its own [`SessionView`]), and closes it.
//! *Invariant:* the log of a session is written record by record, that of a request in batches.
//! Next file: `exchange.rs`.

use crate::context::Loop;
use crate::forwarded::Forwarding;
use crate::logged::Thousandths;
use crate::mempool_counts::Counted;
use crate::peer::Peer;
use crate::session_record::SessionRecord;
use http2::Resets;
use shm::log::LogId;
use std::ops::Deref;
use std::rc::Rc;
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::parameter::Parameters;
use surface::tag::Tag;
use tokio::time::Instant;

/// The facts that never change during a session.
#[derive(Debug)]
pub struct SessionFacts {
    /// Transaction id.
    pub vxid: u64,
    /// The two ends.
    pub peer: Peer,
    /// Scheme and element for X-Forwarded-Proto and Forwarded.
    pub(crate) forwarding: Forwarding,
    /// `address port listener`, and the scheme if it is logged: the payload of ReqStart; formatted
    /// once.
    start_record: Box<[u8]>,
    address_len: u8,
    /// `req vxid rxreq`: the payload of Begin of each request.
    begin_record: Box<[u8]>,
    /// Time when the session began, seconds since 1970.
    opened_at: f64,
    /// The place of its listener among the loop's histograms.
    pub(crate) listener_place: usize,
}

impl SessionFacts {
    fn new(context: &Loop, vxid: u64, peer: Peer, opened_at: f64) -> Rc<SessionFacts> {
        let parameters: &Parameters = &context.engine.parameters.load();
        let address = SessionRecord::new().address(peer.client.ip());
        let address_len = address.len() as u8;
        let scheme = match (peer.listener.names_scheme, &peer.tls) {
            (false, _) => "",
            (true, None) => " http",
            (true, Some(_)) => " https",
        };
        let start_record =
            address.text(" ").number(peer.client.port()).text(" ").text(&peer.listener.name).text(scheme);
        let start_record = start_record.into_bytes();
        let begin_record = SessionRecord::new().text("req ").number(vxid).text(" rxreq").into_bytes();
        let forwarding = Forwarding::of(&peer, parameters);
        let listener_place = context.histograms.listener(&peer.listener.name);
        Rc::new(SessionFacts {
            vxid,
            peer,
            forwarding,
            start_record,
            address_len,
            begin_record,
            opened_at,
            listener_place,
        })
    }

    /// The payload of `ReqStart`.
    pub(crate) fn start_record(&self) -> &[u8] {
        &self.start_record
    }

    /// The payload of `Begin` of each request.
    pub(crate) fn begin_record(&self) -> &[u8] {
        &self.begin_record
    }

    /// `client.ip` as text.
    pub(crate) fn client_address(&self) -> &[u8] {
        &self.start_record[..usize::from(self.address_len)]
    }

    /// Writes a record to the session's own transaction.
    pub(crate) fn log(&self, context: &Loop, tag: Tag, arguments: std::fmt::Arguments<'_>) {
        context.engine.ring.write_fmt(tag, LogId::client(self.vxid), arguments);
    }

    fn record(&self, context: &Loop, tag: Tag, record: SessionRecord) {
        context.engine.ring.write(tag, LogId::client(self.vxid), record.as_bytes());
    }
}

/// Timeouts that VCL has set for a session, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SessionTimeouts {
    /// `sess.timeout_idle`.
    pub(crate) idle: Option<f64>,
    /// `sess.timeout_linger`.
    pub(crate) linger: Option<f64>,
    /// `sess.idle_send_timeout`.
    pub(crate) idle_send: Option<f64>,
    /// `sess.send_timeout`.
    pub(crate) send: Option<f64>,
}

/// The session as one exchange sees it: facts that all exchanges share, and a copy of the state
/// that VCL may change. Where exchanges follow one another (HTTP/1), the view passes from one to
/// the next with all of VCL's settings; where they run in parallel, each has its own copy.
#[derive(Clone, Debug)]
pub struct SessionView {
    facts: Rc<SessionFacts>,
    /// Timeouts that VCL has set.
    pub(crate) timeouts: SessionTimeouts,
    /// On an HTTP/2 connection: the budget of stream resets. All exchanges share it.
    pub(crate) http2: Option<Rc<Resets>>,
    /// Time of the last call of [`SessionView::now`]: while a session waits for a request, this is
    /// the end of the last response.
    pub(crate) clock_read_at: Instant,
}

impl Deref for SessionView {
    type Target = SessionFacts;

    fn deref(&self) -> &SessionFacts {
        &self.facts
    }
}

impl SessionView {
    /// Reads the clock: seconds since 1970.
    pub(crate) fn now(&mut self, context: &Loop) -> f64 {
        self.clock_read_at = Instant::now();
        context.clock.at(self.clock_read_at)
    }
}

/// End of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionEnd {
    /// The reason.
    pub reason: CloseReason,
    /// A request caused it. False if the session ended while waiting for one.
    pub is_by_request: bool,
}

impl SessionEnd {
    pub(crate) fn waiting(reason: CloseReason) -> SessionEnd {
        SessionEnd { reason, is_by_request: false }
    }
}

/// An open session.
pub struct Session {
    pub(crate) view: SessionView,
    /// Counts the session as ended, in all cases.
    _counted: Counted,
}

impl Session {
    /// Opens the session and logs that. `kind` is the beginning of the connection: `HTTP/1`,
    /// `PROXY`.
    #[must_use]
    pub fn open(context: &Loop, peer: Peer, kind: &str) -> Session {
        let clock_read_at = Instant::now();
        let facts = SessionFacts::new(context, context.next_vxid(), peer, context.clock.at(clock_read_at));
        context.count(Main::SSess);
        facts.record(context, Tag::Begin, SessionRecord::new().text("sess 0 ").text(kind));
        let (remote, local) = (facts.peer.remote, facts.peer.local);
        let opening = SessionRecord::new().address(remote.ip()).text(" ").number(remote.port()).text(" ");
        let opening = opening.text(&facts.peer.listener.name).text(" ");
        let opening = opening.address(local.ip()).text(" ").number(local.port()).text(" ");
        let opening = opening.seconds(facts.opened_at).text(" ").number(facts.peer.descriptor);
        facts.record(context, Tag::SessOpen, opening);
        Session {
            view: SessionView { facts, timeouts: SessionTimeouts::default(), http2: None, clock_read_at },
            _counted: context.count_session(),
        }
    }

    /// The view of the session for an exchange.
    #[must_use]
    pub fn view(&self) -> SessionView {
        self.view.clone()
    }

    /// Replaces the facts if another client turns out to be connected (PROXY).
    pub(crate) fn set_peer(&mut self, context: &Loop, peer: Peer) {
        let facts = &self.view.facts;
        self.view.facts = SessionFacts::new(context, facts.vxid, peer, facts.opened_at);
    }

    /// Ends the session: writes SessClose and End, and counts.
    pub fn close(self, context: &Loop, end: SessionEnd) {
        self.end(context, end);
    }

    /// As [`Session::close`], for a session whose connection is still to be closed: it counts as
    /// open until then.
    pub(crate) fn end(&self, context: &Loop, end: SessionEnd) {
        let facts = &self.view.facts;
        let lasted = context.clock.now() - facts.opened_at;
        facts.log(context, Tag::SessClose, format_args!("{} {}", end.reason.name(), Thousandths(lasted)));
        facts.log(context, Tag::End, format_args!(""));
        context.count(end.reason.counter());
        if end.is_by_request {
            context.count(Main::SessClosed);
        }
        if end.reason.is_error() {
            context.count(Main::SessClosedErr);
        }
    }
}
