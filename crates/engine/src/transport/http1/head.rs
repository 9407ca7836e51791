//! The limits of a request head, and the result of parsing one.

use crate::request::task::Settings;
use ::http1::{HeadError, HeadLimits};

/// Where a head ends, or what is wrong with it.
pub(super) type Parsed = Result<usize, HeadError>;

/// How large a head may be.
pub(super) fn head_limits(settings: &Settings) -> HeadLimits {
    HeadLimits {
        total_bytes: settings.http_req_size,
        line_bytes: settings.http_req_hdr_len,
        headers_max: settings.http_max_hdr,
    }
}

/// The parameter whose limit a head exceeded, as a detail of the reason.
pub(super) fn broken_limit(error: &HeadError, limits: &HeadLimits) -> Option<String> {
    let (name, max) = match error {
        HeadError::Overflow => ("http_req_size", limits.total_bytes),
        HeadError::LineTooLong(_) => ("http_req_hdr_len", limits.line_bytes),
        HeadError::TooManyHeaders(_) => ("http_max_hdr", limits.headers_max),
        _ => return None,
    };
    Some(format!("limit={name} max={max}"))
}
