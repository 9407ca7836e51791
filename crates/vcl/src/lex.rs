//! Lexer: text to tokens.
//!
//! Bytes that cannot be a token are reported once and skipped. A text that consists only of such
//! bytes, or has too many tokens, is not read to its end. Source: the lexical rules of VCL 4.1.

use crate::source::{Kind, Sign, Sources, Token};
use surface::diagnostic::Code;
use surface::limits::{VCL_NO_TOKENS_MAX, VCL_TOKENS_MAX};
use surface::vmod::foreign;

/// An error in a piece of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LexError {
    pub(crate) code: Code,
    pub(crate) text: &'static str,
    pub(crate) token: Token,
    /// A second place that belongs to the error.
    pub(crate) also: Option<Token>,
    pub(crate) hint: Option<&'static str>,
}

/// Splits one source; the tokens do not end with [`Kind::End`].
pub(crate) fn lex(sources: &Sources, source: u32, errors: &mut Vec<LexError>) -> Vec<Token> {
    let text = sources.files[source as usize].text.as_slice();
    let mut lexer =
        Lexer { text, source, at: 0, tokens: Vec::with_capacity(VCL_TOKENS_MAX.min(text.len() / 5)), errors };
    if lexer.is_text() {
        lexer.run();
    }
    lexer.tokens
}

struct Lexer<'a> {
    text: &'a [u8],
    source: u32,
    at: usize,
    tokens: Vec<Token>,
    errors: &'a mut Vec<LexError>,
}

impl Lexer<'_> {
    /// Reports, once, bytes that cannot occur in a text. Returns true if the rest is worth reading.
    /// Compat: Varnish 7.1 takes a NUL for the end of the text.
    fn is_text(&mut self) -> bool {
        const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
        let (at, len, hint) = match self.text {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..] => {
                (0, 2.min(self.text.len()), "this is not UTF-8 but UTF-16: save it as UTF-8")
            }
            text if text.starts_with(BYTE_ORDER_MARK) => {
                (0, BYTE_ORDER_MARK.len(), "there is a byte order mark: save the file as UTF-8 without one")
            }
            text => match text.iter().position(|&byte| byte == 0) {
                Some(at) => (at, 1, "there is a NUL byte, which no text contains"),
                None => return true,
            },
        };
        self.at = at;
        self.error(Code::NotVcl, "Syntax error at", len, Some(hint));
        self.at = if len == BYTE_ORDER_MARK.len() { len } else { 0 };
        len != 2
    }

    fn run(&mut self) {
        while let Some(&byte) = self.text.get(self.at) {
            if self.tokens.len() >= VCL_TOKENS_MAX {
                return self.error(Code::SourceTooLarge, "More words and signs than a VCL may have, up to", 1, None);
            }
            if self.errors.len() >= VCL_NO_TOKENS_MAX {
                return;
            }
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | 0 => self.at += 1,
                b'#' => self.skip_line(),
                b'/' if self.next_is(b"//") => self.skip_line(),
                b'/' if self.next_is(b"/*") => self.comment(),
                b'C' if self.next_is(b"C{") => self.inline_c(),
                b'a'..=b'z' | b'A'..=b'Z' => {
                    let len = self.run_of(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
                    self.push(Kind::Word, len);
                }
                b'0'..=b'9' => self.number(),
                b'"' if self.next_is(b"\"\"\"") => self.long_text(3, b"\"\"\""),
                b'{' if self.next_is(b"{\"") => self.long_text(2, b"\"}"),
                b'"' => self.text(),
                b':' => self.blob(),
                _ => self.sign(),
            }
        }
    }

    fn next_is(&self, what: &[u8]) -> bool {
        self.text[self.at..].starts_with(what)
    }

    fn run_of(&self, belongs: impl Fn(u8) -> bool) -> usize {
        let rest = &self.text[self.at..];
        rest.iter().position(|&byte| !belongs(byte)).unwrap_or(rest.len())
    }

    fn token(&self, kind: Kind, len: usize) -> Token {
        let start = self.at as u32;
        Token { kind, source: self.source, start, end: start + len as u32 }
    }

    fn push(&mut self, kind: Kind, len: usize) {
        let token = self.token(kind, len);
        self.tokens.push(token);
        self.at += len;
    }

    fn error(&mut self, code: Code, text: &'static str, len: usize, hint: Option<&'static str>) {
        let token = self.token(Kind::Word, len);
        self.errors.push(LexError { code, text, token, also: None, hint });
    }

    /// Like `error`, for a token that begins `offset` bytes further on.
    fn error_within(&mut self, offset: usize, code: Code, text: &'static str, len: usize, hint: Option<&'static str>) {
        self.at += offset;
        self.error(code, text, len, hint);
        self.at -= offset;
    }

    fn skip_line(&mut self) {
        self.at += self.run_of(|byte| byte != b'\n');
    }

    fn comment(&mut self) {
        let rest = &self.text[self.at + 2..];
        match find(rest, b"*/") {
            Some(len) => {
                if let Some(inner) = find(&rest[..len], b"/*") {
                    let start = self.at as u32;
                    let token = self.token(Kind::Word, 2);
                    let inner = start + 2 + inner as u32;
                    let also = Token { start: inner, end: inner + 2, ..token };
                    let hint = Some("comments do not nest; end the outer one first");
                    let text = "/* ... */ comment contains /*";
                    self.errors.push(LexError { code: Code::NestedComment, text, token, also: Some(also), hint });
                }
                self.at += len + 4;
            }
            None => {
                self.error(Code::UnterminatedComment, "Unterminated /* ... */ comment, starting at", 2, None);
                self.at = self.text.len();
            }
        }
    }

    fn inline_c(&mut self) {
        match find(&self.text[self.at..], b"}C") {
            Some(len) => {
                let code = &self.text[self.at..self.at + len];
                let hint = foreign::instead_of_c(code)
                    .unwrap_or("nothing is compiled as C here: use std, another VMOD, or plain VCL");
                self.error(Code::InlineC, "Inline-C not allowed", len + 2, Some(hint));
                self.at += len + 2;
            }
            None => {
                self.error(Code::UnterminatedInlineC, "Unterminated inline C source, starting at", 2, None);
                self.at = self.text.len();
            }
        }
    }

    fn long_text(&mut self, open: usize, close: &[u8]) {
        match find(&self.text[self.at + open..], close) {
            Some(len) => self.push(Kind::Text, open + len + close.len()),
            None => {
                self.error(Code::UnterminatedLongString, "Unterminated long-string, starting at", open, None);
                self.at = self.text.len();
            }
        }
    }

    fn text(&mut self) {
        let rest = &self.text[self.at + 1..];
        match rest.iter().position(|&byte| byte == b'"' || byte == b'\n' || byte == b'\r') {
            Some(len) if rest[len] == b'"' && !is_escaped(rest, len) => self.push(Kind::Text, len + 2),
            Some(len) if rest[len] == b'"' => {
                let hint = "a string has no escapes; one with quotes in it is written {\"...\"}";
                self.error_within(len, Code::NotVcl, "Syntax error at", 2, Some(hint));
                let behind = start_of_line(&rest[len + 1..]);
                let closes = |&at: &usize| behind[at] == b'"' && (at == 0 || behind[at - 1] != b'\\');
                let more = (0..behind.len()).find(closes).map_or(behind.len(), |end| end + 1);
                self.push(Kind::Text, len + 2 + more);
            }
            ended => {
                let hint = "a string ends on its line; longer ones are written {\"...\"} or \"\"\"...\"\"\"";
                let line = &rest[..ended.unwrap_or(rest.len())];
                self.error(Code::UnterminatedString, "Unterminated string, starting at", 1, Some(hint));
                // The line becomes a string, except for the end of the statement, so that the
                // following text is read as intended.
                let closes = |byte: &u8| b";){} \t".contains(byte);
                let content = line.iter().rposition(|byte| !closes(byte)).map_or(0, |last| last + 1);
                self.push(Kind::Text, 1 + content);
            }
        }
    }

    fn blob(&mut self) {
        let rest = &self.text[self.at + 1..];
        let (mut digits, mut padding) = (0usize, 0usize);
        for (offset, &byte) in rest.iter().enumerate() {
            let so_far = offset + 2;
            match byte {
                b':' => {
                    if (digits + padding) % 4 != 0 {
                        self.error(Code::BlobMalformed, "BLOB must have n*4 base64 characters", so_far, None);
                    }
                    self.push(Kind::Blob, so_far);
                    return;
                }
                b'=' if padding == 0 && digits % 4 >= 2 && leaves_bits(rest[offset - 1], digits % 4) => {
                    return self.bad_blob("Illegal BLOB character:", so_far);
                }
                b'=' if padding < 2 && (digits + padding) % 4 >= 2 => padding += 1,
                b'=' => return self.bad_blob("Wrong padding ('=') in BLOB:", so_far),
                _ if byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/' => {
                    if padding > 0 {
                        return self.bad_blob("Wrong padding ('=') in BLOB:", so_far);
                    }
                    digits += 1;
                }
                b'\n' | b'\r' => return self.bad_blob("Missing colon at end of BLOB:", so_far - 1),
                _ => return self.bad_blob("Illegal BLOB character:", so_far),
            }
        }
        self.bad_blob("Missing colon at end of BLOB:", rest.len() + 1);
    }

    fn bad_blob(&mut self, text: &'static str, len: usize) {
        self.error(Code::BlobMalformed, text, len, Some("a BLOB is base64 between colons, e.g. :aGVsbG8=:"));
        // Continues after the closing colon if it is on this line.
        let rest = &self.text[self.at + 1..];
        let end = rest.iter().position(|&byte| matches!(byte, b':' | b';' | b'\n')).unwrap_or(rest.len());
        let len = if rest.get(end) == Some(&b':') { end + 2 } else { end + 1 };
        self.push(Kind::Blob, len);
    }

    fn number(&mut self) {
        let whole = self.run_of(|byte| byte.is_ascii_digit());
        if self.text.get(self.at + whole) != Some(&b'.') {
            if whole > 15 {
                self.error(Code::NumberTooLong, "Too many digits for integer.", whole, Some("at most 15 digits"));
            }
            return self.push(Kind::Integer, whole);
        }
        let rest = &self.text[self.at + whole + 1..];
        let fraction = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        let len = whole + 1 + fraction;
        if whole > 12 || fraction > 3 {
            self.error(
                Code::NumberTooLong,
                "Too many digits for real.",
                len,
                Some("at most 12 digits before and 3 after the dot"),
            );
        }
        self.push(Kind::Real, len);
    }

    /// A string in quotes that VCL does not have, single or typographic: treated as the intended
    /// string.
    fn quoted(&mut self) -> bool {
        const QUOTES: &[(&str, &[&str])] = &[
            ("'", &["'"]),
            ("`", &["`", "'"]),
            ("\u{201c}", &["\u{201d}", "\u{201c}", "\""]),
            ("\u{201d}", &["\u{201d}", "\u{201c}", "\""]),
            ("\u{201e}", &["\u{201c}", "\u{201d}", "\""]),
            ("\u{2018}", &["\u{2019}", "\u{2018}", "'"]),
            ("\u{2019}", &["\u{2019}", "\u{2018}", "'"]),
            ("\u{ab}", &["\u{bb}"]),
        ];
        let Some((open, closing)) = QUOTES.iter().find(|(open, _)| self.next_is(open.as_bytes())) else { return false };
        let line = start_of_line(&self.text[self.at + open.len()..]);
        let ends = closing.iter().filter_map(|close| find(line, close.as_bytes()).map(|at| at + close.len()));
        let Some(len) = ends.min() else { return false };
        let len = open.len() + len;
        self.error(Code::NotVcl, "Syntax error at", len, Some("strings stand in straight double quotes: \"...\""));
        self.push(Kind::Text, len);
        true
    }

    fn sign(&mut self) {
        const SIGNS: &[(&[u8], Sign)] = &[
            (b"{", Sign::BraceOpen),
            (b"}", Sign::BraceClose),
            (b"(", Sign::ParenOpen),
            (b")", Sign::ParenClose),
            (b";", Sign::Semicolon),
            (b",", Sign::Comma),
            (b".", Sign::Dot),
            (b"!~", Sign::NotMatch),
            (b"!=", Sign::NotEqual),
            (b"!", Sign::Not),
            (b"~", Sign::Match),
            (b"==", Sign::Equal),
            (b"=", Sign::Assign),
            (b"<=", Sign::LessOrEqual),
            (b"<<", Sign::ShiftLeft),
            (b"<", Sign::Less),
            (b">=", Sign::GreaterOrEqual),
            (b">>", Sign::ShiftRight),
            (b">", Sign::Greater),
            (b"&&", Sign::And),
            (b"&", Sign::BitAnd),
            (b"||", Sign::Or),
            (b"|", Sign::BitOr),
            (b"++", Sign::PlusPlus),
            (b"+=", Sign::PlusAssign),
            (b"+", Sign::Plus),
            (b"--", Sign::MinusMinus),
            (b"-=", Sign::MinusAssign),
            (b"-", Sign::Minus),
            (b"*=", Sign::StarAssign),
            (b"*", Sign::Star),
            (b"/=", Sign::SlashAssign),
            (b"/", Sign::Slash),
            (b"%", Sign::Percent),
        ];
        match SIGNS.iter().find(|(text, _)| self.next_is(text)) {
            Some((text, sign)) => self.push(Kind::Sign(*sign), text.len()),
            None if self.quoted() => {}
            None => {
                let hint = match self.text[self.at] {
                    b'?' => Some("VCL has no ?: operator: write if and else"),
                    b'\\' => Some("nothing is escaped in VCL; a string over several lines is written {\"...\"}"),
                    b'$' => Some("names have no $ before them; what a pattern found is \\1 to \\9 in regsub()"),
                    _ => None,
                };
                self.error(Code::NotVcl, "Syntax error at", 1, hint);
                if self.text[self.at] == b'?' {
                    // Skips the rest of the expression too.
                    self.at += self.run_of(|byte| byte != b';' && byte != b'\n');
                    return;
                }
                // Only one message for a run of bytes that cannot be VCL.
                let len = self.run_of(|byte| {
                    !byte.is_ascii_alphanumeric()
                        && !byte.is_ascii_whitespace()
                        && !b"#/:\"{}();,.!~=<>&|+-*%".contains(&byte)
                });
                self.at += len.max(1);
            }
        }
    }
}

/// The rest of the line, within the distance in which the end of an invalid token is searched for.
fn start_of_line(rest: &[u8]) -> &[u8] {
    const LOOKED_AT_BYTES: usize = 1_000;
    let near = &rest[..rest.len().min(LOOKED_AT_BYTES)];
    &near[..near.iter().position(|&byte| byte == b'\n').unwrap_or(near.len())]
}

/// True if the quote at `end` is meant to be part of the string: a backslash precedes it, and no
/// operator follows, so it cannot be the end.
fn is_escaped(rest: &[u8], end: usize) -> bool {
    let follows = rest.get(end + 1).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'\\');
    end > 0 && rest[end - 1] == b'\\' && follows
}

/// True if the last of two or three base64 digits has bits that belong to no byte.
fn leaves_bits(digit: u8, digits: usize) -> bool {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    value & if digits == 2 { 0x0f } else { 0x03 } != 0
}

/// The first position of `what` in `text`.
fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text[from..].iter().position(|&byte| byte == what[0]) {
        if text[from + at..].starts_with(what) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[&str]) {
        let mut sources = Sources::default();
        let source = sources.add("t".into(), text.as_bytes().to_vec(), None);
        let mut errors = Vec::new();
        let tokens = lex(&sources, source, &mut errors);
        assert_eq!(errors, []);
        let shown: Vec<&str> = tokens.iter().map(|&token| sources.text(token)).collect();
        assert_eq!(shown, expect, "{text}");
    }

    fn check_error(text: &str, expect: &str) {
        let mut sources = Sources::default();
        let source = sources.add("t".into(), text.as_bytes().to_vec(), None);
        let mut errors = Vec::new();
        lex(&sources, source, &mut errors);
        let shown: Vec<String> =
            errors.iter().map(|error| format!("{} {}..{}", error.text, error.token.start, error.token.end)).collect();
        assert_eq!(shown, [expect], "{text}");
    }

    #[test]
    fn words_numbers_and_signs() {
        check("set req.http.X-y_z = 1.5s;", &["set", "req", ".", "http", ".", "X-y_z", "=", "1.5", "s", ";"]);
        check("a-1 b -1 5 %2", &["a-1", "b", "-", "1", "5", "%", "2"]);
        check("1.2.3", &["1.2", ".", "3"]);
        check(
            "!~ != ! == = <= << < >= >> > && & || | ++ += + -- -= - *= * /= / %",
            &[
                "!~", "!=", "!", "==", "=", "<=", "<<", "<", ">=", ">>", ">", "&&", "&", "||", "|", "++", "+=", "+",
                "--", "-=", "-", "*=", "*", "/=", "/", "%",
            ],
        );
    }

    #[test]
    fn comments_are_skipped() {
        check("a # b\nc // d\ne /* f\n */ g /*/ */ h", &["a", "c", "e", "g", "h"]);
    }

    #[test]
    fn strings_come_in_three_forms() {
        check(
            "\"a b\" {\"a\n\"b\"} \"\"\"a\"\nb\"\"\" \"\" {\"\"}",
            &["\"a b\"", "{\"a\n\"b\"}", "\"\"\"a\"\nb\"\"\"", "\"\"", "{\"\"}"],
        );
    }

    #[test]
    fn invalid_tokens_are_reported_once() {
        check_error("a @@ b", "Syntax error at 2..3");
        check_error("a 'b c' d", "Syntax error at 2..7");
        check_error("a \u{201c}b\u{201d} c", "Syntax error at 2..9");
        check_error("\"a \\\"b\\\" c\";", "Syntax error at 3..5");
        check_error("a ? b : c;", "Syntax error at 2..3");
        check_error("\"a", "Unterminated string, starting at 0..1");
        check_error("{\"a", "Unterminated long-string, starting at 0..2");
        check_error("\"\"\"a", "Unterminated long-string, starting at 0..3");
        check_error("/* a", "Unterminated /* ... */ comment, starting at 0..2");
        check_error("/* /* */", "/* ... */ comment contains /* 0..2");
        check_error("C{ a", "Unterminated inline C source, starting at 0..2");
        check_error("C{ a }C", "Inline-C not allowed 0..7");
        check_error("1234567890123456", "Too many digits for integer. 0..16");
        check_error("1.2345", "Too many digits for real. 0..6");
        check_error(":abc:", "BLOB must have n*4 base64 characters 0..5");
        check_error(":a!cd:", "Illegal BLOB character: 0..3");
        check_error(":a=cd:", "Wrong padding ('=') in BLOB: 0..3");
        check_error(":AB==:", "Illegal BLOB character: 0..4");
        check_error(":AAB=:", "Illegal BLOB character: 0..5");
        check_error(":abcd\n", "Missing colon at end of BLOB: 0..5");
        check_error(":abcd", "Missing colon at end of BLOB: 0..5");
        check_error("\x01\x02\x03", "Syntax error at 0..1");
        check_error("a \"b\0c\0\" # \0", "Syntax error at 4..5");
        check_error("\u{feff}vcl 4.1;", "Syntax error at 0..3");
        check_error("v\0c\0l\0", "Syntax error at 0..2");
    }
}
