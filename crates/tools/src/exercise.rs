//! The entry of the fuzz target: arbitrary bytes as a format of lines, applied to transactions.
//!
//! A violated promise panics, which is what a fuzzer looks for; nothing else calls this.

/// Takes the first line for the format of `varnishncsa -F` and the rest for a log file.
///
/// # Panics
/// When a format is refused without a message, or what `--json` prints is no JSON.
pub fn line_format(bytes: &[u8]) {
    let line_end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len());
    let (format, log) = bytes.split_at(line_end);
    crate::line::exercise(&String::from_utf8_lossy(format), log.strip_prefix(b"\n").unwrap_or(log));
}
