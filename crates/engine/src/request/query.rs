//! QUERY: a safe request whose query is in its body. Under RFC 9111 its response can be stored,
//! under a key of the body, too.
//!
//! Comes from: Hash, after vcl_hash. A request whose body is long, or of unannounced length, is
//! passed. Source: RFC 9111 §4, draft-ietf-httpbis-safe-method-w-body.

use super::client_body::ClientBody;
use super::{Run, Step};
use surface::limits::QUERY_BYTES_MAX;
use surface::reason::Reason;

/// Headers without which the body cannot be interpreted.
const QUERY_FIELDS: [&str; 3] = ["Content-Type", "Content-Encoding", "Content-Language"];

impl Run<'_> {
    /// True if the key must distinguish the request by its body.
    pub(super) fn is_query(&self) -> bool {
        let life = &self.request.task.life;
        life.after_hash == Step::Lookup && self.request.task.request.method() == b"QUERY" && self.follows_rfc()
    }

    /// Adds the body to the key. Returns the next step.
    pub(super) async fn hash_query(&mut self) -> Step {
        let is_short = match &self.request.task.life.body {
            ClientBody::Unread { length, is_begun } => {
                length.is_some_and(|length| length <= QUERY_BYTES_MAX) && !is_begun
            }
            ClientBody::None | ClientBody::Cached(_) => true,
            ClientBody::Taken | ClientBody::Failed => false,
        };
        if !is_short || !self.cache_body(QUERY_BYTES_MAX).await {
            self.why(Reason::PassLongQuery, b"");
            return Step::Pass;
        }
        let task = &mut self.request.task;
        let hasher = &mut task.hasher;
        hasher.update(b"QUERY");
        hasher.update(&task.life.digest);
        for name in QUERY_FIELDS {
            let value = task.request.get(name).unwrap_or_default();
            hasher.update(&(value.len() as u64).to_le_bytes());
            hasher.update(value);
        }
        if let ClientBody::Cached(body) = &task.life.body {
            hasher.update(body.bytes().as_slice());
        }
        task.life.digest = hasher.finish();
        Step::Lookup
    }
}
