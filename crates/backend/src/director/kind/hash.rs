//! Hash: chooses a healthy member by the hash of a text, in proportion to the weights. The same
//! text leads to the same member for as long as the set of healthy members is the same.

use crate::details::Details;
use crate::director::choice::{Candidates, Members, ResolveContext, hash_text};
use crate::director::interface::{Director, Progress, fraction, share_after, share_of};
use sha2::{Digest, Sha256};
use surface::vcl::Generation;
use vcl_run::value::DirectorId;

/// The text that is hashed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HashKey {
    /// The text passed to the method that chooses; this director can't be used as a backend hint
    /// itself.
    #[default]
    Given,
    /// The request's hash at the time of use: the `hash` directors of the old dialects.
    Digest,
    /// The client's identity or, without one, its address at the time of use: the `client`
    /// directors of the old dialects.
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

    /// The hash as a fraction in [0, 1), for a director that needs no text; `None` for others.
    fn share(&self, context: &ResolveContext<'_>) -> Option<f64> {
        let digest: [u8; 32] = match self.key {
            HashKey::Given => return None,
            HashKey::Digest => *context.digest?,
            HashKey::Client => match (context.client.identity, context.client.address) {
                (Some(identity), _) => Sha256::digest(identity).into(),
                (None, Some(address)) => Sha256::digest(address.to_string()).into(),
                (None, None) => Sha256::digest(b"").into(),
            },
        };
        Some(share_of(&digest))
    }

    /// The member for this text.
    #[must_use]
    pub fn choose(&self, candidates: &dyn Candidates, context: &ResolveContext<'_>, text: &[u8]) -> Option<DirectorId> {
        self.members.choose_by_weight(candidates, context, fraction(hash_text(text)))
    }
}

impl Director for Hash {
    fn type_name(&self) -> &'static str {
        "hash"
    }

    fn changeable(&self) -> Option<&Members> {
        Some(&self.members)
    }

    /// Works for a director that needs no text. A client gets the same member as in Varnish 2.1 and
    /// 3.0. Compat: v00028 of 3.0.
    fn choose(&self, _: DirectorId, candidates: &dyn Candidates, context: &ResolveContext<'_>) -> Option<DirectorId> {
        self.members.choose_by_weight(candidates, context, self.share(context)?)
    }

    /// Always healthy while the text to be hashed is unknown.
    fn own_health(&self, changed: f64) -> Option<(bool, f64)> {
        (self.key == HashKey::Given).then_some((true, changed))
    }

    fn is_judged(&self) -> bool {
        false
    }

    fn details(&self, _: &dyn Candidates, _: f64) -> Details {
        Details::Hash
    }

    /// Before 3.0, the first choice is made among all members, healthy or not; the others among the
    /// healthy ones.
    fn tries(&self, _: &dyn Candidates, _: &ResolveContext<'_>, generation: Generation) -> Option<usize> {
        let retries = self.retries.map_or_else(|| self.members.list().len(), |retries| retries as usize);
        Some(retries + usize::from(generation < Generation::V3))
    }

    fn choose_next(
        &self,
        _: DirectorId,
        progress: &mut Progress,
        candidates: &dyn Candidates,
        context: &ResolveContext<'_>,
        generation: Generation,
    ) -> Option<DirectorId> {
        let is_first = progress.share.is_none();
        let share = match progress.share {
            Some(share) if generation >= Generation::V3 => share_after(share),
            Some(share) => share,
            None => self.share(context)?,
        };
        progress.share = Some(share);
        if is_first && generation < Generation::V3 {
            let first = self.members.choose_among_all(share)?;
            if candidates.is_healthy_for(first, context) {
                return Some(first);
            }
        }
        self.members.choose_by_weight(candidates, context, share)
    }
}
