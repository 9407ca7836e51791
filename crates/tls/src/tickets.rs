//! Session tickets: [`Tickets`] encrypts the state that a client sends back to resume a session.
//!
//! The keys are the manager's, so that tickets outlive the worker and are valid on every event
//! loop. A ticket is the name of its key, then nonce and ciphertext of AES-256-GCM-SIV, which
//! tolerates a repeated nonce. Its associated data is its scope (the listener, and its demands on
//! clients): a ticket is valid for nothing else. Source: RFC 5077 §4, RFC 8446 §4.6.1.
//!
//! *Invariant:* a ticket is valid only for its listener and that listener's requirements for
//! clients.

use crate::table::{ClientDemand, FrontendRow, TicketKey};
use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest::{SHA256, digest};
use rustls::server::ProducesTickets;
use surface::limits::TLS_TICKET_SECONDS;

/// Bytes of a nonce.
const NONCE_BYTES: usize = 12;

/// Makes tickets with the first key of the table, and accepts those made with any of them.
#[derive(Debug)]
pub struct Tickets {
    keys: Vec<Key>,
    scope: Vec<u8>,
}

struct Key {
    name: [u8; 16],
    key: RandomizedNonceKey,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tickets {
    /// Tickets of a listener.
    ///
    /// # Errors
    /// A key does not have 32 bytes.
    pub fn new(keys: &[TicketKey], frontend: &FrontendRow) -> Result<Tickets, String> {
        let usable = |row: &TicketKey| {
            let key = RandomizedNonceKey::new(&AES_256_GCM_SIV, row.key.bytes());
            key.map(|key| Key { name: row.name, key })
                .map_err(|_| "a key of session tickets has not 32 bytes".to_owned())
        };
        Ok(Tickets { keys: keys.iter().map(usable).collect::<Result<_, _>>()?, scope: scope(frontend) })
    }
}

/// Scope that a ticket or a stored session is bound to. A resumed session presents no certificate
/// again, so one from a time when none was required must not be accepted.
pub(crate) fn scope(frontend: &FrontendRow) -> Vec<u8> {
    let kind = match frontend.client.demand {
        ClientDemand::None => 0,
        ClientDemand::Optional => 1,
        ClientDemand::Required => 2,
    };
    let mut scope = vec![kind];
    for authority in &frontend.client.authorities {
        scope.extend_from_slice(digest(&SHA256, authority).as_ref());
    }
    scope.extend_from_slice(frontend.listener.as_bytes());
    scope
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        !self.keys.is_empty()
    }

    fn lifetime(&self) -> u32 {
        TLS_TICKET_SECONDS
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let key = self.keys.first()?;
        let mut sealed = plain.to_vec();
        let nonce = key.key.seal_in_place_append_tag(Aad::from(&self.scope[..]), &mut sealed).ok()?;
        Some([&key.name[..], nonce.as_ref(), &sealed].concat())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_first_chunk::<16>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>()?;
        let key = self.keys.iter().find(|key| key.name == *name)?;
        let mut plain = sealed.to_vec();
        let nonce = Nonce::from(nonce);
        let length = key.key.open_in_place(nonce, Aad::from(&self.scope[..]), &mut plain).ok()?.len();
        plain.truncate(length);
        Some(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;
    use crate::table::ClientVerification;

    fn key(number: u8) -> TicketKey {
        TicketKey { name: [number; 16], key: Secret::new(vec![number; 32]) }
    }

    fn frontend(listener: &str) -> FrontendRow {
        FrontendRow { listener: listener.to_owned(), ..FrontendRow::default() }
    }

    #[test]
    fn a_ticket_is_good_as_long_as_its_key_is_in_the_table() {
        let first = Tickets::new(&[key(1)], &frontend("a")).unwrap();
        let rotated = Tickets::new(&[key(2), key(1)], &frontend("a")).unwrap();
        let later = Tickets::new(&[key(3), key(2)], &frontend("a")).unwrap();
        let ticket = first.encrypt(b"session").unwrap();
        assert_eq!(rotated.decrypt(&ticket).as_deref(), Some(&b"session"[..]));
        assert_eq!(later.decrypt(&ticket), None);
        assert_ne!(first.encrypt(b"session").unwrap(), ticket);
    }

    #[test]
    fn a_ticket_is_good_only_where_it_was_made() {
        let ticket = Tickets::new(&[key(1)], &frontend("a")).unwrap().encrypt(b"session").unwrap();
        assert_eq!(Tickets::new(&[key(1)], &frontend("b")).unwrap().decrypt(&ticket), None);
        let client = ClientVerification { demand: ClientDemand::Required, authorities: vec![vec![1]] };
        let stricter = FrontendRow { client, ..frontend("a") };
        assert_eq!(Tickets::new(&[key(1)], &stricter).unwrap().decrypt(&ticket), None);
    }

    #[test]
    fn a_ticket_that_was_tampered_with_is_none() {
        let tickets = Tickets::new(&[key(1)], &frontend("a")).unwrap();
        let ticket = tickets.encrypt(b"session").unwrap();
        for place in 0..ticket.len() {
            let mut other = ticket.clone();
            other[place] ^= 1;
            assert_eq!(tickets.decrypt(&other), None, "byte {place}");
            assert_eq!(tickets.decrypt(&ticket[..place]), None);
        }
    }

    #[test]
    fn without_keys_there_are_no_tickets() {
        let tickets = Tickets::new(&[], &frontend("a")).unwrap();
        assert!(!tickets.enabled());
        assert_eq!(tickets.encrypt(b"session"), None);
        assert!(Tickets::new(&[TicketKey { name: [0; 16], key: Secret::new(vec![1]) }], &frontend("a")).is_err());
    }
}
