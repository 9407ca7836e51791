//! The terminal of a full-screen tool: taken over, drawn on, listened to, and always given back.
//!
//! What is drawn is a function from a model to cells (`screen/canvas.rs`), so the tools are tested without a terminal.
//! Keys are decoded here (`screen/keys.rs`) rather than by crossterm, whose reader spins for ever on a terminal that has
//! hung up; modes, sizes and escape codes are crossterm's.
//!
//! *Invariant:* the terminal gets its modes back however the tool ends: by a key, by INT, TERM or HUP, or by a panic.

mod canvas;
mod help;
mod keys;

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, raise};
use ratatui_core::backend::Backend;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::cursor::{Hide, Show};
use ratatui_crossterm::crossterm::terminal::{self, EnterAlternateScreen, LeaveAlternateScreen};
use ratatui_crossterm::crossterm::{ExecutableCommand, execute};

#[cfg(test)]
pub(crate) use canvas::tests::drawn;
pub(crate) use canvas::{BOLD, Canvas, PLAIN, REVERSED};
pub(crate) use help::{Help, KeyRow, help_lines, key_row};
use keys::Decoder;
pub(crate) use keys::Key;

use crate::signals::Signals;

/// How long one wait for keys lasts at most, so that signals are heeded.
const SLICE: Duration = Duration::from_millis(50);
/// Columns and lines of a terminal that doesn't know its size.
const UNKNOWN_SIZE: (u16, u16) = (80, 24);
/// Most keys that wait to be handled; what is typed or pasted beyond is dropped.
const KEYS_MAX: usize = 1024;

/// What happened while the tool waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Happening {
    /// A key was pressed.
    Key(Key),
    /// The window has another size.
    Resized,
    /// A signal says that the tool shall end, or the terminal has gone.
    Stop,
    /// The time is over.
    Nothing,
}

/// True when standard output is a terminal.
pub(crate) fn is_possible() -> bool {
    io::stdout().is_terminal()
}

/// A terminal that has been taken over.
pub(crate) struct Screen {
    backend: CrosstermBackend<BufWriter<Stdout>>,
    /// What stands on the terminal.
    shown: Buffer,
    keyboard: Option<File>,
    decoder: Decoder,
    signals: Arc<Signals>,
}

impl Screen {
    /// Takes over the terminal on standard output. Without a keyboard only signals end the tool.
    ///
    /// # Errors
    /// What the terminal reports.
    pub fn enter(signals: &Arc<Signals>) -> io::Result<Screen> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                before(panic);
            }));
        });
        let keyboard = keyboard();
        take_over(keyboard.is_some())?;
        let backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 14, io::stdout()));
        let shown = Buffer::empty(Rect::ZERO);
        Ok(Screen { backend, shown, keyboard, decoder: Decoder::default(), signals: Arc::clone(signals) })
    }

    /// Draws a whole screen; only what differs from the last one is sent.
    ///
    /// # Errors
    /// What the terminal reports.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Canvas)) -> io::Result<()> {
        let size = size();
        // Ratatui's own terminal asks for the cursor's place when it is cleared, and waits for an answer that not every
        // terminal gives.
        if self.shown.area != size {
            self.backend.clear()?;
            self.shown = Buffer::empty(size);
        }
        let mut next = Buffer::empty(size);
        draw(&mut Canvas::new(&mut next));
        self.backend.draw(self.shown.diff(&next).into_iter())?;
        self.shown = next;
        io::Write::flush(&mut self.backend)
    }

    /// Lines of the window.
    pub fn height(&self) -> usize {
        usize::from(size().height)
    }

    /// Makes the next [`Screen::draw`] send everything.
    pub fn forget(&mut self) {
        self.shown = Buffer::empty(Rect::ZERO);
    }

    /// Rings the bell: the key means nothing here.
    ///
    /// # Errors
    /// What the terminal reports.
    pub fn ring(&mut self) -> io::Result<()> {
        let mut output = io::stdout();
        output.write_all(b"\x07")?;
        output.flush()
    }

    /// Waits for a key or anything else, for at most `limit`.
    pub fn wait(&mut self, limit: Duration) -> Happening {
        let deadline = Instant::now() + limit;
        loop {
            if self.signals.stop() || self.signals.take_rotate() {
                return Happening::Stop;
            }
            if self.signals.take_resized() {
                return Happening::Resized;
            }
            if let Some(key) = self.decoder.next() {
                return Happening::Key(key);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.listen(left.min(SLICE)) {
                Ok(true) => {}
                Ok(false) => self.decoder.pause(),
                Err(()) => return Happening::Stop,
            }
            if left.is_zero() && !self.decoder.has_keys() {
                return Happening::Nothing;
            }
        }
    }

    /// Reads what was typed; false when nothing was. The error means that the terminal has gone.
    fn listen(&mut self, limit: Duration) -> Result<bool, ()> {
        let Some(keyboard) = &self.keyboard else {
            std::thread::sleep(limit);
            return Ok(false);
        };
        let timeout = PollTimeout::try_from(limit).unwrap_or(PollTimeout::ZERO);
        let mut waiting = [PollFd::new(keyboard.as_fd(), PollFlags::POLLIN)];
        match poll(&mut waiting, timeout) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => return Ok(false),
            Ok(_) => {}
            Err(_) => return Err(()),
        }
        let events = waiting[0].revents().unwrap_or(PollFlags::empty());
        if !events.contains(PollFlags::POLLIN) {
            return Err(());
        }
        let mut bytes = [0; 256];
        match nix::unistd::read(keyboard, &mut bytes) {
            Ok(0) => Err(()),
            Ok(count) => {
                self.decoder.push(&bytes[..count], KEYS_MAX);
                Ok(true)
            }
            Err(nix::errno::Errno::EINTR | nix::errno::Errno::EAGAIN) => Ok(false),
            Err(_) => Err(()),
        }
    }

    /// Gives the terminal back, stops this process as Ctrl-Z does, and takes it over again when it goes on.
    ///
    /// # Errors
    /// What the terminal reports.
    pub fn suspend(&mut self) -> io::Result<()> {
        restore();
        let _ = raise(Signal::SIGTSTP);
        take_over(self.keyboard.is_some())?;
        self.forget();
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Where keys come from: standard input, or the terminal of the session when that is something else.
fn keyboard() -> Option<File> {
    let input = io::stdin();
    if input.is_terminal() {
        return input.as_fd().try_clone_to_owned().ok().map(File::from);
    }
    OpenOptions::new().read(true).open("/dev/tty").ok()
}

/// The window's size, from its upper left corner.
fn size() -> Rect {
    let (columns, lines) = match terminal::size() {
        Ok((columns, lines)) if columns > 0 && lines > 0 => (columns, lines),
        _ => UNKNOWN_SIZE,
    };
    Rect::new(0, 0, columns, lines)
}

fn take_over(has_keyboard: bool) -> io::Result<()> {
    if has_keyboard {
        // A keyboard that can't be switched still gives lines.
        let _ = terminal::enable_raw_mode();
    }
    execute!(io::stdout(), EnterAlternateScreen, Hide).inspect_err(|_| restore())
}

/// Gives the terminal back, as far as it is still there; does nothing to one that was never taken.
fn restore() {
    let mut output = io::stdout();
    let _ = output.execute(Show);
    let _ = output.execute(LeaveAlternateScreen);
    restore_modes();
}

/// The part of giving back that never waits for the terminal to take output.
pub(crate) fn restore_modes() {
    let _ = terminal::disable_raw_mode();
}
