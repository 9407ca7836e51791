//! Copy of a panic's text in a small memory file that the manager holds, so that `panic.show` works
//! after the worker is gone.
//!
//! The engine contains a panic inside a request, but its text is kept anyway; the newest replaces
//! the last one.

use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use surface::version::VARNISH_BANNER;

/// Maximum length of a text, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// Installs the hook that writes the text of every panic of this process. While the returned switch
/// is on (the feature `short_panic`) the text has no backtrace.
pub fn install(file: File, identity: String) -> Arc<AtomicBool> {
    let is_short = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_short);
    std::panic::set_hook(Box::new(move |information| {
        let message = information
            .payload()
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| information.payload().downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "unknown".to_owned());
        let place = information
            .location()
            .map(|at| format!("{} line {}", at.file(), at.line()))
            .unwrap_or_else(|| "unknown place".to_owned());
        let text = describe(&message, &place, &identity, asked.load(Ordering::Relaxed));
        eprintln!("{text}");
        write(&file, &text);
    }));
    is_short
}

fn describe(message: &str, place: &str, identity: &str, is_short: bool) -> String {
    let mut text = format!("Panic in {place}:\n  {message}\nversion = {VARNISH_BANNER}\nident = {identity}\n");
    let thread = std::thread::current();
    let _ = writeln!(text, "thread.name = ({})", thread.name().unwrap_or("unnamed"));
    if !is_short {
        let _ = writeln!(text, "Backtrace:\n{}", std::backtrace::Backtrace::force_capture());
    }
    text.truncate(TEXT_BYTES_MAX - 1);
    text
}

fn write(file: &File, text: &str) {
    let mut bytes = text.as_bytes().to_vec();
    bytes.truncate(TEXT_BYTES_MAX - 1);
    bytes.push(0);
    // If even this fails no other way is left; the text is on standard error already.
    let _ = file.write_all_at(&bytes, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_has_no_backtrace() {
        let text = |is_short| describe("x is 1", "lib.rs line 7", "Linux", is_short);
        assert!(text(true).starts_with("Panic in lib.rs line 7:\n  x is 1\nversion = "), "{}", text(true));
        assert!(!text(true).contains("Backtrace"));
        assert!(text(false).contains("\nBacktrace:\n"));
    }
}
