//! The formatter behind `copal vcl fmt`: a text of any generation of the language in one style.
//!
//! It keeps every token in order, every comment, the author's empty lines (several become one) and
//! line ends at operators. It decides indentation, spaces, the position of braces, and where an
//! overlong condition is broken. *Invariants:* tokens and comments are the same before and after,
//! and formatting the result changes nothing. A text with a syntax error is left alone. Names,
//! types and the targets of includes do not matter: a fragment of a configuration can be formatted,
//! even one that belongs inside a sub. Next files: `format/trivia.rs`, `format/spacing.rs`,
//! `format/layout.rs`.

mod layout;
mod spacing;
pub(crate) mod trivia;

use crate::diagnostic::{Diagnostics, Draft};
use crate::dialect::{self, Dialect};
use crate::lex::{LexError, lex};
use crate::source::{Kind, Sign, Sources, Token};
use crate::{CompileError, SourceText, parse};
use surface::diagnostic::Code;
use surface::limits::VCL_SOURCE_BYTES_MAX;

/// The text in the style of `copal vcl fmt`. Accepts any bytes.
///
/// # Errors
/// All messages, if the text has a syntax error in every generation of the language.
pub fn format(source: &SourceText<'_>) -> Result<Vec<u8>, CompileError> {
    if source.text.len() > VCL_SOURCE_BYTES_MAX {
        let mut diagnostics = Diagnostics::default();
        let text = format!("The VCL is larger than {VCL_SOURCE_BYTES_MAX} bytes.\n");
        diagnostics.error(&Sources::default(), 0, Draft::new(Code::SourceTooLarge).text(text));
        return Err(CompileError::new(diagnostics));
    }
    let mut sources = Sources::default();
    let tokens = cut(&mut sources, source)?;
    check_syntax(&mut sources, &tokens)?;
    let text = sources.files[0].text.clone();
    let formatted = layout::lay_out(&sources, &tokens, &text);
    let mut again = Sources::default();
    let formatted_tokens = cut(&mut again, &SourceText { name: source.name, text: &formatted })?;
    if tokens_and_comments(&sources, &tokens) == tokens_and_comments(&again, &formatted_tokens) {
        Ok(formatted)
    } else {
        Err(CompileError { text: CHANGED.to_owned(), diagnostics: Vec::new(), hidden: 0 })
    }
}

/// The message if the result would not be the same program.
pub(crate) const CHANGED: &str = "The text cannot be formatted without changing what it says.\n";

/// The tokens of the first source, each with the comments before it without their white space;
/// finally the comments at the end.
fn tokens_and_comments<'a>(sources: &'a Sources, tokens: &[Token]) -> Vec<(&'a [u8], Vec<Vec<u8>>)> {
    let text = &sources.files[0].text;
    let comments = |start: u32, end: usize| -> Vec<Vec<u8>> {
        let shown = |comment: &trivia::Comment| {
            let bytes = text[comment.start..comment.end].iter().copied();
            bytes.filter(|byte| !matches!(byte, b' ' | b'\t'..=b'\r')).collect()
        };
        trivia::gap(text, start as usize, end).comments.iter().map(shown).collect()
    };
    let mut end = 0;
    let mut all = Vec::with_capacity(tokens.len() + 1);
    for &token in tokens {
        all.push((sources.bytes(token), comments(end, token.start as usize)));
        end = token.end;
    }
    all.push((&b""[..], comments(end, text.len())));
    all
}

fn cut(sources: &mut Sources, source: &SourceText<'_>) -> Result<Vec<Token>, CompileError> {
    let index = sources.add(source.name.to_owned(), source.text.to_vec(), None);
    let mut errors = Vec::new();
    let tokens = lex(sources, index, &mut errors);
    if errors.is_empty() {
        return Ok(tokens);
    }
    let mut diagnostics = Diagnostics::default();
    for LexError { code, text, token, hint, .. } in errors {
        let draft = Draft::new(code).text(format!("{text}\n")).at(token).maybe_hint(hint);
        diagnostics.error(sources, 0, draft);
    }
    Err(CompileError::new(diagnostics))
}

/// True if the tokens are a text, or a fragment of one, in any dialect.
fn check_syntax(sources: &mut Sources, tokens: &[Token]) -> Result<(), CompileError> {
    let mut row = without_includes(sources, tokens);
    let end = tokens.last().map_or(0, |token| token.end);
    row.push(Token { kind: Kind::End, source: 0, start: end, end });
    // Reports the error of the dialect whose parser got furthest.
    let mut furthest: Option<(u32, CompileError)> = None;
    for dialect in dialect::ALL {
        let Err(error) = parses(sources, &row, dialect) else { return Ok(()) };
        let place = error.diagnostics.first().and_then(|message| message.place()).map_or(0, |place| place.start);
        if furthest.as_ref().is_none_or(|(known, _)| *known < place) {
            furthest = Some((place, error));
        }
    }
    // Statements without a sub around them: a file to be included in one.
    let index = sources.add(String::new(), b"sub piece { }".to_vec(), None);
    let frame = lex(sources, index, &mut Vec::new());
    let [head @ .., close] = &frame[..] else { return Ok(()) };
    let mut wrapped = head.to_vec();
    wrapped.extend_from_slice(&row[..row.len() - 1]);
    wrapped.extend([*close, Token { kind: Kind::End, ..*close }]);
    if dialect::ALL.iter().any(|dialect| parses(sources, &wrapped, dialect).is_ok()) {
        return Ok(());
    }
    Err(furthest.map_or_else(|| CompileError::new(Diagnostics::default()), |(_, error)| error))
}

fn parses(sources: &Sources, row: &[Token], dialect: &'static Dialect) -> Result<(), CompileError> {
    let mut diagnostics = Diagnostics::default();
    let tree = parse::parse(sources, row, 0, dialect, &mut diagnostics);
    if let Some(index) = tree.unexpected {
        let token = row[(index as usize).min(row.len() - 1)];
        let text = format!("Expected something else than {}\nat\n", sources.shown(token));
        diagnostics.error(sources, u64::from(index), Draft::new(Code::Expected).text(text).at(token));
    }
    if diagnostics.has_errors() { Err(CompileError::new(diagnostics)) } else { Ok(()) }
}

/// The tokens without `include "…";`, which may appear anywhere.
fn without_includes(sources: &Sources, tokens: &[Token]) -> Vec<Token> {
    let mut kept: Vec<Token> = Vec::with_capacity(tokens.len() + 1);
    let mut index = 0;
    while let Some(&token) = tokens.get(index) {
        let member = kept.last().is_some_and(|before| before.is(Sign::Dot));
        if token.kind == Kind::Word && sources.bytes(token) == b"include" && !member {
            let flag = if tokens.get(index + 1).is_some_and(|next| next.is(Sign::Plus)) { 2 } else { 0 };
            let named = tokens.get(index + flag + 1).is_some_and(|next| next.kind == Kind::Text);
            if named && tokens.get(index + flag + 2).is_some_and(|next| next.is(Sign::Semicolon)) {
                index += flag + 3;
                continue;
            }
        }
        kept.push(token);
        index += 1;
    }
    kept
}
