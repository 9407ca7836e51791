//! Presentation of messages: the text of CLI replies, the form for terminals.

use super::{Diagnostic, Part, Place, Severity};
use std::borrow::Cow;
use std::fmt::Write;
use surface::diagnostic::Code;
use surface::legible;

/// Most messages in the text form; the others are only counted.
const SHOWN_MAX: usize = 20;

/// `('file' Line 1 Pos 2)`, the line and the marker.
pub(super) fn place_text(place: &Place) -> String {
    let Place { file, line, column, end_line, end_column, excerpt, .. } = place;
    if !place.range {
        format!("('{file}' Line {line} Pos {column})\n{excerpt}")
    } else if end_line == line {
        format!("('{file}' Line {line} Pos {column}) -- (Pos {end_column})\n{excerpt}")
    } else {
        format!("('{file}' Line {line} Pos {column}) -- ('{file}' Line {end_line} Pos {end_column})\n{excerpt}")
    }
}

/// The text form of one message: the layout of Varnish, with the hint and a reference.
pub(super) fn message_text(diagnostic: &Diagnostic) -> String {
    let mut text = String::new();
    for part in &diagnostic.parts {
        match part {
            Part::Text(words) => text.push_str(words),
            Part::Place(place) => text.push_str(&place_text(place)),
        }
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    if let Some(hint) = &diagnostic.hint {
        let _ = writeln!(text, "hint: {hint}");
    }
    let _ = writeln!(text, "explain: copal vcl explain {}", diagnostic.code.number());
    if diagnostic.severity == Severity::Warning {
        text.push_str("(That was just a warning)\n");
    }
    // Words, file names and hints quote the source.
    printable(&text).into_owned()
}

/// The text form of all errors.
pub(crate) fn error_text(diagnostics: &[Diagnostic], hidden: usize) -> String {
    let errors = || diagnostics.iter().filter(|message| message.severity == Severity::Error);
    let hidden = hidden + errors().count().saturating_sub(SHOWN_MAX);
    let mut texts: Vec<String> = errors().take(SHOWN_MAX).map(message_text).collect();
    if hidden > 0 {
        texts.push(format!("{hidden} more errors follow.\n"));
    }
    // The errors depend on the assumed dialect.
    texts.extend(diagnostics.iter().filter(|message| message.code == Code::DialectAssumed).map(message_text));
    texts.join("\n")
}

/// The text form of all warnings.
pub(crate) fn warning_text(diagnostics: &[Diagnostic]) -> String {
    let warnings = diagnostics.iter().filter(|message| message.severity == Severity::Warning);
    warnings.take(SHOWN_MAX).map(message_text).collect()
}

/// The form for terminals: severity and code first, then the place, the line, and the explanation.
pub(super) fn pretty(diagnostic: &Diagnostic, colour: bool) -> String {
    let (word, shade) = match diagnostic.severity {
        Severity::Error => ("error", "1;31"),
        Severity::Warning => ("warning", "1;33"),
    };
    let shown = Shown {
        word,
        shade,
        code: diagnostic.code.number(),
        message: &diagnostic.message(),
        place: diagnostic.place(),
        related: diagnostic.related(),
        hint: diagnostic.hint.as_deref(),
    };
    pretty_of(&shown, colour)
}

/// The parts of a message for terminals.
pub(crate) struct Shown<'a> {
    /// The level.
    pub(crate) word: &'a str,
    /// Colour of the level and of the markers.
    pub(crate) shade: &'a str,
    /// The code in brackets.
    pub(crate) code: &'a str,
    pub(crate) message: &'a str,
    pub(crate) place: Option<&'a Place>,
    /// Further places, each after its words.
    pub(crate) related: Vec<(String, &'a Place)>,
    pub(crate) hint: Option<&'a str>,
}

/// The one layout of messages for terminals.
pub(crate) fn pretty_of(shown: &Shown<'_>, colour: bool) -> String {
    let paint = |code: &str, text: &str| if colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() };
    let Shown { word, shade, code, message, place, related, hint } = shown;
    let mut out = format!("{}: {}\n", paint(shade, &format!("{word}[{code}]")), printable(message));
    if let Some(place) = place {
        pretty_place(place, "-->", shade, &paint, &mut out);
    }
    for (words, place) in related {
        let _ = writeln!(out, "  {}", printable(words));
        pretty_place(place, ":::", "1;34", &paint, &mut out);
    }
    if let Some(hint) = hint {
        let _ = writeln!(out, "  {} {}", paint("1;32", "hint:"), printable(hint));
    }
    out
}

fn pretty_place(place: &Place, arrow: &str, shade: &str, paint: &impl Fn(&str, &str) -> String, out: &mut String) {
    let _ = writeln!(out, "  {} {}:{}:{}", paint("1;34", arrow), printable(&place.file), place.line, place.column);
    let lines: Vec<&str> = place.excerpt.lines().collect();
    for (index, pair) in lines.chunks(2).enumerate() {
        let number = if index == 0 { place.line } else { place.end_line };
        let [line, marker] = pair else { continue };
        let marker = marker.replace('-', " ").replace('#', "^");
        let _ = writeln!(out, "{} {line}", paint("1;34", &format!("{number:5} |")));
        let _ = writeln!(out, "{} {}", paint("1;34", "      |"), paint(shade, marker.trim_end()));
    }
}

/// Text without anything that a terminal would interpret.
fn printable(text: &str) -> Cow<'_, str> {
    legible::lines(text.as_bytes())
}
