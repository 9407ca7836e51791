//! State shared by a connection and the requests on its streams: [`Lane`].
//!
//! All of it is used by one task, in which the connection and the requests take turns.

use super::frame_log::FrameLog;
use super::settings;
use crate::context::Loop;
use crate::session::SessionView;
use ::http2::frame::ErrorCode;
use ::http2::{Abuse, Machine, Observer, Resets};
use shm::log::LogId;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::reason::{self, Reason};
use surface::tag::Tag;
use tokio::time::Instant;

/// State shared by a connection and its streams.
pub(super) struct Lane {
    pub(super) context: Rc<Loop>,
    pub(super) machine: RefCell<Machine>,
    /// The client accepts no bytes on the connection, whatever its windows are.
    pub(super) is_blocked: Cell<bool>,
    /// `h2_window_timeout`, in seconds.
    pub(super) window_seconds: f64,
    pub(super) began_at: Instant,
    /// The time of this turn, since the connection began.
    pub(super) now: Cell<Duration>,
    /// Number of times that everything was flushed.
    pub(super) flushes: Cell<u64>,
    /// Streams that wait until their response is flushed.
    pub(super) unflushed: Cell<usize>,
    /// Streams that wait for something.
    waiters: RefCell<Vec<(u32, Waker)>>,
    log_id: LogId,
    /// The end of the connection has been logged and counted.
    is_said: Cell<bool>,
    /// Number of bytes of the output that the log has.
    logged_bytes: Cell<usize>,
}

impl Lane {
    /// A new connection. Later changes of parameters have no effect on it.
    pub(super) fn new(context: &Rc<Loop>, session: &mut SessionView, is_lenient: bool) -> Lane {
        let parameters = context.engine.parameters.load();
        let resets = Rc::new(Resets::new((&**parameters).into()));
        session.http2 = Some(Rc::clone(&resets));
        Lane {
            context: Rc::clone(context),
            machine: RefCell::new(Machine::new(
                settings::of(&parameters, is_lenient),
                resets,
                Rc::clone(&context.http2_heads),
            )),
            is_blocked: Cell::new(false),
            window_seconds: parameters.h2_window_timeout,
            began_at: Instant::now(),
            now: Cell::new(Duration::ZERO),
            flushes: Cell::new(0),
            unflushed: Cell::new(0),
            waiters: RefCell::default(),
            log_id: LogId::client(session.vxid),
            is_said: Cell::new(false),
            logged_bytes: Cell::new(0),
        }
    }

    /// Reads the clock for a turn.
    pub(super) fn begin_turn(&self) {
        self.now.set(Instant::now().saturating_duration_since(self.began_at));
    }

    /// Registers the task of a stream that has to wait.
    pub(super) fn wait(&self, stream: u32, context: &Context<'_>) {
        let mut waiters = self.waiters.borrow_mut();
        match waiters.iter_mut().find(|(waiter, _)| *waiter == stream) {
            Some((_, waker)) if waker.will_wake(context.waker()) => {}
            Some((_, waker)) => waker.clone_from(context.waker()),
            None => waiters.push((stream, context.waker().clone())),
        }
    }

    /// Wakes the streams for which something has happened. Returns true if there were any.
    pub(super) fn wake_streams(&self) -> bool {
        let mut is_any = false;
        loop {
            let Some(stream) = self.machine.borrow_mut().take_woken() else { return is_any };
            let mut waiters = self.waiters.borrow_mut();
            if let Some(place) = waiters.iter().position(|(waiter, _)| *waiter == stream) {
                waiters.swap_remove(place).1.wake();
                is_any = true;
            }
        }
    }

    /// Wakes the streams that wait until their response is flushed, with the others.
    pub(super) fn note_flushed(&self) {
        self.flushes.set(self.flushes.get() + 1);
        if self.unflushed.get() > 0 {
            let waiters = std::mem::take(&mut *self.waiters.borrow_mut());
            waiters.into_iter().for_each(|(_, waker)| waker.wake());
        }
    }

    /// The work on a stream is over.
    pub(super) fn forget(&self, stream: u32) {
        self.machine.borrow_mut().forget(stream, self.now.get());
        self.waiters.borrow_mut().retain(|(waiter, _)| *waiter != stream);
    }

    /// Passes bytes of the client to the machine.
    pub(super) fn receive(&self, bytes: &[u8]) {
        let mut log = FrameLog::open(&self.context.engine.ring, self.log_id);
        let observer = log.as_mut().map(|log| log as &mut dyn Observer);
        let mut machine = self.machine.borrow_mut();
        machine.receive(bytes, self.now.get(), observer);
        let refused = machine.take_refused();
        if refused > 0 {
            self.context.counters.add(Main::ReqDropped, refused);
        }
        for stream in machine.take_too_large() {
            self.too_large(stream);
        }
    }

    /// Logs the frames of the output that were not logged yet; called before they are written.
    pub(super) fn log_output(&self) {
        let machine = self.machine.borrow();
        let frames = machine.frames();
        let logged = self.logged_bytes.get();
        if logged < frames.len()
            && let Some(mut log) = FrameLog::open(&self.context.engine.ring, self.log_id)
        {
            log.sent(&frames[logged..]);
        }
        self.logged_bytes.set(frames.len());
    }

    /// Notes that output may have been sent, all of which was logged.
    pub(super) fn note_sent(&self) {
        self.logged_bytes.set(self.machine.borrow().frames().len());
    }

    /// Handles a head that was refused before a request was made of it. The session logs that,
    /// since there is no request to log it.
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

    /// The reason why the machine has ended the connection. The first call that returns it logs and
    /// counts it.
    pub(super) fn verdict(&self) -> Option<CloseReason> {
        let verdict = self.machine.borrow().verdict()?;
        if !self.is_said.replace(true) {
            self.log(Tag::SessError, format_args!("HTTP/2: {}", verdict.words));
            if let Some(abuse) = verdict.abuse {
                self.context.count(match abuse {
                    Abuse::Resets => Main::H2AbuseResets,
                    Abuse::HeaderBlock => Main::H2AbuseHeaders,
                    Abuse::EmptyFrames => Main::H2AbuseFrames,
                });
            }
        }
        Some(match verdict.abuse {
            None => close_reason(verdict.code),
            Some(Abuse::Resets) => CloseReason::RapidReset,
            Some(_) => CloseReason::Overload,
        })
    }

    fn log(&self, tag: Tag, arguments: std::fmt::Arguments<'_>) {
        self.context.engine.ring.write_fmt(tag, self.log_id, arguments);
    }
}

/// The close reason of a session that ended with this code. Compat: the names of Varnish 7.1.
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
