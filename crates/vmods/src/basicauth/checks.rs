//! Verification of passwords: few at once, and what was verified is remembered.
//!
//! *Invariant:* only passwords that were right are remembered, as HMAC-SHA-256 of hash and password
//! under a key that is random for each worker, so the memory of a worker does not give them away to
//! less than the guessing of passwords itself. Wrong ones cost a hash each time.

use super::credentials::Credentials;
use super::file::Passwords;
use super::hash::PasswordHash;
use crate::lookups::Lookups;
use hmac::{Hmac, KeyInit, Mac};
use parking_lot::Mutex;
use sha2::Sha256;
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use surface::limits::{
    PASSWORD_CHECKS_MAX, PASSWORD_CHECKS_OF_CLIENT_MAX, PASSWORD_CHECKS_WAITING_MAX, PASSWORDS_VERIFIED_MAX,
};

type Mark = [u8; 32];

/// Verified passwords, and those that are being verified.
pub(crate) struct Checks {
    /// As long as a block of SHA-256.
    key: [u8; 64],
    verified: Mutex<Verified>,
    turns: Lookups,
    /// Number of passwords in verification by client.
    clients: Mutex<HashMap<IpAddr, usize>>,
}

/// Two generations: when the younger one is full, it becomes the older one.
#[derive(Default)]
struct Verified {
    young: HashSet<Mark>,
    old: HashSet<Mark>,
}

impl std::fmt::Debug for Checks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checks").finish_non_exhaustive()
    }
}

impl Default for Checks {
    fn default() -> Self {
        let mut key = [0; 64];
        // A random identifier has 122 random bits.
        key.chunks_exact_mut(16).for_each(|part| part.copy_from_slice(uuid::Uuid::new_v4().as_bytes()));
        Checks {
            key,
            verified: Mutex::default(),
            turns: Lookups::new(PASSWORD_CHECKS_MAX, PASSWORD_CHECKS_WAITING_MAX),
            clients: Mutex::default(),
        }
    }
}

impl Checks {
    fn mark(&self, hash: &PasswordHash, credentials: &Credentials) -> Mark {
        let mut code = Hmac::<Sha256>::new(&self.key.into());
        let identity = hash.identity();
        code.update(&(identity.len() as u64).to_le_bytes());
        code.update(identity);
        code.update(&credentials.password);
        code.finalize().into_bytes().into()
    }

    /// True if this password was verified against this hash before.
    pub(crate) fn is_known(&self, hash: &PasswordHash, credentials: &Credentials) -> bool {
        let mark = self.mark(hash, credentials);
        let mut verified = self.verified.lock();
        verified.young.contains(&mark) || verified.old.take(&mark).is_some_and(|mark| verified.add(mark))
    }

    /// Verifies at once. Blocks for as long as the hash takes.
    pub(crate) fn verify(&self, passwords: &Passwords, credentials: &Credentials) -> bool {
        let Some(hash) = passwords.hash(&credentials.user) else {
            if let Some(other) = passwords.slowest() {
                other.is_of(&credentials.password);
            }
            return false;
        };
        // The same password may have been verified while this one waited for its turn.
        if hash.is_slow() && self.is_known(hash, credentials) {
            return true;
        }
        let is_match = hash.is_of(&credentials.password);
        if is_match && hash.is_slow() {
            let mark = self.mark(hash, credentials);
            self.verified.lock().add(mark);
        }
        is_match
    }

    /// Verifies on another thread. The error says why that was not done.
    pub(crate) async fn verify_later(
        self: &Arc<Self>,
        passwords: Arc<Passwords>,
        credentials: Credentials,
        client: Option<IpAddr>,
    ) -> Result<bool, &'static str> {
        let place = client.map(|client| Place::take(self, client).ok_or("too many passwords of one client to verify"));
        let place = place.transpose()?;
        let checks = Arc::clone(self);
        let work = move || {
            let _until_done = place;
            checks.verify(&passwords, &credentials)
        };
        self.turns.run(work).await.map_err(|refusal| match refusal {
            crate::lookups::Refusal::Full => "too many passwords to verify",
            crate::lookups::Refusal::TooLong => "verifying the password takes too long",
            crate::lookups::Refusal::Ended => "verifying the password was given up",
        })
    }
}

impl Verified {
    /// Adds a mark; always true.
    fn add(&mut self, mark: Mark) -> bool {
        if self.young.len() >= PASSWORDS_VERIFIED_MAX / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(mark);
        true
    }
}

/// The place of one password among those of its client, until it is dropped.
struct Place {
    checks: Arc<Checks>,
    client: IpAddr,
}

impl Place {
    fn take(checks: &Arc<Checks>, client: IpAddr) -> Option<Place> {
        let client = prefix(client);
        let mut clients = checks.clients.lock();
        let count = clients.entry(client).or_default();
        if *count >= PASSWORD_CHECKS_OF_CLIENT_MAX {
            return None;
        }
        *count += 1;
        Some(Place { checks: Arc::clone(checks), client })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut clients = self.checks.clients.lock();
        if let Some(count) = clients.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                clients.remove(&self.client);
            }
        }
    }
}

/// The part of an address that one client has to itself.
fn prefix(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watched::Parsed;

    fn credentials(user: &str, password: &str) -> Credentials {
        Credentials { user: user.into(), password: password.into() }
    }

    /// `secret`, with the lowest cost of bcrypt.
    fn passwords() -> Passwords {
        Passwords::parse(b"ann:$2y$04$SctoWizkLkgOMl8bdSAzPemKp730wLFudcZkmRvkoakSTyB2UIw7.\n".to_vec()).unwrap()
    }

    #[test]
    fn only_right_passwords_are_remembered_and_only_for_the_same_hash() {
        let (checks, passwords) = (Checks::default(), passwords());
        let hash = passwords.hash(b"ann").unwrap();
        for (password, is_right) in [("secret", true), ("wrong", false)] {
            let credentials = credentials("ann", password);
            assert!(!checks.is_known(hash, &credentials));
            assert_eq!(checks.verify(&passwords, &credentials), is_right);
            assert_eq!(checks.is_known(hash, &credentials), is_right);
        }
        let other = PasswordHash::parse("$apr1$x$1234567890123456789012").unwrap();
        assert!(!checks.is_known(&other, &credentials("ann", "secret")));
        assert!(!Checks::default().is_known(hash, &credentials("ann", "secret")));
    }

    #[test]
    fn memory_of_verified_passwords_is_bounded_and_used_ones_stay() {
        let (checks, passwords) = (Checks::default(), passwords());
        let (hash, kept) = (passwords.hash(b"ann").unwrap(), credentials("ann", "secret"));
        let mark = checks.mark(hash, &kept);
        checks.verified.lock().add(mark);
        for number in 0..3 * PASSWORDS_VERIFIED_MAX as u64 {
            let mut other = [0; 32];
            other[..8].copy_from_slice(&number.to_le_bytes());
            checks.verified.lock().add(other);
            assert!(number % 1000 != 0 || checks.is_known(hash, &kept));
        }
        let verified = checks.verified.lock();
        assert!(verified.young.len() + verified.old.len() <= PASSWORDS_VERIFIED_MAX);
    }

    #[tokio::test]
    async fn one_client_cannot_take_all_places() {
        let (checks, passwords) = (Arc::new(Checks::default()), Arc::new(passwords()));
        let attacker: IpAddr = "2001:db8::1".parse().unwrap();
        let places: Vec<Place> =
            (0..PASSWORD_CHECKS_OF_CLIENT_MAX).map(|_| Place::take(&checks, attacker).unwrap()).collect();
        let ask = |client: &str| {
            let (checks, passwords, client) = (Arc::clone(&checks), Arc::clone(&passwords), client.parse().unwrap());
            async move { checks.verify_later(passwords, credentials("ann", "secret"), Some(client)).await }
        };
        assert!(ask("2001:db8::2").await.is_err(), "same /64");
        assert_eq!(ask("2001:db8:0:1::1").await, Ok(true));
        drop(places);
        assert_eq!(ask("2001:db8::2").await, Ok(true));
        assert!(checks.clients.lock().is_empty());
    }
}
