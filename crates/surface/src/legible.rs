//! Display of untrusted bytes: a terminal must never interpret them as commands, nor one line
//! appear as two.
//!
//! UTF-8 text stays unchanged. Bytes that are not UTF-8, and the bytes of characters that would
//! affect a terminal or the order of the displayed text, are shown as `%xx`, as `varnishlog` shows
//! the bytes of unsafe records. In JSON such characters become `\uxxxx`, so that nothing is lost.
//! Tabs stay. Every program passes text from outside (requests, origins, the log, replies, VCL
//! sources) through here before printing it.

use std::borrow::Cow;
use std::fmt::Write as _;

/// True if a character does something other than being displayed: controls (C0 except the tab, DEL,
/// C1), and characters that change the direction of text, break lines or join them invisibly.
#[must_use]
pub fn is_commanding(letter: char) -> bool {
    match letter {
        '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => true,
        letter => letter.is_control(),
    }
}

/// Bytes as one line of text: newlines are shown as `%0a`.
#[must_use]
pub fn line(bytes: &[u8]) -> Cow<'_, str> {
    shown(bytes, |_| false)
}

/// Bytes as lines of text: newlines stay, and so do carriage returns right before them.
#[must_use]
pub fn lines(bytes: &[u8]) -> Cow<'_, str> {
    shown(bytes, |rest| matches!(rest, [b'\n', ..] | [b'\r', b'\n', ..]))
}

/// Escapes bytes. `stays` receives the text from a commanding character on, and returns true if the
/// character stays.
fn shown(bytes: &[u8], stays: fn(&[u8]) -> bool) -> Cow<'_, str> {
    let is_plain = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
    if bytes.iter().all(is_plain)
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return text.into();
    }
    let mut text = String::with_capacity(bytes.len() + 16);
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if is_commanding(letter) && !stays(&bytes[at..]) {
                push_octets(&bytes[at..at + letter.len_utf8()], &mut text);
            } else {
                text.push(letter);
            }
            at += letter.len_utf8();
        }
        push_octets(chunk.invalid(), &mut text);
        at += chunk.invalid().len();
    }
    text.into()
}

fn push_octets(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        let _ = write!(text, "%{byte:02x}");
    }
}

/// JSON text with its strings escaped, so that printing it does not affect a terminal. Outside of
/// strings the text must contain no commanding characters other than newlines, which stay.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    let commands = |letter: char| letter != '\n' && is_commanding(letter);
    if !text.contains(commands) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if commands(letter) {
            let _ = write!(out, "\\u{:04x}", u32::from(letter));
        } else {
            out.push(letter);
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_unchanged_and_control_characters_are_escaped() {
        for (bytes, shown) in [
            (&b"/plain?a=b\tc%41"[..], "/plain?a=b\tc%41"),
            (b"/\x1b]0;title\x07", "/%1b]0;title%07"),
            (b"a\r\nb\0\x7f", "a%0d%0ab%00%7f"),
            ("gr\u{fc}n \u{1f600}".as_bytes(), "gr\u{fc}n \u{1f600}"),
            (b"latin \xfc", "latin %fc"),
            (b"c1 \x9b31m \xc2\x9b31m", "c1 %9b31m %c2%9b31m"),
            ("\u{202e}txt.exe".as_bytes(), "%e2%80%aetxt.exe"),
            (b"cut \xe2\x80", "cut %e2%80"),
            (b"", ""),
        ] {
            assert_eq!(line(bytes), shown, "{bytes:?}");
            assert_eq!(line(shown.as_bytes()), shown, "shown twice");
        }
    }

    #[test]
    fn lines_keep_their_ends_and_nothing_else() {
        assert_eq!(lines(b"a\r\nb\nc\rd\x0b\x0c\n"), "a\r\nb\nc%0dd%0b%0c\n");
    }

    #[test]
    fn sanitised_json_is_equivalent() {
        assert_eq!(
            json("{\n\"a\":\"\u{9b}31m \u{7f}\u{202e}\u{fc}\"}"),
            "{\n\"a\":\"\\u009b31m \\u007f\\u202e\u{fc}\"}"
        );
        assert!(matches!(json("{\"a\":1}"), Cow::Borrowed(_)));
    }
}
