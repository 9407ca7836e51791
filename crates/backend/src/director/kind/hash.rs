//! Hash: chooses a healthy member by the hash of a text, in proportion to the weights. The same text leads to the same
//! member for as long as the set of healthy members is the same.

use crate::director::choice::{Candidates, Members, ResolveContext, hash_text};
use sha2::{Digest, Sha256};
use vcl_run::value::DirectorId;

/// What is hashed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HashKey {
    /// The text passed to the method that chooses; this director can't be used as a backend hint itself.
    #[default]
    Given,
    /// The request's hash at the time of use: the `hash` directors of the old dialects.
    Digest,
    /// The client's identity or, without one, its address at the time of use: the `client` directors of the old dialects.
    Client,
}

/// The director.
#[derive(Debug, Default)]
pub struct Hash {
    pub(crate) members: Members,
    key: HashKey,
    retries: Option<u32>,
}

impl Hash {
    /// A director without members. `retries` is as in [`super::random::Random::with_retries`].
    #[must_use]
    pub fn by(key: HashKey, retries: Option<u32>) -> Hash {
        Hash { members: Members::default(), key, retries }
    }

    /// Whether it is a director of an old dialect, which needs no text.
    pub(crate) fn hashes_by_itself(&self) -> bool {
        self.key != HashKey::Given
    }

    pub(crate) fn retries(&self) -> Option<usize> {
        self.retries.map(|retries| retries as usize)
    }

    /// The member for a director that needs no text. A client gets the same member as in Varnish 2.1 and 3.0.
    /// Compat: v00028 of 3.0.
    pub(crate) fn choose_when_used(
        &self,
        candidates: &dyn Candidates,
        context: &ResolveContext<'_>,
    ) -> Option<DirectorId> {
        self.members.choose_by_weight(candidates, context, self.share(context)?)
    }

    /// The hash as a fraction in [0, 1), for a director that needs no text; `None` for others.
    pub(crate) fn share(&self, context: &ResolveContext<'_>) -> Option<f64> {
        let digest: [u8; 32] = match self.key {
            HashKey::Given => return None,
            HashKey::Digest => *context.digest?,
            HashKey::Client => match (context.client.identity, context.client.address) {
                (Some(identity), _) => Sha256::digest(identity).into(),
                (None, Some(address)) => Sha256::digest(address.to_string()).into(),
                (None, None) => Sha256::digest(b"").into(),
            },
        };
        let start = u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]);
        Some(f64::from(start) / 4_294_967_296.0)
    }

    /// The member for this text.
    #[must_use]
    pub fn choose(&self, candidates: &dyn Candidates, context: &ResolveContext<'_>, text: &[u8]) -> Option<DirectorId> {
        self.members.choose_by_weight(candidates, context, f64::from(hash_text(text)) / 4_294_967_296.0)
    }
}
