//! A canary: a VCL that serves a small share of the clients, next to a control group of the same
//! size that stays with the active VCL.
//!
//! ```text
//! client's property ─keyed hash─→ place 0..10,000:  [ canary | control |  all others  ]
//! ```
//! The choice is a function of a property of the request and a secret, made once for each request
//! of a client, before VCL runs. Nothing is remembered, so loops, sessions and workers agree, and a
//! client whose property stays is never moved back and forth. A request without the property is in
//! no group. Restarts and fragments keep the choice of their request.
//!
//! The keys of both groups are combined with a salt, so that neither shares objects with the other
//! requests, and both begin with a cold cache. `key ^ salt` is undone by the same operation: a
//! purge reaches the object of all groups. *Invariant:* without a canary a request pays for one
//! comparison. The counts are shared by all loops: only the two groups write them.

use message::Message;
use std::hash::{DefaultHasher, Hasher};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use surface::canary::{SHARE_WHOLE, Stick};
use surface::histogram::{BUCKETS, Scale};
use surface::reason::{Handling, Layer, Reason};

/// One of the two groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// Served by the VCL on trial.
    Canary = 0,
    /// Served by the active VCL, and compared with.
    Control = 1,
}

/// Counts of a group.
#[derive(Debug, Default)]
pub struct GroupCounts {
    /// Requests that have ended.
    pub requests: AtomicU64,
    /// Those with a status of 500 or more.
    pub errors: AtomicU64,
    /// Those for which the origin failed, also if a stale object was delivered.
    pub failures: AtomicU64,
    /// Those that were hits or misses.
    pub lookups: AtomicU64,
    /// Those that were hits.
    pub hits: AtomicU64,
    /// Durations, by [`Scale::Seconds`].
    pub durations: [AtomicU64; BUCKETS],
}

/// Properties of a finished request that are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    /// Status of the response; 0 = none was sent.
    pub(crate) status: u16,
    /// Its handling.
    pub(crate) handling: Handling,
    /// The last reason.
    pub(crate) reason: Option<Reason>,
    /// Its duration in nanoseconds.
    pub(crate) nanoseconds: u64,
}

impl GroupCounts {
    fn count(&self, finished: Finished) {
        let Finished { status, handling, reason, nanoseconds } = finished;
        let add = |counter: &AtomicU64, is_counted: bool| {
            if is_counted {
                counter.fetch_add(1, Relaxed);
            }
        };
        let is_hit = matches!(handling, Handling::Hit | Handling::HitGrace | Handling::HitStale);
        let is_of_origin = reason.is_some_and(|reason| reason.row().layer == Layer::Origin);
        add(&self.errors, status >= 500);
        add(&self.failures, is_of_origin && matches!(handling, Handling::Error | Handling::HitStale));
        add(&self.lookups, is_hit || handling == Handling::Miss);
        add(&self.hits, is_hit);
        add(&self.durations[Scale::Seconds.bucket(nanoseconds)], true);
        // Last, so that a reader sees no more errors than requests for long.
        add(&self.requests, true);
    }
}

/// A running canary, without its VCL ([`crate::loaded_vcl::Trial`]).
pub struct Canary {
    /// Share of each group, in parts of [`SHARE_WHOLE`].
    pub share: u32,
    /// The property that decides.
    pub stick: Stick,
    /// Secret of the choice.
    pub secret: [u64; 2],
    /// Salts of the keys, canary first; `None` = the groups share the cache.
    pub salts: Option<[[u8; 32]; 2]>,
    /// Counts, canary first.
    pub counts: [GroupCounts; 2],
}

impl std::fmt::Debug for Canary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Canary").field("share", &self.share).field("stick", &self.stick).finish_non_exhaustive()
    }
}

impl Canary {
    /// The group of a request, from its head as received and the client's address.
    pub(crate) fn group(&self, request: &Message, client: IpAddr) -> Option<Group> {
        match &self.stick {
            Stick::Ip => self.choose(network(client).as_slice()),
            Stick::Cookie(name) => {
                let cookie = request.get_all("Cookie").find_map(|line| cookie(line, name.as_bytes()));
                cookie.and_then(|value| self.choose(value))
            }
            Stick::Header(name) => {
                request.get(name).filter(|value| !value.is_empty()).and_then(|value| self.choose(value))
            }
        }
    }

    fn choose(&self, property: &[u8]) -> Option<Group> {
        let mut hasher = DefaultHasher::new();
        self.secret.iter().for_each(|word| hasher.write_u64(*word));
        hasher.write(property);
        let place = ((u128::from(hasher.finish()) * u128::from(SHARE_WHOLE)) >> u64::BITS) as u32;
        if place < self.share {
            Some(Group::Canary)
        } else if place < self.share.saturating_mul(2) {
            Some(Group::Control)
        } else {
            None
        }
    }

    /// The keys of all groups for the key of a request in none of them. `key` itself comes first.
    pub(crate) fn keys(&self, key: &[u8; 32]) -> [Option<[u8; 32]>; 3] {
        let salted = |group: Group| Some(combined(key, &self.salts.as_ref()?[group as usize]));
        [Some(*key), salted(Group::Canary), salted(Group::Control)]
    }
}

/// The part of an address that stays with a client. Source: RFC 4291 §2.5.4, the interface has the
/// last 64 bits.
fn network(address: IpAddr) -> Vec<u8> {
    match address.to_canonical() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets()[..8].to_vec(),
    }
}

/// The value of the first cookie of that name in a header line; `None` if it is absent or empty.
/// Source: RFC 6265 §4.2.1.
fn cookie<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let value = line.split(|byte| *byte == b';').find_map(|pair| {
        let rest = pair.trim_ascii().strip_prefix(name)?.trim_ascii_start();
        rest.strip_prefix(b"=").map(<[u8]>::trim_ascii)
    });
    value.filter(|value| !value.is_empty())
}

fn combined(key: &[u8; 32], salt: &[u8; 32]) -> [u8; 32] {
    std::array::from_fn(|at| key[at] ^ salt[at])
}

/// Membership of a request in one of the groups.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// The canary.
    pub(crate) canary: Arc<Canary>,
    /// The group.
    pub(crate) group: Group,
}

impl Member {
    /// The key under which this group stores, from that of a request in no group, and the other way
    /// round.
    pub(crate) fn key(&self, key: [u8; 32]) -> [u8; 32] {
        self.canary.salts.as_ref().map_or(key, |salts| combined(&key, &salts[self.group as usize]))
    }

    /// True if this group does not share the cache.
    pub(crate) fn is_salted(&self) -> bool {
        self.canary.salts.is_some()
    }

    /// Counts a request that has ended.
    pub(crate) fn count(&self, finished: Finished) {
        self.canary.counts[self.group as usize].count(finished);
    }
}

#[cfg(test)]
mod tests;
