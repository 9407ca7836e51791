//! The thread that follows the log and walks through the steps.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use shm::read::group::{Grouper, Grouping};
use shm::read::query::Query;
use shm::read::record::Record;
use shm::read::ring::{RingCursor, Start};
use shm::read::select::{Selection, Sides};
use shm::read::transaction::Transaction;
use shm::read::vsm::Vsm;
use shm::read::{Cursor, Next};
use surface::tag::{TAGS, Tag};

use super::steps::{Action, Skip, Step};
use crate::journal::Journal;
use crate::test::{Cancel, Outcome};

/// Pause when nothing arrives.
const IDLE: Duration = Duration::from_millis(10);
/// Interval at which the index is checked while nothing arrives.
const INDEX_INTERVAL: Duration = Duration::from_millis(250);

/// A position in a daemon's log.
pub(super) struct Source {
    vsm: Vsm,
    serial: u64,
    cursor: RingCursor,
}

/// Attaches to a daemon's log: at its oldest records, or after its newest.
pub(super) fn attach(journal: &Journal, folder: &Path, from_head: bool) -> Outcome<Source> {
    let mut vsm = Vsm::new(folder);
    vsm.poll();
    let start = if from_head { Start::Head } else { Start::Tail };
    let found = vsm.find("Log", None).and_then(|entry| {
        let region = vsm.map(entry).ok()?;
        Some((entry.serial, RingCursor::open(region, start)?))
    });
    let Some((serial, cursor)) = found else {
        return Err(journal.fail("there is no log to read: is the daemon started?"));
    };
    Ok(Source { vsm, serial, cursor })
}

/// Data of the thread.
pub(super) struct Follower {
    pub journal: Journal,
    pub cancel: Arc<Cancel>,
    pub grouping: Grouping,
    pub query: Option<Query>,
    pub query_text: Option<String>,
    pub sides: Option<Sides>,
    pub selection: Selection,
    pub transaction_seconds: f64,
    pub incomplete_max: usize,
    pub steps: Vec<Step>,
    pub logs_misses: bool,
    pub must_fail: bool,
}

impl Follower {
    pub fn run(self, mut source: Source) -> Outcome {
        self.journal.log(4, "begin|");
        if let Some(query) = &self.query_text {
            self.journal.log(4, format!("qry  | {query}"));
        }
        let mut walk = Walk::new(&self.journal, self.steps.clone(), self.logs_misses);
        let mut grouper = Grouper::new(self.grouping, self.incomplete_max, self.transaction_seconds);
        let started = Instant::now();
        let mut next_look = started;
        let mut words = Vec::new();
        while !walk.is_done() {
            if self.cancel.is_set() {
                return Err(self.journal.test.stop_reason());
            }
            let now = started.elapsed().as_secs_f64();
            match source.cursor.next(&mut words) {
                Next::Chunk => grouper.push(&words, now),
                Next::Overrun => return Err(self.journal.fail("bad  | dispatch failed: the log was overrun")),
                Next::Damaged => return Err(self.journal.fail("bad  | dispatch failed: the log is damaged")),
                Next::Wait | Next::End => {
                    grouper.tick(now);
                    self.cancel.sleep(IDLE)?;
                    if next_look <= Instant::now() {
                        source.vsm.poll();
                        if !source.vsm.is_listed(source.serial) {
                            return Err(self.journal.fail("bad  | dispatch failed: the log was abandoned"));
                        }
                        next_look = Instant::now() + INDEX_INTERVAL;
                    }
                }
            }
            while let Some(group) = grouper.next_ready() {
                if self.query.as_ref().is_some_and(|query| !query.matches(&group)) {
                    continue;
                }
                let shown = group.iter().filter(|transaction| self.sides.is_none_or(|sides| sides.shows(transaction)));
                for record in shown.flat_map(Transaction::records) {
                    if walk.is_done() || !self.selection.shows(&record) || record.tag() == Some(Tag::Witness) {
                        continue;
                    }
                    if walk.take(&record) {
                        continue;
                    }
                    if self.must_fail {
                        self.journal.log(4, "done | failed as expected");
                        return Ok(());
                    }
                    return Err(self.journal.fail("bad  | expectation failed"));
                }
            }
        }
        self.journal.log(4, "done |");
        Ok(())
    }
}

/// The current position in the steps.
pub(super) struct Walk<'a> {
    journal: &'a Journal,
    /// The steps to come. One marked `?` that has matched out of order is removed.
    steps: VecDeque<Step>,
    /// The active `fail add` steps.
    failing: Vec<Step>,
    skipped: u64,
    last: Option<(u64, u8)>,
    logs_misses: bool,
}

impl<'a> Walk<'a> {
    pub fn new(journal: &'a Journal, steps: Vec<Step>, logs_misses: bool) -> Walk<'a> {
        let mut walk = Walk { journal, steps: steps.into(), failing: Vec::new(), skipped: 0, last: None, logs_misses };
        walk.enter();
        walk
    }

    /// Executes steps that are not expectations, up to the next expectation.
    fn enter(&mut self) {
        while let Some(step) = self.steps.front() {
            match step.action {
                Action::Expect(_) => {
                    self.journal.log(3, format!("test | {}", step.source));
                    return;
                }
                Action::FailAdd => {
                    self.journal.log(3, format!("cond | {}", step.source));
                    self.failing.push(step.clone());
                }
                Action::FailClear => {
                    self.journal.log(3, "cond | fail clear");
                    self.failing.clear();
                }
                Action::Abort => std::process::abort(),
            }
            self.steps.pop_front();
        }
    }

    pub fn is_done(&self) -> bool {
        self.steps.is_empty() && self.failing.is_empty()
    }

    /// Handles a record; false when it was not allowed.
    pub fn take(&mut self, record: &Record) -> bool {
        for step in &self.failing {
            if step.pattern.matches(record, self.last) {
                self.log("fail", record);
                return false;
            }
            if self.logs_misses {
                self.log("fmiss", record);
            }
        }
        let Some(step) = self.steps.front() else { return true };
        let Action::Expect(skip) = step.action else { return true };
        if skip == Skip::Alternative {
            return self.take_alternative(record);
        }
        if step.pattern.matches(record, self.last) {
            self.log("match", record);
            self.advance(0, record);
            return true;
        }
        let may_skip = match skip {
            Skip::Any => true,
            Skip::AtMost(most) => most > self.skipped,
            Skip::Alternative => false,
        };
        if !may_skip {
            self.log("err", record);
            return false;
        }
        if record.tag() == Some(Tag::End) && step.pattern.is_of(record, self.last) {
            self.log("end", record);
            return false;
        }
        if self.logs_misses {
            self.log("miss", record);
        }
        self.skipped += 1;
        true
    }

    /// One of the neighbouring steps marked `?` must match.
    fn take_alternative(&mut self, record: &Record) -> bool {
        let alternatives = self
            .steps
            .iter()
            .take_while(|step| step.action == Action::Expect(Skip::Alternative))
            .position(|step| step.pattern.matches(record, self.last));
        match alternatives {
            Some(index) => {
                self.log("match", record);
                self.advance(index, record);
                true
            }
            None => {
                self.log("err", record);
                false
            }
        }
    }

    fn advance(&mut self, index: usize, record: &Record) {
        self.steps.remove(index);
        self.last = Some((record.id.vxid(), record.number));
        self.skipped = 0;
        self.enter();
    }

    fn log(&self, legend: &str, record: &Record) {
        let name = TAGS.iter().find(|row| row.tag as u8 == record.number).map_or("?", |row| row.name);
        let side = match (record.id.is_client(), record.id.is_backend()) {
            (true, _) => 'c',
            (_, true) => 'b',
            _ => '-',
        };
        let text = String::from_utf8_lossy(record.data());
        self.journal.log(4, format!("{legend:<5}| {:>10} {name:<15} {side} {text}", record.id.vxid()));
    }
}
