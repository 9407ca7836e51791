//! The shape of `-j` replies: `[ 2, ["verb", "-j"], 1700000000.000,` payload, newline, `]`.

use std::fmt::Write;
use surface::legible;

/// A JSON reply being written.
#[derive(Debug)]
pub struct JsonReply {
    text: String,
}

impl JsonReply {
    /// Begins a reply: the version of the command's format (2 unless stated otherwise), the words
    /// of the command including `-j`, and the time in seconds since 1970.
    #[must_use]
    pub fn new<W: AsRef<str>>(version: u32, command: &[W], now: f64) -> JsonReply {
        let words: Vec<String> = command.iter().map(|word| string(word.as_ref())).collect();
        JsonReply { text: format!("[ {version}, [{}], {now:.3}", words.join(", ")) }
    }

    /// Appends an element: a comma, `separator` (blanks or a newline with an indent), and the text,
    /// which must be JSON.
    pub fn push(&mut self, separator: &str, element: &str) {
        let _ = write!(self.text, ",{separator}{element}");
    }

    /// The reply as text.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.text.push_str("\n]\n");
        self.text
    }
}

/// A JSON string with its quotes; it contains nothing that a terminal would interpret.
#[must_use]
pub fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if legible::is_commanding(letter) => {
                let _ = write!(out, "\\u{:04x}", letter as u32);
            }
            _ => out.push(letter),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_has_the_shape_the_tools_parse() {
        let mut reply = JsonReply::new(2, &["status", "-j"], 1.5);
        reply.push(" ", &string("running"));
        let text = reply.finish();
        assert_eq!(text, "[ 2, [\"status\", \"-j\"], 1.500, \"running\"\n]\n");
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }

    #[test]
    fn any_text_is_a_valid_string() {
        for text in ["", "a\"b\\c\n\t\r", "\u{0}\u{1f}é", "\u{9b}31m\u{7f}\u{202e}"] {
            assert_eq!(serde_json::from_str::<String>(&string(text)).unwrap(), text);
            assert!(!string(text).contains(legible::is_commanding), "{text:?}");
        }
    }
}
