//! Failures of origins and their handling: every kind of failure in every state of an exchange,
//! circuit breakers that open and close, names that change, requests that wait, uploads, and
//! clients that leave.

mod circuit_breaker;
mod failures;
mod leaving;
mod names;
mod uploads;
mod waiting;

use crate::support::World;
use std::sync::Arc;
use surface::counter::Vbe;

/// The words of the reasons in the log.
fn reasons(world: &World) -> Vec<String> {
    let words = |line: String| Some(line.split_once(" Witness why ")?.1.split(' ').next()?.to_owned());
    world.log().into_iter().filter_map(words).collect()
}

/// The backend with that name in the active VCL.
fn backend(world: &World, name: &str) -> Arc<backend::Backend> {
    let active = world.engine.vcl.load().active.clone().unwrap();
    let found = active.directors.backends().iter().find(|backend| backend.name() == name).cloned();
    found.unwrap()
}

/// A counter of that backend.
fn vbe(world: &World, name: &str, counter: Vbe) -> u64 {
    backend(world, name).counters().get(counter as usize)
}
