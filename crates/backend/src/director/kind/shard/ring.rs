//! The ring of a shard director: its hosts, their points, and the changes that turn an old ring
//! into a new one.
//!
//! Each host has `replicas × weight` points: the hashes of its ident (or VCL name) followed by 0,
//! 1, 2 …. Removing a host moves the last one to its position; adding first fills positions that
//! became free. This is as in Varnish, because the position of a host is visible in debug records
//! and in the order of `backend.list`.

use crate::director::choice::{Candidates, hash_text};
use std::borrow::Cow;
use std::fmt::{self, Write};
use surface::limits::SHARD_POINTS_MAX;
use vcl_run::value::DirectorId;

/// A change that waits for `.reconfigure()`.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// `.clear()`: no members.
    Clear,
    /// `.add_backend()`
    Add {
        /// The member.
        director: DirectorId,
        /// The text from which its points are made, instead of its VCL name.
        ident: Option<String>,
        /// Seconds of ramp-up, instead of the director's setting.
        rampup: Option<f64>,
        /// Factor for the number of its replicas, 1 or more.
        weight: f64,
    },
    /// `.remove_backend()`: by ident if one is given, else all entries of the member.
    Remove {
        /// The member.
        director: Option<DirectorId>,
        /// Its ident.
        ident: Option<String>,
    },
}

/// A member on the ring.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) director: DirectorId,
    pub(super) ident: Option<Box<str>>,
    pub(super) rampup: Option<f64>,
    replicas: u32,
}

/// A point of the ring.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Point {
    pub(super) point: u32,
    pub(super) host: u32,
}

/// Hosts and points of a director at one time.
#[derive(Clone, Debug, Default)]
pub(super) struct Configuration {
    pub(super) hosts: Vec<Host>,
    /// Sorted by point.
    pub(super) points: Vec<Point>,
    pub(super) warmup: f64,
    pub(super) rampup: f64,
}

impl Configuration {
    /// Seconds of ramp-up of a host.
    pub(super) fn rampup_of(&self, host: usize) -> f64 {
        self.hosts.get(host).and_then(|host| host.rampup).unwrap_or(self.rampup)
    }

    /// The index of the key's point: the first point that is not below the key, or the last point
    /// if the key is above all.
    pub(super) fn lookup(&self, key: u32) -> usize {
        self.points.partition_point(|point| point.point < key).min(self.points.len().saturating_sub(1))
    }
}

fn name_of<'a>(ident: Option<&'a str>, director: DirectorId, candidates: &'a dyn Candidates) -> Cow<'a, str> {
    ident.map_or_else(|| candidates.name(director), Cow::Borrowed)
}

/// Applies changes in order; everything before the last clear is ignored.
pub(super) fn apply(
    hosts: &mut Vec<Host>,
    changes: &[Change],
    replicas: u32,
    candidates: &dyn Candidates,
    mut notice: impl FnMut(fmt::Arguments<'_>),
) {
    let start = changes.iter().rposition(|change| *change == Change::Clear).map_or(0, |place| place + 1);
    if start > 0 {
        hosts.clear();
    }
    let mut places: Vec<Option<Host>> = hosts.drain(..).map(Some).collect();
    for change in &changes[start..] {
        match change {
            Change::Clear => places.clear(),
            Change::Add { director, ident, rampup, weight } => {
                let ident = ident.as_deref().filter(|ident| !ident.is_empty());
                let same = |host: &&Host| match (ident, host.ident.as_deref()) {
                    (None, None) => host.director == *director,
                    (mine, theirs) => {
                        name_of(mine, *director, candidates) == name_of(theirs, host.director, candidates)
                    }
                };
                if let Some(host) = places.iter().flatten().find(same) {
                    let separator = if host.ident.is_some() { "/" } else { "" };
                    notice(format_args!(
                        "backend {}{separator}{} already exists - skipping",
                        candidates.name(host.director),
                        host.ident.as_deref().unwrap_or("")
                    ));
                    continue;
                }
                let host = Host {
                    director: *director,
                    ident: ident.map(Box::from),
                    rampup: *rampup,
                    replicas: (f64::from(replicas) * weight) as u32,
                };
                match places.iter_mut().find(|place| place.is_none()) {
                    Some(free) => *free = Some(host),
                    None => places.push(Some(host)),
                }
            }
            Change::Remove { director, ident } => {
                let ident = ident.as_deref().filter(|ident| !ident.is_empty());
                for place in &mut places {
                    let goes = place.as_ref().is_some_and(|host| match ident {
                        Some(ident) => ident == name_of(host.ident.as_deref(), host.director, candidates),
                        None => *director == Some(host.director),
                    });
                    if goes {
                        *place = None;
                    }
                }
                while places.last().is_some_and(Option::is_none) {
                    places.pop();
                }
            }
        }
    }
    while let Some(free) = places.iter().position(Option::is_none) {
        // The last position is never free.
        places.swap_remove(free);
        while places.last().is_some_and(Option::is_none) {
            places.pop();
        }
    }
    hosts.extend(places.into_iter().flatten());
}

/// The points of all hosts, sorted.
///
/// # Errors
/// The number of points, if it is more than [`SHARD_POINTS_MAX`].
pub(super) fn points(hosts: &[Host], candidates: &dyn Candidates) -> Result<Vec<Point>, u64> {
    let count: u64 = hosts.iter().map(|host| u64::from(host.replicas)).sum();
    if count > SHARD_POINTS_MAX as u64 {
        return Err(count);
    }
    let mut points = Vec::with_capacity(count as usize);
    let mut text = String::new();
    for (place, host) in hosts.iter().enumerate() {
        for replica in 0..host.replicas {
            text.clear();
            let _ = write!(text, "{}{replica}", name_of(host.ident.as_deref(), host.director, candidates));
            points.push(Point { point: hash_text(text.as_bytes()), host: place as u32 });
        }
    }
    points.sort_unstable();
    Ok(points)
}
