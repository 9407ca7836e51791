//! Access logs: lines of transactions, to a file, a stream or a socket.
//!
//! The thread that reads the log makes the lines and puts them into a queue of bounded size; a
//! thread for each access log writes them. *Invariant:* each request that the log reader has read
//! is counted once: written, dropped with a reason, or skipped (no line, or not wanted by the
//! query). Next files: `access_log/queue.rs`, `access_log/output.rs`.

mod output;
mod queue;

use crate::line_counts::LineCounts;
use crate::log_reader::{Consumer, Fate};
use crate::totals::Totals;
use output::Output;
use queue::Queue;
use shm::read::query::Query;
use shm::read::select::Sides;
use shm::read::transaction::Transaction;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use surface::access_log::AccessLog;
use surface::metric::LineDrop;
use tools::LineMaker;

/// Longest pause between checks of a file that was replaced.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// An access log at work. At its end the queue is written.
pub(crate) struct Writer {
    queue: Arc<Queue>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Writer {
    /// Asks for the file to be opened again.
    pub fn reopen(&self) {
        self.queue.reopen();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.end();
        if let Some(thread) = self.thread.take() {
            // A destination that does not take the lines must not hold up the end.
            let until = std::time::Instant::now() + Duration::from_secs(2);
            while !thread.is_finished() && std::time::Instant::now() < until {
                thread::sleep(Duration::from_millis(2));
            }
        }
    }
}

/// An access log whose format and query were checked.
pub(crate) struct Prepared {
    log: AccessLog,
    maker: LineMaker,
    query: Option<Query>,
}

impl Prepared {
    /// Checks an access log, and reads its format if that is in a file.
    ///
    /// # Errors
    /// The message for the operator: a format or query is wrong.
    pub fn new(log: &AccessLog) -> Result<Prepared, String> {
        let name = &log.destination;
        let maker = LineMaker::new(&log.format).map_err(|why| format!("access-log={name}: {why}"))?;
        let query = log.query.as_deref().map(|text| Query::parse(text, false)).transpose();
        let query = query.map_err(|_| format!("access-log={name}: the query is wrong"))?;
        Ok(Prepared { log: log.clone(), maker, query })
    }

    /// Starts the writer; returns it, and the consumer for the log reader.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(self, totals: &Totals) -> Result<(Writer, Source), String> {
        let Prepared { log, maker, query } = self;
        let counts = Arc::new(LineCounts::new(log.destination.to_string()));
        totals.add_access_log(Arc::clone(&counts));
        let queue = Arc::new(Queue::default());
        let mut output = Output::new(&log, Arc::clone(&counts));
        let of_thread = Arc::clone(&queue);
        let write = move || {
            while let Some(batch) = of_thread.take(CHECK_INTERVAL) {
                output.write(&batch);
            }
        };
        let thread = thread::Builder::new().name("access-log".to_owned()).spawn(write);
        let thread = Some(thread.map_err(|error| error.to_string())?);
        let sides = Sides { client: log.client, backend: log.backend, esi: false };
        let source = Source { maker, query, sides, queue: Arc::clone(&queue), counts, line: Vec::new() };
        Ok((Writer { queue, thread }, source))
    }
}

/// Maker of the lines.
pub(crate) struct Source {
    maker: LineMaker,
    query: Option<Query>,
    sides: Sides,
    queue: Arc<Queue>,
    counts: Arc<LineCounts>,
    line: Vec<u8>,
}

impl Consumer for Source {
    fn transaction(&mut self, transaction: &Transaction, fate: Fate) {
        if !self.sides.shows(transaction) || fate == Fate::Restarted {
            return;
        }
        let is_wanted = self.query.as_ref().is_none_or(|query| query.matches(std::slice::from_ref(transaction)));
        self.line.clear();
        if !is_wanted || !self.maker.line(transaction, &mut self.line) {
            self.counts.skip();
        } else if !self.queue.put(&self.line) {
            self.counts.drop_lines(LineDrop::Queue, 1);
        }
    }
}

#[cfg(test)]
mod tests;
