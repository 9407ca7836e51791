//! Groups of stored responses in the cache: digests of an origin and a name, kept as notes behind
//! stored heads.
//!
//! The origin is the value of `Host` in the request to the origin before vcl_backend_fetch: the
//! host that belongs to the key, whatever the name of the backend. Both sides use it, so no site
//! can name the groups of another one; where VCL gives two hosts one name, they share their objects
//! as well. *Invariant:* notes are made here only, and no message holds them. Source: RFC 9875
//! §2.1.

use message::Message;
use semantics::groups;
use sha2::{Digest, Sha256};

/// The notes (`message::stored_notes`) of the groups named by a field of a response, for a request
/// with this `Host`; each once.
pub(crate) fn notes(response: &Message, field: &str, host: Option<&[u8]>) -> Vec<u8> {
    let mut notes = Vec::new();
    let mut names = groups::named(response, field);
    if names.is_empty() {
        return notes;
    }
    let Some(origin) = host.and_then(groups::origin) else { return notes };
    names.sort_unstable();
    names.dedup();
    for name in names {
        let digest = Sha256::new().chain_update(&origin).chain_update([0]).chain_update(name).finalize();
        let mut note = [0; message::NOTE_BYTES - 1];
        note.copy_from_slice(&digest[..message::NOTE_BYTES - 1]);
        message::encode_note(&mut notes, &note);
    }
    notes
}
