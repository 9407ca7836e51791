//! `copal replay`: recorded requests through a VCL, compared with the recording or another VCL.
//!
//! ```text
//! recording ──all responses──▶ Answers ◀──asks── old VCL, new VCL (a Player each: engine, cache)
//!           ──each request, in the order of their starts──▶ both, at the same virtual time
//! ```
//!
//! Two replays differ only by their VCL: clock, random numbers and origin are the same.
//! *Invariants:* the thread that replays can open no file and no socket; a response of the origin
//! that was not recorded is never made up, but counted. Next files: `replay/answers.rs`,
//! `replay/player.rs`, `replay/difference.rs`.

mod answers;
mod difference;
mod limits;
mod player;
mod report;
mod summary;

use crate::command::{read_vcl, setting, words_of};
use crate::facts::{Line, lines};
use crate::program::{Settings, compile};
use crate::runner::{STACK_BYTES, last_line, line_of, shown as shown_line};
use crate::world::Setting;
use answers::Answers;
use difference::{Owners, Side, differences, shown};
use limits::Limits;
use player::{Played, Player};
use recording::{Exchange, Item, Reader};
use report::{Form, Report};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use summary::{Example, Summary};
use surface::legible;
use surface::limits::{REPLAY_EXAMPLES_MAX, REPLAY_WINDOW_MAX};
use surface::parameter::Parameters;
use surface::program::program;
use surface::replay::DifferenceClass;
use tokio::task::LocalSet;
use tools::Streams;
use tools::options::{self, Given};
use vcl_run::program::Program;

/// The row of this tool.
const PART: &str = "replay";
/// Exit status without differences.
const SAME: i32 = 0;
/// Exit status for differences within the limits.
const DIFFERS: i32 = 1;
/// Exit status if a limit was passed.
const PASSED: i32 = 2;
/// Exit status if nothing follows from the replay.
const UNUSABLE: i32 = 3;
/// Size of the cache, unless `--cache-size` says otherwise, in bytes.
const CACHE_BYTES: u64 = 256 << 20;
/// Time before the first request, in seconds, so that it is not at the start of the clock.
const LEAD_SECONDS: f64 = 1.0;

struct Command {
    recording: OsString,
    new: OsString,
    /// `None` = compare with the recording.
    old: Option<OsString>,
    limits: Limits,
    form: Form,
    cache_bytes: u64,
    is_warm: bool,
    settings: Settings,
}

pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let given = match options::parse(PART, args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let command = match read(given) {
        Ok(command) => command,
        Err(text) => return options::wrong(program(PART), &text, streams),
    };
    match prepare(&command).and_then(|job| in_thread(job, streams)) {
        Ok(summary) => report(&command, &summary, streams),
        Err(text) => {
            let _ = writeln!(streams.error, "{}", legible::lines(text.trim_end().as_bytes()));
            UNUSABLE
        }
    }
}

fn read(given: Given) -> Result<Command, String> {
    let [recording] = <[OsString; 1]>::try_from(given.rest).map_err(|_| "which recording?")?;
    let mut new = None;
    let mut command = Command {
        recording,
        new: OsString::new(),
        old: None,
        limits: Limits::default(),
        form: Form::Text,
        cache_bytes: CACHE_BYTES,
        is_warm: false,
        settings: Settings::default(),
    };
    for (letter, argument) in given.options {
        match letter {
            'v' => new = Some(argument),
            'a' => command.old = Some(argument).filter(|file| file != "recorded"),
            'l' => command.limits.add(&words_of(argument)?)?,
            'J' => command.form = Form::Json,
            'M' => command.form = Form::Markdown,
            'S' => command.cache_bytes = size(&words_of(argument)?)?,
            'w' => command.is_warm = true,
            _ => setting(&mut command.settings, letter, argument)?,
        }
    }
    command.new = new.ok_or("which VCL? (--vcl)")?;
    Ok(command)
}

fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &*text[digits.len()..].to_ascii_lowercase() {
        "" | "b" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        _ => 0,
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    bytes.filter(|bytes| *bytes >= 1 << 20).ok_or_else(|| format!("--cache-size: '{text}' is not a size such as 256m"))
}

/// A VCL ready to be replayed.
struct Prepared {
    program: Program,
    parameters: Parameters,
}

/// Everything that the thread without files needs.
struct Job {
    recording: Reader<BufReader<File>>,
    answers: Answers,
    start: f64,
    old: Option<Prepared>,
    new: Prepared,
    cache_bytes: u64,
    shows_lines: bool,
}

fn prepare(command: &Command) -> Result<Job, String> {
    let parameters = command.settings.parameters(&[])?;
    let prepared = |file: &OsStr| {
        let (name, text) = read_vcl(file)?;
        let program = compile(&name, &text, &command.settings, &parameters).map_err(|error| error.text)?;
        Ok::<_, String>(Prepared { program, parameters: parameters.clone() })
    };
    let new = prepared(&command.new)?;
    let old = command.old.as_deref().map(prepared).transpose()?;
    let name = Path::new(&command.recording).display();
    let open = || {
        let file = File::open(&command.recording).map_err(|error| error.to_string());
        file.and_then(|file| Reader::open(BufReader::new(file)))
    };
    let open = || open().map_err(|error| format!("{name}: {}", error.split(" (os error").next().unwrap_or_default()));
    let (mut answers, mut start, mut number) = (Answers::default(), f64::INFINITY, 0);
    for item in open()? {
        let Item::Exchange(exchange) = item else { continue };
        if exchange.start > 0.0 {
            start = start.min(exchange.start);
        }
        answers.add(number, &exchange, command.is_warm).map_err(|error| format!("{name}: {error}"))?;
        number += 1;
    }
    if !start.is_finite() {
        return Err(format!("{name}: there is no request in it"));
    }
    let (recording, cache_bytes) = (open()?, command.cache_bytes);
    Ok(Job { recording, answers, start, old, new, cache_bytes, shows_lines: true })
}

/// Replays on a thread that can open nothing.
fn in_thread(job: Job, streams: &mut Streams) -> Result<Summary, String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let work = move || {
        if let Err(text) = sandbox::isolate_thread() {
            let _ = sender.send(text);
        }
        play(job)
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work).map_err(|error| error.to_string())?;
    let result = thread.join();
    if let Ok(text) = receiver.try_recv() {
        let _ = writeln!(streams.error, "copal replay: VMODs can reach files and networks here: {text}");
    }
    result.unwrap_or_else(|_| Err("the engine failed; please report this VCL".to_owned()))
}

fn report(command: &Command, summary: &Summary, streams: &mut Streams) -> i32 {
    let fault = summary.fault();
    let passed = if fault.is_some() { Vec::new() } else { command.limits.passed(summary) };
    let status = match (&fault, passed.is_empty(), summary.differing) {
        (Some(_), _, _) => UNUSABLE,
        (None, false, _) => PASSED,
        (None, true, 0) => SAME,
        (None, true, _) => DIFFERS,
    };
    let report = Report { summary, has_old: command.old.is_some(), passed: &passed, fault: fault.as_deref(), status };
    let _ = streams.output.write_all(report.write(command.form).as_bytes());
    status
}

/// A request that waits for its turn.
struct Waiting {
    number: u32,
    exchange: Box<Exchange>,
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> std::cmp::Ordering {
        self.exchange.start.total_cmp(&other.exchange.start).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

fn play(job: Job) -> Result<Summary, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?;
    LocalSet::new().block_on(&runtime, async {
        let answers = Rc::new(job.answers);
        let setting = Setting { start: job.start - LEAD_SECONDS, storage_bytes: job.cache_bytes };
        let player = |of: &Prepared| Player::new(&of.program, &of.parameters, &answers, &setting);
        let mut replay = Replay {
            new: player(&job.new)?,
            old: job.old.as_ref().map(player).transpose()?,
            programs: [job.old.as_ref().map(|old| &old.program), Some(&job.new.program)],
            owners: [Owners::default(), Owners::default()],
            summary: Summary::default(),
            start: job.start,
            begun: tokio::time::Instant::now(),
            shows_lines: job.shows_lines,
        };
        let mut recording = job.recording;
        let (mut window, mut number) = (BinaryHeap::new(), 0);
        loop {
            let item = recording.next();
            let is_end = item.is_none();
            match item {
                Some(Item::Exchange(exchange)) => {
                    window.push(Reverse(Waiting { number, exchange }));
                    number += 1;
                }
                Some(Item::Lost) => replay.summary.lost += 1,
                Some(Item::Notes(_)) | None => {}
            }
            while window.len() > if is_end { 0 } else { REPLAY_WINDOW_MAX } {
                let Some(Reverse(next)) = window.pop() else { break };
                replay.one(next.number, &next.exchange).await;
            }
            if is_end {
                break;
            }
        }
        replay.summary.damage = recording.damage();
        Ok(replay.summary)
    })
}

struct Replay<'a> {
    old: Option<Player>,
    new: Player,
    programs: [Option<&'a Program>; 2],
    owners: [Owners; 2],
    summary: Summary,
    start: f64,
    begun: tokio::time::Instant,
    shows_lines: bool,
}

impl Replay<'_> {
    async fn one(&mut self, number: u32, recorded: &Exchange) {
        self.summary.recorded += 1;
        self.summary.fragments += u64::from(recorded.fragments);
        if recorded.is_cut {
            self.summary.cut += 1;
            return;
        }
        if recorded.handling == "pipe" || recorded.response.is_none() {
            self.summary.skipped += 1;
            return;
        }
        let due = Duration::try_from_secs_f64(recorded.start - self.start + LEAD_SECONDS).unwrap_or_default();
        tokio::time::sleep_until(self.begun + due).await;
        let old = match &mut self.old {
            Some(player) => match player.play(number, recorded).await {
                Some(played) => Some(played),
                None => return self.summary.skipped += 1,
            },
            None => None,
        };
        let Some(new) = self.new.play(number, recorded).await else { return self.summary.skipped += 1 };
        self.compare(recorded, old.as_ref(), &new);
    }

    fn compare(&mut self, recorded: &Exchange, old: Option<&Played>, new: &Played) {
        let before = old.map_or(recorded, |old| &old.exchange);
        let is_shared = [self.owners[0].note(before), self.owners[1].note(&new.exchange)];
        let missing = old.map_or(&[][..], |old| &old.seen.missing);
        // Without an old VCL, a request of the new one that has no answer may be its own doing.
        if !missing.is_empty() {
            self.summary.unknown += 1;
            return;
        }
        self.summary.compared += 1;
        self.summary.before.add(before);
        self.summary.after.add(&new.exchange);
        self.summary.similar += u64::from(new.seen.similar);
        if let Some(old) = old {
            self.note_noise(recorded, old);
        }
        let before_side = Side { exchange: before, is_shared: is_shared[0], missing };
        let after_side = Side { exchange: &new.exchange, is_shared: is_shared[1], missing: &new.seen.missing };
        let found = differences(&before_side, &after_side);
        self.summary.differing += u64::from(!found.is_empty());
        for (class, text) in found {
            self.summary.add(class);
            if self.summary.wants_example(class) {
                let lines = self.lines(class, old, new);
                self.summary.add_example(class, self.example(recorded, text, lines));
            }
        }
    }

    fn note_noise(&mut self, recorded: &Exchange, old: &Played) {
        let is_same = recorded.status() == old.exchange.status() && recorded.handling == old.exchange.handling;
        // Its response was stored before the recording began.
        let is_warm_up = old.seen.stand_ins > 0 && recorded.handling.starts_with("hit");
        if is_same || is_warm_up {
            return;
        }
        self.summary.noise += 1;
        if self.summary.noise_examples.len() < REPLAY_EXAMPLES_MAX {
            let state = |exchange: &Exchange| format!("{} {}", exchange.handling, exchange.status());
            let text = format!("recorded {}, replayed {}", state(recorded), state(&old.exchange));
            let example = self.example(recorded, text, Vec::new());
            self.summary.noise_examples.push(example);
        }
    }

    fn example(&self, recorded: &Exchange, text: String, lines: Vec<String>) -> Example {
        let [method, url, _] = &recorded.request.line;
        let host = recorded.request.value("Host").unwrap_or_default();
        let request = shown(&[&method[..], b" ", host, url].concat());
        Example { request, at: recorded.start - self.start, text, lines }
    }

    /// The lines of the old and of the new VCL that decided.
    fn lines(&self, class: DifferenceClass, old: Option<&Played>, new: &Played) -> Vec<String> {
        if !self.shows_lines {
            return Vec::new();
        }
        let sides = [("old", old, self.programs[0]), ("new", Some(new), self.programs[1])];
        let mut all = Vec::new();
        for (name, played, program) in sides {
            let (Some(played), Some(program)) = (played, program) else { continue };
            let line = deciding_line(class, played, program).and_then(|line| shown_line(program, line));
            all.extend(line.map(|line| format!("{name} {line}")));
        }
        all
    }
}

fn deciding_line(class: DifferenceClass, played: &Played, program: &Program) -> Option<Line> {
    let of_words = last_line(&lines(&played.records), program, class.statements());
    if class != DifferenceClass::Handling {
        return of_words;
    }
    let said = played.exchange.reasons.iter().rfind(|said| !said.is_fetch && said.place.is_some());
    said.and_then(|said| line_of(program, said.place.as_ref()?)).or(of_words)
}

#[cfg(test)]
mod tests;
