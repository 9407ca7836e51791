//! The end of a worker: it stops accepting, lets requests in flight finish, ends every VCL, and
//! writes unwritten content of storages with files to disk.

use crate::configure::Worker;
use crate::event_loop::{LoopCommand, LoopHandle};
use crate::vcl_control::end_all;
use control::messages::Step;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use store::Store;
use surface::parameter::debug;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Time that a stop waits for requests in flight when a test script controls the worker.
const DRAIN_UNDER_TEST: Duration = Duration::from_millis(500);

/// Time to wait for the event loops' reports of requests in flight, once time is up.
const REPORT_WAIT: Duration = Duration::from_millis(100);

/// Time limit for the end of an event loop; one that exceeds it is busy with work that is not
/// needed any more.
const END_WAIT: Duration = Duration::from_secs(2);

/// Waits until time is up.
async fn hurried(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

impl Worker {
    /// Stops accepting, lets requests in flight finish within a limit, and ends every VCL. Returns
    /// a line about the requests that were cut off; empty if none was.
    ///
    /// SIGUSR1, which otherwise kills the worker, signals during a stop that its time is up; `step`
    /// is called once the signal is handled in this way.
    pub async fn stop(&self, step: &dyn Fn(Step)) -> String {
        let under_test = self.engine.parameters.load().debug & debug::VTC_MODE != 0;
        let drain = Duration::try_from_secs_f64(self.engine.parameters.load().drain_timeout).unwrap_or_default();
        let limit = if under_test { drain.min(DRAIN_UNDER_TEST) } else { drain };
        let mut hurry = signal(SignalKind::user_defined1()).ok();
        step(Step::Draining);
        tokio::time::sleep(Duration::from_secs_f64(self.shutdown_delay.get().clamp(0.0, 3600.0))).await;
        self.engine.draining.store(true, Ordering::Release);
        for one in &self.loops {
            one.send(LoopCommand::Stop);
        }
        let drained = async {
            while self.loops.iter().any(|one| one.in_flight.load(Ordering::Acquire) != 0) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let began = tokio::time::Instant::now();
        let is_drained = tokio::select! {
            () = drained => true,
            () = tokio::time::sleep(limit) => false,
            () = hurried(&mut hurry) => false,
        };
        // A loop reports its number once it has read the command; a loop with a second command
        // right after may not have read it yet.
        let reported = async {
            while self.loops.iter().any(|one| one.in_flight.load(Ordering::Acquire) == usize::MAX) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let _ = tokio::time::timeout(REPORT_WAIT, reported).await;
        // A loop that still has not reported is too busy to do so.
        let counts =
            self.loops.iter().map(|one| one.in_flight.load(Ordering::Acquire)).filter(|count| *count != usize::MAX);
        let cut = counts.sum::<usize>();
        // Before the VCLs end: without one, a client whose request arrives only now would get an
        // error instead of a closed connection.
        let patience = if is_drained { limit.saturating_sub(began.elapsed()) } else { Duration::ZERO };
        tokio::select! {
            () = self.end_loops(patience) => {}
            () = hurried(&mut hurry) => self.end_loops(Duration::ZERO).await,
        }
        self.note_last();
        end_all(self);
        self.statistics.update(&self.engine, &self.loops, &self.own.counters, self.own.clock.now());
        if self.engine.cache.stores().iter().any(Store::is_on_disk) {
            self.close_storages().await;
        }
        if cut == 0 {
            return String::new();
        }
        let seconds = began.elapsed().as_secs_f64();
        format!("cuts {cut} requests and fetches that are in flight after {seconds:.1} s (parameter drain_timeout)")
    }

    /// Ends the event loops: connections that wait for a request are closed, and nothing more is
    /// stored. Requests that have just begun may take as long as `patience`.
    async fn end_loops(&self, patience: Duration) {
        for one in &self.loops {
            one.send(LoopCommand::End(patience));
        }
        let ended = async {
            while !self.loops.iter().all(LoopHandle::has_ended) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let _ = tokio::time::timeout(patience + END_WAIT, ended).await;
    }

    /// Writes the content of persistent storages to disk.
    async fn close_storages(&self) {
        let engine = Arc::clone(&self.engine);
        let closed = tokio::task::spawn_blocking(move || {
            engine.cache.stores().iter().for_each(Store::close);
            engine.cache.sync_bans()
        });
        if let Ok(Err(error)) = closed.await {
            eprintln!("The bans could not be written: {error}");
        }
    }
}
