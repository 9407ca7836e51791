//! Variants: what of a request a stored response depends on.

use message::Message;

/// Why a `Vary` header cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VaryError {
    /// A name longer than 127 bytes.
    NameTooLong,
    /// A name and value longer than the format holds.
    TooLong,
    /// Not a list of names.
    Malformed,
    /// `*`: matches no request. Not an error of the backend.
    Star,
}

impl VaryError {
    /// The payload of the `Error` record; `None` for [`VaryError::Star`].
    #[must_use]
    pub fn text(self) -> Option<&'static str> {
        None
    }
}

/// The variant key of a response: the names in its `Vary` and what the request said. `None` without (useful) `Vary`.
///
/// # Errors
/// [`VaryError`]: the response must not be shared.
pub fn encode(_response: &Message, _request: &Message, _gzip_support: bool) -> Result<Option<Vec<u8>>, VaryError> {
    Ok(None)
}

/// Whether a request would have led to the same variant. A spec that is damaged matches nothing; an empty one everything.
#[must_use]
pub fn matches(_spec: &[u8], _request: &Message, _gzip_support: bool) -> bool {
    true
}
