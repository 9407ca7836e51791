//! QUIC keys, derived from the secret that outlives a worker: [`QuicKeys`].
//!
//! Connection ids, stateless resets and tokens have keys of their own. All event loops share them,
//! and a new worker has those of the previous one: it can reset connections that died with that
//! one, and tokens stay valid.

use crate::secret::Secret;
use aws_lc_rs::hkdf::{HKDF_SHA256, Prk, Salt};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use std::sync::Arc;

/// The keys.
pub struct QuicKeys {
    /// For connection ids.
    pub ids: [u8; 16],
    /// For stateless resets. Source: RFC 9000 §10.3.
    pub reset: Arc<hmac::Key>,
    /// For the tokens of Retry. Source: RFC 9000 §8.1.
    pub token: Arc<Prk>,
}

impl QuicKeys {
    /// The keys derived from a secret.
    #[must_use]
    pub fn of(secret: &Secret) -> QuicKeys {
        let master = hmac::Key::new(HMAC_SHA256, secret.bytes());
        let derived = |purpose: &[u8]| hmac::sign(&master, purpose);
        let mut ids = [0; 16];
        ids.iter_mut().zip(derived(b"quic ids").as_ref()).for_each(|(byte, one)| *byte = *one);
        QuicKeys {
            ids,
            reset: Arc::new(hmac::Key::new(HMAC_SHA256, derived(b"quic resets").as_ref())),
            token: Arc::new(Salt::new(HKDF_SHA256, &[]).extract(derived(b"quic tokens").as_ref())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_follow_from_the_secret_alone() {
        let of = |secret: &[u8]| {
            let keys = QuicKeys::of(&Secret::new(secret.to_vec()));
            (keys.ids, hmac::sign(&keys.reset, b"x").as_ref().to_vec())
        };
        assert_eq!(of(b"one"), of(b"one"));
        assert_ne!(of(b"one").0, of(b"two").0);
        assert_ne!(of(b"one").1, of(b"two").1);
    }
}
