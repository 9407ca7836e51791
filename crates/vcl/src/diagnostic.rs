//! Messages for the author of a VCL: what is wrong, where, and what would help.
//!
//! A message has the form that stock tools and their users know: the text, `('file' Line 1 Pos 2)`, the line, and a marker
//! line with `#` under what is meant. Messages are kept in the order of the sources, not in that of the compiler's passes.

use crate::source::{Kind, Sources, Token};
use std::fmt::Write;

/// Most messages shown; the rest is counted.
const SHOWN_MAX: usize = 20;
/// Bytes of a source line shown to either side of what is meant.
const LINE_CONTEXT_BYTES: usize = 400;

#[derive(Debug)]
struct Message {
    /// Where it stands among the tokens.
    order: u64,
    text: String,
}

/// All messages of one compilation.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    errors: Vec<Message>,
    warnings: Vec<Message>,
}

impl Diagnostics {
    pub(crate) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    pub(crate) fn error(&mut self, order: u64, text: String) {
        self.errors.push(Message { order, text });
    }

    pub(crate) fn warning(&mut self, order: u64, text: String) {
        self.warnings.push(Message { order, text });
    }

    /// All errors, for the user.
    pub(crate) fn error_text(mut self) -> String {
        self.errors.sort_by_key(|message| message.order);
        self.errors.dedup_by(|a, b| a.text == b.text);
        let hidden = self.errors.len().saturating_sub(SHOWN_MAX);
        let mut text: Vec<String> = self.errors.into_iter().take(SHOWN_MAX).map(|message| message.text).collect();
        if hidden > 0 {
            text.push(format!("{hidden} more errors follow.\n"));
        }
        text.join("\n")
    }

    /// All warnings, for the user.
    pub(crate) fn warning_text(mut self) -> String {
        self.warnings.sort_by_key(|message| message.order);
        self.warnings.into_iter().map(|message| message.text).collect()
    }
}

/// `('file' Line 1 Pos 2)`, the line and the marker, for one token.
pub(crate) fn at(sources: &Sources, token: Token) -> String {
    let (line, position) = sources.place(token);
    let mut text = format!("('{}' Line {line} Pos {position})\n", sources.file(token).name);
    quote(sources, token, line, token.start, token.end.max(token.start + 1), &mut text);
    text
}

/// The same for a range of tokens, the last included.
pub(crate) fn between(sources: &Sources, first: Token, last: Token) -> String {
    let (line, position) = sources.place(first);
    let name = &sources.file(first).name;
    let mut text = format!("('{name}' Line {line} Pos {position}) -- ");
    if last.source != first.source || last.end <= first.start {
        return at(sources, first);
    }
    let (last_line, _) = sources.place(last);
    let (end_line, end_position) = sources.place_at(last.source, last.end.saturating_sub(1).max(last.start));
    if last_line == line && end_line == line {
        let _ = writeln!(text, "(Pos {end_position})");
        quote(sources, first, line, first.start, last.end, &mut text);
    } else {
        let _ = writeln!(text, "('{name}' Line {end_line} Pos {end_position})");
        quote(sources, first, line, first.start, last.end, &mut text);
        quote(sources, first, end_line, first.start, last.end, &mut text);
    }
    text
}

/// Writes one source line and the marker line under it; tabs become spaces, bytes that are no text a question mark.
fn quote(sources: &Sources, token: Token, line: u32, start: u32, end: u32, out: &mut String) {
    let (bytes, line_start) = sources.line(token.source, line);
    let from = (start.saturating_sub(line_start) as usize).min(bytes.len());
    let to = ((end.saturating_sub(line_start)) as usize).clamp(from, bytes.len());
    let shown_from = from.saturating_sub(LINE_CONTEXT_BYTES);
    let shown_to = bytes.len().min(to.min(from + LINE_CONTEXT_BYTES) + LINE_CONTEXT_BYTES);
    let mut marker = String::new();
    let mut column = 0usize;
    let text = String::from_utf8_lossy(&bytes[shown_from..shown_to]);
    let mut at = shown_from;
    for letter in text.chars() {
        let mark = if at >= from && at < to { '#' } else { '-' };
        // A replaced byte stands for one byte of the source.
        at += if letter == char::REPLACEMENT_CHARACTER { 1 } else { letter.len_utf8() };
        let width = if letter == '\t' { 8 - column % 8 } else { 1 };
        for _ in 0..width {
            out.push(if letter == '\t' {
                ' '
            } else if letter.is_control() {
                '?'
            } else {
                letter
            });
            marker.push(mark);
        }
        column += width;
    }
    if token.kind == Kind::End && from >= bytes.len() {
        marker.push('#');
    }
    out.push('\n');
    out.push_str(&marker);
    out.push('\n');
}

/// A hint line.
pub(crate) fn hint(text: &str) -> String {
    format!("hint: {text}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Sources;

    fn token(source: u32, start: u32, end: u32) -> Token {
        Token { kind: Kind::Word, source, start, end }
    }

    #[test]
    fn marker_stands_under_the_token() {
        let mut sources = Sources::default();
        sources.add("f".into(), b"ab\n\tcd e\n".to_vec(), None);
        assert_eq!(at(&sources, token(0, 4, 6)), "('f' Line 2 Pos 9)\n        cd e\n--------##--\n");
        assert_eq!(
            between(&sources, token(0, 4, 6), token(0, 7, 8)),
            "('f' Line 2 Pos 9) -- (Pos 12)\n        cd e\n--------####\n"
        );
        assert_eq!(
            between(&sources, token(0, 1, 2), token(0, 4, 6)),
            "('f' Line 1 Pos 2) -- ('f' Line 2 Pos 10)\nab\n-#\n        cd e\n##########--\n"
        );
    }

    #[test]
    fn no_byte_upsets_a_message() {
        let mut sources = Sources::default();
        sources.add("f".into(), b"\x00\xff\xc3(\x1b[31m".to_vec(), None);
        for start in 0..8 {
            let text = at(&sources, token(0, start, start + 1));
            assert!(text.contains("Line 1"));
            assert!(!text.contains('\x1b') && !text.contains('\0'));
        }
    }

    #[test]
    fn long_lines_are_cut_around_the_token() {
        let mut sources = Sources::default();
        sources.add("f".into(), vec![b'x'; 1 << 20], None);
        assert!(at(&sources, token(0, 500_000, 500_010)).len() < 3000);
    }
}
