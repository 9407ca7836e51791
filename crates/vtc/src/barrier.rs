//! `barrier bNAME`: threads wait for each other; with a socket, VCL can wait too.
//!
//! A `cond` barrier counts its waiters under the test's monitor. A `sock` barrier listens; every
//! connection is a waiter, and is released by closing it. *Invariant:* a barrier is declared once,
//! at the top of the script.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::address;
use crate::arguments::Arguments;
use crate::barrier_state::{Barrier, Kind};
use crate::journal::Journal;
use crate::test::{Cancel, Outcome};
use crate::threads;

/// Maximum number of waiters at one barrier.
const WAITERS_MAX: u64 = 10_000;
/// Interval at which a barrier with a socket checks for the end of the test.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Carries out `barrier bNAME …`.
///
/// # Errors
/// The test has failed or is over.
pub fn command(journal: &Journal, arguments: &mut Arguments, cancel: &Cancel) -> Outcome {
    let name = arguments.text("the name")?;
    if !name.starts_with('b') {
        return Err(journal.fail(format!("Barrier name must start with 'b' (got {name})")));
    }
    while let Some(word) = arguments.next() {
        let known = find(journal, &name);
        match (word.text().as_str(), known) {
            (kind @ ("cond" | "sock"), None) => {
                let expected = arguments.number("the number of waiters")?;
                declare(journal, &name, kind == "sock", expected)?;
            }
            ("cond" | "sock", Some(_)) => {
                return Err(journal.fail(format!("Barrier({name}) use error: already initialized")));
            }
            ("sync" | "-cyclic", None) => {
                return Err(journal.fail(format!("Barrier({name}) use error: not initialized")));
            }
            ("sync", Some(barrier)) => barrier.synchronize(journal, cancel)?,
            ("-cyclic", Some(barrier)) => {
                if barrier.count().0 != 0 {
                    return Err(journal.fail(format!("Barrier({name}) use error: already in use")));
                }
                barrier.is_cyclic.store(true, Ordering::SeqCst);
            }
            (other, _) => return Err(journal.fail(format!("Unknown barrier argument: {other}"))),
        }
    }
    Ok(())
}

/// Releases all barriers of a test.
///
/// # Errors
/// A thread was still waiting.
pub fn finish(journal: &Journal) -> Outcome {
    let barriers = std::mem::take(&mut *journal.test.barriers.lock().unwrap_or_else(PoisonError::into_inner));
    for barrier in barriers {
        if let Kind::Socket(thread) = &barrier.kind
            && let Some(thread) = thread.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            threads::join(journal, thread)?;
        }
    }
    Ok(())
}

fn find(journal: &Journal, name: &str) -> Option<Arc<Barrier>> {
    let barriers = journal.test.barriers.lock().unwrap_or_else(PoisonError::into_inner);
    barriers.iter().find(|barrier| barrier.name == name).cloned()
}

fn declare(journal: &Journal, name: &str, has_socket: bool, expected: u64) -> Outcome {
    if journal.name != "top" {
        return Err(journal.fail(format!("Barrier {name} can only be created on the top thread")));
    }
    if !(2..=WAITERS_MAX).contains(&expected) {
        return Err(journal.fail(format!("Barrier({name}) use error: wrong expectation ({expected})")));
    }
    let expected = usize::try_from(expected).unwrap_or(usize::MAX);
    let kind = if has_socket { Kind::Socket(Mutex::default()) } else { Kind::Condition };
    let barrier = Arc::new(Barrier {
        name: name.to_owned(),
        expected,
        is_cyclic: AtomicBool::new(false),
        kind,
        count: Mutex::default(),
    });
    if let Kind::Socket(thread) = &barrier.kind {
        let own = Journal::new(&journal.test, name);
        own.set_place(journal.place());
        let backlog = i32::try_from(expected).unwrap_or(i32::MAX);
        let (listener, address) = address::listen(&journal.test.settings.listen_address, backlog)
            .map_err(|reason| own.fail(format!("Barrier({name}) cannot listen: {reason}")))?;
        own.define(name, "addr", &address.address);
        own.define(name, "port", &address.port);
        own.define(name, "sock", &address.socket);
        let cancel = threads::cancel(journal)?;
        let served = Arc::clone(&barrier);
        let started = threads::start(&own.clone(), move || served.serve(&own, &listener, &cancel))?;
        *thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(started);
    }
    journal.test.barriers.lock().unwrap_or_else(PoisonError::into_inner).push(barrier);
    Ok(())
}

impl Barrier {
    fn synchronize(&self, journal: &Journal, cancel: &Cancel) -> Outcome {
        match self.kind {
            Kind::Condition => self.wait_for_others(journal, cancel),
            Kind::Socket(_) => self.wait_for_close(journal, cancel),
        }
    }

    fn wait_for_others(&self, journal: &Journal, cancel: &Cancel) -> Outcome {
        let (name, expected) = (&self.name, self.expected);
        let mut monitor = journal.test.lock_monitor();
        let (waiters, round) = self.count();
        if waiters >= expected {
            drop(monitor);
            return Err(journal.fail(format!("Barrier({name}) use error: more waiters than the {expected} expected")));
        }
        if waiters + 1 == expected {
            let left = if self.is_cyclic.load(Ordering::SeqCst) { 0 } else { expected };
            *self.count.lock().unwrap_or_else(PoisonError::into_inner) = (left, round + 1);
            journal.test.changed.notify_all();
            drop(monitor);
            journal.log(4, format!("Barrier({name}) wake {expected}"));
            return Ok(());
        }
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) = (waiters + 1, round);
        journal.log(4, format!("Barrier({name}) wait {} of {expected}", waiters + 1));
        while self.count().1 == round && !journal.test.is_over() && !cancel.is_set() {
            let waited = journal.test.changed.wait_timeout(monitor, LOOK_INTERVAL);
            monitor = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(monitor);
        // At the end of the test a wait ends as if all had arrived, as in the stock runner.
        if cancel.is_set() { Err(journal.test.stop_reason()) } else { Ok(()) }
    }

    fn wait_for_close(&self, journal: &Journal, cancel: &Cancel) -> Outcome {
        let name = &self.name;
        journal.log(4, format!("Barrier({name}) sync with socket"));
        let failed = |reason: &str| journal.fail(format!("Barrier({name}) {reason}"));
        let Some(address) = journal.test.macros.get(&format!("{name}_sock")) else {
            return Err(failed("use error: it has been used up"));
        };
        let address = String::from_utf8_lossy(&address).into_owned();
        let socket = address::connect(&address, journal.test.settings.time_max(), cancel)?
            .map_err(|reason| failed(&format!("connection failed: {reason}")))?;
        cancel.readable(std::os::fd::AsFd::as_fd(&socket), None)?;
        let mut buffer = [0; 32];
        match std::io::Read::read(&mut &socket, &mut buffer) {
            Ok(0) => Ok(()),
            Ok(count) => Err(failed(&format!("unexpected data ({count}B)"))),
            Err(error) => Err(failed(&format!("read failed: {error}"))),
        }
    }

    /// The thread of a barrier with a socket.
    fn serve(&self, journal: &Journal, listener: &socket2::Socket, cancel: &Cancel) -> Outcome {
        let (name, expected) = (&self.name, self.expected);
        let mut waiters = Vec::new();
        while !journal.test.is_over() {
            let wait = cancel.readable(std::os::fd::AsFd::as_fd(listener), Some(LOOK_INTERVAL))?;
            if wait == crate::test::Waited::TimedOut {
                continue;
            }
            match listener.accept() {
                Ok((socket, _)) => waiters.push(socket),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(journal.fail(format!("Barrier({name}) accept fails: {error}"))),
            }
            if waiters.len() < expected {
                journal.log(4, format!("Barrier({name}) wait {} of {expected}", waiters.len()));
                continue;
            }
            journal.log(4, format!("Barrier({name}) wake {expected}"));
            waiters.clear();
            if !self.is_cyclic.load(Ordering::SeqCst) {
                break;
            }
        }
        for macro_name in ["addr", "port", "sock"] {
            journal.forget(name, macro_name);
        }
        if waiters.is_empty() {
            Ok(())
        } else {
            Err(journal.fail(format!("Barrier({name}) has {} outstanding waiters", waiters.len())))
        }
    }
}
