//! Runs cases one after the other on a thread without access to files and networks.
//!
//! The thread reports each result; if one does not come in time, or the thread ends, the case has
//! failed and the others run on a new thread. The old one cannot be stopped: it ends with the
//! process. After a few of them nothing further is run.

use crate::case::Ready;
use crate::expectation::{Mismatch, compare};
use crate::facts::{Facts, Line, lines};
use crate::world;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use surface::legible;
use surface::limits::{VCL_TEST_CASE_SECONDS_MAX, VCL_TEST_STUCK_MAX};
use surface::parameter::Parameters;
use surface::reason::Handling;
use vcl_run::program::Program;

/// Stack of the thread, in bytes: as large as an event loop's.
pub(crate) const STACK_BYTES: usize = 16 << 20;

/// The VCL for the cases of one file.
pub(crate) struct Prepared {
    pub(crate) program: Program,
    pub(crate) parameters: Parameters,
}

/// A case with its VCL.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) case: Arc<Ready>,
}

/// An expectation that did not hold.
pub(crate) struct Failure {
    /// Number of the request, from 0.
    pub(crate) step: usize,
    pub(crate) mismatch: Mismatch,
    /// The reason, and the lines of VCL that decided.
    pub(crate) why: Vec<String>,
}

/// The result of a case.
pub(crate) struct Outcome {
    /// Expectations that did not hold, or the reason why the case could not be run.
    pub(crate) result: Result<Vec<Failure>, String>,
    pub(crate) seconds: f64,
    /// The lines that ran.
    pub(crate) lines: Vec<Line>,
}

impl Outcome {
    pub(crate) fn has_passed(&self) -> bool {
        self.result.as_ref().is_ok_and(Vec::is_empty)
    }

    fn broken(text: impl Into<String>) -> Outcome {
        Outcome { result: Err(text.into()), seconds: 0.0, lines: Vec::new() }
    }
}

/// Runs all cases; `done` receives each result in order. Returns a remark if the thread could not
/// be isolated.
pub(crate) fn run(jobs: &[Job], mut done: impl FnMut(&Job, Outcome)) -> Option<String> {
    let limit = Duration::from_secs(VCL_TEST_CASE_SECONDS_MAX);
    let (mut next, mut stuck, mut remark) = (0, 0, None);
    while next < jobs.len() {
        if stuck >= VCL_TEST_STUCK_MAX {
            done(&jobs[next], Outcome::broken("not run, since too many cases before it did not end"));
            next += 1;
            continue;
        }
        let receiver = start(jobs[next..].to_vec());
        while next < jobs.len() {
            let outcome = match receiver.recv_timeout(limit) {
                Ok(Report::Remark(text)) => {
                    remark = Some(text);
                    continue;
                }
                Ok(Report::Done(outcome)) => *outcome,
                Err(RecvTimeoutError::Timeout) => {
                    stuck += 1;
                    let text = format!("took more than {VCL_TEST_CASE_SECONDS_MAX} seconds");
                    done(&jobs[next], Outcome::broken(text));
                    next += 1;
                    break;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    stuck += 1;
                    done(&jobs[next], Outcome::broken("the engine failed; please report this VCL"));
                    next += 1;
                    break;
                }
            };
            done(&jobs[next], outcome);
            next += 1;
        }
    }
    remark
}

/// A message of the thread.
enum Report {
    /// It could not be isolated.
    Remark(String),
    Done(Box<Outcome>),
}

fn start(jobs: Vec<Job>) -> Receiver<Report> {
    let (sender, receiver) = channel();
    // Without a thread the channel is closed at once, which is reported as a failure.
    let _ = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || work(&jobs, &sender));
    receiver
}

fn work(jobs: &[Job], sender: &Sender<Report>) {
    if let Err(text) = sandbox::isolate_thread() {
        let _ = sender.send(Report::Remark(text));
    }
    for job in jobs {
        if sender.send(Report::Done(Box::new(one(job)))).is_err() {
            return;
        }
    }
}

fn one(job: &Job) -> Outcome {
    let started = Instant::now();
    let Job { prepared, case } = job;
    let ran = match world::run(&prepared.program, &prepared.parameters, case) {
        Ok(ran) => ran,
        Err(text) => return Outcome { seconds: started.elapsed().as_secs_f64(), ..Outcome::broken(text) },
    };
    let mut all = lines(&ran.init);
    let mut failures = Vec::new();
    for (number, (step, facts)) in case.steps.iter().zip(&ran.facts).enumerate() {
        all.extend(facts.lines());
        for mismatch in compare(&step.expect, facts) {
            let why = explain(&mismatch, facts, &prepared.program);
            failures.push(Failure { step: number, mismatch, why });
        }
    }
    Outcome { result: Ok(failures), seconds: started.elapsed().as_secs_f64(), lines: all }
}

/// The reason for a fact, with the lines of VCL that decided it.
fn explain(mismatch: &Mismatch, facts: &Facts, program: &Program) -> Vec<String> {
    let mut why = Vec::new();
    let name = mismatch.name.as_str();
    let said = match name {
        "stored" => facts.reasons.iter().rfind(|said| said.is_fetch && said.row.word.contains("stored")),
        "ttl" | "grace" | "keep" => None,
        "handling" => facts.reasons.iter().rfind(|said| !said.is_fetch && said.row.handling.is_some()),
        _ => facts.decisive(),
    };
    let plain_hit = "A fresh stored copy was sent.";
    match said {
        Some(said) => why.push(format!("why: {}", said.row.sentence)),
        None if name == "handling" && facts.handling() == Handling::Hit => why.push(format!("why: {plain_hit}")),
        None => {}
    }
    let place = said.filter(|_| !name.contains('.')).and_then(|said| said.at.clone());
    let line = match place {
        Some(place) => line_of(program, &place),
        None => last_line(&facts.lines(), program, &words(name)),
    };
    why.extend(line.and_then(|line| shown(program, line)));
    why
}

/// Words of VCL statements that decide a fact.
fn words(name: &str) -> Vec<String> {
    let words: &[&str] = match name {
        "backend" => &["backend_hint", "req.backend", "bereq.backend"],
        "status" => &["synth", "resp.status", "beresp.status", "error"],
        "body" => &["synthetic", "resp.body", "beresp.body"],
        "ttl" | "stored" => &["beresp.ttl", "beresp.uncacheable"],
        "grace" => &["beresp.grace"],
        "keep" => &["beresp.keep"],
        "bereq.url" => &["req.url", "bereq.url"],
        "bereq.method" => &["req.method", "bereq.method"],
        "restarts" => &["restart"],
        "handling" => &["return"],
        name => match name.rsplit_once("header.") {
            Some((_, header)) => return vec![format!(".http.{}", header.to_lowercase())],
            None => &[],
        },
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The line of VCL at a place that a reason names.
pub(crate) fn line_of(program: &Program, (file, line): &(String, u32)) -> Option<Line> {
    program.sources.iter().position(|source| source.name == *file).map(|source| (source as u32, *line))
}

/// The last of these lines that is of the author's VCL and has one of these words.
pub(crate) fn last_line(lines: &[Line], program: &Program, words: &[impl AsRef<str>]) -> Option<Line> {
    let is_meant = |line: &Line| {
        let text = text(program, *line).unwrap_or_default().to_lowercase();
        !is_builtin(program, *line) && words.iter().any(|word| text.contains(word.as_ref()))
    };
    lines.iter().copied().rfind(is_meant)
}

fn is_builtin(program: &Program, line: Line) -> bool {
    program.sources.get(line.0 as usize).is_none_or(|source| source.name.starts_with("<builtin"))
}

/// The text of a line of VCL.
pub(crate) fn text(program: &Program, (source, line): Line) -> Option<&str> {
    program.sources.get(source as usize)?.text.lines().nth((line as usize).checked_sub(1)?)
}

/// `site.vcl:7: return (pass);`
pub(crate) fn shown(program: &Program, line: Line) -> Option<String> {
    let name = &program.sources.get(line.0 as usize)?.name;
    let whole = format!("{name}:{}: {}", line.1, text(program, line)?.trim());
    Some(legible::line(whole.as_bytes()).into_owned())
}
