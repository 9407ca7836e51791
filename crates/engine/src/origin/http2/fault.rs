//! Reasons for a broken stream or connection: from the library's errors to operators' words.

use super::guard::Seen;
use h2::Reason as Code;
use surface::reason::Reason;

/// Fate of a request.
pub(super) struct Fault {
    /// Reason, which implies the party at fault.
    pub(super) reason: Reason,
    /// The payload of the `FetchError` record.
    pub(super) text: &'static str,
    /// The origin has not processed the request.
    pub(super) is_unprocessed: bool,
}

/// Fault for an error on a stream with this number.
pub(super) fn of(error: &h2::Error, seen: &Seen, stream: Option<u32>) -> Fault {
    let fault = |reason, text| Fault { reason, text, is_unprocessed: false };
    if let Some(text) = seen.fault.get() {
        return fault(Reason::ResponseGarbled, text);
    }
    if stream.is_some_and(|stream| seen.is_unprocessed(stream)) {
        return Fault { is_unprocessed: true, ..fault(Reason::OriginClosed, "goaway: request not looked at") };
    }
    let code = error.reason();
    if error.is_reset() && error.is_remote() {
        let is_unprocessed = code == Some(Code::REFUSED_STREAM);
        return Fault { is_unprocessed, ..fault(Reason::OriginReset, reset_text(code)) };
    }
    if error.is_library() {
        return fault(Reason::ResponseGarbled, "not valid HTTP/2");
    }
    if error.is_go_away() && code != Some(Code::NO_ERROR) {
        return fault(Reason::OriginClosed, "connection closed with an error (goaway)");
    }
    fault(Reason::OriginClosed, "connection closed")
}

/// The error codes of RFC 9113 §7.
fn reset_text(code: Option<Code>) -> &'static str {
    match code {
        Some(Code::NO_ERROR) => "stream reset: NO_ERROR",
        Some(Code::PROTOCOL_ERROR) => "stream reset: PROTOCOL_ERROR",
        Some(Code::INTERNAL_ERROR) => "stream reset: INTERNAL_ERROR",
        Some(Code::FLOW_CONTROL_ERROR) => "stream reset: FLOW_CONTROL_ERROR",
        Some(Code::SETTINGS_TIMEOUT) => "stream reset: SETTINGS_TIMEOUT",
        Some(Code::STREAM_CLOSED) => "stream reset: STREAM_CLOSED",
        Some(Code::FRAME_SIZE_ERROR) => "stream reset: FRAME_SIZE_ERROR",
        Some(Code::REFUSED_STREAM) => "stream reset: REFUSED_STREAM",
        Some(Code::CANCEL) => "stream reset: CANCEL",
        Some(Code::COMPRESSION_ERROR) => "stream reset: COMPRESSION_ERROR",
        Some(Code::CONNECT_ERROR) => "stream reset: CONNECT_ERROR",
        Some(Code::ENHANCE_YOUR_CALM) => "stream reset: ENHANCE_YOUR_CALM",
        Some(Code::INADEQUATE_SECURITY) => "stream reset: INADEQUATE_SECURITY",
        Some(Code::HTTP_1_1_REQUIRED) => "stream reset: HTTP_1_1_REQUIRED",
        _ => "stream reset: unknown code",
    }
}
