//! The screen of a terminal.
//!
//! *Invariant:* a cell is one printable ASCII character; any other is shown as `?`, as scripts
//! expect.

use std::num::NonZeroU16;

use vt100::{Callbacks, Parser};

use crate::journal::Journal;

/// Lines and columns of a terminal that has not been resized.
pub(super) const SIZE: (u16, u16) = (24, 80);
/// Columns from one tab stop to the next.
const TAB_COLUMNS: u16 = 8;

/// A terminal's screen.
pub(super) struct Screen {
    parser: Parser<Answers>,
}

/// Answers to the program's queries to the terminal, and sequences that the library does not
/// handle.
#[derive(Default)]
struct Answers {
    bytes: Vec<u8>,
    columns: Option<u16>,
    /// Tab stops to go back.
    tabs_back: u16,
    /// True for a FreeBSD console: a form feed clears it, a backspace continues on the line above.
    is_cons25: bool,
}

impl Callbacks for Answers {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        _second: Option<u8>,
        parameters: &[&[u16]],
        letter: char,
    ) {
        let number = parameters.first().and_then(|group| group.first()).copied().unwrap_or(0);
        match (first, letter, number) {
            // Device status: everything is all right.
            (None, 'n', 5) => self.bytes.extend_from_slice(b"\x1b[0n"),
            // Query of the cursor position.
            (None, 'n', 6) => {
                let (line, column) = screen.cursor_position();
                self.bytes.extend(format!("\x1b[{};{}R", line + 1, column + 1).bytes());
            }
            // Query of the type: a VT220 with colours.
            (None, 'c', 0) => self.bytes.extend_from_slice(b"\x1b[?1;2c"),
            (Some(b'>'), 'c', 0) => self.bytes.extend_from_slice(b"\x1b[>0;10;0c"),
            // Switches to 132 columns, and back to 80.
            (Some(b'?'), 'h', 3) => self.columns = Some(132),
            (Some(b'?'), 'l', 3) => self.columns = Some(80),
            (Some(b'='), 'T', mode @ 0..=1) => self.is_cons25 = mode == 1,
            (None, 'Z', count) => self.tabs_back = count.max(1),
            _ => {}
        }
    }
}

impl Default for Screen {
    fn default() -> Self {
        Screen::new(SIZE)
    }
}

impl Screen {
    /// An empty screen of this size.
    pub fn new((lines, columns): (u16, u16)) -> Screen {
        let mut parser = Parser::new_with_callbacks(at_least_one(lines), at_least_one(columns), 0, Answers::default());
        // Compat: the stock 7.1.1 runner leaves the cursor there, and a script that never moves it
        // relies on that.
        parser.process(b"\x1b[1;9H");
        Screen { parser }
    }

    /// Displays the program's output; returns the terminal's answers.
    pub fn show(&mut self, bytes: &[u8]) -> Vec<u8> {
        for byte in bytes {
            self.show_byte(*byte);
        }
        let (_, answers) = self.parser.screen_and_callbacks_mut();
        let columns = answers.columns.take();
        let bytes = std::mem::take(&mut answers.bytes);
        if let Some(columns) = columns {
            let (lines, _) = self.size();
            self.resize((lines, columns));
        }
        bytes
    }

    fn show_byte(&mut self, byte: u8) {
        let (line, column) = self.parser.screen().cursor_position();
        let is_cons25 = self.parser.callbacks().is_cons25;
        match byte {
            0x0c if is_cons25 => return self.parser.process(b"\x1b[H\x1b[2J"),
            0x08 if is_cons25 && column == 0 => {
                if line > 0 {
                    let columns = self.size().1;
                    self.parser.process(format!("\x1b[{line};{columns}H").as_bytes());
                }
                return;
            }
            _ => {}
        }
        self.parser.process(&[byte]);
        let tabs_back = std::mem::take(&mut self.parser.callbacks_mut().tabs_back);
        if tabs_back > 0 {
            let (_, column) = self.parser.screen().cursor_position();
            let stop = column.div_ceil(TAB_COLUMNS).saturating_sub(tabs_back) * TAB_COLUMNS;
            self.parser.process(format!("\x1b[{}G", stop + 1).as_bytes());
        }
    }

    /// Changes its size.
    pub fn resize(&mut self, (lines, columns): (u16, u16)) {
        self.parser.set_size(at_least_one(lines), at_least_one(columns));
        // Compat: when the stock runner's terminal is resized it loses its modes, and the cursor
        // returns to the first position.
        self.parser.process(b"\x1b[r\x1b[m\x1b[H");
    }

    fn size(&self) -> (u16, u16) {
        let (lines, columns) = self.parser.screen().size();
        (lines.get(), columns.get())
    }

    /// Line and column of the cursor, from 1.
    pub fn cursor(&self) -> (u16, u16) {
        let (line, column) = self.parser.screen().cursor_position();
        (line + 1, column + 1)
    }

    fn line(&self, line: u16) -> Vec<u8> {
        let (_, columns) = self.size();
        let cell = |column| {
            let Some(cell) = self.parser.screen().cell(line, column) else { return b' ' };
            match cell.contents().as_bytes() {
                [] => b' ',
                [byte @ b' '..=b'~'] => *byte,
                _ => b'?',
            }
        };
        (0..columns).map(cell).collect()
    }

    /// The position of a text, from 1; a line or column of 0 means any.
    pub fn find(&self, line: u64, column: u64, text: &[u8]) -> Option<(u64, u64)> {
        let (lines, _) = self.size();
        let wanted = match line {
            0 => 0..lines,
            line => {
                let line = u16::try_from(line - 1).ok().filter(|line| *line < lines)?;
                line..line + 1
            }
        };
        for line in wanted {
            let shown = self.line(line);
            let found = match usize::try_from(column).ok()? {
                0 => crate::macros::find(&shown, text),
                column => (shown.get(column - 1..)?.starts_with(text)).then_some(column - 1),
            };
            if let Some(column) = found {
                return Some((u64::from(line) + 1, column as u64 + 1));
            }
        }
        None
    }

    /// Logs all of it.
    pub fn dump(&self, journal: &Journal) {
        let (lines, _) = self.size();
        for line in 0..lines {
            journal.dump(3, "screen", &self.line(line));
        }
        let (line, column) = self.cursor();
        journal.log(3, format!("Cursor at line {line} column {column}"));
    }
}

fn at_least_one(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_where_they_stand() {
        let mut screen = Screen::new((24, 80));
        screen.show(b"\x1b[2J\x1b[3;5Hhello \xc3\xa9 world\r\n");
        assert_eq!(screen.find(0, 0, b"hello ? world"), Some((3, 5)));
        assert_eq!(screen.find(3, 5, b"hello"), Some((3, 5)));
        assert_eq!(screen.find(3, 0, b"world"), Some((3, 13)));
        assert_eq!(
            (screen.find(2, 0, b"hello"), screen.find(3, 6, b"hello"), screen.find(99, 99, b"x")),
            (None, None, None)
        );
        assert_eq!(screen.cursor(), (4, 1));
        screen.resize((30, 100));
        assert_eq!(screen.find(3, 5, b"hello"), Some((3, 5)));
    }

    #[test]
    fn a_terminal_answers_what_it_is_asked() {
        let mut screen = Screen::new((24, 80));
        assert_eq!(screen.show(b"\x1b[2;3H\x1b[6n\x1b[5n"), b"\x1b[2;3R\x1b[0n");
        assert!(screen.show(b"\x1b[?3h").is_empty());
        assert_eq!(screen.size(), (24, 132));
    }

    #[test]
    fn terminal_uses_tabs_and_the_freebsd_console_if_configured() {
        let mut screen = Screen::new((24, 80));
        screen.show(b"\x1b[2;20H\x1b[Z");
        assert_eq!(screen.cursor(), (2, 17));
        screen.show(b"\x1b[2Z");
        assert_eq!(screen.cursor(), (2, 1));
        screen.show(b"\x1b[2;1H\x08");
        assert_eq!(screen.cursor(), (2, 1));
        screen.show(b"\x1b[=1T\x08");
        assert_eq!(screen.cursor(), (1, 80));
        screen.show(b"x\x0c");
        assert_eq!((screen.cursor(), screen.find(0, 0, b"x")), ((1, 1), None));
    }
}
