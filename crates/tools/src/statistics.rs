//! `varnishstat`: the counters, once or on a full screen.
//!
//! One report on standard output with `-1`, `-j` or `-x`, a list of names with `-l`:
//! `statistics/once.rs`. Otherwise a screen (`statistics/live.rs`) that shows how they change:
//! `samples.rs` computes rates and averages, `view.rs` has the user's selection and the keys for
//! it, `draw.rs` draws the list of counters, `overview.rs` the screen on which `copal stat` opens.

mod draw;
mod live;
mod once;
mod overview;
mod samples;
mod view;

use std::ffi::OsString;
use std::io::{self, Write};

use shm::read::counters::{CounterFilter, CounterReader, CounterValue};
use shm::read::vsm::{Status, Vsm, work_directory};

use surface::program::Called;

use crate::Streams;
use crate::attach_timeout::{AttachTimeout, not_running};
use crate::options::{self, Given};
use crate::screen::Possible;
use crate::signals::Signals;

/// The letters of reports that are printed once.
const FORMS: &str = "1jxl";
/// Sections of VCLs and certificates, whose names operators choose.
const NAMED_BY_OPERATORS: [&str; 2] = ["VCL.", "CERT."];

/// Runs the tool; returns the exit status.
pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let given = match options::parse("stat", args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let mut form = given.options.iter().map(|(letter, _)| *letter).rfind(|letter| FORMS.contains(*letter));
    if form.is_none() && streams.program && crate::screen::possible() == Possible::Dumb {
        let name = surface::program::program("stat").name(streams.called);
        let _ = writeln!(streams.error, "{name}: no screen on a dumb terminal (TERM): the counters once, as with -1");
        form = Some('1');
    }
    let prepared = prepare(&given, form.is_none(), streams.called).and_then(|report| {
        if form.is_none() && !(streams.program && crate::screen::is_possible()) {
            let name = surface::program::program("stat").name(streams.called);
            return Err(format!("{name}: the output is no terminal; -1, -j and -x print the counters once"));
        }
        Ok(report)
    });
    let mut report = match prepared {
        Ok(report) => report,
        Err(message) => {
            let _ = writeln!(streams.error, "{message}");
            return 1;
        }
    };
    let shown = match form {
        Some(form) => report.print(form, streams.called, &mut *streams.output),
        None => live::run(&mut report, streams.called, &Signals::listen()),
    };
    i32::from(shown.is_err())
}

fn prepare(given: &Given, on_screen: bool, called: Called) -> Result<Report, String> {
    let mut filter = CounterFilter::default();
    let mut includes = false;
    let mut timeout = AttachTimeout::default();
    for (letter, argument) in &given.options {
        let text = argument.to_string_lossy();
        let mut add = |include: bool, glob: &str| {
            includes |= include;
            filter.add(include, glob);
        };
        match letter {
            'f' => match text.strip_prefix('^') {
                Some(glob) => add(false, glob),
                None => add(true, &text),
            },
            'I' => add(true, &text),
            'X' => add(false, &text),
            't' => timeout = AttachTimeout::parse(argument).ok_or_else(|| format!("-t: Invalid argument: {text}"))?,
            _ => {}
        }
    }
    let vsm = if on_screen && timeout == AttachTimeout(None) {
        Vsm::new(&work_directory(given.last('n')))
    } else {
        timeout.attach(given.last('n')).ok_or_else(|| not_running(given.last('n'), called))?
    };
    let is_whole = !given.options.iter().any(|(letter, _)| "fIX".contains(*letter));
    Ok(Report { vsm, reader: CounterReader::new(), filter, includes, is_whole, raw: given.has('r') })
}

/// The counters of a server, selected.
struct Report {
    vsm: Vsm,
    reader: CounterReader,
    filter: CounterFilter,
    /// True if filters select counters by name.
    includes: bool,
    /// True if no counter is filtered out.
    is_whole: bool,
    /// True if gauges are shown unchanged.
    raw: bool,
}

/// A reading of the counters.
struct Look {
    /// The values to show.
    values: Vec<CounterValue>,
    /// State of manager and worker.
    status: Status,
    /// The manager's age in seconds; 0 if unknown.
    manager_uptime: u64,
    /// The worker's age in seconds; 0 if unknown.
    worker_uptime: u64,
    /// Hits and misses since the worker with this segment started.
    cache: Option<CacheCounts>,
}

/// Counts from which the hit rate is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct CacheCounts {
    section: u64,
    hits: u64,
    misses: u64,
}

impl Report {
    /// Reads the counters that pass the filter. A gauge that has wrapped below zero counts as zero
    /// unless raw.
    fn look(&mut self) -> Look {
        let status = self.vsm.poll();
        let mut values = self.reader.read(&self.vsm);
        let find = |name: &str| values.iter().find(|value| value.name == name);
        let number = |name: &str| find(name).map_or(0, |value| value.value);
        let cache = find("MAIN.cache_hit").map(|hits| CacheCounts {
            section: hits.section,
            hits: hits.value,
            misses: number("MAIN.cache_miss"),
        });
        let (manager_uptime, worker_uptime) = (number("MGT.uptime"), number("MAIN.uptime"));
        values.retain(|value| self.filter.shows(&value.name));
        for value in &mut values {
            if !self.raw && value.text.kind == "gauge" && value.value > i64::MAX as u64 {
                value.value = 0;
            }
        }
        Look { values, status, manager_uptime, worker_uptime, cache }
    }

    fn print(&mut self, form: char, called: Called, output: &mut dyn Write) -> io::Result<()> {
        let mut look = self.look();
        // Compat: exporters of Prometheus read `varnishstat -j` and make metric names of all
        // sections that they do not know. The names of VCLs and certificates may contain `-`, with
        // which prometheus-varnish-exporter 1.6 panics.
        if form == 'j' && self.is_whole && called == Called::Stock {
            look.values.retain(|value| !NAMED_BY_OPERATORS.iter().any(|section| value.name.starts_with(section)));
        }
        match form {
            '1' => once::once(&look.values, look.worker_uptime, output)?,
            'j' => once::json(&look.values, output)?,
            'x' => once::xml(&look.values, output)?,
            _ => once::list(&look.values, output)?,
        }
        output.flush()
    }
}
