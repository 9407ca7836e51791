//! Output for people: colours and counts.

use crate::streams::Streams;
use std::io::IsTerminal;

/// True if the output is a terminal that shows colours.
pub(super) fn has_colour(streams: &Streams) -> bool {
    streams.program
        && std::io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// `1 error`, `2 errors`.
pub(super) fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}
