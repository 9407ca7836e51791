//! Asking an origin whether a stored response still holds, and what its answer changes.

use message::Message;

/// Whether a stored response has what a conditional request needs.
#[must_use]
pub fn is_possible(_stored: &Message) -> bool {
    false
}

/// Adds the conditions to a backend request: `If-Modified-Since` from `Last-Modified`, `If-None-Match` from `ETag`.
pub fn conditions(_stored: &Message, _bereq: &mut Message) {}

/// Makes a 304 the response that it stands for: start line and every header it does not mention from the stored response.
pub fn merge(_stored: &Message, _response_304: &mut Message) {}
