//! Standard reason phrases.

/// The phrase of a status; `Unknown HTTP Status` for one that has none.
#[must_use]
pub fn phrase(_status: u16) -> &'static str {
    "Unknown HTTP Status"
}
