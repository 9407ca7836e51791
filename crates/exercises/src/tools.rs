//! Arbitrary bytes as an access log format, and as the log itself.

use serde_json::Value;
use shm::read::file::FILE_HEAD;
use std::ffi::OsString;
use tools::{Streams, ncsa_to};

/// Reads the first line as a format of `varnishncsa -F`, the rest as a log file.
///
/// # Panics
/// When a format is refused without a message, or `--json` prints something that is not JSON.
pub fn line_format(bytes: &[u8]) {
    let line_end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len());
    let (format, log) = bytes.split_at(line_end);
    let (format, log) = (String::from_utf8_lossy(format), log.strip_prefix(b"\n").unwrap_or(log));
    // The format is tried even if there is no log.
    let log = if log.starts_with(FILE_HEAD) { log } else { FILE_HEAD };
    for grouping in ["vxid", "request"] {
        let _ = printed(log, &["-g", grouping, "-F", &format]);
        let _ = printed(log, &["-g", grouping, "-j", "-F", &format]);
        let objects = printed(log, &["-g", grouping, "--json"]).map(|lines| values(&lines));
        let Some(objects) = objects else { panic!("the members of an object need no format") };
        if let Some(lines) = printed(log, &["-g", grouping, "--json", "-F", &format]) {
            assert!(values(&lines) <= objects, "a line is one value: {}", String::from_utf8_lossy(&lines));
        }
    }
}

/// What `varnishncsa` prints of both sides of a log; `None` when it refuses the options.
fn printed(log: &[u8], options: &[&str]) -> Option<Vec<u8>> {
    let args: Vec<OsString> = ["-b", "-c", "-E", "-r", "-"].iter().chain(options).map(OsString::from).collect();
    let (mut input, mut output, mut error) = (log, Vec::new(), Vec::new());
    let streams = &mut Streams { input: &mut input, output: &mut output, error: &mut error, program: false };
    let status = ncsa_to(&args, streams);
    assert!(status == 0 || !error.is_empty(), "a refusal has a message");
    (status == 0).then_some(output)
}

/// The number of JSON values in the output.
fn values(lines: &[u8]) -> usize {
    let each = serde_json::Deserializer::from_slice(lines).into_iter::<Value>();
    each.map(|value| assert!(value.is_ok(), "{value:?}: {}", String::from_utf8_lossy(lines))).count()
}
