//! The modes of the terminal, for a screen that ends and for a process that is killed.

use ratatui_crossterm::crossterm::terminal;

/// Restores them. This part of restoring a terminal never waits for the terminal to accept output.
pub(crate) fn restore() {
    let _ = terminal::disable_raw_mode();
}
