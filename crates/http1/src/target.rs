//! The absolute form of a request target.

/// A target in absolute form, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AbsoluteForm<'a> {
    /// Whether the scheme is https.
    pub https: bool,
    /// What belongs into `Host`: host and port.
    pub host: &'a [u8],
    /// The path and query, `/` when the target has none.
    pub path: &'a [u8],
}

/// Takes `http://host/path` (and `https://`) apart; `None` when the target has another form.
#[must_use]
pub fn split_absolute_form(_target: &[u8]) -> Option<AbsoluteForm<'_>> {
    None
}
