//! The removal history: when and why the latest objects left the index. It explains why a lookup
//! found nothing.
//!
//! Each shard records its own latest removals, under its lock; a hit does not use it. New entries
//! replace the oldest, and the history has a start time: a key that is not in it was not stored
//! since then, as far as this worker has seen. Next file: `removal.rs`.

use crate::SHARDS;
use crate::ban::Ban;
use crate::digest::Digest;
use std::sync::Arc;
use surface::limits::{REMOVED_KEYS_MAX, WHY_TEXT_BYTES_MAX};
use surface::reason::RemovalReason;

/// Number of removals that one shard records.
const SHARD_ENTRIES_MAX: usize = REMOVED_KEYS_MAX / SHARDS;

/// Record of a ban that removed an object.
#[derive(Clone, PartialEq, Debug)]
pub struct BanNote {
    /// Time at which it was added, seconds since 1970.
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

/// Record of how the latest object of a key left.
#[derive(Clone, PartialEq, Debug)]
pub struct RemovalRecord {
    /// The kind of removal.
    pub reason: RemovalReason,
    /// Time of the removal, seconds since 1970.
    pub at: f64,
    /// The ban that removed the object.
    pub ban: Option<Arc<BanNote>>,
}

/// Knowledge about a key under which nothing is stored.
#[derive(Clone, PartialEq, Debug)]
pub struct Absence {
    /// The last removal; `None` = nothing was stored since `known_since`.
    pub last_removal: Option<RemovalRecord>,
    /// Start of this knowledge, seconds since 1970.
    pub known_since: f64,
}

/// Reason for the removal of an object.
#[derive(Clone, Copy)]
pub(crate) enum RemovalCause<'a> {
    Other(RemovalReason),
    Banned(&'a Ban),
}

/// A shard's removal history: a ring; once it is full, `next` is the next position to write.
pub(crate) struct RemovalHistory {
    /// The key's hash, and the removal of its object.
    entries: Vec<(u64, RemovalRecord)>,
    next: usize,
    known_since: f64,
    /// The ban that last removed an object, so that many objects can share one note.
    last_ban: Option<(u64, Arc<BanNote>)>,
}

impl RemovalHistory {
    pub(crate) fn new(now: f64) -> RemovalHistory {
        RemovalHistory { entries: Vec::new(), next: 0, known_since: now, last_ban: None }
    }

    /// Records that an object of a key has left.
    pub(crate) fn note(&mut self, digest: &Digest, cause: RemovalCause<'_>, at: f64) {
        let record = match cause {
            RemovalCause::Other(reason) => RemovalRecord { reason, at, ban: None },
            RemovalCause::Banned(ban) => {
                let known = self.last_ban.as_ref().filter(|(sequence, _)| *sequence == ban.sequence);
                let note = known.map_or_else(|| Arc::new(BanNote::of(ban)), |(_, note)| Arc::clone(note));
                self.last_ban = Some((ban.sequence, Arc::clone(&note)));
                RemovalRecord { reason: RemovalReason::Banned, at, ban: Some(note) }
            }
        };
        if self.entries.len() < SHARD_ENTRIES_MAX {
            self.entries.push((digest.hash, record));
            return;
        }
        let (_, oldest) = std::mem::replace(&mut self.entries[self.next], (digest.hash, record));
        self.known_since = self.known_since.max(oldest.at);
        self.next = (self.next + 1) % SHARD_ENTRIES_MAX;
    }

    /// The knowledge about a key that has no object.
    pub(crate) fn of(&self, digest: &Digest) -> Absence {
        let (newer, older) = self.entries.split_at(self.next.min(self.entries.len()));
        let found = newer.iter().rev().chain(older.iter().rev()).find(|(hash, _)| *hash == digest.hash);
        Absence { last_removal: found.map(|(_, record)| record.clone()), known_since: self.known_since }
    }
}
