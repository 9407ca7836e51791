//! Size limits of a head.

/// Size limits of a head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeadLimits {
    /// Largest head, line ends and leading blank lines included, in bytes (`http_req_size`,
    /// `http_resp_size`).
    pub total_bytes: usize,
    /// Longest header line, line end not counted, in bytes (`http_req_hdr_len`,
    /// `http_resp_hdr_len`). At most 65,535, even if configured larger.
    pub line_bytes: usize,
    /// `http_max_hdr`: header lines, of which the start line takes [`START_LINE_SLOTS`].
    pub headers_max: usize,
}

/// Number of the lines that `http_max_hdr` allows that are not header lines. Compat: the default of
/// 64 admits 59.
pub const START_LINE_SLOTS: usize = 5;

/// Offsets within a line are kept in 16 bits.
pub(super) const LINE_BYTES_MAX: usize = u16::MAX as usize;
