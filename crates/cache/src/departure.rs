//! How keys were lost: when and why the latest objects left the index. This answers why nothing was found.
//!
//! Each shard remembers its own latest departures, under its lock; a hit never comes here. New entries replace the
//! oldest, and the memory knows how far back it reaches: what it does not mention was not there since then, as far as
//! this worker knows. Next file: `removal.rs`.

use crate::SHARDS;
use crate::ban::Ban;
use crate::digest::Digest;
use std::sync::Arc;
use surface::limits::{DEPARTED_KEYS_MAX, WHY_TEXT_BYTES_MAX};
use surface::reason::Departure;

/// How many departures one shard remembers.
const SHARD_ENTRIES_MAX: usize = DEPARTED_KEYS_MAX / SHARDS;

/// What is remembered of a ban that removed something.
#[derive(Clone, PartialEq, Debug)]
pub struct BanNote {
    /// When it was added, seconds since 1970.
    pub time: f64,
    /// The text that `ban.list` shows, cut to [`WHY_TEXT_BYTES_MAX`].
    pub text: String,
}

impl BanNote {
    pub(crate) fn of(ban: &Ban) -> BanNote {
        let text = ban.specification.text();
        let end = (0..=text.len().min(WHY_TEXT_BYTES_MAX)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        BanNote { time: ban.time, text: text[..end].to_owned() }
    }
}

/// How the latest object of a key left.
#[derive(Clone, PartialEq, Debug)]
pub struct Gone {
    /// How.
    pub how: Departure,
    /// When, seconds since 1970.
    pub at: f64,
    /// The ban that removed the object.
    pub ban: Option<Arc<BanNote>>,
}

/// What is known of a key under which nothing is stored.
#[derive(Clone, PartialEq, Debug)]
pub struct Absence {
    /// What happened; `None` = nothing was there since `known_since`.
    pub gone: Option<Gone>,
    /// How far back this knowledge reaches, seconds since 1970.
    pub known_since: f64,
}

/// Why an object is removed.
#[derive(Clone, Copy)]
pub(crate) enum Leaving<'a> {
    As(Departure),
    Banned(&'a Ban),
}

/// A shard's memory: a ring; once it is full, `next` is the next place to write.
pub(crate) struct Departures {
    /// The key's hash, and how its object left.
    entries: Vec<(u64, Gone)>,
    next: usize,
    known_since: f64,
    /// The ban that removed something last, so that many objects can share one note.
    last_ban: Option<(u64, Arc<BanNote>)>,
}

impl Departures {
    pub(crate) fn new(now: f64) -> Departures {
        Departures { entries: Vec::new(), next: 0, known_since: now, last_ban: None }
    }

    /// Remembers that an object of a key has left.
    pub(crate) fn note(&mut self, digest: &Digest, leaving: Leaving<'_>, at: f64) {
        let gone = match leaving {
            Leaving::As(how) => Gone { how, at, ban: None },
            Leaving::Banned(ban) => {
                let known = self.last_ban.as_ref().filter(|(sequence, _)| *sequence == ban.sequence);
                let note = known.map_or_else(|| Arc::new(BanNote::of(ban)), |(_, note)| Arc::clone(note));
                self.last_ban = Some((ban.sequence, Arc::clone(&note)));
                Gone { how: Departure::Banned, at, ban: Some(note) }
            }
        };
        if self.entries.len() < SHARD_ENTRIES_MAX {
            self.entries.push((digest.hash, gone));
            return;
        }
        let (_, oldest) = std::mem::replace(&mut self.entries[self.next], (digest.hash, gone));
        self.known_since = self.known_since.max(oldest.at);
        self.next = (self.next + 1) % SHARD_ENTRIES_MAX;
    }

    /// What is known about a key that has no object.
    pub(crate) fn of(&self, digest: &Digest) -> Absence {
        let (newer, older) = self.entries.split_at(self.next.min(self.entries.len()));
        let found = newer.iter().rev().chain(older.iter().rev()).find(|(hash, _)| *hash == digest.hash);
        Absence { gone: found.map(|(_, gone)| gone.clone()), known_since: self.known_since }
    }
}
