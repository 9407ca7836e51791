//! Begins and ends a canary at the manager's request, and reads its counts.
//!
//! *Invariant:* a request sees the active VCL and the one on trial of one table, which is replaced
//! as a whole: never two active ones. The manager holds the state; a new worker gets it again.
//! Objects that are left are removed by `sweeping.rs`.

use crate::configure::Worker;
use crate::sweeping::sweep;
use crate::vcl_control::{change, warm_up};
use cli_proto::response::Response;
use cli_proto::response::status::{CANNOT, PARAMETER};
use control::canary::{CanaryConfiguration, Counts, counts_text};
use engine::canary::{Canary, GroupCounts};
use engine::loaded_vcl::Trial;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Begins a canary, or ends the one that runs.
pub fn set(worker: &Rc<Worker>, configuration: Option<CanaryConfiguration>) -> Response {
    let Some(configuration) = configuration else {
        end(worker);
        return Response::ok("");
    };
    let CanaryConfiguration { name, share, stick, secret, salts } = configuration;
    let Some(vcl) = worker.engine.vcl.load().find(&name).map(Arc::clone) else {
        return Response::new(PARAMETER, format!("No VCL named {name} known\n"));
    };
    if let Err(reply) = warm_up(worker, &vcl) {
        return reply;
    }
    let canary = Arc::new(Canary { share, stick, secret, salts, counts: Default::default() });
    change(worker, |table| table.trial = Some(Trial { vcl, canary }));
    Response::ok("")
}

/// Ends the canary: requests that begin now are served by the active VCL.
fn end(worker: &Rc<Worker>) {
    let ended = worker.engine.vcl.load().trial.as_ref().map(|trial| Arc::downgrade(&trial.canary));
    change(worker, |table| table.trial = None);
    if let Some(ended) = ended {
        sweep(worker, ended);
    }
}

/// The counts of both groups.
pub fn counts(worker: &Worker) -> Response {
    match &worker.engine.vcl.load().trial {
        Some(trial) => Response::ok(counts_text(&[read(&trial.canary.counts[0]), read(&trial.canary.counts[1])])),
        None => Response::new(CANNOT, "No canary runs"),
    }
}

fn read(counts: &GroupCounts) -> Counts {
    let GroupCounts { requests, errors, failures, lookups, hits, durations } = counts;
    Counts {
        // First, so that no more requests than errors are counted.
        requests: requests.load(Relaxed),
        errors: errors.load(Relaxed),
        failures: failures.load(Relaxed),
        lookups: lookups.load(Relaxed),
        hits: hits.load(Relaxed),
        durations: std::array::from_fn(|bucket| durations[bucket].load(Relaxed)),
    }
}
