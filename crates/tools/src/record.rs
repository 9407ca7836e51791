//! `copal record`: writes the requests in the log to a recording.
//!
//! Requests come as groups of transactions (`follow.rs`); each becomes an exchange
//! (`recording::gather`), is masked, and is written. *Invariants:* the file is readable by its
//! owner only, never replaces another one, and holds whole frames whenever the tool ends.

use crate::administration::client::CliClient;
use crate::follow::{Follow, IDLE, LogState, Sink};
use crate::options::{self, Given};
use crate::streams::Streams;
use recording::{Item, Line, Masks, Notes, Writer, gather};
use shm::read::group::Grouping;
use shm::read::transaction::{Kind, Reason, Transaction};
use shm::read::vsm::work_directory;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use surface::program::program;
use surface::quantity::seconds;
use surface::version::COPAL_VERSION;

/// The row of this tool.
const PART: &str = "record";
/// Exit status if there was no request.
const NOTHING: i32 = 1;
/// Exit status for a wrong command line, without a server, and for files that cannot be written.
const FAILED: i32 = 2;
/// Requests that are recorded, unless `--requests` says otherwise.
const REQUESTS_DEFAULT: u64 = 100_000;
/// Default of the parameter `vsl_reclen`, in bytes.
const RECLEN_DEFAULT: usize = 255;
/// Time after which written requests reach the file.
const FLUSH: Duration = Duration::from_secs(1);

/// The part of the traffic that is recorded.
#[derive(Clone, Copy)]
enum Sample {
    All,
    Clients(f64),
    Requests(f64),
}

struct Options {
    file: PathBuf,
    seconds: Option<f64>,
    requests_max: u64,
    sample: Sample,
    keeps_secrets: bool,
    record_bytes: Option<usize>,
    source: Given,
}

fn read(given: &Given) -> Result<Options, String> {
    let text = |letter| given.last(letter).map(OsStr::to_string_lossy);
    let file = given.last('o').ok_or("-o: which file?")?.into();
    let duration = |text: &str| seconds(text).filter(|seconds| *seconds > 0.0);
    let seconds = match text('F') {
        None => None,
        Some(text) => Some(duration(&text).ok_or_else(|| format!("--for: '{text}' is not a duration such as 10m"))?),
    };
    let number = |letter, word: &str| match text(letter) {
        None => Ok(None),
        Some(text) => match text.parse::<u64>().ok().filter(|number| *number > 0) {
            None => Err(format!("--{word}: '{text}' is not a number")),
            number => Ok(number),
        },
    };
    let share = |letter, word: &str| match text(letter) {
        None => Ok(None),
        Some(text) => {
            let percent = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
            let percent = percent.filter(|percent| *percent > 0.0 && *percent <= 100.0);
            percent
                .map(|percent| Some(percent / 100.0))
                .ok_or_else(|| format!("--{word}: '{text}' is not a percentage"))
        }
    };
    let sample = match (share('c', "client-sample")?, share('s', "sample")?) {
        (Some(_), Some(_)) => return Err("--client-sample and --sample exclude each other".to_owned()),
        (Some(share), None) => Sample::Clients(share),
        (None, Some(share)) => Sample::Requests(share),
        (None, None) => Sample::All,
    };
    let mut source = Given { options: vec![('g', "request".into())], rest: Vec::new() };
    let passed = given.options.iter().filter(|(letter, _)| matches!(letter, 'n' | 'r' | 't' | 'q' | 'd'));
    source.options.extend(passed.cloned());
    Ok(Options {
        file,
        seconds,
        requests_max: number('N', "requests")?.unwrap_or(REQUESTS_DEFAULT),
        sample,
        keeps_secrets: given.has('K'),
        record_bytes: number('R', "record-bytes")?.map(|bytes| bytes as usize),
        source,
    })
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
    let mut follow = match Follow::from_options(&options.source, &[Grouping::Request]) {
        Ok(follow) => follow,
        Err(text) => {
            let _ = writeln!(streams.error, "copal record: {text}");
            return FAILED;
        }
    };
    let mut recorder = match Recorder::open(&options, &given) {
        Ok(recorder) => recorder,
        Err(error) => {
            let reason = crate::follow::reason(&error);
            let _ = writeln!(streams.error, "copal record: {}: {reason}", options.file.display());
            return FAILED;
        }
    };
    let status = follow.run(&mut recorder, false, streams);
    recorder.report(&options, streams);
    let is_failed = status != 0 || recorder.error.is_some();
    if recorder.recorded == 0 {
        // Nothing but the head is in it.
        let _ = std::fs::remove_file(&options.file);
    }
    match (is_failed, recorder.recorded) {
        (true, _) => FAILED,
        (false, 0) => NOTHING,
        (false, _) => 0,
    }
}

struct Recorder {
    writer: Writer<BufWriter<File>>,
    masks: Option<Masks>,
    record_bytes: usize,
    requests_max: u64,
    end: Option<Instant>,
    sample: Sample,
    chance: RandomState,
    flushed: Instant,
    recorded: u64,
    cut: u64,
    lost: u64,
    error: Option<io::Error>,
}

impl Recorder {
    fn open(options: &Options, given: &Given) -> io::Result<Recorder> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&options.file)?;
        let notes = Notes {
            program: COPAL_VERSION.to_owned(),
            is_masked: !options.keeps_secrets,
            is_sample: !matches!(options.sample, Sample::All) || given.has('q'),
        };
        let record_bytes = options.record_bytes.or_else(|| asked(given)).unwrap_or(RECLEN_DEFAULT);
        let end = options.seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Ok(Recorder {
            writer: Writer::begin(BufWriter::new(file), &notes)?,
            masks: (!options.keeps_secrets).then(|| Masks::new(rand::random())),
            // The length of a record counts its NUL.
            record_bytes: record_bytes.saturating_sub(1).max(1),
            requests_max: options.requests_max,
            end: end.and_then(|time| Instant::now().checked_add(time)),
            sample: options.sample,
            chance: RandomState::new(),
            flushed: Instant::now(),
            recorded: 0,
            cut: 0,
            lost: 0,
            error: None,
        })
    }

    /// True if a request belongs to the sample.
    fn takes(&self, client: &std::net::IpAddr, vxid: u64) -> bool {
        let is_below = |hash: u64, share: f64| (hash as f64) < share * u64::MAX as f64;
        match self.sample {
            Sample::All => true,
            Sample::Clients(share) => is_below(self.chance.hash_one(client), share),
            Sample::Requests(share) => is_below(self.chance.hash_one(vxid), share),
        }
    }

    fn add(&mut self, group: &[Transaction]) -> io::Result<()> {
        let Some(first) = group.first().filter(|first| first.kind == Kind::Request && first.reason == Reason::Rxreq)
        else {
            return Ok(());
        };
        let records = group.iter().flat_map(|one| one.records().map(move |record| (one.vxid, record)));
        let lines: Vec<Line> =
            records.filter_map(|(vxid, record)| Some(Line { vxid, tag: record.tag()?, text: record.text() })).collect();
        let Some(mut exchange) = gather(&lines, self.record_bytes) else { return Ok(()) };
        if !self.takes(&exchange.client, first.vxid) {
            return Ok(());
        }
        self.recorded += 1;
        self.cut += u64::from(exchange.is_cut);
        if let Some(masks) = &self.masks {
            masks.apply(&mut exchange);
        }
        self.writer.add(&Item::Exchange(Box::new(exchange)))
    }

    fn keep<T>(&mut self, result: io::Result<T>) -> io::Result<()> {
        match result {
            Ok(_) => Ok(()),
            Err(error) => {
                let copy = io::Error::new(error.kind(), error.to_string());
                self.error.get_or_insert(error);
                Err(copy)
            }
        }
    }

    fn report(&self, options: &Options, streams: &mut Streams) {
        let shown = options.file.display();
        if let Some(error) = &self.error {
            let _ = writeln!(streams.error, "copal record: {shown}: {}", crate::follow::reason(error));
        }
        if self.recorded == 0 {
            let _ = writeln!(streams.error, "copal record: no request came");
            return;
        }
        let _ = writeln!(streams.error, "{} requests recorded in {shown}", self.recorded);
        if self.lost > 0 {
            let text = "the log was overrun: requests are missing from the recording";
            let _ = writeln!(streams.error, "copal record: {text} ({} times)", self.lost);
        }
        if self.cut > 0 {
            let (cut, bytes) = (self.cut, self.record_bytes + 1);
            let _ = writeln!(
                streams.error,
                "copal record: {cut} of them have records that are missing or were cut at {bytes} bytes, and cannot \
                 be replayed; copal adm param.set vsl_reclen 4000 keeps longer ones"
            );
        }
    }
}

impl Sink for Recorder {
    fn group(&mut self, group: &[Transaction], _: &mut dyn Write) -> io::Result<()> {
        if self.recorded == self.requests_max {
            return Ok(());
        }
        let added = self.add(group);
        self.keep(added)
    }

    fn turn(&mut self, state: LogState) -> io::Result<bool> {
        if state == LogState::Waiting {
            if self.flushed.elapsed() >= FLUSH {
                self.flushed = Instant::now();
                let flushed = self.writer.flush();
                self.keep(flushed)?;
            }
            std::thread::sleep(IDLE);
        }
        let is_over = self.end.is_some_and(|end| end <= Instant::now());
        Ok(state != LogState::Ended && !is_over && self.recorded < self.requests_max)
    }

    fn notice(&mut self, text: &str, error: &mut dyn Write) {
        if text.starts_with("Log overrun") {
            self.lost += 1;
            let added = self.writer.add(&Item::Lost);
            let _ = self.keep(added);
        } else {
            let _ = writeln!(error, "{text}");
        }
    }

    fn end(&mut self) {
        let flushed = self.writer.flush();
        let _ = self.keep(flushed);
    }
}

/// `vsl_reclen` of the server, in bytes; `None` if it cannot be asked.
fn asked(given: &Given) -> Option<usize> {
    if given.has('r') {
        return None;
    }
    let directory = work_directory(given.last('n'));
    let mut client = CliClient::open(directory.as_os_str()).ok()?;
    let (_, text) = client.ask(&["param.show".to_owned(), "vsl_reclen".to_owned()]).ok()?;
    let value = text.split("Value is: ").nth(1)?;
    let digits = value.split(|letter: char| !letter.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests;
