//! The memory of `leak_guard`: for keys that were fetched with credentials a moment ago, the
//! credentials and the body.
//!
//! If other credentials get another body under the same key, the response depends on the client,
//! and storing it shares one client's page with all. The table is a fixed number of slots
//! ([`LEAK_GUARD_KEYS_MAX`]), each for one key; a key whose slot is in use by another is not
//! compared, and counted. Credentials and bodies are kept as hashes under a secret of this process.
//! *Cost:* nothing on a hit; a fetch without credentials reads one number as long as no others were
//! stored lately. *Lock:* one mutex, held for a few instructions, taken by fetches with
//! credentials. Next file: `fetch/leak.rs`.

use sha2::{Digest, Sha256};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use surface::limits::{LEAK_GUARD_BODY_BYTES_MAX, LEAK_GUARD_KEYS_MAX, LEAK_GUARD_REFUSAL_SECONDS, LEAK_GUARD_SECONDS};

/// The credentials of a request as a hash; 0 = none.
pub(crate) type CredentialsHash = u64;

/// A key with its variant, as a hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WatchedKey([u64; 2]);

/// Keys that were fetched with credentials.
#[derive(Debug, Default)]
pub struct LeakGuard {
    secret: RandomState,
    /// Time of the last response to a request with credentials, as bits of seconds since 1970.
    last: AtomicU64,
    slots: Mutex<Vec<Slot>>,
}

/// The last response under a key.
#[derive(Clone, Copy, Debug)]
struct Slot {
    key: WatchedKey,
    credentials: CredentialsHash,
    body: u64,
    /// Seconds since 1970.
    at: f64,
    /// Until then nothing is stored under this key, seconds since 1970.
    refused_until: f64,
}

impl Slot {
    const EMPTY: Slot = Slot { key: WatchedKey([0; 2]), credentials: 0, body: 0, at: 0.0, refused_until: 0.0 };

    fn is_used_at(&self, now: f64) -> bool {
        now - self.at <= LEAK_GUARD_SECONDS || now < self.refused_until
    }
}

/// Knowledge about a key before its response is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Before {
    /// No other credentials were used lately.
    Nothing,
    /// Others were: the bodies have to be compared.
    Others,
    /// The bodies differed.
    Refused,
}

/// Result of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum After {
    /// Nothing speaks against sharing.
    Same,
    /// Other credentials got another body.
    Differs,
    /// Another key is in its slot.
    NotCompared,
}

impl LeakGuard {
    /// The hash of credentials: the values of Cookie and Authorization, as far as they count.
    pub(crate) fn credentials<'a>(&self, values: impl Iterator<Item = (u8, &'a [u8])>) -> CredentialsHash {
        let mut hasher = self.hasher();
        let mut is_empty = true;
        for (kind, value) in values.filter(|(_, value)| !value.trim_ascii().is_empty()) {
            hasher.update([kind]);
            hasher.update((value.len() as u64).to_le_bytes());
            hasher.update(value);
            is_empty = false;
        }
        if is_empty { 0 } else { first_word(hasher).max(1) }
    }

    /// The key of a response: that of the request, and the values of the fields in Vary.
    pub(crate) fn key(&self, digest: &[u8; 32], vary: &[u8]) -> WatchedKey {
        let hash: [u8; 32] = self.hasher().chain_update(digest).chain_update(vary).finalize().into();
        let word = |at: usize| hash[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        WatchedKey([word(0), word(8)])
    }

    /// A hash for the body of a response.
    pub(crate) fn body(&self) -> BodyHash {
        BodyHash { hasher: self.hasher(), bytes: 0 }
    }

    fn hasher(&self) -> Sha256 {
        Sha256::new().chain_update(self.secret.hash_one(0_u8).to_le_bytes())
    }

    /// True if no response to a request with credentials was stored lately, so that one without has
    /// nothing to be compared with.
    pub(crate) fn is_quiet(&self, now: f64) -> bool {
        now - f64::from_bits(self.last.load(Relaxed)) > LEAK_GUARD_REFUSAL_SECONDS
    }

    /// Knowledge about this key at `now`, seconds since 1970.
    pub(crate) fn before(&self, key: WatchedKey, credentials: CredentialsHash, now: f64) -> Before {
        match self.slots().get(place(key)).filter(|slot| slot.key == key && slot.is_used_at(now)) {
            Some(slot) if now < slot.refused_until => Before::Refused,
            Some(slot) if slot.credentials != credentials => Before::Others,
            Some(_) | None => Before::Nothing,
        }
    }

    /// Compares a response with the one before it and keeps it for the next. `refuses`: after a
    /// difference nothing is stored for a while.
    pub(crate) fn after(
        &self,
        key: WatchedKey,
        credentials: CredentialsHash,
        body: u64,
        now: f64,
        refuses: bool,
    ) -> After {
        if credentials != 0 {
            self.last.store(now.to_bits(), Relaxed);
        }
        let mut slots = self.slots();
        if slots.is_empty() {
            slots.resize(LEAK_GUARD_KEYS_MAX, Slot::EMPTY);
        }
        let Some(slot) = slots.get_mut(place(key)) else { return After::NotCompared };
        let is_used = slot.is_used_at(now);
        if is_used && slot.key != key {
            return After::NotCompared;
        }
        let is_recent = is_used && now - slot.at <= LEAK_GUARD_SECONDS;
        let differs = is_recent && slot.credentials != credentials && slot.body != body;
        let earlier = if is_used { slot.refused_until } else { 0.0 };
        let refused_until = if differs && refuses { now + LEAK_GUARD_REFUSAL_SECONDS } else { earlier };
        *slot = Slot { key, credentials, body, at: now, refused_until };
        if differs { After::Differs } else { After::Same }
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        // Every slot is valid on its own, so a panic elsewhere does not matter.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(key: WatchedKey) -> usize {
    key.0[0] as usize % LEAK_GUARD_KEYS_MAX
}

/// The hash of a body while it is received: of its length and its first
/// [`LEAK_GUARD_BODY_BYTES_MAX`] bytes.
#[derive(Clone, Debug)]
pub(crate) struct BodyHash {
    hasher: Sha256,
    bytes: u64,
}

impl BodyHash {
    pub(crate) fn update(&mut self, piece: &[u8]) {
        let room = (LEAK_GUARD_BODY_BYTES_MAX as u64).saturating_sub(self.bytes);
        let counted = usize::try_from(room).unwrap_or(usize::MAX).min(piece.len());
        self.hasher.update(&piece[..counted]);
        self.bytes += piece.len() as u64;
    }

    pub(crate) fn finish(self) -> u64 {
        first_word(self.hasher.chain_update(self.bytes.to_le_bytes()))
    }
}

fn first_word(hasher: Sha256) -> u64 {
    let hash: [u8; 32] = hasher.finalize().into();
    hash.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: CredentialsHash = 1;
    const BOB: CredentialsHash = 2;

    #[test]
    fn other_credentials_with_another_body_are_a_difference() {
        let guard = LeakGuard::default();
        let key = guard.key(&[1; 32], b"");
        for (credentials, body, at, expected) in [
            (ALICE, 10, 100.0, After::Same),
            (ALICE, 11, 101.0, After::Same),
            (BOB, 11, 102.0, After::Same),
            (ALICE, 12, 103.0, After::Differs),
            (0, 13, 104.0, After::Differs),
            (BOB, 14, 115.0, After::Same),
        ] {
            assert_eq!(guard.after(key, credentials, body, at, false), expected, "{at}");
        }
        assert_eq!(guard.before(key, BOB, 116.0), Before::Nothing);
        assert_eq!(guard.before(key, ALICE, 116.0), Before::Others);
        assert_eq!(guard.before(key, ALICE, 126.0), Before::Nothing);
        assert_eq!(guard.before(guard.key(&[1; 32], b"v"), ALICE, 116.0), Before::Nothing);
    }

    #[test]
    fn refusal_of_a_key_ends_after_a_minute() {
        let guard = LeakGuard::default();
        let key = guard.key(&[1; 32], b"");
        guard.after(key, ALICE, 10, 100.0, true);
        assert_eq!(guard.after(key, BOB, 11, 101.0, true), After::Differs);
        assert_eq!(guard.before(key, 0, 130.0), Before::Refused);
        assert_eq!(guard.after(key, BOB, 12, 130.0, true), After::Same);
        assert_eq!(guard.before(key, BOB, 160.0), Before::Refused);
        assert_eq!(guard.before(key, BOB, 161.5), Before::Nothing);
        assert!(!guard.is_quiet(130.5));
        assert!(guard.is_quiet(230.0));
    }

    #[test]
    fn more_keys_than_slots_take_no_more_memory_and_are_not_compared() {
        let guard = LeakGuard::default();
        let mut dropped = 0;
        for number in 0..2 * LEAK_GUARD_KEYS_MAX {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&(number as u64).to_le_bytes());
            dropped += usize::from(guard.after(guard.key(&digest, b""), ALICE, 1, 100.0, false) == After::NotCompared);
        }
        assert!(dropped >= LEAK_GUARD_KEYS_MAX, "{dropped}");
        assert_eq!(guard.slots().len(), LEAK_GUARD_KEYS_MAX);
    }

    #[test]
    fn hash_of_a_body_depends_on_its_bytes_and_length_not_on_its_pieces() {
        let guard = LeakGuard::default();
        let of = |pieces: &[&[u8]]| {
            let mut hash = guard.body();
            pieces.iter().for_each(|piece| hash.update(piece));
            hash.finish()
        };
        assert_eq!(of(&[b"ab", b"", b"c"]), of(&[b"abc"]));
        assert_ne!(of(&[b"abc"]), of(&[b"abd"]));
        let long = vec![7; LEAK_GUARD_BODY_BYTES_MAX + 10];
        assert_ne!(of(&[&long]), of(&[&long[..LEAK_GUARD_BODY_BYTES_MAX + 9]]));
        assert_eq!(guard.credentials([(0, &b" "[..])].into_iter()), 0);
        assert_ne!(guard.credentials([(0, &b"a"[..])].into_iter()), guard.credentials([(1, &b"a"[..])].into_iter()));
    }
}
