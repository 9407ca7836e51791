//! Paths from files: a list of URLs, or an access log.

use crate::Streams;
use crate::access_log::{self, Format, Line};
use load::plan::{Target, is_clean};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

/// Paths that are kept.
const PATHS_MAX: usize = 1_000_000;
/// Bytes of all of them.
const PATHS_BYTES_MAX: usize = 256 << 20;
/// Longest path.
const PATH_BYTES_MAX: usize = 16 << 10;

/// Collects paths within bounds.
#[derive(Default)]
struct Paths {
    paths: Vec<String>,
    bytes: usize,
    /// Lines that were invalid or exceeded the limit.
    left_out: u64,
}

impl Paths {
    fn add(&mut self, path: Option<&str>) {
        let path = path
            .filter(|path| path.starts_with('/') && path.len() <= PATH_BYTES_MAX && is_clean(path) && path.is_ascii());
        match path {
            Some(path) if self.paths.len() < PATHS_MAX && self.bytes + path.len() <= PATHS_BYTES_MAX => {
                self.bytes += path.len();
                self.paths.push(path.to_owned());
            }
            _ => self.left_out += 1,
        }
    }

    fn end(self, file: &str, streams: &mut Streams) -> Result<Arc<[String]>, String> {
        if self.left_out > 0 {
            let _ = writeln!(
                streams.error,
                "copal bench: {file}: {} lines left out: of other servers, not requests, or too many",
                self.left_out
            );
        }
        if self.paths.is_empty() {
            Err(format!("{file}: there is nothing to ask for in it"))
        } else {
            Ok(self.paths.into())
        }
    }
}

fn open<'a>(file: &str, input: &'a mut dyn Read) -> Result<Box<dyn BufRead + 'a>, String> {
    if file == "-" {
        return Ok(Box::new(BufReader::new(input)));
    }
    let opened = File::open(file).map_err(|error| format!("{file}: {error}"))?;
    Ok(Box::new(BufReader::new(opened)))
}

/// One URL or path a line; empty lines and those that begin with `#` are skipped.
pub(super) fn list(file: &str, target: &Target, streams: &mut Streams) -> Result<Arc<[String]>, String> {
    let mut paths = Paths::default();
    let mut input = open(file, &mut *streams.input)?;
    let mut line = Vec::new();
    loop {
        line.clear();
        let count = input.by_ref().take(PATH_BYTES_MAX as u64 * 2).read_until(b'\n', &mut line);
        if count.map_err(|error| format!("{file}: {error}"))? == 0 {
            break;
        }
        let text = std::str::from_utf8(&line).map(str::trim).unwrap_or("\u{fffd}");
        if !text.is_empty() && !text.starts_with('#') {
            paths.add(path_of(text, target).as_deref());
        }
    }
    drop(input);
    paths.end(file, streams)
}

/// The path of a URL of this server, or of a path.
fn path_of(text: &str, target: &Target) -> Option<String> {
    if text.starts_with('/') {
        return Some(text.to_owned());
    }
    let rest = text.strip_prefix(if target.tls { "https://" } else { "http://" })?;
    let rest = rest.strip_prefix(target.authority.as_str())?;
    match rest.as_bytes().first() {
        None => Some("/".to_owned()),
        Some(b'/') => Some(rest.split('#').next()?.to_owned()),
        Some(_) => None,
    }
}

/// The paths requested in an access log.
pub(super) fn log(file: &str, format: Format, target: &Target, streams: &mut Streams) -> Result<Arc<[String]>, String> {
    let mut paths = Paths::default();
    let mut input = open(file, &mut *streams.input)?;
    let read = access_log::each(&mut *input, format, |line| match line {
        Line::Got(got) => paths.add(std::str::from_utf8(got.url).ok().and_then(|url| path_of(url, target)).as_deref()),
        Line::Other => {}
        Line::Bad => paths.add(None),
    });
    read.map_err(|error| format!("{file}: {error}"))?;
    drop(input);
    paths.end(file, streams)
}
