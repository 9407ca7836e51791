//! Content codings: does a client take gzip, what changes with the coding.

use message::Message;

/// Whether the request's Accept-Encoding admits gzip (or x-gzip).
#[must_use]
pub fn accepts_gzip(_request: &Message) -> bool {
    false
}

/// Makes a strong ETag weak: the bytes are no longer those it named.
pub fn weaken_etag(_message: &mut Message) {}
