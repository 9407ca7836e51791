//! The cells of a window: texts are drawn on it and cut at its edges. Untrusted texts are made
//! harmless here.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style};
use surface::legible;

/// True for characters that must not reach a terminal; a cell can't hold a tab either.
fn is_commanding(letter: char) -> bool {
    letter == '\t' || legible::is_commanding(letter)
}

/// Plain text.
pub(crate) const PLAIN: Style = Style::new();
/// Text that stands out.
pub(crate) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
/// A bar across the window.
pub(crate) const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Drawing surface of a screen. Columns and lines count from 0.
pub(crate) struct Canvas<'a> {
    cells: &'a mut Buffer,
}

impl<'a> Canvas<'a> {
    /// Draws on `cells`.
    pub fn new(cells: &'a mut Buffer) -> Canvas<'a> {
        Canvas { cells }
    }

    /// Columns of the window.
    pub fn width(&self) -> usize {
        usize::from(self.cells.area.width)
    }

    /// Lines of the window.
    pub fn height(&self) -> usize {
        usize::from(self.cells.area.height)
    }

    /// Draws `text` at a position; parts outside the window are not drawn. Control characters are
    /// shown as dots.
    pub fn put(&mut self, column: usize, line: usize, text: &str, style: Style) {
        if column >= self.width() || line >= self.height() {
            return;
        }
        let (column, line) = (column as u16, line as u16);
        let limit = self.width();
        if text.contains(is_commanding) {
            let harmless: String =
                text.chars().map(|letter| if is_commanding(letter) { '.' } else { letter }).collect();
            self.cells.set_stringn(column, line, harmless, limit, style);
        } else {
            self.cells.set_stringn(column, line, text, limit, style);
        }
    }

    /// Draws `text` so that it ends before column `end`; its start is cut off if it is too long.
    pub fn put_before(&mut self, end: usize, line: usize, text: &str, style: Style) {
        let length = text.chars().count();
        let cut: String = text.chars().skip(length.saturating_sub(end)).collect();
        self.put(end.saturating_sub(length), line, &cut, style);
    }

    /// Gives a whole line a style.
    pub fn bar(&mut self, line: usize, style: Style) {
        if line < self.height() {
            self.cells.set_style(Rect::new(0, line as u16, self.cells.area.width, 1), style);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The output of `draw` in a window of this size, line by line, without trailing blanks.
    pub(crate) fn drawn(width: u16, height: u16, draw: impl FnOnce(&mut Canvas)) -> Vec<String> {
        let mut cells = Buffer::empty(Rect::new(0, 0, width, height));
        draw(&mut Canvas::new(&mut cells));
        let text = |line| (0..width).map(|column| cells[(column, line)].symbol()).collect::<String>();
        (0..height).map(|line| text(line).trim_end().to_owned()).collect()
    }

    #[test]
    fn overlong_text_is_cut_and_control_characters_become_dots() {
        let lines = drawn(6, 2, |canvas| {
            canvas.put(4, 0, "abc", PLAIN);
            canvas.put(9, 0, "x", PLAIN);
            canvas.put(0, 7, "x", PLAIN);
            canvas.bar(9, REVERSED);
            canvas.put(0, 1, "\x1b[2J\u{202e}\t界", PLAIN);
        });
        assert_eq!(lines, ["    ab", ".[2J.."]);
    }

    #[test]
    fn a_text_that_ends_somewhere_loses_its_start() {
        let lines = drawn(6, 2, |canvas| {
            canvas.put_before(6, 0, "abcdefgh", PLAIN);
            canvas.put_before(4, 1, "ab", PLAIN);
        });
        assert_eq!(lines, ["cdefgh", "  ab"]);
    }

    #[test]
    fn a_window_without_cells_is_drawn_on_as_well() {
        assert!(drawn(0, 0, |canvas| canvas.put(0, 0, "a", PLAIN)).is_empty());
    }
}
