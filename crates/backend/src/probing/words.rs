//! The texts of a probe's answer and of its failure, for any protocol.

use crate::backend::{error_number, error_text};
use std::io;
use vcl_run::program::ProbeDefinition;

/// True if a line has the expected status.
pub(super) fn status_matches(line: &str, definition: &ProbeDefinition) -> bool {
    status_of(line) == Some(u32::from(definition.expected_response))
}

/// The status of a line `HTTP/<number> <status> …`; anything may follow the digits.
fn status_of(line: &str) -> Option<u32> {
    let rest = line.strip_prefix("HTTP/")?;
    let (version, rest) = rest.split_once(|character: char| character.is_ascii_whitespace())?;
    version.parse::<f64>().ok()?;
    let rest = rest.trim_start();
    let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// The step that failed, with the number and text of the error.
pub(super) fn with_number(what: &str, error: &io::Error) -> String {
    let errno = error_number(error);
    format!("{what} {errno} ({})", error_text(errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_the_number_behind_the_version() {
        assert_eq!(status_of("HTTP/1.1 200 OK"), Some(200));
        assert_eq!(status_of("HTTP/1.0  204"), Some(204));
        assert_eq!(status_of("HTTP/2 301 Moved"), Some(301));
        assert_eq!(status_of("HTTP/1.1 OK"), None);
        assert_eq!(status_of("HTTP/x 200 OK"), None);
        assert_eq!(status_of("HTTP/1.1"), None);
        assert_eq!(status_of("ICY 200 OK"), None);
        assert_eq!(status_of("HTTP/1.1 99999999999 OK"), None);
    }
}
