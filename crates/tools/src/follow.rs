//! Common part of the log tools: finding and following the log, grouping, queries, limits, signals,
//! daemon mode.

mod pid_file;
mod rate;
mod source;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use shm::layout::Layout;
use shm::read::Next;
use shm::read::group::{Grouper, Grouping};
use shm::read::query::Query;
use shm::read::select::{Selection, Sides};
use shm::read::transaction::Transaction;
use shm::read::vsm::{Vsm, work_directory};

use surface::program::Called;

use crate::Streams;
use crate::attach_timeout::{AttachTimeout, not_running};
use crate::options::Given;
use crate::signals::Signals;
use pid_file::PidFile;
use rate::Rate;
use source::{Look, Source};

/// Pause of an idle tool between checks.
pub(crate) const IDLE: Duration = Duration::from_millis(10);
/// Interval at which the index is checked while nothing arrives.
const INDEX_INTERVAL: Duration = Duration::from_millis(250);

/// The state of the log when a tool is called between reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogState {
    /// There is more to read.
    Reading,
    /// All has been read, and more may come.
    Waiting,
    /// No more will come.
    Ended,
}

/// Receives the groups to be reported.
pub(crate) trait Sink {
    /// Reports one group.
    fn group(&mut self, group: &[Transaction], output: &mut dyn Write) -> io::Result<()>;

    /// The log of the server with this identity (empty for a file) is about to be read.
    fn begin(&mut self, _identity: &str, _signals: &Arc<Signals>) -> io::Result<()> {
        Ok(())
    }

    /// Records are written in this layout from now on; called before the first group, and only if
    /// the output is a log file.
    fn set_layout(&mut self, _layout: Layout) {}

    /// Called after every check of the log; waits briefly unless there is more to read. False ends
    /// the tool.
    fn turn(&mut self, state: LogState) -> io::Result<bool> {
        if state == LogState::Waiting {
            std::thread::sleep(IDLE);
        }
        Ok(state != LogState::Ended)
    }

    /// Reports an event of the log to the user.
    fn notice(&mut self, text: &str, error: &mut dyn Write) {
        let _ = writeln!(error, "{text}");
    }

    /// Reading has ended; called once, regardless of the events since [`Sink::begin`].
    fn end(&mut self) {}

    /// True for a tool that displays its screen before there is a server, if it may wait forever.
    fn starts_without_server(&self) -> bool {
        false
    }
}

/// The options common to the tools of the log.
pub(crate) struct Follow {
    name: Option<OsString>,
    file: Option<OsString>,
    from_head: bool,
    attach_timeout: AttachTimeout,
    pub grouping: Grouping,
    /// `-b`, `-c` and `-E`; without them, everything.
    pub sides: Option<Sides>,
    query: Option<Query>,
    incomplete_max: usize,
    timeout_seconds: f64,
    groups_max: Option<u64>,
    rate: Option<Rate>,
    pid_file: Option<OsString>,
    daemonize: bool,
    /// `-w` was given, possibly as `-` for standard output.
    pub writes: bool,
    write_to: Option<OsString>,
    append: bool,
    unbuffered: bool,
    caseless: bool,
    /// The output is a log file, whose head is still to be written.
    lacks_head: bool,
}

impl Follow {
    /// Reads the common options; `allowed` are the grouping modes that the tool supports. The error
    /// is a message.
    pub fn from_options(given: &Given, allowed: &[Grouping]) -> Result<Follow, String> {
        let path = |letter| given.last(letter).map(OsStr::to_owned);
        let mut follow = Follow {
            name: path('n'),
            file: path('r'),
            from_head: given.has('d'),
            attach_timeout: AttachTimeout::default(),
            grouping: Grouping::Vxid,
            sides: None,
            query: None,
            incomplete_max: 1000,
            timeout_seconds: 120.0,
            groups_max: None,
            rate: None,
            pid_file: path('P'),
            daemonize: given.has('D'),
            writes: given.has('w'),
            write_to: path('w'),
            append: given.has('a'),
            unbuffered: given.has('u'),
            caseless: given.has('C'),
            lacks_head: false,
        };
        let mut queries: Vec<String> = Vec::new();
        for (letter, argument) in &given.options {
            let text = argument.to_string_lossy();
            match letter {
                'g' => follow.grouping = grouping(&text, allowed)?,
                't' => {
                    follow.attach_timeout =
                        AttachTimeout::parse(argument).ok_or_else(|| format!("-t: Invalid argument: {text}"))?;
                }
                'k' => {
                    let number = text.parse().ok().filter(|number| *number > 0 && *number <= i32::MAX as u64);
                    follow.groups_max = Some(number.ok_or_else(|| format!("-k: Invalid number '{text}'"))?);
                }
                'L' => {
                    let number: i64 = text.trim().parse().map_err(|_| "-L: Syntax error".to_owned())?;
                    let number = i32::try_from(number).ok().filter(|number| *number > 0);
                    follow.incomplete_max = number.ok_or("-L: Range error")? as usize;
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
                    let read = fs::read(argument).map_err(|error| format!("-Q {text}: {}", reason(&error)))?;
                    queries.push(String::from_utf8_lossy(&read).into_owned());
                }
                _ => {}
            }
        }
        if follow.file.is_some() && follow.name.is_some() {
            return Err("Only one of -n and -r options may be used".to_owned());
        }
        let sides = Sides { client: given.has('c') || given.has('E'), backend: given.has('b'), esi: given.has('E') };
        follow.sides = (sides.client || sides.backend).then_some(sides);
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
        if follow.daemonize && follow.file.as_deref() == Some(OsStr::new("-")) {
            return Err("Daemon cannot read from stdin".to_owned());
        }
        if to_stdout {
            follow.write_to = None;
        }
        Ok(follow)
    }

    /// Reports groups until the log ends, a limit is reached or a signal arrives; `is_log_file` if
    /// the output is a log file. Returns the exit status.
    pub fn run(&mut self, sink: &mut dyn Sink, is_log_file: bool, streams: &mut Streams) -> i32 {
        match self.try_run(sink, is_log_file, streams) {
            Ok(()) => 0,
            Err(Ended::Failed(status, message)) => {
                let _ = writeln!(streams.error, "{message}");
                status
            }
            Err(Ended::OutputGone(error)) => {
                // The reader of the output may close early, which is not an error; a full disk is.
                if error.kind() != io::ErrorKind::BrokenPipe {
                    let file =
                        self.write_to.as_ref().map(|path| format!(" {}", path.to_string_lossy())).unwrap_or_default();
                    let _ = writeln!(streams.error, "Cannot write{file}: {}", reason(&error));
                }
                1
            }
        }
    }

    fn try_run(&mut self, sink: &mut dyn Sink, is_log_file: bool, streams: &mut Streams) -> Result<(), Ended> {
        // A daemon changes its directory, and must still find the file when it ends.
        self.pid_file = self.pid_file.take().map(|path| std::path::absolute(&path).map_or(path, Into::into));
        let mut file = match &self.write_to {
            None => None,
            Some(path) => {
                let opened = crate::output::OutputFile::open(path.as_ref(), self.append);
                // Compat: varnishncsa, whose files have no head, has its own word and status here.
                let (status, word) = if is_log_file { (2, "Cannot") } else { (1, "Can't") };
                let refused = |error| Ended::Failed(status, format!("{word} open output file ({})", reason(&error)));
                Some(opened.map_err(refused)?)
            }
        };
        let mut source = match &self.file {
            Some(file) if file == "-" => Source::stream(&mut *streams.input, "-").map_err(failed)?,
            Some(file) => Source::file(file).map_err(failed)?,
            None => {
                let vsm = if sink.starts_without_server() && self.attach_timeout == AttachTimeout(None) {
                    Some(Vsm::new(&work_directory(self.name.as_deref())))
                } else {
                    self.attach_timeout.attach(self.name.as_deref())
                };
                let vsm = vsm.ok_or_else(|| {
                    let why = not_running(self.name.as_deref(), streams.called);
                    failed(if streams.called == Called::Stock { format!("VSM: {why}") } else { why })
                })?;
                Source::server(vsm, self.from_head)
            }
        };
        let mut pid_file = match &self.pid_file {
            None => None,
            Some(path) => Some(PidFile::open(path.as_ref()).map_err(failed)?),
        };
        if self.daemonize {
            nix::unistd::daemon(false, false).map_err(|error| failed(format!("Cannot become a daemon: {error}")))?;
        }
        if let Some(file) = &mut pid_file {
            file.write().map_err(failed)?;
        }
        let signals = if streams.program { Signals::listen() } else { Signals::deaf() };
        self.lacks_head = is_log_file;
        if source.layout().is_some() {
            self.begin_file(&source, sink, &mut file, &mut *streams.output).map_err(Ended::OutputGone)?;
        }
        let ended = {
            let Streams { output, error, .. } = streams;
            match sink.begin(&source.identity(), &signals) {
                Ok(()) => self.follow(&mut source, sink, &mut file, &mut **output, &mut **error, &signals),
                Err(error) => Err(Ended::OutputGone(error)),
            }
        };
        drop(pid_file);
        sink.end();
        self.begin_file(&source, sink, &mut file, &mut *streams.output).map_err(Ended::OutputGone)?;
        let flushed = match &mut file {
            Some(file) => file.flush(),
            None => streams.output.flush(),
        };
        ended.and(flushed.map_err(Ended::OutputGone))
    }

    /// Writes the head of a log file, once. Records have the layout of those that the file has
    /// already, or of those that are read.
    fn begin_file(
        &mut self,
        source: &Source,
        sink: &mut dyn Sink,
        file: &mut Option<crate::output::OutputFile>,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        if !std::mem::take(&mut self.lacks_head) {
            return Ok(());
        }
        let present = file.as_ref().and_then(crate::output::OutputFile::layout);
        let layout = present.or(source.layout()).unwrap_or_default();
        sink.set_layout(layout);
        match file {
            Some(file) => file.begin(layout.file_head()),
            None => output.write_all(layout.file_head()),
        }
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
        let mut grouper = Grouper::new(self.grouping, self.incomplete_max, self.timeout_seconds).only(self.sides);
        let started = Instant::now();
        let mut next_look = started;
        let mut words = Vec::new();
        let mut messages = Vec::new();
        let mut reported = 0;
        loop {
            let now = started.elapsed().as_secs_f64();
            let next = source.next(&mut words);
            match next {
                Next::Chunk => grouper.push(&words, now),
                Next::Wait => grouper.tick(now),
                Next::End => {}
                Next::Overrun | Next::Damaged => {
                    // Unfinished transactions will not get any more records.
                    grouper.flush();
                    if next == Next::Overrun {
                        source.lose_place(&mut messages);
                    } else {
                        source.find_damage(&mut messages);
                    }
                }
            }
            if signals.take_flush() {
                grouper.flush();
            }
            while let Some(group) = grouper.next_ready() {
                self.begin_file(source, sink, file, output).map_err(Ended::OutputGone)?;
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
                sink.group(&group, target).map_err(Ended::OutputGone)?;
                if self.unbuffered {
                    target.flush().map_err(Ended::OutputGone)?;
                }
                reported += 1;
                if self.groups_max.is_some_and(|limit| reported >= limit) {
                    break;
                }
            }
            if signals.stop() {
                return Ok(());
            }
            if signals.take_rotate() {
                match file {
                    Some(file) if self.daemonize => file.rotate().map_err(Ended::OutputGone)?,
                    _ => return Ok(()),
                }
            }
            let state = match next {
                _ if self.groups_max.is_some_and(|limit| reported >= limit) => LogState::Ended,
                Next::Chunk => LogState::Reading,
                Next::End => LogState::Ended,
                Next::Wait if self.from_head => {
                    source.found_log().map_err(failed)?;
                    LogState::Ended
                }
                Next::Wait | Next::Overrun | Next::Damaged => LogState::Waiting,
            };
            if state == LogState::Waiting {
                match file {
                    Some(file) => file.flush(),
                    None => output.flush(),
                }
                .map_err(Ended::OutputGone)?;
                if next_look <= Instant::now() {
                    if source.look_again(&mut messages) == Look::Gone {
                        grouper.flush();
                    }
                    next_look = Instant::now() + INDEX_INTERVAL;
                }
            }
            if !messages.is_empty() {
                for text in String::from_utf8_lossy(&messages).lines() {
                    sink.notice(text, error);
                }
                messages.clear();
            }
            if !sink.turn(state).map_err(Ended::OutputGone)? {
                return Ok(());
            }
        }
    }
}

/// Reason why a tool ended early.
enum Ended {
    /// An error with an exit status and a message.
    Failed(i32, String),
    /// The reader of the output has gone, or the disk is full.
    OutputGone(io::Error),
}

fn failed(message: String) -> Ended {
    Ended::Failed(1, message)
}

const GROUPINGS: [(&str, Grouping); 4] =
    [("raw", Grouping::Raw), ("vxid", Grouping::Vxid), ("request", Grouping::Request), ("session", Grouping::Session)];

/// `-i`, `-I`, `-x` and `-X` in order; a `-C` applies to the options after it. The error is a
/// message.
pub(crate) fn selection(given: &Given) -> Result<Selection, String> {
    let mut selection = Selection::default();
    let mut caseless = false;
    for (letter, argument) in &given.options {
        caseless |= *letter == 'C';
        selection.add(*letter, &argument.to_string_lossy(), caseless)?;
    }
    Ok(selection)
}

/// A grouping by its name, ignoring case, or by an unambiguous beginning of it.
fn grouping(text: &str, allowed: &[Grouping]) -> Result<Grouping, String> {
    let starts = |name: &str| name.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text));
    let mut found = GROUPINGS.iter().filter(|(name, _)| starts(name));
    let (name, grouping) = match (found.next(), found.next()) {
        (None, _) => return Err(format!("Unknown grouping type: {text}")),
        (Some(_), Some(_)) => return Err(format!("Ambiguous grouping type: {text}")),
        (Some(found), None) => found,
    };
    if allowed.contains(grouping) { Ok(*grouping) } else { Err(format!("Invalid grouping mode: {name}")) }
}

/// The system's text for an error, without the number.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => nix::errno::Errno::from_raw(number).desc().to_owned(),
        None => error.to_string(),
    }
}
