//! Arbitrary bytes as an access log format, as the log itself, and as an access log of another
//! server.

use serde_json::Value;
use shm::layout::Layout;
use std::ffi::OsString;
use tools::{Streams, ncsa_to, policy_to};

/// Reads the first line as a format of `varnishncsa -F`, the rest as a log file.
///
/// # Panics
/// When a format is refused without a message, or `--json` prints something that is not JSON.
pub fn line_format(bytes: &[u8]) {
    let line_end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len());
    let (format, log) = bytes.split_at(line_end);
    let (format, log) = (String::from_utf8_lossy(format), log.strip_prefix(b"\n").unwrap_or(log));
    // The format is tried even if there is no log.
    let is_log = Layout::ALL.iter().any(|layout| log.starts_with(layout.file_head()));
    let log = if is_log { log } else { Layout::V71.file_head() };
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

/// Reads an access log, with the virtual host in front if the first byte is odd, like `copal
/// policy` and `copal bench`.
///
/// # Panics
/// When the lines do not add up to those of the log, when more URLs were requested than there are
/// requests, or when the output is not JSON.
pub fn access_log(bytes: &[u8]) {
    let Some((first, log)) = bytes.split_first() else { return };
    let format = if first % 2 == 1 { "vhost" } else { "combined" };
    let args = ["--json", "--urls", "1024", "-s", "64k,1m", "--format", format, "-"].map(OsString::from);
    let (mut input, mut output, mut error) = (log, Vec::new(), Vec::new());
    let streams = &mut Streams {
        input: &mut input,
        output: &mut output,
        error: &mut error,
        program: false,
        called: surface::program::Called::Stock,
    };
    let status = policy_to(&args, streams);
    let said: Value = serde_json::from_slice(&output).expect("one value");
    let number = |name: &str| said[name].as_u64().expect("a number");
    let requests = number("requests");
    let lines = log.split_inclusive(|byte| *byte == b'\n').count() as u64;
    assert_eq!(requests + number("other_lines") + number("bad_lines"), lines, "every line is one of the three");
    assert_eq!(status, i32::from(requests == 0));
    assert!(number("sampled_one_in") > 1 || number("urls") <= requests, "{said}");
    assert_eq!(error.is_empty(), number("bad_lines") == 0, "bad lines are told of");
}

/// The output of `varnishncsa` for both sides of a log; `None` if it refuses the options.
fn printed(log: &[u8], options: &[&str]) -> Option<Vec<u8>> {
    let args: Vec<OsString> = ["-b", "-c", "-E", "-r", "-"].iter().chain(options).map(OsString::from).collect();
    let (mut input, mut output, mut error) = (log, Vec::new(), Vec::new());
    let streams = &mut Streams {
        input: &mut input,
        output: &mut output,
        error: &mut error,
        program: false,
        called: surface::program::Called::Stock,
    };
    let status = ncsa_to(&args, streams);
    assert!(status == 0 || !error.is_empty(), "a refusal has a message");
    (status == 0).then_some(output)
}

/// The number of JSON values in the output.
fn values(lines: &[u8]) -> usize {
    let each = serde_json::Deserializer::from_slice(lines).into_iter::<Value>();
    each.map(|value| assert!(value.is_ok(), "{value:?}: {}", String::from_utf8_lossy(lines))).count()
}
