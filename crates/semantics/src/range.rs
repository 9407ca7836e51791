//! Range requests, and backends that answer them.

use message::Message;

/// What a Range header comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangeResult {
    /// Serve all of it.
    Whole,
    /// Serve these bytes, both inclusive, with 206. `last` is `u64::MAX` never: it is cut to the length, or as given when
    /// the length is unknown.
    Part {
        /// First byte.
        first: u64,
        /// Last byte.
        last: u64,
    },
    /// 416, for this reason (logged as `RANGE_FAIL <reason>`).
    Unsatisfiable(&'static str),
}

/// Decides on the Range header of a GET whose response is a 200. `length` is that of the body, if known; `if_range` the
/// value of If-Range.
#[must_use]
pub fn resolve(_range: &[u8], _if_range: Option<&[u8]>, _response: &Message, _length: Option<u64>) -> RangeResult {
    RangeResult::Whole
}

/// Appends the value of `Content-Range` for a part, `bytes a-b/length` (`*` when unknown).
pub fn content_range(_first: u64, _last: u64, _length: Option<u64>, _out: &mut Vec<u8>) {}

/// Appends the value of `Content-Range` of a 416.
pub fn content_range_unsatisfied(_length: Option<u64>, _out: &mut Vec<u8>) {}

/// Checks a backend's response against the range that was asked for. `length` is that of the response body, if known.
///
/// # Errors
/// The text for the `Error` record; the response must not be used.
pub fn check_backend(_bereq: &Message, _response: &Message, _length: Option<u64>) -> Result<(), String> {
    Ok(())
}
