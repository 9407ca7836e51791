//! Health probes: regular requests, and a window of the last results that decides.
//!
//! [`crate::probe`] keeps the results, [`check`] does one check over a [`Dial`], and [`run_probe`]
//! here is the task that repeats it for as long as the VCL is warm. Dropping the task stops the
//! probe; a later task begins with an empty window. The results of an equivalent backend count from
//! the beginning ([`crate::finding`]). Every check leaves a `Backend_health` record outside any
//! transaction.
//!
//! The next check starts one interval after the start of the last, but never before that one is
//! done. Compat: record and rules as observed in Varnish 7.1.1.

pub mod check;
mod http2;
mod words;

use crate::backend::Backend;
use crate::dial::Dial;
use crate::finding::Findings;
use crate::health::health_word;
use crate::probe::outcome::Outcome;
use crate::probe::{ProbeState, bounded};
use shm::log::{LogId, LogRing};
use std::rc::Rc;
use std::sync::Arc;
use surface::counter::Vbe;
use surface::tag::Tag;
use tokio::time::Instant;

/// Runs the probe of a backend until dropped; returns at once if it has none. `clock` returns
/// seconds since 1970, `prefer_v6` the parameter `prefer_ipv6`; `known` are the results of other
/// probes. These count from the call on, before the future is polled: a worker accepts clients
/// right after it has loaded its VCLs.
pub fn run_probe<C: Fn() -> f64, P: Fn() -> bool>(
    backend: Arc<Backend>,
    dial: Rc<dyn Dial>,
    known: &Findings,
    clock: C,
    prefer_v6: P,
    ring: LogRing,
) -> impl Future<Output = ()> + use<C, P> {
    if let Some(probe) = backend.probe() {
        begin(&backend, probe, known, clock(), &ring);
    }
    async move {
        let Some(probe) = backend.probe() else { return };
        let interval = bounded(probe.definition().interval);
        loop {
            let start = Instant::now();
            let outcome = check::check(&backend, probe.definition(), dial.as_ref(), prefer_v6()).await;
            note(&backend, probe, &outcome, clock(), &ring);
            tokio::time::sleep_until(start + interval).await;
        }
    }
}

/// Begins with the results of an equivalent backend, if there are any, and logs the state.
fn begin(backend: &Backend, probe: &ProbeState, known: &Findings, now: f64, ring: &LogRing) {
    let is_news = if probe.announce() {
        backend.begin_with(known, now);
        // A backend counts as healthy until there is a result.
        log(backend, probe, !backend.health().probed(), "", ring);
        false
    } else {
        restart(backend, probe, now) | backend.begin_with(known, now)
    };
    log(backend, probe, is_news, "", ring);
}

/// Ends the probe of a backend when its VCL becomes cold: its results are out of date by the time
/// the VCL is used again, so that the window begins anew. Compat: Varnish 7.1 does so when the VCL
/// goes cold.
pub fn rest_probe(backend: &Backend, now: f64, ring: &LogRing) {
    if let Some(probe) = backend.probe() {
        let is_news = restart(backend, probe, now);
        log(backend, probe, is_news, "", ring);
    }
}

/// Discards all results. The assumed initial checks decide on the health at once; without any it is
/// unchanged until the next check. Returns true if the health changed.
fn restart(backend: &Backend, probe: &ProbeState, now: f64) -> bool {
    let window = probe.restart();
    backend.counters().set(Vbe::Happy as usize, window.happy());
    window.happy() != 0 && backend.health().set_probed(window.is_healthy(), now)
}

/// Enters a result into the window, the counters, the backend's health and the log.
fn note(backend: &Backend, probe: &ProbeState, outcome: &Outcome, now: f64, ring: &LogRing) {
    let window = probe.note(outcome);
    backend.counters().set(Vbe::Happy as usize, window.happy());
    let is_news = backend.health().set_probed(window.is_healthy(), now);
    log(backend, probe, is_news, &outcome.text, ring);
}

fn log(backend: &Backend, probe: &ProbeState, is_news: bool, text: &str, ring: &LogRing) {
    let window = probe.window();
    ring.write_fmt(
        Tag::BackendHealth,
        LogId::NONE,
        format_args!(
            "{} {} {} {} {} {} {} {:.6} {:.6} \"{text}\"",
            backend.name(),
            if is_news { "Went" } else { "Still" },
            health_word(backend.health().probed()),
            window.newest_flags(),
            window.good(),
            window.threshold(),
            window.size(),
            window.last_seconds(),
            window.average_seconds(),
        ),
    );
}

#[cfg(test)]
mod tests;
