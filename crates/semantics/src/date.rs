//! HTTP dates.

/// Writes the IMF-fixdate of a time, e.g. `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn format(_now: f64, out: &mut [u8; 29]) {
    out.fill(b' ');
}

/// Reads a date in any of the three forms of RFC 9110 §5.6.7; `None` when it is none of them.
#[must_use]
pub fn parse(_bytes: &[u8]) -> Option<f64> {
    None
}
