//! What parameters say to the library.

use ::http2::Windows;
use h2::server::Builder;
use std::time::Duration;
use surface::limits::{H2_QUEUED_BYTES_MAX, H2_RESETS_WAITING_MAX};
use surface::parameter::Parameters;

/// What each field of a head counts for besides its bytes. Source: RFC 9113 §6.5.2.
const FIELD_BYTES: u64 = 32;
/// The largest window of the protocol.
const WINDOW_MAX: u64 = (1 << 31) - 1;
/// The connection's window before anybody has said anything.
const WINDOW_AT_FIRST: u64 = 65_535;
/// A header list of this size needs no saying.
const LIST_BYTES_UNSAID: u64 = WINDOW_MAX;
/// How long frames on a stream that was reset are ignored.
const RESET_SECONDS: u64 = 1;

/// The windows of a connection that begins, if they are opened as Varnish opens them. Compat: Varnish tells clients a largest
/// header list only if `h2_max_header_list_size` sets one.
pub(super) fn windows(parameters: &Parameters) -> Option<Windows> {
    let growth = u64::from(connection_window_bytes(parameters)).saturating_sub(WINDOW_AT_FIRST);
    let step = u32::try_from(parameters.h2_rx_window_increment).unwrap_or(u32::MAX);
    let windows = Windows::new(u32::try_from(parameters.h2_initial_window_size).ok()?, growth, step)?;
    Some(if parameters.h2_max_header_list_size < LIST_BYTES_UNSAID { windows } else { windows.without_list_limit() })
}

/// The settings of a connection that begins.
pub(super) fn of(parameters: &Parameters, windows: Option<&Windows>) -> Builder {
    let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let mut builder = Builder::new();
    builder
        .header_table_size(number(parameters.h2_header_table_size))
        .initial_window_size(
            windows.map_or(number(parameters.h2_initial_window_size.min(WINDOW_MAX)), Windows::library_bytes),
        )
        .max_concurrent_streams(number(parameters.h2_max_concurrent_streams))
        .max_frame_size(number(parameters.h2_max_frame_size.clamp(16 << 10, (1 << 24) - 1)))
        .max_header_list_size(number(header_list(parameters).1))
        .max_send_buffer_size(2 * H2_QUEUED_BYTES_MAX)
        .max_pending_accept_reset_streams(H2_RESETS_WAITING_MAX)
        .reset_stream_duration(Duration::from_secs(RESET_SECONDS));
    if parameters.h2_extended_connect {
        builder.enable_connect_protocol();
    }
    builder
}

/// The largest header list that is looked at, in bytes, and the parameter that it comes from. A head somewhat too large for
/// `http_req_size` is refused by ourselves, so that the log shows it.
pub(super) fn header_list(parameters: &Parameters) -> (&'static str, u64) {
    let of_head = 2 * (parameters.http_req_size + FIELD_BYTES * parameters.http_max_hdr);
    match parameters.h2_max_header_list_size {
        list if list <= of_head => ("h2_max_header_list_size", list),
        _ => ("http_req_size", of_head),
    }
}

/// The window of the connection for what a client sends, from the first request with a body on. Compat: it is raised in steps of
/// `h2_rx_window_increment` until it is not below `h2_rx_window_low_water`.
pub(super) fn connection_window_bytes(parameters: &Parameters) -> u32 {
    let increment = parameters.h2_rx_window_increment.max(1);
    let steps = parameters.h2_rx_window_low_water.saturating_sub(WINDOW_AT_FIRST).div_ceil(increment).max(1);
    let bytes = WINDOW_AT_FIRST + increment.saturating_mul(steps);
    u32::try_from(bytes.min(WINDOW_MAX)).unwrap_or(u32::MAX)
}

/// How many bytes of a body a request uses before the client gets its credit back: `h2_rx_window_increment`, but never so many
/// that its window runs dry.
pub(super) fn lump_bytes(parameters: &Parameters) -> usize {
    let lump = parameters.h2_rx_window_increment.min(parameters.h2_initial_window_size / 4).max(1);
    usize::try_from(lump).unwrap_or(usize::MAX)
}
