//! The replay itself: both VCLs, fed with the recorded requests in the order of their starts.

use super::answers::Answers;
use super::difference::{Owners, Side, differences, shown};
use super::player::{Played, Player};
use super::summary::{Example, Summary};
use crate::facts::{Line, lines};
use crate::runner::{STACK_BYTES, last_line, line_of, shown as shown_line};
use crate::world::Setting;
use recording::{Exchange, Item, Reader};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, Seek as _};
use std::rc::Rc;
use std::time::Duration;
use surface::limits::{REPLAY_EXAMPLES_MAX, REPLAY_WINDOW_MAX};
use surface::parameter::Parameters;
use surface::replay::DifferenceClass;
use tokio::task::LocalSet;
use tools::Streams;
use vcl_run::program::Program;

/// Time before the first request, in seconds, so that it is not at the start of the clock.
const LEAD_SECONDS: f64 = 1.0;

/// A VCL ready to be replayed.
pub(super) struct Prepared {
    pub(super) program: Program,
    pub(super) parameters: Parameters,
}

/// The VCLs of a replay.
pub(super) struct Sources {
    pub(super) old: Option<Prepared>,
    pub(super) new: Prepared,
}

/// Everything that the thread without files needs.
pub(super) struct Job {
    recording: Reader<BufReader<File>>,
    answers: Answers,
    start: f64,
    sources: Sources,
    cache_bytes: u64,
}

/// Reads all responses of a recording.
pub(super) fn collect(mut file: File, sources: Sources, cache_bytes: u64, is_warm: bool) -> Result<Job, String> {
    let (mut answers, mut start, mut number) = (Answers::default(), f64::INFINITY, 0);
    for item in Reader::open(BufReader::new(&mut file))? {
        let Item::Exchange(exchange) = item else { continue };
        if exchange.start > 0.0 {
            start = start.min(exchange.start);
        }
        answers.add(number, &exchange, is_warm)?;
        number += 1;
    }
    if !start.is_finite() {
        return Err("there is no request in it".to_owned());
    }
    file.rewind().map_err(|error| error.to_string())?;
    Ok(Job { recording: Reader::open(BufReader::new(file))?, answers, start, sources, cache_bytes })
}

/// Replays on a thread that can open nothing.
pub(super) fn in_thread(job: Job, streams: &mut Streams) -> Result<Summary, String> {
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
        let (answers, sources) = (Rc::new(job.answers), &job.sources);
        let setting = Setting { start: job.start - LEAD_SECONDS, storage_bytes: job.cache_bytes };
        let player = |of: &Prepared| Player::new(&of.program, &of.parameters, &answers, &setting);
        let mut replay = Replay {
            new: player(&sources.new)?,
            old: sources.old.as_ref().map(player).transpose()?,
            programs: [sources.old.as_ref().map(|old| &old.program), Some(&sources.new.program)],
            owners: [Owners::default(), Owners::default()],
            summary: Summary::default(),
            start: job.start,
            begun: tokio::time::Instant::now(),
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
