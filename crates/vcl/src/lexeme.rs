//! The lexemes of a text, comments included: for editors, which colour and search a text that need
//! not compile.

use crate::format::trivia;
use crate::lex::lex;
use crate::source::{Kind, Sources};
use surface::limits::VCL_SOURCE_BYTES_MAX;

/// Kind of a lexeme.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LexemeKind {
    /// A name or keyword, without dots.
    Word,
    /// A number, without its unit.
    Number,
    /// A string of any kind, with its quotes.
    Text,
    /// An operator or bracket.
    Sign,
    /// A comment.
    Comment,
}

/// A piece of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lexeme {
    /// Its kind.
    pub kind: LexemeKind,
    /// Offset of the first byte.
    pub start: usize,
    /// Offset of the byte after the last one.
    pub end: usize,
}

/// The lexemes of a text in order. Accepts any bytes; of a text with errors, those that the lexer
/// recognises. Empty for a text above the size limit of a VCL.
#[must_use]
pub fn lexemes(text: &[u8]) -> Vec<Lexeme> {
    if text.len() > VCL_SOURCE_BYTES_MAX {
        return Vec::new();
    }
    let mut sources = Sources::default();
    let source = sources.add(String::new(), text.to_vec(), None);
    let mut errors = Vec::new();
    let tokens = lex(&sources, source, &mut errors);
    let mut found = Vec::with_capacity(tokens.len());
    let mut end = 0;
    let comments = |found: &mut Vec<Lexeme>, start: usize, end: usize| {
        // After an error there may be other bytes between the tokens.
        if errors.is_empty() && start < end {
            let comments = trivia::gap(text, start, end).comments.into_iter();
            found.extend(comments.map(|comment| Lexeme {
                kind: LexemeKind::Comment,
                start: comment.start,
                end: comment.end,
            }));
        }
    };
    for token in tokens {
        let kind = match token.kind {
            Kind::End => continue,
            Kind::Word => LexemeKind::Word,
            Kind::Integer | Kind::Real => LexemeKind::Number,
            Kind::Text | Kind::Blob => LexemeKind::Text,
            Kind::Sign(_) => LexemeKind::Sign,
        };
        comments(&mut found, end, token.start as usize);
        end = token.end as usize;
        found.push(Lexeme { kind, start: token.start as usize, end });
    }
    comments(&mut found, end, text.len());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lexemes_cover_a_text_with_its_comments() {
        let text = b"# a\nset req.url = \"x\"; // b\n";
        let shown: Vec<&[u8]> = lexemes(text).iter().map(|lexeme| &text[lexeme.start..lexeme.end]).collect();
        let expected: [&[u8]; 9] = [b"# a", b"set", b"req", b".", b"url", b"=", b"\"x\"", b";", b"// b"];
        assert_eq!(shown, expected);
        assert!(lexemes(b"\xff \"").len() <= 2);
    }
}
