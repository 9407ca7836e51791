//! Checks of text that VCL or a VMOD puts into a line of a message head: a start line or a header.
//!
//! VCL builds text from client data (a decoded query string, a cookie). A CR, LF or NUL in it would
//! end the line early, and the rest would become lines chosen by the client. Text received over the
//! wire was checked by `http1`. *Invariant:* code that changes a line of a message on behalf of VCL
//! checks it here first. Source: RFC 9110 §5.5, RFC 9112 §3, §4.

use crate::host::Failure;
use std::borrow::Cow;

/// Most bytes of a refused text that are shown.
const SHOWN_BYTES_MAX: usize = 200;

fn is_control(byte: u8) -> bool {
    (byte < 0x20) & (byte != b'\t') | (byte == 0x7f)
}

/// Checks a text that ends its line or may contain blanks: a header's value, a URL, a reason.
///
/// # Errors
/// `Bad <what>: <text>` for control characters other than a tab.
pub fn check(what: &str, text: &[u8]) -> Result<(), Failure> {
    refuse_if(text.iter().fold(false, |found, &byte| found | is_control(byte)), what, text)
}

/// Checks a text that ends at a blank: a method, a protocol.
///
/// # Errors
/// `Bad <what>: <text>` for control characters and blanks.
pub fn check_word(what: &str, text: &[u8]) -> Result<(), Failure> {
    refuse_if(text.iter().any(|&byte| is_control(byte) || byte == b' ' || byte == b'\t'), what, text)
}

/// The beginning of a text, for a message about it.
#[must_use]
pub fn shown(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES_MAX)])
}

fn refuse_if(is_bad: bool, what: &str, text: &[u8]) -> Result<(), Failure> {
    if !is_bad {
        return Ok(());
    }
    Err(Failure(format!("Bad {what}: {}", shown(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_that_break_a_line_are_refused() {
        for byte in 0..=255u8 {
            let text = [b'a', byte, b'b'];
            let breaks = matches!(byte, 0..=8 | 10..=31 | 127);
            assert_eq!(check("req.url", &text).is_err(), breaks, "{byte}");
            assert_eq!(check_word("req.method", &text).is_err(), breaks || matches!(byte, b' ' | b'\t'), "{byte}");
        }
        assert_eq!(check("header X", b"a\r\nb").unwrap_err().0, "Bad header X: a\r\nb");
        assert!(check("req.url", &[b'\n'; 1 << 20]).unwrap_err().0.len() < 300);
    }
}
