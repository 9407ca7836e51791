//! `copal keys`: what fills the cache, and what splits it.
//!
//! Reads GET and HEAD requests from the log, either those still in it or, with `--seconds`, those
//! that come. Reports space and requests by host, first path element and content type; also the
//! query arguments, cookies and `Vary` fields that make several objects of one. The estimate is
//! made for an unlimited cache on the sampled traffic (`keys/sample.rs`), the report in
//! `keys/report.rs`.
//!
//! *Invariant:* values of cookies and query arguments are only hashed, never kept or shown.

mod report;
mod sample;

use crate::follow::{Follow, LogState, Sink};
use crate::options::{self, Given};
use crate::streams::Streams;
use sample::Sample;
use shm::read::group::Grouping;
use shm::read::transaction::{Kind, Reason, Transaction};
use std::ffi::OsString;
use std::io::{self, Write};
use std::time::{Duration, Instant};
use surface::limits::KEYS_SAMPLE_MAX;
use surface::program::program;

/// The row of this tool.
const PART: &str = "keys";
/// Exit status if there was no request.
const NOTHING: i32 = 1;
/// Exit status for a wrong command line, or without a server.
const USAGE_ERROR: i32 = 2;
/// Requests that are read, unless `--sample` says otherwise.
const SAMPLE_DEFAULT: usize = 100_000;

struct Options {
    requests_max: usize,
    seconds: Option<u64>,
    json: bool,
    given: Given,
}

fn read(given: &Given) -> Result<Options, String> {
    let number = |letter: char| match given.last(letter) {
        None => Ok(None),
        Some(text) => {
            let number = text.to_str().and_then(|text| text.parse::<u64>().ok()).filter(|number| *number > 0);
            number.map(Some).ok_or_else(|| format!("'{}' is no number", text.to_string_lossy()))
        }
    };
    let requests_max = number('s')?.map_or(SAMPLE_DEFAULT, |number| usize::try_from(number).unwrap_or(usize::MAX));
    if requests_max > KEYS_SAMPLE_MAX {
        return Err(format!("--sample: at most {KEYS_SAMPLE_MAX} requests are read"));
    }
    let seconds = number('S')?;
    let mut source = Given { options: vec![('g', "vxid".into()), ('c', OsString::new())], rest: Vec::new() };
    source.options.extend(given.options.iter().filter(|(letter, _)| matches!(letter, 'n' | 'r' | 't')).cloned());
    if seconds.is_none() {
        source.options.push(('d', OsString::new()));
    }
    Ok(Options { requests_max, seconds, json: given.has('J'), given: source })
}

/// Runs the tool; returns the exit status.
pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let given = match options::parse(PART, args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let options = match read(&given) {
        Ok(options) => options,
        Err(text) => return options::wrong(program(PART), &text, streams),
    };
    let mut follow = match Follow::from_options(&options.given, &[Grouping::Vxid]) {
        Ok(follow) => follow,
        Err(text) => {
            let _ = writeln!(streams.error, "copal keys: {text}");
            return USAGE_ERROR;
        }
    };
    let end = options.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut collector = Collector { sample: Sample::default(), requests_max: options.requests_max, end };
    let status = follow.run(&mut collector, false, streams);
    if status != 0 {
        return USAGE_ERROR;
    }
    if collector.sample.requests() == 0 {
        let _ = writeln!(streams.error, "copal keys: there is no GET or HEAD request in the log");
        return NOTHING;
    }
    let report = report::Report::of(&collector.sample);
    let written = if options.json { report.object(streams.output) } else { report.text(streams.output) };
    i32::from(written.is_err())
}

struct Collector {
    sample: Sample,
    requests_max: usize,
    end: Option<Instant>,
}

impl Sink for Collector {
    fn group(&mut self, group: &[Transaction], _: &mut dyn Write) -> io::Result<()> {
        let requests = group.iter().filter(|one| one.kind == Kind::Request && one.reason != Reason::Esi);
        for transaction in requests {
            if self.sample.requests() < self.requests_max {
                self.sample.add(transaction);
            }
        }
        Ok(())
    }

    fn turn(&mut self, state: LogState) -> io::Result<bool> {
        if state == LogState::Waiting {
            std::thread::sleep(crate::follow::IDLE);
        }
        let is_over = self.end.is_some_and(|end| end <= Instant::now());
        Ok(state != LogState::Ended && !is_over && self.sample.requests() < self.requests_max)
    }
}

#[cfg(test)]
mod tests;
