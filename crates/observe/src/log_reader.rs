//! The log of the server, for access logs and traces: follows it on a thread of its own, groups its
//! records into transactions, and passes those on.
//!
//! *Invariant:* nothing here waits for a consumer. A reader that is overtaken by the writer loses
//! transactions; their number is the difference between the requests that the server has counted
//! (`shm::histogram`) and those that were read. It is only computed when the reader has caught up,
//! and never falls. Next files: `access_log.rs`, `trace.rs`.

use crate::totals::Totals;
use shm::read::group::{Grouper, Grouping};
use shm::read::histograms::HistogramReader;
use shm::read::ring::{RingCursor, Start};
use shm::read::transaction::{Kind, Reason, Transaction};
use shm::read::vsm::Vsm;
use shm::read::{Cursor as _, Next};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use surface::histogram::HistogramFamily;
use surface::limits::{OBSERVE_TRANSACTION_SECONDS_MAX, OBSERVE_TRANSACTIONS_MAX};
use surface::tag::Tag;

/// Pause when there is nothing to read.
const IDLE: Duration = Duration::from_millis(5);
/// Interval at which the index is read again.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// Pause before a damaged log is tried again.
const DAMAGE_PAUSE: Duration = Duration::from_secs(10);
/// Longest time for the rest of the log at the end.
const ENDING: Duration = Duration::from_secs(2);

/// A consumer of transactions. Its methods must not block.
pub(crate) trait Consumer: Send {
    /// Takes a complete transaction.
    fn transaction(&mut self, transaction: &Transaction, fate: Fate);

    /// Takes a client request with everything below it; only if [`Consumer::wants_groups`].
    fn group(&mut self, _group: &[Transaction]) {}

    /// True if groups are wanted.
    fn wants_groups(&self) -> bool {
        false
    }
}

/// Meaning of a transaction for the number of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// The end of a client request.
    Request,
    /// A client request that begins anew under another number.
    Restarted,
    /// A fragment of a page, a backend request, or anything else.
    Other,
}

impl Fate {
    fn of(transaction: &Transaction) -> Fate {
        if transaction.kind != Kind::Request || transaction.reason == Reason::Esi {
            return Fate::Other;
        }
        let mut records = transaction.records();
        let is_restart = |record: shm::read::record::Record<'_>| {
            record.number == Tag::Link as u8 && record.text().ends_with(b" restart")
        };
        if records.any(is_restart) { Fate::Restarted } else { Fate::Request }
    }
}

/// The thread that reads the log.
pub(crate) struct LogReader {
    thread: Option<thread::JoinHandle<()>>,
    ends: Arc<AtomicBool>,
}

impl LogReader {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(
        work_directory: &Path,
        consumers: Vec<Box<dyn Consumer>>,
        totals: &Arc<Totals>,
    ) -> std::io::Result<LogReader> {
        let ends = Arc::new(AtomicBool::new(false));
        let mut follower = Follower::new(work_directory, consumers, Arc::clone(totals));
        let of_thread = Arc::clone(&ends);
        let thread = thread::Builder::new().name("log".to_owned()).spawn(move || follower.run(&of_thread))?;
        Ok(LogReader { thread: Some(thread), ends })
    }
}

impl Drop for LogReader {
    /// Reads what is left in the log, and ends.
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Follower {
    vsm: Vsm,
    cursor: Option<(u64, RingCursor)>,
    /// Damaged log, and the time at which it is tried again.
    damaged: Option<(u64, Instant)>,
    transactions: Grouper,
    groups: Option<Grouper>,
    consumers: Vec<Box<dyn Consumer>>,
    totals: Arc<Totals>,
    losses: Losses,
    started: Instant,
}

impl Follower {
    fn new(work_directory: &Path, consumers: Vec<Box<dyn Consumer>>, totals: Arc<Totals>) -> Follower {
        let grouper =
            |grouping| Grouper::new(grouping, OBSERVE_TRANSACTIONS_MAX, OBSERVE_TRANSACTION_SECONDS_MAX as f64);
        let wants_groups = consumers.iter().any(|consumer| consumer.wants_groups());
        let mut follower = Follower {
            vsm: Vsm::new(work_directory),
            cursor: None,
            damaged: None,
            transactions: grouper(Grouping::Vxid),
            groups: wants_groups.then(|| grouper(Grouping::Request)),
            consumers,
            totals,
            losses: Losses::default(),
            started: Instant::now(),
        };
        // Earlier records of a running worker are not for this reader.
        follower.look(Start::Tail);
        follower
    }

    fn run(&mut self, ends: &AtomicBool) {
        let (mut words, mut next_look, mut end) = (Vec::new(), Instant::now() + LOOK_INTERVAL, None);
        loop {
            if end.is_none() && ends.load(Ordering::Acquire) {
                end = Some(Instant::now() + ENDING);
            }
            let next = match &mut self.cursor {
                Some((_, cursor)) => cursor.next(&mut words),
                None => Next::Wait,
            };
            match next {
                Next::Chunk => self.push(&words),
                Next::Wait | Next::End => {
                    if end.is_some() {
                        return;
                    }
                    thread::sleep(IDLE);
                }
                Next::Overrun => self.lose_place(),
                Next::Damaged => self.find_damage(),
            }
            if next != Next::Chunk && next_look <= Instant::now() {
                self.look(Start::Head);
                self.push(&[]);
                self.losses.update(&self.vsm, self.cursor.as_ref().map(|(serial, _)| *serial), &self.totals);
                next_look = Instant::now() + LOOK_INTERVAL;
            }
            if end.is_some_and(|end| end <= Instant::now()) {
                return;
            }
        }
    }

    /// Groups a chunk, and passes on what is complete. An empty one only lets time pass.
    fn push(&mut self, words: &[u32]) {
        let now = self.started.elapsed().as_secs_f64();
        let feed = |grouper: &mut Grouper| if words.is_empty() { grouper.tick(now) } else { grouper.push(words, now) };
        feed(&mut self.transactions);
        while let Some(group) = self.transactions.next_ready() {
            for transaction in &group {
                let fate = Fate::of(transaction);
                self.losses.read += u64::from(fate == Fate::Request);
                self.consumers.iter_mut().for_each(|consumer| consumer.transaction(transaction, fate));
            }
        }
        let Some(groups) = &mut self.groups else { return };
        feed(groups);
        while let Some(group) = groups.next_ready() {
            self.consumers.iter_mut().for_each(|consumer| consumer.group(&group));
        }
    }

    fn reset_groupers(&mut self) {
        self.transactions.reset();
        self.groups.iter_mut().for_each(Grouper::reset);
    }

    /// The writer has overtaken this reader.
    fn lose_place(&mut self) {
        self.totals.count_overrun();
        if let Some((_, cursor)) = &mut self.cursor {
            cursor.reset(Start::Tail);
        }
        self.reset_groupers();
    }

    fn find_damage(&mut self) {
        self.totals.count_overrun();
        if let Some((serial, _)) = self.cursor.take() {
            self.damaged = Some((serial, Instant::now() + DAMAGE_PAUSE));
        }
        self.reset_groupers();
    }

    /// Reads the index again. A log that appears is read from `start`.
    fn look(&mut self, start: Start) {
        self.vsm.poll();
        if let Some((serial, _)) = &self.cursor {
            if self.vsm.is_listed(*serial) {
                return;
            }
            // The records of the last requests are read before this, as nothing else was left.
            self.cursor = None;
            self.transactions.flush();
            self.groups.iter_mut().for_each(Grouper::flush);
        }
        let Some(entry) = self.vsm.find("Log", None) else { return };
        let damaged = self.damaged.filter(|(serial, _)| *serial == entry.serial);
        if damaged.is_some_and(|(_, again)| Instant::now() < again) {
            return;
        }
        let start = if damaged.is_some() { Start::Tail } else { start };
        let serial = entry.serial;
        let opened = self.vsm.map(entry).ok().and_then(|region| RingCursor::open(region, start));
        self.cursor = opened.map(|cursor| (serial, cursor));
        if self.cursor.is_some() {
            self.losses.begin(&self.vsm, serial, start == Start::Head);
        }
    }
}

/// Number of requests that the server has counted and this reader has not read.
#[derive(Default)]
struct Losses {
    reader: HistogramReader,
    /// The log that is read.
    log: u64,
    /// Requests counted before it was read.
    before: u64,
    /// Requests read from it.
    read: u64,
    /// Requests lost from it.
    lost: u64,
}

impl Losses {
    fn begin(&mut self, vsm: &Vsm, log: u64, is_whole: bool) {
        self.before = if is_whole { 0 } else { self.counted(vsm) };
        (self.log, self.read, self.lost) = (log, 0, 0);
    }

    fn counted(&mut self, vsm: &Vsm) -> u64 {
        let mut count: u64 = 0;
        self.reader.for_each(vsm, |block| {
            if block.ident.split('.').next() == Some(HistogramFamily::Request.name()) {
                count = block.cells().fold(count, |sum, (_, total)| sum.wrapping_add(total.count()));
            }
        });
        count
    }

    /// Must be called when the reader has caught up. The counts are published later than the log
    /// is written, so a loss is seen late, and never too many.
    fn update(&mut self, vsm: &Vsm, log: Option<u64>, totals: &Totals) {
        if log != Some(self.log) {
            return;
        }
        let lost = self.counted(vsm).saturating_sub(self.before).saturating_sub(self.read);
        if lost > self.lost {
            totals.count_lost(lost - self.lost);
            self.lost = lost;
        }
    }
}

/// Text of a message that may come often: once, and then at most once a minute.
#[derive(Default)]
pub(crate) struct Seldom(AtomicU64);

impl Seldom {
    const SECONDS: u64 = 60;

    /// Says something on standard error, unless something was said within the last minute.
    pub fn say(&self, text: std::fmt::Arguments<'_>) {
        use std::io::Write as _;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let last = self.0.load(Ordering::Relaxed);
        if now >= last + Seldom::SECONDS || now < last {
            self.0.store(now, Ordering::Relaxed);
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }
}

#[cfg(test)]
mod tests;
