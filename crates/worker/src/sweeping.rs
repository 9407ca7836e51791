//! Removes the objects of canaries that have ended: they are under keys that no request makes any
//! more, so they leave first.
//!
//! Next file: `canary.rs`.

use crate::configure::Worker;
use engine::canary::Canary;
use std::rc::Rc;
use std::sync::Weak;
use std::time::Duration;

/// Number of objects that are examined before other tasks of this thread get a turn.
const SWEEP_OBJECTS: usize = 1000;
/// Pause before another sweep while requests of the canary are still in flight.
const SWEEP_PAUSE: Duration = Duration::from_millis(500);

/// Removes the objects of canaries that have ended, and those that requests still in flight store.
/// `ended`: the last canary. Stops if another one begins: its end continues.
pub fn sweep(worker: &Rc<Worker>, ended: Weak<Canary>) {
    let worker = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        loop {
            let was_last = ended.strong_count() == 0;
            let mut purge = worker.engine.cache.purge_salted(worker.own.clock.now());
            while worker.engine.vcl.load().trial.is_none() && !purge.step(SWEEP_OBJECTS) {
                tokio::task::yield_now().await;
            }
            if was_last || worker.engine.vcl.load().trial.is_some() {
                return;
            }
            tokio::time::sleep(SWEEP_PAUSE).await;
        }
    });
}
