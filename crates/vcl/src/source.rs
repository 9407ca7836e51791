//! Source texts and their tokens.
//!
//! All sources of one compilation are in [`Sources`]; a [`Token`] is a span of one of them: sixteen
//! bytes, without its text. Lines and columns are computed only when a message needs them.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;

/// Kind of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The end of all tokens.
    End,
    /// A word.
    Word,
    /// Digits.
    Integer,
    /// Digits with a dot.
    Real,
    /// A string in quotes of any kind.
    Text,
    /// `:base64:`.
    Blob,
    /// An operator or bracket.
    Sign(Sign),
}

/// Operators and brackets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub(crate) enum Sign {
    BraceOpen,
    BraceClose,
    ParenOpen,
    ParenClose,
    Semicolon,
    Comma,
    Dot,
    Not,
    NotMatch,
    NotEqual,
    Match,
    Equal,
    Assign,
    Less,
    LessOrEqual,
    ShiftLeft,
    Greater,
    GreaterOrEqual,
    ShiftRight,
    And,
    BitAnd,
    Or,
    BitOr,
    Plus,
    PlusPlus,
    PlusAssign,
    Minus,
    MinusMinus,
    MinusAssign,
    Star,
    StarAssign,
    Slash,
    SlashAssign,
    Percent,
}

/// A piece of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// Index into the sources.
    pub(crate) source: u32,
    /// First byte.
    pub(crate) start: u32,
    /// One past the last byte.
    pub(crate) end: u32,
}

impl Token {
    pub(crate) fn is(self, sign: Sign) -> bool {
        self.kind == Kind::Sign(sign)
    }
}

/// One text.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) name: String,
    pub(crate) text: Vec<u8>,
    /// The `include` string that named it; `None` for the main text and the built-in VCL.
    pub(crate) included_by: Option<Token>,
    line_starts: Vec<u32>,
}

/// Every text of one compilation.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pub(crate) files: Vec<SourceFile>,
    /// The values of strings that differ from the text between their quotes; by source and first
    /// byte.
    decoded: HashMap<(u32, u32), Vec<u8>>,
    /// The last place computed: the next one is usually further on in the same line, which may be
    /// megabytes long.
    last_place: Cell<LastPlace>,
}

#[derive(Clone, Copy, Debug, Default)]
struct LastPlace {
    source: u32,
    line_start: u32,
    offset: u32,
    column: u32,
}

impl Sources {
    pub(crate) fn add(&mut self, name: String, text: Vec<u8>, included_by: Option<Token>) -> u32 {
        let mut line_starts = vec![0];
        line_starts.extend(text.iter().enumerate().filter(|&(_, &byte)| byte == b'\n').map(|(at, _)| at as u32 + 1));
        self.files.push(SourceFile { name, text, included_by, line_starts });
        self.files.len() as u32 - 1
    }

    pub(crate) fn file(&self, token: Token) -> &SourceFile {
        &self.files[token.source as usize]
    }

    /// The bytes of a token, including quotes.
    pub(crate) fn bytes(&self, token: Token) -> &[u8] {
        self.file(token).text.get(token.start as usize..token.end as usize).unwrap_or(b"")
    }

    /// The token as text; words are ASCII.
    pub(crate) fn text(&self, token: Token) -> &str {
        std::str::from_utf8(self.bytes(token)).unwrap_or("")
    }

    /// The text between the quotes of a string.
    pub(crate) fn content(&self, token: Token) -> &[u8] {
        if !self.decoded.is_empty()
            && let Some(decoded) = self.decoded.get(&(token.source, token.start))
        {
            return decoded;
        }
        let bytes = self.bytes(token);
        let quote = match bytes {
            [b'"', b'"', b'"', ..] if bytes.len() >= 6 => 3,
            [b'{', ..] => 2,
            _ => 1,
        };
        bytes.get(quote..bytes.len().saturating_sub(quote)).unwrap_or(b"")
    }

    /// Gives a string a value other than its text.
    pub(crate) fn set_content(&mut self, token: Token, content: Vec<u8>) {
        self.decoded.insert((token.source, token.start), content);
    }

    /// The token in the form for messages.
    pub(crate) fn shown(&self, token: Token) -> Cow<'_, str> {
        if token.kind == Kind::End {
            return Cow::Borrowed("end of input");
        }
        let bytes = self.bytes(token);
        let cut = bytes.len().min(200);
        let text = String::from_utf8_lossy(&bytes[..cut]);
        Cow::Owned(if cut < bytes.len() { format!("'{text}…'") } else { format!("'{text}'") })
    }

    /// Line from 1, and column from 1 with tabs counted to multiples of eight.
    pub(crate) fn place(&self, token: Token) -> (u32, u32) {
        self.place_at(token.source, token.start)
    }

    pub(crate) fn place_at(&self, source: u32, offset: u32) -> (u32, u32) {
        let file = &self.files[source as usize];
        let line = file.line_starts.partition_point(|&start| start <= offset);
        let line_start = file.line_starts[line - 1];
        let last = self.last_place.get();
        let known = last.source == source && last.line_start == line_start && last.offset <= offset;
        let (from, column) =
            if known && last.offset >= line_start { (last.offset, last.column) } else { (line_start, 0) };
        let before = file.text.get(from as usize..offset as usize).unwrap_or(b"");
        let column =
            before.iter().fold(column, |column, &byte| if byte == b'\t' { (column & !7) + 8 } else { column + 1 });
        self.last_place.set(LastPlace { source, line_start, offset, column });
        (line as u32, column + 1)
    }

    /// The bytes of a line, without its end, and the offset of its start.
    pub(crate) fn line(&self, source: u32, line: u32) -> (&[u8], u32) {
        let file = &self.files[source as usize];
        let start = file.line_starts[line as usize - 1];
        let end = file.line_starts.get(line as usize).map_or(file.text.len(), |&next| next as usize - 1);
        let bytes = file.text.get(start as usize..end).unwrap_or(b"");
        (bytes.strip_suffix(b"\r").unwrap_or(bytes), start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_tabs_to_multiples_of_eight() {
        let mut sources = Sources::default();
        sources.add("a".into(), b"x\n\tset req.url =\t<< 1;\n".to_vec(), None);
        assert_eq!(sources.place_at(0, 0), (1, 1));
        assert_eq!(sources.place_at(0, 2), (2, 1));
        assert_eq!(sources.place_at(0, 3), (2, 9));
        assert_eq!(sources.place_at(0, 17), (2, 25));
        assert_eq!(sources.line(0, 2).0, b"\tset req.url =\t<< 1;");
        assert_eq!(sources.line(0, 3).0, b"");
    }
}
