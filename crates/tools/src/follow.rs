//! What `log` and `ncsa` have in common: finding the log, following it, grouping, queries, limits, signals, daemon mode.

mod rate;
mod source;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use shm::read::Next;
use shm::read::group::{Grouper, Grouping, Transaction};
use shm::read::query::Query;

use crate::Streams;
use crate::options::Given;
use crate::patience::Patience;
use crate::signals::Signals;
use rate::Rate;
use source::Source;

/// How long an idle tool sleeps before it looks again.
const IDLE: Duration = Duration::from_millis(10);
/// How often the index is looked at while nothing comes.
const INDEX_INTERVAL: Duration = Duration::from_millis(250);

/// Takes the groups that are to be reported.
pub(crate) trait Sink {
    /// Reports one group.
    fn group(&mut self, group: &[Transaction], output: &mut dyn Write) -> io::Result<()>;
}

/// The options common to the tools of the log.
pub(crate) struct Follow {
    name: Option<OsString>,
    file: Option<OsString>,
    from_head: bool,
    patience: Patience,
    pub grouping: Grouping,
    query: Option<Query>,
    incomplete_max: usize,
    timeout_seconds: f64,
    groups_max: Option<u64>,
    rate: Option<Rate>,
    pid_file: Option<OsString>,
    daemonize: bool,
    pub write_to: Option<OsString>,
    pub append: bool,
    pub unbuffered: bool,
    pub caseless: bool,
}

impl Follow {
    /// Reads the common options; `allowed` are the grouping modes that the tool knows. The error is a message.
    pub fn from_options(given: &Given, allowed: &[Grouping]) -> Result<Follow, String> {
        let path = |letter| given.last(letter).map(OsStr::to_owned);
        let mut follow = Follow {
            name: path('n'),
            file: path('r'),
            from_head: given.has('d'),
            patience: Patience::default(),
            grouping: Grouping::Vxid,
            query: None,
            incomplete_max: 1000,
            timeout_seconds: 120.0,
            groups_max: None,
            rate: None,
            pid_file: path('P'),
            daemonize: given.has('D'),
            write_to: path('w'),
            append: given.has('a'),
            unbuffered: given.has('u'),
            caseless: given.has('C'),
        };
        let mut queries: Vec<String> = Vec::new();
        for (letter, argument) in &given.options {
            let text = argument.to_string_lossy();
            match letter {
                'g' => follow.grouping = grouping(&text, allowed)?,
                't' => {
                    follow.patience =
                        Patience::parse(argument).ok_or_else(|| format!("-t: Invalid argument: {text}"))?;
                }
                'k' => {
                    let number = text.parse().ok().filter(|number| *number > 0);
                    follow.groups_max = Some(number.ok_or_else(|| format!("-k: Invalid number '{text}'"))?);
                }
                'L' => {
                    let number: i64 = text.parse().map_err(|_| "-L: Syntax error".to_owned())?;
                    let number = usize::try_from(number).ok().filter(|number| *number > 0);
                    follow.incomplete_max = number.ok_or("-L: Range error")?;
                }
                'T' => {
                    let seconds: f64 = text.parse().map_err(|_| "-T: Syntax error".to_owned())?;
                    if seconds.is_nan() || seconds < 0.0 {
                        return Err("-T: Range error".to_owned());
                    }
                    follow.timeout_seconds = seconds;
                }
                'R' => follow.rate = Some(Rate::parse(&text).map_err(|error| format!("-R: {error}"))?),
                'q' => queries.push(text.into_owned()),
                'Q' => {
                    let read =
                        fs::read_to_string(argument).map_err(|error| format!("-Q {text}: {}", reason(&error)))?;
                    queries.push(read);
                }
                _ => {}
            }
        }
        if follow.file.is_some() && follow.name.is_some() {
            return Err("Only one of -n and -r options may be used".to_owned());
        }
        if !queries.is_empty() {
            let query = Query::parse(&queries.join("\n"), follow.caseless)
                .map_err(|error| format!("Query expression error:\n{error}"))?;
            follow.query = Some(query);
        }
        let to_stdout = follow.write_to.as_deref() == Some(OsStr::new("-"));
        if follow.daemonize && follow.write_to.is_none() {
            return Err("Missing -w option".to_owned());
        }
        if follow.daemonize && to_stdout {
            return Err("Daemon cannot write to stdout".to_owned());
        }
        if to_stdout {
            follow.write_to = None;
        }
        Ok(follow)
    }

    /// Reports groups until the log ends, a limit is reached or a signal says so. Returns the exit status.
    pub fn run(&mut self, sink: &mut dyn Sink, file_head: &'static [u8], streams: &mut Streams) -> i32 {
        match self.try_run(sink, file_head, streams) {
            Ok(()) => 0,
            Err(Ended::Failed(status, message)) => {
                let _ = writeln!(streams.error, "{message}");
                status
            }
            Err(Ended::OutputGone) => 1,
        }
    }

    fn try_run(&mut self, sink: &mut dyn Sink, file_head: &'static [u8], streams: &mut Streams) -> Result<(), Ended> {
        // A daemon changes its directory, and must still find the file at its end.
        self.pid_file = self.pid_file.take().map(|path| std::path::absolute(&path).map_or(path, Into::into));
        let mut pid_file = match &self.pid_file {
            None => None,
            Some(path) => {
                let file = fs::File::create(path);
                Some(file.map_err(|error| failed(format!("{}: {}", path.to_string_lossy(), reason(&error))))?)
            }
        };
        let mut source = match &self.file {
            Some(file) if file == "-" => Source::stream(&mut *streams.input, "-").map_err(failed)?,
            Some(file) => Source::file(file).map_err(failed)?,
            None => {
                let vsm = self.patience.attach(self.name.as_deref());
                let vsm = vsm.ok_or_else(|| failed("VSM: Could not get hold of varnishd, is it running?".into()))?;
                Source::server(vsm, self.from_head)
            }
        };
        let mut file = match &self.write_to {
            None => None,
            Some(path) => {
                let opened = crate::output::OutputFile::open(path.as_ref(), self.append, file_head);
                Some(
                    opened
                        .map_err(|error| Ended::Failed(2, format!("Cannot open output file ({})", reason(&error))))?,
                )
            }
        };
        if self.daemonize {
            nix::unistd::daemon(false, false).map_err(|error| failed(format!("Cannot become a daemon: {error}")))?;
        }
        if let Some(file) = &mut pid_file {
            let written = writeln!(file, "{}", std::process::id());
            written.map_err(|error| failed(format!("Cannot write PID file: {}", reason(&error))))?;
        }
        let signals = if streams.program { Signals::listen() } else { Signals::deaf() };
        let ended = {
            let Streams { output, error, .. } = streams;
            self.follow(&mut source, sink, &mut file, &mut **output, &mut **error, &signals)
        };
        if let Some(path) = &self.pid_file {
            let _ = fs::remove_file(path);
        }
        let flushed = match &mut file {
            Some(file) => file.flush(),
            None => streams.output.flush(),
        };
        ended.and(flushed.map_err(|_| Ended::OutputGone))
    }

    fn follow(
        &mut self,
        source: &mut Source,
        sink: &mut dyn Sink,
        file: &mut Option<crate::output::OutputFile>,
        output: &mut dyn Write,
        error: &mut dyn Write,
        signals: &Signals,
    ) -> Result<(), Ended> {
        let mut grouper = Grouper::new(self.grouping, self.incomplete_max, self.timeout_seconds);
        let started = Instant::now();
        let mut next_look = started;
        let mut words = Vec::new();
        let mut reported = 0;
        loop {
            let now = started.elapsed().as_secs_f64();
            let next = source.next(&mut words);
            match next {
                Next::Chunk => grouper.push(&words, now),
                Next::Wait => grouper.tick(now),
                Next::End => {}
                Next::Overrun => {
                    let _ = writeln!(error, "Log overrun");
                    grouper.reset();
                    source.lose_place();
                }
            }
            if signals.take_flush() {
                grouper.flush();
            }
            while let Some(group) = grouper.next_ready() {
                if self.query.as_ref().is_some_and(|query| !query.matches(&group)) {
                    continue;
                }
                if self.rate.as_mut().is_some_and(|rate| !rate.allows(now)) {
                    continue;
                }
                let target: &mut dyn Write = match file {
                    Some(file) => file,
                    None => output,
                };
                sink.group(&group, target).map_err(|_| Ended::OutputGone)?;
                if self.unbuffered {
                    target.flush().map_err(|_| Ended::OutputGone)?;
                }
                reported += 1;
                if self.groups_max.is_some_and(|limit| reported >= limit) {
                    return Ok(());
                }
            }
            if signals.stop() {
                return Ok(());
            }
            if signals.take_rotate() {
                match file {
                    Some(file) if self.daemonize => file.rotate().map_err(|_| Ended::OutputGone)?,
                    _ => return Ok(()),
                }
            }
            match next {
                Next::Chunk => {}
                Next::End => return Ok(()),
                Next::Wait | Next::Overrun => {
                    if self.from_head && next == Next::Wait {
                        return source.found_log().map_err(failed);
                    }
                    match file {
                        Some(file) => file.flush(),
                        None => output.flush(),
                    }
                    .map_err(|_| Ended::OutputGone)?;
                    if next_look <= Instant::now() {
                        source.look_again(error);
                        next_look = Instant::now() + INDEX_INTERVAL;
                    }
                    std::thread::sleep(IDLE);
                }
            }
        }
    }
}

/// Why a tool ended before its time.
enum Ended {
    /// With an exit status and a message.
    Failed(i32, String),
    /// The reader of our output went away, or its disk is full.
    OutputGone,
}

fn failed(message: String) -> Ended {
    Ended::Failed(1, message)
}

fn grouping(text: &str, allowed: &[Grouping]) -> Result<Grouping, String> {
    let grouping = match text {
        "raw" => Grouping::Raw,
        "vxid" => Grouping::Vxid,
        "request" => Grouping::Request,
        "session" => Grouping::Session,
        _ => return Err(format!("Unknown grouping type: {text}")),
    };
    if allowed.contains(&grouping) { Ok(grouping) } else { Err(format!("Invalid grouping mode: {text}")) }
}

/// What the system says about an error, without the number.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => nix::errno::Errno::from_raw(number).desc().to_owned(),
        None => error.to_string(),
    }
}
