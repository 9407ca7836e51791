//! The guard between a socket and the library of HTTP/2: [`Watched`] passes the bytes of both directions through and shows them
//! to a machine ([`http2::Watch`]), which logs, counts, and says when it is enough. What it lets pass to the library is mended
//! ([`Mended`]).
//!
//! Whoever serves the connection looks at [`Watch::verdict`] each time that it has polled the library. Once there is a verdict
//! nothing more is passed on, and what is sent still goes out, so that a GOAWAY can. What to do without the client's help (a preface
//! that does not come, a GOAWAY that is not taken) is a matter of timeouts, and of whoever serves.
//!
//! Next file: `watch/frame_log.rs`.

mod frame_log;

use super::mended::Mended;
use super::settings;
use crate::context::Loop;
use frame_log::FrameLog;
use http2::frame::ErrorCode;
use http2::{Abuse, Heard, Observer, Outgoing, PriorityUpdate, Resets, Traffic, WatchLimits, Windows};
use shm::log::LogId;
use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::limits::H2_HEADER_BLOCK_PART;
use surface::parameter::Parameters;
use surface::reason::{self, Reason};
use surface::tag::Tag;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// How a connection has to end. It has been logged and counted when it is first seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Verdict {
    /// For the GOAWAY.
    pub(super) code: ErrorCode,
    /// For the session.
    pub(super) close: CloseReason,
    /// For the log.
    pub(super) words: &'static str,
}

/// What the wrapper and the task of a connection share.
pub(super) struct Watch {
    machine: RefCell<http2::Watch>,
    resets: Rc<Resets>,
    began_at: Instant,
    context: Rc<Loop>,
    log_id: LogId,
    is_said: Cell<bool>,
}

impl Watch {
    /// The guard of a connection that begins. `session` is the session's transaction id, `is_lenient` says that clients are
    /// forgiven what Varnish forgives them; later changes of parameters do not matter to it.
    pub(super) fn new(context: &Rc<Loop>, session: u32, parameters: &Parameters, is_lenient: bool) -> Rc<Watch> {
        let resets = Rc::new(Resets::new(parameters.into()));
        let limits = WatchLimits {
            frame_bytes_max: u32::try_from(parameters.h2_max_frame_size).unwrap_or(u32::MAX),
            block_bytes_max: usize::try_from(parameters.http_req_size)
                .unwrap_or(usize::MAX)
                .saturating_mul(H2_HEADER_BLOCK_PART),
            list_bytes_max: usize::try_from(settings::header_list(parameters).1).unwrap_or(usize::MAX),
            is_lenient,
        };
        Rc::new(Watch {
            machine: RefCell::new(http2::Watch::new(limits, Rc::clone(&resets))),
            resets,
            began_at: Instant::now(),
            context: Rc::clone(context),
            log_id: LogId::client(session),
            is_said: Cell::new(false),
        })
    }

    /// The budget of resets, for VCL.
    pub(super) fn resets(&self) -> &Rc<Resets> {
        &self.resets
    }

    /// Set if the connection has to end. The first call that returns it logs and counts it.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        let verdict = self.machine.borrow().verdict()?;
        let close = match verdict.abuse {
            None => close_reason(verdict.code),
            Some(_) => CloseReason::Overload,
        };
        self.say(verdict.abuse, verdict.words);
        Some(Verdict { code: verdict.code, close, words: verdict.words })
    }

    /// The library has ended the connection by itself: counts that if it was for a limit of its own. Returns the reason for the
    /// session.
    pub(super) fn library_ended(&self, code: ErrorCode) -> CloseReason {
        let told = self.machine.borrow().told();
        self.say(told, code.name());
        close_reason(code)
    }

    /// Logs and counts why the connection ends, once.
    fn say(&self, abuse: Option<Abuse>, words: &str) {
        if self.is_said.replace(true) {
            return;
        }
        self.log(Tag::SessError, format_args!("HTTP/2: {words}"));
        if let Some(abuse) = abuse {
            self.context.count(match abuse {
                Abuse::Resets => Main::H2AbuseResets,
                Abuse::HeaderBlock => Main::H2AbuseHeaders,
                Abuse::EmptyFrames => Main::H2AbuseFrames,
            });
        }
    }

    /// Since when the preface, a frame or a header block is incomplete: nothing else can come before its rest does.
    pub(super) fn incomplete_since(&self) -> Option<Instant> {
        self.machine.borrow().incomplete_since().map(|since| self.began_at + since)
    }

    /// Takes the wishes of PRIORITY_UPDATE frames that came since the last call, oldest first (RFC 9218 §7.1).
    pub(super) fn take_priorities(&self) -> Vec<PriorityUpdate> {
        self.machine.borrow_mut().take_priorities()
    }

    /// What was received and sent besides requests and responses: the session's ReqAcct.
    pub(super) fn traffic(&self) -> (Traffic, Traffic) {
        self.machine.borrow().traffic()
    }

    fn log(&self, tag: Tag, arguments: std::fmt::Arguments<'_>) {
        self.context.engine.ring.write_fmt(tag, self.log_id, arguments);
    }

    fn since_start(&self) -> Duration {
        Instant::now().saturating_duration_since(self.began_at)
    }

    /// Shows bytes from the client to the machine; how many of them may be passed on.
    fn receive(&self, bytes: &[u8]) -> usize {
        let mut log = FrameLog::open(&self.context.engine.ring, self.log_id);
        let observer = log.as_mut().map(|log| log as &mut dyn Observer);
        self.machine.borrow_mut().receive(bytes, self.since_start(), observer)
    }

    /// Shows bytes that were sent.
    pub(super) fn send(&self, bytes: &[u8]) {
        let mut log = FrameLog::open(&self.context.engine.ring, self.log_id);
        let observer = log.as_mut().map(|log| log as &mut dyn Observer);
        let mut machine = self.machine.borrow_mut();
        machine.send(bytes, self.since_start(), observer);
        let refused = machine.take_refused();
        if refused > 0 {
            self.context.counters.add(Main::ReqDropped, refused);
        }
        for stream in machine.take_answered() {
            self.too_large(stream);
        }
    }

    /// The library has refused a head before anybody saw it. The session logs that, since there is no request to log it.
    #[cold]
    fn too_large(&self, stream: u32) {
        self.context.count(Main::H2Streams);
        self.context.count(Main::ClientReq400);
        let parameters = self.context.engine.parameters.load();
        let (name, max) = settings::header_list(&parameters);
        self.log(Tag::Error, format_args!("HTTP/2: the head of stream {stream} is too large, answered with 431"));
        if parameters.tells_reasons() {
            let word = Reason::RequestTooLarge.row().word;
            self.log(reason::TAG, format_args!("{}{word} limit={name} max={max}", reason::RECORD));
        }
    }

    /// The request on that stream has arrived.
    pub(super) fn take(&self, stream: u32) {
        self.machine.borrow_mut().take(stream);
    }

    /// The work on that stream is over.
    pub(super) fn forget(&self, stream: u32) {
        self.machine.borrow_mut().forget(stream);
    }

    /// What the library may hold of heads and trailers that nobody has taken, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.machine.borrow().held_bytes()
    }

    /// The client's window has cut so small a piece off a body that it is no progress.
    pub(super) fn dribbled(&self) {
        self.machine.borrow_mut().dribbled(self.since_start());
    }
}

/// Compat: how Varnish 7.1 names the end of a session that ended with this code.
pub(super) fn close_reason(code: ErrorCode) -> CloseReason {
    match code {
        ErrorCode::NoError => CloseReason::RemClose,
        ErrorCode::InternalError | ErrorCode::ConnectError => CloseReason::VclFailure,
        ErrorCode::FlowControlError | ErrorCode::EnhanceYourCalm => CloseReason::Overload,
        ErrorCode::SettingsTimeout => CloseReason::RxTimeout,
        ErrorCode::Http11Required => CloseReason::ReqHttp20,
        ErrorCode::ProtocolError
        | ErrorCode::FrameSizeError
        | ErrorCode::CompressionError
        | ErrorCode::InadequateSecurity
        | ErrorCode::StreamClosed
        | ErrorCode::RefusedStream
        | ErrorCode::Cancel => CloseReason::RxJunk,
    }
}

/// A connection under guard.
pub(super) struct Watched<S> {
    stream: S,
    watch: Rc<Watch>,
    mended: Mended,
    windows: Option<Rc<RefCell<Windows>>>,
}

impl<S> Watched<S> {
    /// Puts a stream, from before the preface on, under guard; what passes is mended, and what opens windows exchanged.
    pub(super) fn new(
        stream: S,
        watch: Rc<Watch>,
        mended: Mended,
        windows: Option<Rc<RefCell<Windows>>>,
    ) -> Watched<S> {
        Watched { stream, watch, mended, windows }
    }

    /// What a GOAWAY says of what has come. Where the guard has a verdict, what it says is why.
    fn heard(&self) -> Heard {
        let heard = self.mended.heard();
        let is_library_speaking = self.watch.machine.borrow().verdict().is_none();
        Heard { is_undecodable: heard.is_undecodable && is_library_speaking, ..heard }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Watched { stream, watch, mended, .. } = self.get_mut();
        mended.poll_read(context, buffer, |context, buffer| {
            let before = buffer.filled().len();
            std::task::ready!(Pin::new(&mut *stream).poll_read(context, buffer))?;
            let read = buffer.filled().len() - before;
            if read == 0 {
                return Poll::Ready(Ok(()));
            }
            let passed = watch.receive(&buffer.filled()[before..]);
            if passed == read {
                return Poll::Ready(Ok(()));
            }
            buffer.set_filled(before + passed);
            // To the library an empty read would be the end of the connection. It need not be woken: whoever serves sees the verdict
            // when it has been polled.
            if passed == 0 { Poll::Pending } else { Poll::Ready(Ok(())) }
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outgoing = match &self.windows {
            None => Outgoing::Pass(bytes.len()),
            Some(windows) => {
                let mut windows = windows.borrow_mut();
                windows.hear(self.heard());
                windows.outgoing(bytes)
            }
        };
        let (bytes, instead_of) = match &outgoing {
            Outgoing::Pass(count) => (&bytes[..*count], None),
            Outgoing::Instead { of, bytes } => (&bytes[..], Some(*of)),
            Outgoing::HeldBack(count) => return Poll::Ready(Ok(*count)),
        };
        let written = match Pin::new(&mut self.stream).poll_write(context, bytes)? {
            Poll::Ready(written) if instead_of.is_none() || written == bytes.len() => written,
            // SETTINGS come first, GOAWAY last; both are collected.
            Poll::Ready(_) | Poll::Pending if instead_of.is_some() => {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            Poll::Ready(_) | Poll::Pending => return Poll::Pending,
        };
        self.watch.send(&bytes[..written]);
        if let Some(windows) = &self.windows {
            windows.borrow_mut().sent(&bytes[..written]);
        }
        Poll::Ready(Ok(instead_of.unwrap_or(written)))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.windows.is_some() {
            let first = pieces.iter().find(|piece| !piece.is_empty());
            return self.poll_write(context, first.map_or(b"", |piece| piece));
        }
        let written = std::task::ready!(Pin::new(&mut self.stream).poll_write_vectored(context, pieces))?;
        let mut left = written;
        for piece in pieces {
            let here = piece.len().min(left);
            self.watch.send(&piece[..here]);
            left -= here;
        }
        Poll::Ready(Ok(written))
    }

    /// Where windows are exchanged, the library writes piece by piece; the socket joins what is small.
    fn is_write_vectored(&self) -> bool {
        self.windows.is_none() && self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
