//! Standard output.

/// Prints a text; returns the exit status.
pub(crate) fn print(text: &str) -> i32 {
    use std::io::Write;
    // The reader may close the output early.
    let _ = std::io::stdout().write_all(text.as_bytes());
    0
}
