//! Settings of a connection derived from parameters.

use ::http2::MachineSettings;
use surface::limits::H2_HEADER_BLOCK_PART;
use surface::parameter::Parameters;

/// Overhead that counts for each field of a head besides its bytes. Source: RFC 9113 §6.5.2.
const FIELD_BYTES: u64 = 32;
/// The largest window of the protocol.
const WINDOW_MAX: u64 = (1 << 31) - 1;
/// The connection's initial window.
const WINDOW_AT_FIRST: u64 = 65_535;
/// Header list size from which on the limit is not announced.
const LIST_BYTES_UNSAID: u64 = WINDOW_MAX;

/// The settings of a connection. `is_lenient` under the policy `varnish`. Compat: Varnish opens the
/// windows with each piece that is read, and announces a largest header list only if
/// `h2_max_header_list_size` sets one.
pub(super) fn of(parameters: &Parameters, is_lenient: bool) -> MachineSettings {
    let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    MachineSettings {
        streams_max: number(parameters.h2_max_concurrent_streams),
        frame_bytes_max: number(parameters.h2_max_frame_size.clamp(16 << 10, (1 << 24) - 1)),
        table_bytes: number(parameters.h2_header_table_size),
        stream_window: number(parameters.h2_initial_window_size.min(WINDOW_MAX)),
        connection_window: connection_window_bytes(parameters),
        growth_step: if is_lenient { number(parameters.h2_rx_window_increment.max(WINDOW_AT_FIRST)) } else { 0 },
        credit_bytes: if is_lenient { 1 } else { lump_bytes(parameters) },
        block_bytes_max: usize::try_from(parameters.http_req_size)
            .unwrap_or(usize::MAX)
            .saturating_mul(H2_HEADER_BLOCK_PART),
        list_bytes_max: number(header_list(parameters).1),
        announces_list_limit: !is_lenient || parameters.h2_max_header_list_size < LIST_BYTES_UNSAID,
        offers_connect: parameters.h2_extended_connect,
        is_lenient,
    }
}

/// The largest header list that is processed, in bytes, and the parameter that it comes from. A
/// head somewhat too large for `http_req_size` is refused by the request machine, so that the log
/// shows it.
pub(super) fn header_list(parameters: &Parameters) -> (&'static str, u64) {
    let of_head = 2 * (parameters.http_req_size + FIELD_BYTES * parameters.http_max_hdr);
    match parameters.h2_max_header_list_size {
        list if list <= of_head => ("h2_max_header_list_size", list),
        _ => ("http_req_size", of_head),
    }
}

/// The window of the connection for a client's bodies, from the first request with a body on.
/// Compat: it is raised in steps of `h2_rx_window_increment` until it is not below
/// `h2_rx_window_low_water`.
fn connection_window_bytes(parameters: &Parameters) -> u32 {
    let increment = parameters.h2_rx_window_increment.max(1);
    let steps = parameters.h2_rx_window_low_water.saturating_sub(WINDOW_AT_FIRST).div_ceil(increment).max(1);
    let bytes = WINDOW_AT_FIRST + increment.saturating_mul(steps);
    u32::try_from(bytes.min(WINDOW_MAX)).unwrap_or(u32::MAX)
}

/// Number of body bytes that a request uses before the client gets its credit back:
/// `h2_rx_window_increment`, but never so many that its window is exhausted.
fn lump_bytes(parameters: &Parameters) -> u32 {
    let lump = parameters.h2_rx_window_increment.min(parameters.h2_initial_window_size / 4).max(1);
    u32::try_from(lump).unwrap_or(u32::MAX)
}
