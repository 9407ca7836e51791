//! HTTP status codes and their standard phrases.
//!
//! Source: the IANA registry of status codes (RFC 9110 §15 and others). Compat: for the statuses of
//! Varnish 7.1.1, its phrases, since `resp.reason` shows them.

/// One status.
#[derive(Debug)]
pub struct StatusRow {
    /// The code.
    pub status: u16,
    /// The phrase.
    pub phrase: &'static str,
}

const fn row(status: u16, phrase: &'static str) -> StatusRow {
    StatusRow { status, phrase }
}

/// The phrase of a status without one.
pub const UNKNOWN_PHRASE: &str = "Unknown HTTP Status";

/// The rows, in order of the code.
pub static STATUSES: &[StatusRow] = &[
    row(100, "Continue"),
    row(101, "Switching Protocols"),
    row(102, "Processing"),
    row(103, "Early Hints"),
    row(200, "OK"),
    row(201, "Created"),
    row(202, "Accepted"),
    row(203, "Non-Authoritative Information"),
    row(204, "No Content"),
    row(205, "Reset Content"),
    row(206, "Partial Content"),
    row(207, "Multi-Status"),
    row(208, "Already Reported"),
    row(226, "IM Used"),
    row(300, "Multiple Choices"),
    row(301, "Moved Permanently"),
    row(302, "Found"),
    row(303, "See Other"),
    row(304, "Not Modified"),
    row(305, "Use Proxy"),
    row(306, "(Unused)"),
    row(307, "Temporary Redirect"),
    row(308, "Permanent Redirect"),
    row(400, "Bad Request"),
    row(401, "Unauthorized"),
    row(402, "Payment Required"),
    row(403, "Forbidden"),
    row(404, "Not Found"),
    row(405, "Method Not Allowed"),
    row(406, "Not Acceptable"),
    row(407, "Proxy Authentication Required"),
    row(408, "Request Timeout"),
    row(409, "Conflict"),
    row(410, "Gone"),
    row(411, "Length Required"),
    row(412, "Precondition Failed"),
    row(413, "Request Entity Too Large"),
    row(414, "Request-URI Too Long"),
    row(415, "Unsupported Media Type"),
    row(416, "Requested Range Not Satisfiable"),
    row(417, "Expectation Failed"),
    row(421, "Misdirected Request"),
    row(422, "Unprocessable Entity"),
    row(423, "Locked"),
    row(424, "Failed Dependency"),
    row(425, "Too Early"),
    row(426, "Upgrade Required"),
    row(428, "Precondition Required"),
    row(429, "Too Many Requests"),
    row(431, "Request Header Fields Too Large"),
    row(451, "Unavailable For Legal Reasons"),
    row(500, "Internal Server Error"),
    row(501, "Not Implemented"),
    row(502, "Bad Gateway"),
    row(503, "Service Unavailable"),
    row(504, "Gateway Timeout"),
    row(505, "HTTP Version Not Supported"),
    row(506, "Variant Also Negotiates"),
    row(507, "Insufficient Storage"),
    row(508, "Loop Detected"),
    row(510, "Not Extended"),
    row(511, "Network Authentication Required"),
];

/// Standard phrase of a status; [`UNKNOWN_PHRASE`] if it has none.
#[must_use]
pub fn phrase(status: u16) -> &'static str {
    STATUSES.binary_search_by_key(&status, |row| row.status).map_or(UNKNOWN_PHRASE, |index| STATUSES[index].phrase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order() {
        assert!(STATUSES.windows(2).all(|pair| pair[0].status < pair[1].status));
    }

    #[test]
    fn known_and_unknown_statuses_have_a_phrase() {
        assert_eq!(phrase(200), "OK");
        assert_eq!(phrase(299), UNKNOWN_PHRASE);
    }
}
