//! `logexpect lNAME`: records that the daemon must log, in this order.
//!
//! The block becomes a list of steps; a thread follows the log, if requested in groups and through
//! a query, and walks through the list:
//!
//! ```text
//! record ──► matches an active `fail add`: the test fails
//!    └─────► matches the step: on to the next one
//!            may be skipped: counted      otherwise: the test fails
//! ```
//!
//! Neighbouring steps marked `?` may match in any order. The list is complete after the last step
//! if no `fail add` is active. *Invariant:* a record that ends a transaction which the step
//! requires can't be skipped: nothing more will follow. Source: vtc(7), logexpect.

mod follow;
mod steps;

use std::sync::Arc;
use std::thread::JoinHandle;

use shm::read::group::Grouping;
use shm::read::query::Query;
use shm::read::select::{Selection, Sides};

use crate::journal::Journal;
use crate::specification::{self, Actor, Arguments};
use crate::test::{Cancel, Outcome};
use crate::threads;
use follow::Follower;
use steps::Step;

/// Time limit for the end of a transaction, in seconds.
const TRANSACTION_SECONDS: f64 = 120.0;
/// Default limit of unfinished transactions.
const INCOMPLETE_MAX: usize = 1000;

/// An expectation of the log.
pub struct Logexpect {
    journal: Journal,
    daemon: String,
    from_head: bool,
    grouping: Grouping,
    query: Option<String>,
    logs_misses: bool,
    must_fail: bool,
    caseless: bool,
    transaction_seconds: f64,
    incomplete_max: usize,
    sides: Option<Sides>,
    selection: Selection,
    steps: Vec<Step>,
    running: Option<(JoinHandle<Outcome>, Arc<Cancel>)>,
}

impl Logexpect {
    /// An expectation of one daemon's log.
    pub fn new(journal: Journal, daemon: String) -> Logexpect {
        Logexpect {
            journal,
            daemon,
            from_head: false,
            grouping: Grouping::Vxid,
            query: None,
            logs_misses: false,
            must_fail: false,
            caseless: false,
            transaction_seconds: TRANSACTION_SECONDS,
            incomplete_max: INCOMPLETE_MAX,
            sides: None,
            selection: Selection::default(),
            steps: Vec::new(),
            running: None,
        }
    }

    /// Executes the words after its name.
    ///
    /// # Errors
    /// The test has failed or is over.
    pub fn command(&mut self, arguments: &mut Arguments, cancel: &Cancel) -> Outcome {
        while let Some(word) = arguments.next() {
            let option = word.text();
            if option == "-wait" && self.running.is_none() {
                return Err(self.journal.fail("logexp not -started"));
            }
            // Nothing is changed while it runs.
            self.wait()?;
            match option.as_str() {
                "-wait" => {}
                "-v" if arguments.text("the daemon")? != self.daemon => {
                    return Err(self.journal.fail("-v argument cannot change"));
                }
                "-v" => {}
                "-d" => self.from_head = arguments.number("0 or 1")? != 0,
                "-g" => {
                    let name = arguments.text("the grouping")?;
                    self.grouping = match name.as_str() {
                        "raw" => Grouping::Raw,
                        "vxid" => Grouping::Vxid,
                        "request" => Grouping::Request,
                        "session" => Grouping::Session,
                        _ => return Err(self.journal.fail(format!("Unknown grouping '{name}'"))),
                    };
                }
                "-q" => self.query = Some(arguments.text("the query")?),
                "-m" => self.logs_misses = !self.logs_misses,
                "-err" => self.must_fail = !self.must_fail,
                "-C" => self.caseless = true,
                "-b" | "-c" | "-E" => {
                    let none = Sides { client: false, backend: false, esi: false };
                    let sides = self.sides.get_or_insert(none);
                    sides.backend |= option == "-b";
                    sides.client |= option != "-b";
                    sides.esi |= option == "-E";
                }
                "-L" => self.incomplete_max = usize::try_from(arguments.number("the limit")?).unwrap_or(usize::MAX),
                "-T" => self.transaction_seconds = arguments.seconds("the time")?.as_secs_f64(),
                "-i" | "-I" | "-x" | "-X" => {
                    let text = arguments.text("what to select")?;
                    let letter = option.chars().last().unwrap_or_default();
                    let added = self.selection.add(letter, &text, self.caseless);
                    added.map_err(|message| self.journal.fail(message))?;
                }
                "-start" => self.start()?,
                "-run" => {
                    self.start()?;
                    self.wait()?;
                }
                _ if option.starts_with('-') => {
                    return Err(self.journal.fail(format!("Unknown logexp argument: {option}")));
                }
                _ => {
                    let mut steps = Steps { steps: Vec::new(), cancel };
                    specification::run(&self.journal, &word.bytes, word.line, &mut steps)?;
                    self.steps = steps.steps;
                }
            }
        }
        Ok(())
    }

    fn start(&mut self) -> Outcome {
        let query = match &self.query {
            None => None,
            Some(text) => Some(
                Query::parse(text, self.caseless)
                    .map_err(|error| self.journal.fail(format!("Query expression error: {error}")))?,
            ),
        };
        let cancel = threads::cancel(&self.journal)?;
        let follower = Follower {
            journal: self.journal.forked(),
            cancel: Arc::clone(&cancel),
            grouping: self.grouping,
            query,
            query_text: self.query.clone(),
            sides: self.sides,
            selection: self.selection.clone(),
            transaction_seconds: self.transaction_seconds,
            incomplete_max: self.incomplete_max,
            steps: self.steps.clone(),
            logs_misses: self.logs_misses,
            must_fail: self.must_fail,
        };
        let folder = self.journal.test.settings.folder.join(&self.daemon);
        // Attached before this returns, so that everything logged from now on counts.
        let source = follow::attach(&self.journal, &folder, self.from_head)?;
        let thread = threads::start(&self.journal, move || follower.run(source))?;
        self.running = Some((thread, cancel));
        Ok(())
    }

    /// Waits until a running one has finished.
    ///
    /// # Errors
    /// The log was not as expected.
    pub fn wait(&mut self) -> Outcome {
        let Some((thread, _)) = self.running.take() else { return Ok(()) };
        self.journal.log(2, "Waiting for logexp");
        threads::join(&self.journal, thread)
    }

    /// Stops a running one wherever it is.
    pub fn stop(&mut self) {
        if let Some((thread, cancel)) = self.running.take() {
            if !thread.is_finished() {
                self.journal.log(2, "was started and never waited for");
            }
            cancel.set();
            let _ = thread.join();
        }
    }
}

/// Collects the commands of a block as steps.
struct Steps<'a> {
    steps: Vec<Step>,
    cancel: &'a Cancel,
}

impl Actor for Steps<'_> {
    fn command(&mut self, journal: &Journal, name: &str, arguments: &mut Arguments) -> Outcome<bool> {
        match Step::parse(journal, name, arguments)? {
            Some(step) => {
                self.steps.push(step);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn cancel(&self) -> &Cancel {
        self.cancel
    }
}
