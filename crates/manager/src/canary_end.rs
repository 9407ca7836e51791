//! The end of a canary in the state of the manager. `commands/vcl_canary.rs`
//! notifies the worker. Next file: `canary.rs`.

use crate::clock::now;
use crate::report::Level;
use crate::state::Manager;
use surface::canary::Percent;

/// Number of workers that may die of their own fault during a canary before it goes back.
const DEATHS_MAX: u32 = 3;

/// Notes that the canary has ended, if one runs: in the table, for `vcl.canary`, and in the log.
pub fn ended(manager: &Manager, level: Level, outcome: &str, why: &str) {
    manager.vcls.borrow_mut().set_canary(None);
    let Some(running) = manager.trials.borrow_mut().running.take() else { return };
    let [of_canary, of_control] = running.total.map(|counts| counts.requests);
    let text = format!(
        "VCL '{}', canary for {} of clients, {outcome} after {:.0} s: {why} ({of_canary} requests, control {of_control})",
        running.plan.name,
        Percent(running.plan.share),
        now() - running.began_at,
    );
    manager.say(level, format!("Canary: {text}"));
    manager.trials.borrow_mut().last = Some(text);
}

/// Counts the death of a worker that was not killed from outside. After several the canary ends: a
/// worker that dies reports no errors.
pub fn worker_died(manager: &Manager) {
    let deaths = manager.trials.borrow_mut().running.as_mut().map(|running| {
        running.deaths += 1;
        running.deaths
    });
    if let Some(deaths) = deaths.filter(|deaths| *deaths >= DEATHS_MAX) {
        ended(manager, Level::Error, "went back", &format!("the child died {deaths} times"));
    }
}
