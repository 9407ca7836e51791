//! Headers with special handling in HTTP or Varnish: their spelling, and where they are dropped.
//!
//! A header that is not listed here is passed on everywhere. A listed header that is not dropped on
//! pass must not be named by a Connection header: otherwise a peer could make a proxy remove it
//! (Host, Cookie, Authorization, …). Source: RFC 9110 §7.6.1; observed behaviour of Varnish 7.1.1.

/// Dropped between client request and backend request of a pass.
pub const DROP_PASS: u8 = 1;
/// Dropped between client request and backend request of a fetch for the cache.
pub const DROP_FETCH: u8 = 2;
/// Dropped when a response is stored.
pub const DROP_INSERT: u8 = 4;
/// Dropped when a response serves one request.
pub const DROP_STORE_PASS: u8 = 8;
/// Connection-specific: never in an HTTP/2 response.
pub const CONNECTION_SPECIFIC: u8 = 16;

/// One header.
#[derive(Debug)]
pub struct HeaderRow {
    /// The name.
    pub name: &'static str,
    /// Bits for the places where it is dropped.
    pub dropped: u8,
}

const fn row(name: &'static str, dropped: u8) -> HeaderRow {
    HeaderRow { name, dropped }
}

const P: u8 = DROP_PASS;
const F: u8 = DROP_FETCH;
const I: u8 = DROP_INSERT;
const S: u8 = DROP_STORE_PASS;
const K: u8 = CONNECTION_SPECIFIC;

/// Response headers with the tags of an object, separated by blanks and commas: those of the VMOD
/// xkey, and those that publishing systems send to content delivery networks.
pub const TAG_HEADERS: [&str; 4] = ["xkey", "X-HashTwo", "Surrogate-Key", "Cache-Tag"];

/// Response headers with secrets of one client or of the connection. A marker of hit-for-miss or
/// hit-for-pass does not keep them.
pub const CREDENTIAL_HEADERS: [&str; 6] = [
    "Set-Cookie",
    "Set-Cookie2",
    "WWW-Authenticate",
    "Authentication-Info",
    "Proxy-Authenticate",
    "Proxy-Authentication-Info",
];

/// Response headers that mark a response as one client's. A change by VCL is recorded with its
/// place, for `leak_guard`.
pub const MARKING_HEADERS: [&str; 2] = ["Set-Cookie", "Cache-Control"];

/// The rows, in alphabetical order ignoring case.
pub static HEADERS: &[HeaderRow] = &[
    row("Accept", 0),
    row("Accept-Charset", 0),
    row("Accept-Encoding", 0),
    row("Accept-Language", 0),
    row("Accept-Ranges", P | F | I),
    row("Age", I | S),
    row("Allow", 0),
    row("Authorization", 0),
    row("Cache-Control", F),
    row("Connection", P | F | I | S | K),
    row("Content-Encoding", 0),
    row("Content-Language", 0),
    row("Content-Length", 0),
    row("Content-Location", 0),
    row("Content-MD5", 0),
    row("Content-Range", F | I),
    row("Content-Type", 0),
    row("Cookie", 0),
    row("Date", 0),
    row("ETag", 0),
    row("Expect", 0),
    row("Expires", 0),
    row("From", 0),
    row("Host", 0),
    row("HTTP2-Settings", P | F | I | S | K),
    row("If-Match", F),
    row("If-Modified-Since", F),
    row("If-None-Match", F),
    row("If-Range", F),
    row("If-Unmodified-Since", F),
    row("Keep-Alive", P | F | I | S | K),
    row("Last-Modified", 0),
    row("Location", 0),
    row("Max-Forwards", 0),
    row("Pragma", 0),
    row("Proxy-Authenticate", F | I),
    row("Proxy-Authorization", F | I),
    row("Range", F | I),
    row("Referer", 0),
    row("Retry-After", 0),
    row("Server", 0),
    row("Set-Cookie", 0),
    row("TE", P | F | I | S),
    row("Trailer", P | F | I | S),
    row("Transfer-Encoding", P | F | I | S | K),
    row("Upgrade", P | F | I | S | K),
    row("User-Agent", 0),
    row("Vary", 0),
    row("Via", 0),
    row("Warning", 0),
    row("WWW-Authenticate", 0),
    row("X-Forwarded-For", 0),
];

const BUCKETS: usize = 256;

/// Start of the search for a name. Ignores case by setting bit 5, which affects other characters
/// too; this does not matter, since names are compared afterwards.
const fn bucket(name: &[u8]) -> usize {
    if name.is_empty() {
        return 0;
    }
    let first = (name[0] | 0x20) as usize;
    let middle = (name[name.len() / 2] | 0x20) as usize;
    let last = (name[name.len() - 1] | 0x20) as usize;
    (name.len() * 31 + first * 7 + middle * 13 + last * 3) % BUCKETS
}

/// Row numbers plus one by bucket; a full bucket overflows into the next.
static INDEX: [u8; BUCKETS] = {
    let mut index = [0; BUCKETS];
    let mut row = 0;
    while row < HEADERS.len() {
        let mut at = bucket(HEADERS[row].name.as_bytes());
        while index[at] != 0 {
            at = (at + 1) % BUCKETS;
        }
        index[at] = row as u8 + 1;
        row += 1;
    }
    index
};

/// True if a header is connection-specific, and so must not occur on a stream. Source: RFC 9113
/// §8.2.2.
#[must_use]
pub fn is_of_connection(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"proxy-connection")
        || find(name).is_some_and(|row| row.dropped & CONNECTION_SPECIFIC != 0)
}

/// Row of a header, ignoring case; `None` for an unlisted one. Called for every header of every
/// message; for most headers it is a single table lookup.
#[must_use]
pub fn find(name: &[u8]) -> Option<&'static HeaderRow> {
    let mut at = bucket(name);
    loop {
        let row = &HEADERS[usize::from(INDEX[at]).checked_sub(1)?];
        if row.name.as_bytes().eq_ignore_ascii_case(name) {
            return Some(row);
        }
        at = (at + 1) % BUCKETS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order_and_found_in_any_case() {
        assert!(HEADERS.windows(2).all(|w| w[0].name.to_ascii_lowercase() < w[1].name.to_ascii_lowercase()));
        assert_eq!(find(b"transfer-ENCODING").unwrap().dropped, P | F | I | S | K);
        for row in HEADERS {
            for name in [row.name.to_owned(), row.name.to_ascii_lowercase(), row.name.to_ascii_uppercase()] {
                assert_eq!(find(name.as_bytes()).unwrap().name, row.name);
            }
        }
        for name in ["X-Unheard-Of", "", "A", "Hos", "Hosts", "\u{ff}"] {
            assert!(find(name.as_bytes()).is_none(), "{name}");
        }
    }
}
