//! Periodic work of the main thread: sums counters, expires objects, processes bans, corrects the
//! clock, cools VCLs, gives free memory back, reports failing disks, writes the backend health
//! record.

use crate::configure::{Worker, wall_clock};
use crate::disk_watch::DiskWatch;
use crate::trimming::Trimming;
use std::rc::Rc;
use std::time::Duration;
use surface::parameter::debug;

/// Largest age of published counters.
const STATISTICS_INTERVAL: Duration = Duration::from_millis(100);
/// The same if a test script reads the counters.
const STATISTICS_INTERVAL_UNDER_TEST: Duration = Duration::from_millis(10);
/// Longest pause between checks for expired objects.
const EXPIRY_PAUSE_MAX: f64 = 0.5;
/// Shortest such pause.
const EXPIRY_PAUSE_MIN: f64 = 0.002;
/// Interval between comparisons of the clock with the machine's, and between truncations of the ban
/// journal on disk.
const CLOCK_INTERVAL: Duration = Duration::from_secs(1);

/// Starts the tasks; they end with the process.
pub fn start(worker: &Rc<Worker>) {
    let of_statistics = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        let worker = of_statistics;
        loop {
            worker.statistics.update(&worker.engine, &worker.loops, &worker.own.counters, worker.own.clock.now());
            let under_test = worker.engine.parameters.load().debug & debug::VTC_MODE != 0;
            tokio::time::sleep(if under_test { STATISTICS_INTERVAL_UNDER_TEST } else { STATISTICS_INTERVAL }).await;
        }
    });
    let of_expiry = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        loop {
            let now = of_expiry.own.clock.now();
            let due = of_expiry.engine.cache.tick(now);
            let pause = (due - now).clamp(EXPIRY_PAUSE_MIN, EXPIRY_PAUSE_MAX);
            tokio::time::sleep(Duration::from_secs_f64(pause)).await;
        }
    });
    let of_bans = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        loop {
            tokio::time::sleep(CLOCK_INTERVAL).await;
            of_bans.engine.cache.trim_bans().await;
        }
    });
    let of_clock = Rc::clone(worker);
    let (trimming, disks) = (Trimming::default(), DiskWatch::default());
    tokio::task::spawn_local(async move {
        loop {
            tokio::time::sleep(CLOCK_INTERVAL).await;
            of_clock.own.clock.resync(wall_clock());
            trimming.look(&of_clock.engine);
            disks.look(&of_clock.engine);
            crate::vcl_control::cool_down(&of_clock);
            of_clock.note();
        }
    });
}
