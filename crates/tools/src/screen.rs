//! The terminal of a full-screen tool: taken over, drawn on, read from, and always restored.
//!
//! Drawing is a function from a model to cells (`screen/canvas.rs`), so the tools are tested
//! without a terminal. Keys are decoded here (`screen/keys.rs`) rather than by crossterm, whose
//! reader spins forever on a terminal that has hung up; crossterm handles modes, sizes and escape
//! codes.
//!
//! *Invariant:* the terminal's modes are restored however the tool ends: by a key, by INT, TERM or
//! HUP, or by a panic.

mod canvas;
mod help;
mod keys;

use std::ffi::OsStr;
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
use crate::terminal_modes;

/// Longest single wait for keys, so that signals are handled soon.
const SLICE: Duration = Duration::from_millis(50);
/// Columns and lines assumed for a terminal that doesn't report its size.
const UNKNOWN_SIZE: (u16, u16) = (80, 24);
/// Most keys that wait to be handled; further ones are dropped.
const KEYS_MAX: usize = 1024;

/// Events that end a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScreenEvent {
    /// A key was pressed.
    Key(Key),
    /// The size of the window has changed.
    Resized,
    /// A signal requested the end, or the terminal has gone.
    Stop,
    /// The time is over.
    Nothing,
}

/// Standard output as a place for a screen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Possible {
    /// A terminal that can place text anywhere.
    Screen,
    /// A terminal that only prints lines: `TERM=dumb`.
    Dumb,
    /// A file or a pipe.
    NoTerminal,
}

/// Returns the kind of standard output.
pub(crate) fn possible() -> Possible {
    match (io::stdout().is_terminal(), is_dumb(std::env::var_os("TERM").as_deref())) {
        (false, _) => Possible::NoTerminal,
        (true, true) => Possible::Dumb,
        (true, false) => Possible::Screen,
    }
}

/// True if standard output is a terminal that can place text anywhere.
pub(crate) fn is_possible() -> bool {
    possible() == Possible::Screen
}

/// True if standard output is a terminal with colors, and the user has not declined them
/// (`NO_COLOR`, no-color.org).
pub(crate) fn has_colors() -> bool {
    is_possible() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// True for a terminal type that has no commands. An unset type is not: containers often have none.
fn is_dumb(kind: Option<&OsStr>) -> bool {
    kind.is_some_and(|kind| kind == "dumb")
}

/// A terminal that has been taken over.
pub(crate) struct Screen {
    backend: CrosstermBackend<BufWriter<Stdout>>,
    /// The present content of the terminal.
    shown: Buffer,
    keyboard: Option<File>,
    decoder: Decoder,
    signals: Arc<Signals>,
}

impl Screen {
    /// Takes over the terminal on standard output. Without a keyboard only signals end the tool.
    ///
    /// # Errors
    /// The terminal's error.
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

    /// Draws a whole screen; only the differences to the last one are sent.
    ///
    /// # Errors
    /// The terminal's error.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Canvas)) -> io::Result<()> {
        let size = size();
        // When cleared, Ratatui's own terminal requests the cursor's position, and waits for an
        // answer that not every terminal gives.
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

    /// Rings the bell: the key has no meaning here.
    ///
    /// # Errors
    /// The terminal's error.
    pub fn ring(&mut self) -> io::Result<()> {
        let mut output = io::stdout();
        output.write_all(b"\x07")?;
        output.flush()
    }

    /// Waits for a key or anything else, for at most `limit`.
    pub fn wait(&mut self, limit: Duration) -> ScreenEvent {
        let deadline = Instant::now() + limit;
        loop {
            if self.signals.stop() || self.signals.take_rotate() {
                return ScreenEvent::Stop;
            }
            if self.signals.take_resized() {
                return ScreenEvent::Resized;
            }
            if let Some(key) = self.decoder.next() {
                return ScreenEvent::Key(key);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.listen(left.min(SLICE)) {
                Ok(true) => {}
                Ok(false) => self.decoder.pause(),
                Err(()) => return ScreenEvent::Stop,
            }
            if left.is_zero() && !self.decoder.has_keys() {
                return ScreenEvent::Nothing;
            }
        }
    }

    /// Reads typed bytes; false if there were none. The error means that the terminal has gone.
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

    /// Restores the terminal, stops this process like Ctrl-Z, and takes the terminal over again
    /// when the process continues.
    ///
    /// # Errors
    /// The terminal's error.
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

/// The source of keys: standard input, or the session's terminal if standard input is something
/// else.
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
        // If the keyboard can't be switched to raw mode it still delivers lines.
        let _ = terminal::enable_raw_mode();
    }
    execute!(io::stdout(), EnterAlternateScreen, Hide).inspect_err(|_| restore())
}

/// Restores the terminal if it still exists; does nothing to one that was never taken over.
fn restore() {
    let mut output = io::stdout();
    let _ = output.execute(Show);
    let _ = output.execute(LeaveAlternateScreen);
    terminal_modes::restore();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_type_dumb_has_no_commands() {
        assert!(is_dumb(Some(OsStr::new("dumb"))));
        assert!(![None, Some("xterm"), Some("")].into_iter().any(|kind| is_dumb(kind.map(OsStr::new))));
    }
}
