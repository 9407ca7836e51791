//! vcl_pipe, and the pipe: the request is sent to an origin unchanged, then bytes are copied both
//! ways until both ends are closed or nothing moves for `pipe_timeout`. This is how WebSockets and
//! other upgrades work.
//!
//! A body kept by `std.cache_req_body` is sent first. *Invariant:* the head describes the body that
//! follows it, whatever VCL did to the headers: an origin must neither take the client's next bytes
//! for part of the body, nor the body for a request.
//!
//! Comes from: Receive (over Hash). Continues with: Finish; the session ends with the pipe. The
//! origin's side has a transaction of its own.

use super::task::{PipeAccount, PipeRequest};
use super::{ClientBody, Run, Step};
use crate::bodies::request::HeldBody;
use crate::deadline::duration;
use crate::fetch::failure::log_transition;
use crate::fetch::no_connection::reason_of;
use crate::legacy_rules::forwards_address;
use crate::logged::{self, BEREQ};
use crate::origin;
use crate::ruling::{Failed, PipeRuling};
use crate::via;
use crate::world::log_notes;
use backend::director::trail::Trail;
use backend::{Attempts, Backend, BackendConnection, ClientName, Notes, OpenError, OpenRequest, ResolveContext};
use message::Message;
use shm::log::{LogBuffer, LogId};
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;
use surface::close_reason::CloseReason;
use surface::counter::{Main, Vbe};
use surface::reason::{RECORD, Reason};
use surface::tag::Tag;
use surface::vcl::Generation;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::Instant;

/// Longest wait if there is no limit.
const UNLIMITED: Duration = Duration::from_secs(u32::MAX as u64);

/// Buffer size of each direction.
const PIPE_BUFFER_BYTES: usize = 16 << 10;

impl Run<'_> {
    pub(super) async fn pipe(&mut self) -> Step {
        // Copal cannot judge the content of a pipe.
        if !self.prove_early().await {
            return Step::Finish;
        }
        self.context.count(Main::SPipe);
        self.begin_pipe_request();
        let step = match self.call_vcl().await {
            Ok(PipeRuling::Pipe) => {
                self.timestamp("Process");
                match self.enter_pipe() {
                    Some(place) => {
                        self.run_pipe(place).await;
                        Step::Finish
                    }
                    None => {
                        self.context.count(Main::PipeLimited);
                        Step::VclFailed
                    }
                }
            }
            Ok(PipeRuling::Synth(line)) => self.synth_ruling(line),
            Err(Failed) => Step::VclFailed,
        };
        self.end_pipe_request();
        step
    }

    /// Makes the request to the origin, in a transaction of its own.
    fn begin_pipe_request(&mut self) {
        let now = self.context.clock.now();
        let vxid = self.context.next_vxid();
        let parent = self.request.task.life.vxid;
        self.log().record_fmt(Tag::Link, format_args!("bereq {vxid} pipe"));
        let mut log = LogBuffer::new(&self.context.engine.ring);
        log.start(LogId::backend(vxid), now);
        log.record_fmt(Tag::Begin, format_args!("bereq {parent} pipe"));
        log.timestamp("Start", now);
        let generation = self.request.vcl.as_ref().map_or(Generation::V4, |vcl| vcl.generation);
        let is_rfc = self.follows_rfc();
        let task = &mut self.request.task;
        let mut bereq = Message::new();
        bereq.copy_from(&task.request);
        // The pipe to the origin uses HTTP/1.1, whatever protocol the client uses.
        if !bereq.protocol().starts_with(b"HTTP/1.") {
            bereq.set_protocol(b"HTTP/1.1");
        }
        // Hop-by-hop headers are removed, Upgrade too; VCL may pass it on to the origin.
        bereq.retain(|header| !header.is_hop());
        logged::log_request(&mut log, BEREQ, &bereq);
        if is_rfc {
            via::add(&mut log, BEREQ, &mut bereq, &self.context.engine.pseudonym);
        }
        logged::set(&mut log, BEREQ, &mut bereq, "X-Varnish", parent.to_string().as_bytes());
        if generation == Generation::V4 {
            logged::force(&mut log, BEREQ, &mut bereq, "Connection", b"close");
        } else if forwards_address(generation) {
            logged::append(&mut log, BEREQ, &mut bereq, "X-Forwarded-For", &[self.session.client_address()]);
        }
        if self.exchange.take_continue() {
            logged::append(&mut log, BEREQ, &mut bereq, "Expect", &[b"100-continue"]);
        }
        task.found.pipe = Some(Box::new(PipeRequest {
            vxid,
            log,
            bereq,
            director: task.choices.director,
            connect_timeout: None,
            task_deadline: None,
            started: now,
            proxy_header_bytes: 0,
        }));
    }

    fn end_pipe_request(&mut self) {
        if let Some(mut pipe) = self.request.task.found.pipe.take() {
            // Bytes of the pipe are counted in PipeAcct.
            let sent = pipe.proxy_header_bytes;
            pipe.log.record_fmt(Tag::BereqAcct, format_args!("{sent} 0 {sent} 0 0 0"));
            pipe.log.end();
        }
    }

    /// Reserves a slot among the pipes; `None` if there are already `pipe_sess_max`.
    fn enter_pipe(&self) -> Option<PipePlace> {
        let engine = Arc::clone(&self.context.engine);
        let before = engine.pipes.fetch_add(1, Relaxed);
        self.context.counters.add(Main::NPipe, 1);
        let place = PipePlace { context: std::rc::Rc::clone(self.context) };
        let limit = self.request.task.settings.pipe_sess_max;
        (limit == 0 || u64::from(before) < limit).then_some(place)
    }

    async fn run_pipe(&mut self, place: PipePlace) {
        let now = self.context.clock.now();
        let Some(mut pipe) = self.request.task.found.pipe.take() else { return };
        pipe.log.timestamp("Process", now);
        logged::drop_fragment(&mut pipe.log, BEREQ, &mut pipe.bereq);
        let opened = match self.frame_piped_body(&mut pipe) {
            Ok(()) => self.open_origin(&mut pipe).await,
            Err(lost) => Err(lost),
        };
        match opened {
            Ok(origin) => self.shovel(&mut pipe, origin).await,
            // The client wanted a connection to the origin itself, so Copal sends no answer of its
            // own. Compat: r01730.
            Err((reason, text)) => {
                pipe.log.record(Tag::FetchError, text.as_bytes());
                if self.request.task.settings.reasons {
                    pipe.log
                        .record_fmt(surface::reason::TAG, format_args!("{RECORD}{} text={text}", reason.row().word));
                }
                self.request.task.life.close = Some(CloseReason::TxError);
            }
        }
        drop(place);
        self.request.task.found.pipe = Some(pipe);
    }

    /// Makes the headers describe the body that follows them.
    ///
    /// # Errors
    /// When they announce a body that an earlier fetch took, or that broke off.
    fn frame_piped_body(&self, pipe: &mut PipeRequest) -> Result<(), (Reason, String)> {
        const LENGTH: &str = "Content-Length";
        const CODING: &str = "Transfer-Encoding";
        let (log, bereq) = (&mut pipe.log, &mut pipe.bereq);
        let length = match &self.request.task.life.body {
            ClientBody::Taken | ClientBody::Failed | ClientBody::Unread { is_begun: true, .. } => {
                if self.announces_body() {
                    let text = "req.body read error: it was sent before and not kept";
                    return Err((Reason::ClientBodyLost, text.to_owned()));
                }
                None
            }
            ClientBody::None => None,
            ClientBody::Cached(body) => Some(body.bytes().len() as u64),
            ClientBody::Unread { length: Some(length), .. } => Some(*length),
            ClientBody::Unread { length: None, .. } => {
                logged::unset(log, BEREQ, bereq, LENGTH);
                if bereq.get(CODING) != Some(b"chunked") {
                    logged::force(log, BEREQ, bereq, CODING, b"chunked");
                }
                return Ok(());
            }
        };
        logged::unset(log, BEREQ, bereq, CODING);
        match length {
            None if bereq.get(LENGTH).is_none_or(|value| value == b"0") => {}
            None => logged::unset(log, BEREQ, bereq, LENGTH),
            Some(length) => {
                let mut number = itoa::Buffer::new();
                let length = number.format(length).as_bytes();
                if bereq.get_all(LENGTH).collect::<Vec<_>>() != [length] {
                    logged::force(log, BEREQ, bereq, LENGTH, length);
                }
            }
        }
        Ok(())
    }

    async fn open_origin(&mut self, pipe: &mut PipeRequest) -> Result<BackendConnection, (Reason, String)> {
        let request = &*self.request;
        let engine = &self.context.engine;
        let Some(vcl) = &request.vcl else { return Err((Reason::NoBackend, "No backend".to_owned())) };
        let notes = Notes::new();
        let resolve = ResolveContext {
            now: self.context.clock.now(),
            random: &engine.random,
            url: request.task.request.target(),
            host: pipe.bereq.get("Host"),
            client: ClientName {
                identity: request.task.choices.client_identity.as_deref(),
                address: Some(self.session.peer.client.ip()),
            },
            digest: Some(&request.task.life.digest),
            is_for_cache: false,
            shard: Some(request.task.vmod_state.shard_parameters()),
            notes: &notes,
        };
        for name in pipe.director.map_or_else(Vec::new, |id| vcl.directors.first_lookups(id, &resolve)) {
            name.ready().await;
        }
        let mut trail = Trail::default();
        let clock = || self.context.clock.now();
        let parameters = engine.parameters.load_full();
        let mut failed: Option<(Reason, String)> = None;
        let (mut attempts, mut next): (Attempts, Option<Arc<Backend>>) = Default::default();
        let origin = loop {
            let backend = match next.take() {
                Some(at_next_address) => at_next_address,
                None => {
                    let resolved = match vcl.is_legacy() {
                        true => trail.next(&vcl.directors, pipe.director, &resolve),
                        false => vcl.directors.resolve(pipe.director, &resolve),
                    };
                    log_notes(engine, &mut pipe.log, &notes);
                    // When no other backend is left, the error of the last one counts.
                    let resolved =
                        resolved.map_err(|none| failed.take().unwrap_or_else(|| (Reason::NoBackend, none.text())))?;
                    attempts = Attempts::of(&resolved);
                    resolved.backend
                }
            };
            let mut wish = OpenRequest {
                backend: &backend,
                pool: &self.context.pool,
                dial: &*self.context.dial,
                parameters: &parameters,
                counters: &self.context.counters,
                clock: &clock,
                connect_timeout: pipe.connect_timeout,
                fresh: false,
                client: Some((self.session.peer.client, self.session.peer.server)),
                offers_http2: false,
                held: Cell::default(),
                trial: Cell::default(),
            };
            attempts.limit(&mut wish);
            let opened = backend::open(&wish).await;
            if let Some(record) = opened.as_ref().err().and_then(OpenError::tls_record) {
                pipe.log.record(Tag::BackendSSL, record.as_bytes());
            }
            match opened {
                Ok(origin) => break origin,
                Err(error) => {
                    if error.is_of_address() {
                        next = vcl.directors.next_address(&mut attempts, &resolve);
                    }
                    if next.is_none() && !vcl.is_legacy() {
                        return Err((reason_of(&error), error.text()));
                    }
                    if let Some((_, before)) = failed.replace((reason_of(&error), error.text())) {
                        pipe.log.record(Tag::FetchError, before.as_bytes());
                    }
                }
            }
        };
        pipe.proxy_header_bytes = origin.proxy_header_bytes;
        pipe.log.timestamp("Connected", self.context.clock.now());
        pipe.log.record_fmt(Tag::BackendOpen, format_args!("{}", origin.open_record()));
        if let Some(record) = origin.tls_record() {
            pipe.log.record(Tag::BackendSSL, record.as_bytes());
        }
        Ok(origin)
    }

    /// Sends the head and the bytes that the client has already sent after it, then copies both
    /// ways.
    async fn shovel(&mut self, pipe: &mut PipeRequest, mut origin: BackendConnection) {
        self.request.task.life.held.add(&self.context.memory, 2 * PIPE_BUFFER_BYTES);
        let mut head = Vec::new();
        origin::write_piped_head(&pipe.bereq, &mut head);
        let unread = self.exchange.wire().map_or_else(Vec::new, |wire| wire.ahead);
        let mut account = PipeAccount {
            client_head: self.request.task.life.account.request_head,
            backend_head: head.len() as u64,
            from_client: unread.len() as u64,
            to_client: 0,
        };
        // The kept body is sent before the bytes that were received after it. Compat: it is not
        // included in the byte counts.
        let kept = match std::mem::replace(&mut self.request.task.life.body, ClientBody::Taken) {
            ClientBody::Cached(body) => Some(body),
            ClientBody::None | ClientBody::Unread { .. } | ClientBody::Taken | ClientBody::Failed => None,
        };
        let ahead = match kept {
            None => {
                head.extend_from_slice(&unread);
                None
            }
            Some(body) => Some(Ahead { body, unread, written: 0 }),
        };
        let timeout = duration(self.request.task.settings.pipe_timeout);
        let limit = if timeout.is_zero() { UNLIMITED } else { timeout };
        let deadline = pipe.task_deadline.unwrap_or(self.request.task.settings.pipe_task_deadline);
        // VCL's 0 means at once, the parameter's 0 means never.
        let is_unlimited = pipe.task_deadline.is_none() && deadline <= 0.0;
        let end = Instant::now() + if is_unlimited { UNLIMITED } else { duration(deadline) };
        let due = end.min(Instant::now() + limit);
        let sending = async {
            origin.stream.write_all(&head).await?;
            origin.stream.flush().await
        };
        let is_sent = matches!(tokio::time::timeout_at(due, sending).await, Ok(Ok(())));
        self.request.task.life.is_answered = true;
        let now = self.timestamp("Pipe");
        pipe.log.timestamp("Bereq", now);
        self.log().flush();
        pipe.log.flush();
        if is_sent && let Some(wire) = self.exchange.wire() {
            let (backend, trial) = (Arc::clone(origin.backend()), origin.trial());
            let (context, ring) = (self.context, &self.context.engine.ring);
            let answered = || {
                if let Some(transition) = backend.note_answer(trial, context.clock.now()) {
                    log_transition(ring, &backend, transition);
                }
            };
            let (from_client, to_client) =
                copy_both_ways(wire.stream, &mut origin.stream, ahead, (limit, end), answered).await;
            account.from_client += from_client;
            account.to_client += to_client;
        }
        self.timestamp("PipeSess");
        let record = origin.close_record(false, Some("Piped transaction"));
        pipe.log.record_fmt(Tag::BackendClose, format_args!("{record}"));
        let backend = origin.backend();
        backend.count(Vbe::PipeHdrbytes, account.backend_head);
        backend.count(Vbe::PipeOut, account.from_client);
        backend.count(Vbe::PipeIn, account.to_client);
        self.request.task.life.pipe_account = Some(account);
        self.request.task.life.close = Some(CloseReason::TxPipe);
    }
}

/// A slot among the pipes of the process, freed when dropped.
struct PipePlace {
    context: std::rc::Rc<crate::context::Loop>,
}

impl Drop for PipePlace {
    fn drop(&mut self) {
        self.context.engine.pipes.fetch_sub(1, Relaxed);
        self.context.counters.sub(Main::NPipe, 1);
    }
}

/// Bytes that the origin is sent before anything newly received from the client.
struct Ahead {
    /// The body that was kept.
    body: HeldBody,
    /// The bytes that the client has already sent after it.
    unread: Vec<u8>,
    /// Number of bytes of both that have been sent.
    written: usize,
}

impl Ahead {
    /// The unsent part: of the body, or, once that has been sent, of the rest.
    fn rest(&self) -> &[u8] {
        let body = self.body.bytes();
        match self.written.checked_sub(body.len()) {
            None => &body[self.written..],
            Some(written) => &self.unread[written..],
        }
    }
}

/// One direction of a pipe.
struct Direction {
    ahead: Option<Ahead>,
    buffer: Box<[u8]>,
    filled: usize,
    written: usize,
    total: u64,
    state: DirectionState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DirectionState {
    Copying,
    /// The source has ended; the buffered bytes are still sent, then the target's sending side is
    /// closed.
    Ending,
    Ended,
    /// The source is broken: its peer can no longer receive bytes of the other direction.
    Lost,
}

/// Result of polling a direction: progress, or none.
enum Moved {
    Some,
    Nothing,
}

impl Direction {
    fn new(ahead: Option<Ahead>) -> Direction {
        Direction {
            ahead,
            buffer: vec![0; PIPE_BUFFER_BYTES].into_boxed_slice(),
            filled: 0,
            written: 0,
            total: 0,
            state: DirectionState::Copying,
        }
    }

    /// True if the source has ever sent anything.
    fn has_received(&self) -> bool {
        self.total > 0 || self.filled > 0
    }

    /// Nothing more can be moved in this direction, so it has ended; the other may still have data.
    fn broken(&mut self) -> Moved {
        self.ahead = None;
        self.filled = 0;
        self.written = 0;
        self.state = DirectionState::Ended;
        Moved::Some
    }

    /// Moves the bytes that can be moved now.
    fn poll<R, W>(&mut self, context: &mut Context<'_>, source: &mut R, target: &mut W) -> Moved
    where
        R: AsyncRead + Unpin + ?Sized,
        W: AsyncWrite + Unpin + ?Sized,
    {
        let mut has_moved = false;
        loop {
            if let Some(ahead) = &mut self.ahead {
                if ahead.rest().is_empty() {
                    self.ahead = None;
                    continue;
                }
                match Pin::new(&mut *target).poll_write(context, ahead.rest()) {
                    Poll::Ready(Ok(count)) if count > 0 => {
                        ahead.written += count;
                        has_moved = true;
                        continue;
                    }
                    Poll::Ready(_) => return self.broken(),
                    Poll::Pending => break,
                }
            }
            if self.written < self.filled {
                match Pin::new(&mut *target).poll_write(context, &self.buffer[self.written..self.filled]) {
                    Poll::Ready(Ok(count)) if count > 0 => {
                        self.written += count;
                        self.total += count as u64;
                        has_moved = true;
                        continue;
                    }
                    Poll::Ready(_) => return self.broken(),
                    Poll::Pending => break,
                }
            }
            match self.state {
                DirectionState::Ended | DirectionState::Lost => break,
                DirectionState::Ending => match Pin::new(&mut *target).poll_shutdown(context) {
                    Poll::Ready(_) => {
                        self.state = DirectionState::Ended;
                        has_moved = true;
                    }
                    Poll::Pending => break,
                },
                DirectionState::Copying => {
                    let mut read = ReadBuf::new(&mut self.buffer);
                    match Pin::new(&mut *source).poll_read(context, &mut read) {
                        Poll::Ready(Ok(())) => {
                            self.filled = read.filled().len();
                            self.written = 0;
                            if self.filled == 0 {
                                self.state = DirectionState::Ending;
                            }
                            has_moved = true;
                        }
                        Poll::Ready(Err(_)) => {
                            self.broken();
                            self.state = DirectionState::Lost;
                            return Moved::Some;
                        }
                        Poll::Pending => {
                            let _ = Pin::new(&mut *target).poll_flush(context);
                            break;
                        }
                    }
                }
            }
        }
        if has_moved { Moved::Some } else { Moved::Nothing }
    }
}

/// Copies both ways until both have ended, one of them breaks, nothing moves for `limit`, or `end`
/// is reached. `ahead` is sent to the origin first, and is not counted. Calls `answered` when the
/// origin has sent something. Returns the bytes from the client to the origin, and back.
async fn copy_both_ways<A, B>(
    client: &mut A,
    origin: &mut B,
    ahead: Option<Ahead>,
    (limit, end): (Duration, Instant),
    answered: impl FnOnce(),
) -> (u64, u64)
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    let (mut up, mut down) = (Direction::new(ahead), Direction::new(None));
    let mut deadline = crate::deadline::Deadline::new();
    deadline.set(end.min(Instant::now() + limit));
    let mut answered = Some(answered);
    poll_fn(|context| {
        let mut has_moved = false;
        for moved in [down.poll(context, origin, client), up.poll(context, client, origin)] {
            has_moved |= matches!(moved, Moved::Some);
        }
        if down.has_received()
            && let Some(answered) = answered.take()
        {
            answered();
        }
        let states = [up.state, down.state];
        if states == [DirectionState::Ended; 2] || states.contains(&DirectionState::Lost) {
            return Poll::Ready(());
        }
        if has_moved {
            deadline.set(end.min(Instant::now() + limit));
        }
        deadline.poll(context)
    })
    .await;
    (up.total, down.total)
}
