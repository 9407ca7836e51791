//! The input of a choice: the request, the time, and the settings of its task.

use super::hash_text::hash_text;
use super::notes::Notes;
use super::shard_parameters::{By, TaskParameters};
use crate::random::TestableRandom;
use std::net::IpAddr;

/// The identity of a client, by which the `client` directors of the old dialects choose.
#[derive(Clone, Copy, Default, Debug)]
pub struct ClientName<'a> {
    /// `client.identity`, if VCL has set it.
    pub identity: Option<&'a [u8]>,
    /// The client's address; `None` = there is no client.
    pub address: Option<IpAddr>,
}

/// The input of a choice.
#[derive(Clone, Copy)]
pub struct ResolveContext<'a> {
    /// Seconds since 1970.
    pub now: f64,
    /// The random number generator of the process.
    pub random: &'a TestableRandom,
    /// The request's URL.
    pub url: &'a [u8],
    /// The request's `Host` header, if any.
    pub host: Option<&'a [u8]>,
    /// The client.
    pub client: ClientName<'a>,
    /// The request's hash, once it is computed.
    pub digest: Option<&'a [u8; 32]>,
    /// The response is meant for the cache. In a VCL with saint mode, backends in trouble over the
    /// digest are sick then.
    pub is_for_cache: bool,
    /// The settings of the task for shard directors; `None` on the client side, except in vcl_pipe.
    /// Without it, shard directors can't use the request's hash as a key.
    pub shard: Option<&'a TaskParameters>,
    /// Collects the log records of directors.
    pub notes: &'a Notes,
}

impl ResolveContext<'_> {
    /// The hash of the fetched request; `None` on the client side.
    pub(crate) fn fetched_digest(&self) -> Option<&[u8; 32]> {
        self.digest.filter(|_| self.shard.is_some())
    }

    /// The key of a shard director for this request.
    #[must_use]
    pub fn shard_key(&self, by: By) -> u32 {
        match (by, self.fetched_digest()) {
            (By::Key(key) | By::Blob(key), _) => key,
            (By::Hash, Some(digest)) => u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]),
            (By::Hash, None) | (By::Url, _) => hash_text(self.url),
        }
    }
}
