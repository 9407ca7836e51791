//! Messages for the author of a VCL: the error, its place, and a correction.
//!
//! The compiler writes a [`Draft`]: a code of [`surface::diagnostic`], texts and places in reading
//! order, a hint, suggested replacements. [`Diagnostics`] turns it into a [`Diagnostic`], which
//! owns everything it shows. From that come the text of CLI replies (`diagnostic/report.rs`), in
//! the form of the stock tools, and the form for terminals. Messages are kept in the order of the
//! sources, not in that of the compiler's passes.

mod report;

pub(crate) use report::{Shown, error_text, pretty_of, warning_text};

use crate::source::{Kind, Sources, Token};
use surface::diagnostic::Code;
use surface::limits::VCL_MESSAGES_MAX;

/// Number of bytes of a source line that are shown on each side of the marked text.
const LINE_CONTEXT_BYTES: usize = 400;
/// Number of messages for which the nearest known word is searched; more would take too long in a
/// VCL full of errors.
const SUGGESTIONS_MAX: usize = 50;
/// Longest text in a message, in bytes: names in it may be as long as the source.
const WORDS_BYTES_MAX: usize = 4_000;
/// Most places in a message; a longer chain is cut after that many.
const PLACES_MAX: usize = 40;

/// Severity of a message: an error prevents a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Severity {
    /// There is no program.
    Error,
    /// There is a program, but perhaps not the intended one.
    Warning,
}

/// A range of bytes in a source, for readers and for programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The name of the source.
    pub file: String,
    /// Line from 1.
    pub line: u32,
    /// Column from 1, tabs counted to multiples of eight.
    pub column: u32,
    /// Line of the last byte.
    pub end_line: u32,
    /// Column of the last byte.
    pub end_column: u32,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset of the byte after the last one.
    pub end: u32,
    /// The line, with a second line of `#` below the marked text; for several lines the first and
    /// the last.
    pub excerpt: String,
    /// True for a range of tokens: the text form shows both ends.
    range: bool,
}

/// A part of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// Words.
    Text(String),
    /// A place, with its excerpt.
    Place(Box<Place>),
}

/// A suggested replacement for the text at a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suggestion {
    /// The place to change.
    pub place: Place,
    /// The replacement.
    pub replacement: String,
}

/// One message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// Code of the message.
    pub code: Code,
    /// Texts and places, in reading order.
    pub parts: Vec<Part>,
    /// The place that the message is about, if it is not the first of the parts.
    primary: Option<Box<Place>>,
    /// Hint for the correction.
    pub hint: Option<String>,
    /// Suggested replacements.
    pub suggestions: Vec<Suggestion>,
}

impl Diagnostic {
    /// The error itself, without places: the first text of the message.
    #[must_use]
    pub fn message(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(bare(text)),
            Part::Place(_) => None,
        });
        texts.into_iter().find(|text| !text.is_empty()).unwrap_or_else(|| self.code.row().title.to_owned())
    }

    /// The place that the message is about.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        let first = self.parts.iter().find_map(|part| match part {
            Part::Place(place) => Some(&**place),
            Part::Text(_) => None,
        });
        self.primary.as_deref().or(first)
    }

    /// The text form: the layout of Varnish, with the hint and a reference.
    #[must_use]
    pub fn text(&self) -> String {
        report::message_text(self)
    }

    /// The form for terminals, optionally in colour.
    #[must_use]
    pub fn pretty(&self, colour: bool) -> String {
        report::pretty(self, colour)
    }

    /// Further places, each with its relation to the error.
    #[must_use]
    pub fn related(&self) -> Vec<(String, &Place)> {
        let mut related = Vec::new();
        if self.primary.is_some() {
            return related;
        }
        let mut words = String::new();
        let mut first = true;
        for part in &self.parts {
            match part {
                Part::Text(text) => words = bare(text),
                Part::Place(_) if first => first = false,
                Part::Place(place) => related.push((std::mem::take(&mut words), &**place)),
            }
        }
        related
    }
}

/// A text without the words that lead to the place after it.
fn bare(text: &str) -> String {
    let mut text = text.trim();
    for end in [":", ", starting at", " starting at", "\nat", " at", "At", ":", ", defined", ", first reference"] {
        text = text.strip_suffix(end).unwrap_or(text).trim_end();
    }
    if text == "at" || text == "At" { String::new() } else { text.to_owned() }
}

/// A message under construction.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    code: Code,
    parts: Vec<DraftPart>,
    primary: Option<(Token, Token)>,
    hint: Option<String>,
    suggestions: Vec<(Token, Token, String)>,
}

#[derive(Clone, Debug)]
enum DraftPart {
    Text(String),
    At(Token),
    Between(Token, Token),
}

impl Draft {
    pub(crate) fn new(code: Code) -> Draft {
        Draft { code, parts: Vec::new(), primary: None, hint: None, suggestions: Vec::new() }
    }

    /// Adds text, with the line ends of the text form.
    pub(crate) fn text(mut self, text: impl Into<String>) -> Draft {
        let mut text = text.into();
        if text.len() > WORDS_BYTES_MAX {
            let end = (0..=WORDS_BYTES_MAX).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            text.truncate(end);
            text.push_str("...\n");
        }
        self.parts.push(DraftPart::Text(text));
        self
    }

    /// Adds a token.
    pub(crate) fn at(mut self, token: Token) -> Draft {
        self.parts.push(DraftPart::At(token));
        self
    }

    /// Adds a range of tokens, the last included.
    pub(crate) fn between(mut self, first: Token, last: Token) -> Draft {
        self.parts.push(DraftPart::Between(first, last));
        self
    }

    /// Sets the primary place, if the text form, which is Varnish's, shows other places.
    pub(crate) fn primary(mut self, first: Token, last: Token) -> Draft {
        self.primary = Some((first, last));
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Draft {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn maybe_hint(mut self, hint: Option<impl Into<String>>) -> Draft {
        self.hint = hint.map(Into::into).or(self.hint);
        self
    }

    /// Suggests a replacement for the tokens, and adds it to the hint.
    pub(crate) fn nearest(mut self, first: Token, last: Token, near: Option<&str>) -> Draft {
        if let Some(near) = near {
            self.hint = Some(format!("did you mean {near}?"));
            self.suggestions.push((first, last, near.to_owned()));
        }
        self
    }

    /// Suggests a replacement for the tokens.
    pub(crate) fn suggest(mut self, first: Token, last: Token, replacement: impl Into<String>) -> Draft {
        self.suggestions.push((first, last, replacement.into()));
        self
    }

    /// Adds the texts and places of another message.
    pub(crate) fn append(mut self, other: Draft) -> Draft {
        self.parts.extend(other.parts);
        self
    }

    fn finish(self, severity: Severity, sources: &Sources) -> Diagnostic {
        let part = |part| match part {
            DraftPart::Text(text) => Part::Text(text),
            DraftPart::At(token) => Part::Place(Box::new(at(sources, token))),
            DraftPart::Between(first, last) => Part::Place(Box::new(between(sources, first, last))),
        };
        let suggestion = |(first, last, replacement)| Suggestion { place: between(sources, first, last), replacement };
        Diagnostic {
            severity,
            code: self.code,
            parts: self.parts.into_iter().take(2 * PLACES_MAX).map(part).collect(),
            primary: self.primary.map(|(first, last)| Box::new(between(sources, first, last))),
            hint: self.hint,
            suggestions: self.suggestions.into_iter().map(suggestion).collect(),
        }
    }
}

/// All messages of one compilation.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    /// Each with its position among the tokens.
    messages: Vec<(u64, Diagnostic)>,
    errors: usize,
    hidden: usize,
}

impl Diagnostics {
    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    pub(crate) fn error(&mut self, sources: &Sources, order: u64, draft: Draft) {
        self.errors += 1;
        self.push(Severity::Error, sources, order, draft);
    }

    pub(crate) fn warning(&mut self, sources: &Sources, order: u64, draft: Draft) {
        self.push(Severity::Warning, sources, order, draft);
    }

    fn push(&mut self, severity: Severity, sources: &Sources, order: u64, draft: Draft) {
        if self.messages.len() >= VCL_MESSAGES_MAX {
            self.hidden += 1;
            return;
        }
        self.messages.push((order, draft.finish(severity, sources)));
    }

    /// True if there are so few messages that searching for suggestions is worth the time.
    pub(crate) fn wants_suggestions(&self) -> bool {
        self.messages.len() < SUGGESTIONS_MAX
    }

    /// The messages in the order of the sources, and the number of hidden ones.
    pub(crate) fn finish(mut self) -> (Vec<Diagnostic>, usize) {
        self.messages.sort_by_key(|&(order, _)| order);
        self.messages.dedup();
        (self.messages.into_iter().map(|(_, message)| message).collect(), self.hidden)
    }
}

/// The place of one token.
fn at(sources: &Sources, token: Token) -> Place {
    let (line, column) = sources.place(token);
    let end = token.end.max(token.start + 1);
    let (end_line, end_column) = sources.place_at(token.source, end - 1);
    let mut excerpt = String::new();
    quote(sources, token, line, token.start, end, &mut excerpt);
    let file = sources.file(token).name.clone();
    let (start, end) = (token.start, token.end);
    Place { file, line, column, end_line, end_column, start, end, excerpt, range: false }
}

/// The place of a range of tokens, the last included.
pub(crate) fn between(sources: &Sources, first: Token, last: Token) -> Place {
    if last.source != first.source || last.end <= first.start {
        return at(sources, first);
    }
    let (line, column) = sources.place(first);
    let (end_line, end_column) = sources.place_at(last.source, last.end.saturating_sub(1).max(last.start));
    let mut excerpt = String::new();
    quote(sources, first, line, first.start, last.end, &mut excerpt);
    if end_line != line {
        quote(sources, first, end_line, first.start, last.end, &mut excerpt);
    }
    let file = sources.file(first).name.clone();
    Place { file, line, column, end_line, end_column, start: first.start, end: last.end, excerpt, range: true }
}

/// Writes one source line and the marker line below it; tabs become spaces, bytes that are not text
/// a question mark.
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
        // A replaced byte represents one byte of the source.
        at += if letter == char::REPLACEMENT_CHARACTER { 1 } else { letter.len_utf8() };
        let width = if letter == '\t' { 8 - column % 8 } else { 1 };
        for _ in 0..width {
            out.push(if letter == '\t' {
                ' '
            } else if surface::legible::is_commanding(letter) {
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

#[cfg(test)]
mod tests {
    use super::report::place_text;
    use super::*;
    use crate::source::Sources;

    fn token(source: u32, start: u32, end: u32) -> Token {
        Token { kind: Kind::Word, source, start, end }
    }

    #[test]
    fn marker_is_under_the_token() {
        let mut sources = Sources::default();
        sources.add("f".into(), b"ab\n\tcd e\n".to_vec(), None);
        let one = |place| place_text(&at(&sources, place));
        let two = |first, last| place_text(&between(&sources, first, last));
        assert_eq!(one(token(0, 4, 6)), "('f' Line 2 Pos 9)\n        cd e\n--------##--\n");
        assert_eq!(two(token(0, 4, 6), token(0, 7, 8)), "('f' Line 2 Pos 9) -- (Pos 12)\n        cd e\n--------####\n");
        assert_eq!(
            two(token(0, 1, 2), token(0, 4, 6)),
            "('f' Line 1 Pos 2) -- ('f' Line 2 Pos 10)\nab\n-#\n        cd e\n##########--\n"
        );
    }

    #[test]
    fn no_byte_upsets_a_message() {
        let mut sources = Sources::default();
        sources.add("f".into(), b"\x00\xff\xc3(\x1b[31m".to_vec(), None);
        for start in 0..8 {
            let place = at(&sources, token(0, start, start + 1));
            assert_eq!(place.line, 1);
            assert!(!place.excerpt.contains('\x1b') && !place.excerpt.contains('\0'));
        }
    }

    #[test]
    fn long_lines_are_cut_around_the_token() {
        let mut sources = Sources::default();
        sources.add("f".into(), vec![b'x'; 1 << 20], None);
        assert!(at(&sources, token(0, 500_000, 500_010)).excerpt.len() < 3000);
    }

    #[test]
    fn words_and_further_places_are_distinguished() {
        let mut sources = Sources::default();
        sources.add("f".into(), b"ab\ncd\n".to_vec(), None);
        let draft = Draft::new(Code::Redefined)
            .text("Acl 'x' redefined.\n")
            .at(token(0, 3, 5))
            .text("\nFirst definition:\n")
            .at(token(0, 0, 2))
            .hint("rename it");
        let diagnostic = draft.finish(Severity::Error, &sources);
        assert_eq!(diagnostic.message(), "Acl 'x' redefined.");
        assert_eq!(diagnostic.place().unwrap().line, 2);
        let related: Vec<_> = diagnostic.related().into_iter().map(|(words, place)| (words, place.line)).collect();
        assert_eq!(related, [("First definition".to_owned(), 1)]);
        assert_eq!(bare("Expected ';' got '}'\nat\n"), "Expected ';' got '}'");
    }

    #[test]
    fn messages_beyond_the_limit_are_counted() {
        let mut sources = Sources::default();
        sources.add("f".into(), b"ab".to_vec(), None);
        let mut diagnostics = Diagnostics::default();
        for order in 0..VCL_MESSAGES_MAX as u64 + 5 {
            diagnostics.error(&sources, order, Draft::new(Code::NotVcl).at(token(0, 0, 1)));
        }
        let (messages, hidden) = diagnostics.finish();
        assert_eq!((messages.len(), hidden), (VCL_MESSAGES_MAX, 5));
    }
}
