//! A full-screen log tool: reads while there is something to read, and checks clock and keyboard in
//! between.
//!
//! It displays a [`View`]; following the log is the task of `follow.rs`, the terminal that of
//! `screen.rs`. When the log has ended, the last screen stays until the user quits.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use shm::read::transaction::Transaction;

use crate::follow::{IDLE, LogState, Sink};
use crate::screen::{Canvas, Key, Screen, ScreenEvent};
use crate::signals::Signals;

/// While there is more to read, this many groups are read between checks of clock and keyboard.
const TURNS_BETWEEN_LOOKS: u32 = 64;

/// A view's response to a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Response {
    /// The display has changed.
    Changed,
    /// The key has no meaning here.
    Unknown,
    /// Everything has to be redrawn.
    Redraw,
    /// The user wants to return to the shell for a while.
    Suspend,
    /// The user wants to quit.
    Quit,
}

/// Facts about the log for a view.
#[derive(Default)]
pub(crate) struct LogFacts {
    /// The server's identity; empty for a file.
    pub identity: String,
    /// A recent event concerning the log.
    pub notice: String,
    /// No more will come.
    pub ended: bool,
}

/// Content of a full-screen log tool.
pub(crate) trait View {
    /// Takes in a group. Nothing more is read for the returned time: a view may simulate time.
    fn take(&mut self, group: &[Transaction]) -> Option<Duration>;
    /// Draws.
    fn draw(&mut self, log: &LogFacts, canvas: &mut Canvas);
    /// Handles a key press, in a window of `lines` lines.
    fn press(&mut self, key: Key, lines: usize) -> Response;
    /// Interval between drawings.
    fn interval(&self) -> Duration;
    /// Called when time has passed since the last drawing by the clock, while the log continued.
    fn pass(&mut self, _time: Duration) {}
}

/// A view on a screen.
pub(crate) struct Live<V> {
    view: V,
    screen: Option<Screen>,
    log: LogFacts,
    drawn_at: Instant,
    turns: u32,
    has_quit: bool,
}

impl<V: View> Live<V> {
    /// Shows `view`, once the log has been found.
    pub fn new(view: V) -> Live<V> {
        Live { view, screen: None, log: LogFacts::default(), drawn_at: Instant::now(), turns: 0, has_quit: false }
    }

    fn draw(&mut self) -> io::Result<()> {
        let Some(screen) = &mut self.screen else { return Ok(()) };
        screen.draw(|canvas| self.view.draw(&self.log, canvas))
    }

    /// Waits for keys for at most `limit`, and draws when due.
    fn attend(&mut self, limit: Duration) -> io::Result<()> {
        let limit = limit.min(self.view.interval().saturating_sub(self.drawn_at.elapsed()));
        let Some(screen) = &mut self.screen else { return Ok(()) };
        match screen.wait(limit) {
            ScreenEvent::Key(key) => {
                match self.view.press(key, screen.height()) {
                    Response::Changed => {}
                    Response::Unknown => return screen.ring(),
                    Response::Redraw => screen.forget(),
                    Response::Suspend => screen.suspend()?,
                    Response::Quit => self.has_quit = true,
                }
                self.draw()?;
            }
            ScreenEvent::Resized => self.draw()?,
            ScreenEvent::Stop => self.has_quit = true,
            ScreenEvent::Nothing => {}
        }
        let passed = self.drawn_at.elapsed();
        if passed >= self.view.interval() {
            if !self.log.ended {
                self.view.pass(passed);
            }
            self.drawn_at = Instant::now();
            self.draw()?;
        }
        Ok(())
    }
}

impl<V: View> Sink for Live<V> {
    fn group(&mut self, group: &[Transaction], _output: &mut dyn Write) -> io::Result<()> {
        let Some(delay) = self.view.take(group) else { return Ok(()) };
        let started = Instant::now();
        while !self.has_quit && started.elapsed() < delay {
            self.attend(delay.saturating_sub(started.elapsed()))?;
        }
        Ok(())
    }

    fn begin(&mut self, identity: &str, signals: &Arc<Signals>) -> io::Result<()> {
        self.log.identity = identity.to_owned();
        self.screen = Some(Screen::enter(signals)?);
        self.draw()
    }

    fn turn(&mut self, state: LogState) -> io::Result<bool> {
        if state == LogState::Reading && self.turns > 0 {
            self.turns -= 1;
            return Ok(!self.has_quit);
        }
        self.turns = TURNS_BETWEEN_LOOKS;
        match state {
            LogState::Reading => self.attend(Duration::ZERO)?,
            LogState::Waiting => self.attend(IDLE)?,
            LogState::Ended => {
                self.log.ended = true;
                self.draw()?;
                while !self.has_quit {
                    self.attend(Duration::MAX)?;
                }
            }
        }
        Ok(!self.has_quit)
    }

    fn notice(&mut self, text: &str, _error: &mut dyn Write) {
        text.clone_into(&mut self.log.notice);
    }

    fn end(&mut self) {
        self.screen = None;
    }

    fn starts_without_server(&self) -> bool {
        true
    }
}
