//! The help of a full-screen tool: its key table as a page that can be scrolled.

use super::canvas::{BOLD, PLAIN};
use super::{Canvas, Key};

/// A row of a tool's key table: keys, and their action.
pub(crate) struct KeyRow<Action: 'static> {
    /// The keys.
    pub keys: &'static [Key],
    /// Names of the keys.
    pub names: &'static str,
    /// The action of the keys.
    pub action: Action,
    /// The help text, line by line.
    pub text: &'static [&'static str],
}

/// Shorthand for a row.
pub(crate) const fn key_row<Action: Copy>(
    keys: &'static [Key],
    names: &'static str,
    action: Action,
    text: &'static [&'static str],
) -> KeyRow<Action> {
    KeyRow { keys, names, action, text }
}

impl<Action: Copy> KeyRow<Action> {
    /// The action of `key` in a table.
    pub fn find(table: &[KeyRow<Action>], key: Key) -> Option<Action> {
        table.iter().find(|row| row.keys.contains(&key)).map(|row| row.action)
    }
}

/// The lines of a table's help; those that start with a blank are explanations.
pub(crate) fn help_lines<Action>(table: &[KeyRow<Action>]) -> Vec<String> {
    let mut lines = Vec::new();
    for row in table {
        lines.push(format!("Key binding: {}", row.names));
        lines.extend(row.text.iter().map(|text| format!("    {text}")));
    }
    lines
}

/// A help page that may be shown.
#[derive(Default)]
pub(crate) struct Help {
    /// True while it is shown.
    pub shown: bool,
    top: usize,
}

impl Help {
    /// Shows it from the top, or hides it.
    pub fn toggle(&mut self) {
        *self = Help { shown: !self.shown, top: 0 };
    }

    /// Scrolls by lines; `visible` of `total` fit into the window.
    pub fn scroll(&mut self, by: isize, visible: usize, total: usize) {
        self.top = self.top.saturating_add_signed(by).min(total.saturating_sub(visible));
    }

    /// Draws `lines` from line `first` on, `visible` of them.
    pub fn draw(&self, lines: &[String], canvas: &mut Canvas, first: usize, visible: usize) {
        let top = self.top.min(lines.len().saturating_sub(visible));
        for (line, text) in lines.iter().skip(top).take(visible).enumerate() {
            let style = if text.starts_with(' ') { PLAIN } else { BOLD };
            canvas.put(0, first + line, text, style);
        }
    }
}
