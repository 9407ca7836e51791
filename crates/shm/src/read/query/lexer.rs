//! Lexer of queries.

use super::tree::QueryError;

/// Kind of a word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token {
    /// End of the text or of a line, and so of an expression.
    End,
    /// A value: quoted and unescaped, or a bare word.
    Value(String),
    /// Punctuation, operator or reserved word.
    Sign(&'static str),
}

/// A word and its position.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub token: Token,
    pub at: usize,
    pub length: usize,
}

const SIGNS: [&str; 16] = ["==", "!=", "<=", ">=", "!~", "<", ">", "~", "(", ")", "{", "}", "[", "]", ":", ","];
const RESERVED: [&str; 6] = ["and", "or", "not", "eq", "ne", "vxid"];

/// Splits a query into words; the last one is always [`Token::End`].
pub(super) fn split(text: &str) -> Result<Vec<Placed>, QueryError> {
    let bytes = text.as_bytes();
    let mut words = Vec::new();
    let mut at = 0;
    // End of the last word; `None` after the end of a line.
    let mut word_end = None;
    while at < bytes.len() {
        let byte = bytes[at];
        let rest = &text[at..];
        if byte == b' ' || byte == b'\t' {
            at += 1;
            continue;
        }
        if rest.starts_with("\\\n") {
            at += 2;
            continue;
        }
        if byte == b'#' {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        if byte == b'\n' {
            words.push(Placed { token: Token::End, at, length: 1 });
            at += 1;
            continue;
        }
        let (token, length) = if byte == b'"' || byte == b'\'' {
            quoted(text, at)?
        } else if is_word(byte) {
            let length = rest.bytes().take_while(|byte| is_word(*byte)).count();
            let word = &rest[..length];
            let token = match RESERVED.iter().find(|reserved| **reserved == word) {
                Some(reserved) => Token::Sign(reserved),
                None => Token::Value(word.to_owned()),
            };
            (token, length)
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (Token::Sign(sign), sign.len())
        } else {
            // Compat: the mark has a different shape directly after a word.
            let offset = (word_end == Some(at)).then_some(0);
            return Err(QueryError { message: "Syntax error".into(), at, length: 1, offset, text: text.to_owned() });
        };
        words.push(Placed { token, at, length });
        at += length;
        word_end = Some(at);
    }
    words.push(Placed { token: Token::End, at: text.len(), length: 0 });
    Ok(words)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'_' | b'.' | b'*')
}

/// The quoted string that starts at `start`. A backslash escapes the next character.
fn quoted(text: &str, start: usize) -> Result<(Token, usize), QueryError> {
    let quote = text.as_bytes()[start];
    let mut value = Vec::new();
    let mut escaped = false;
    let mut length = 1;
    for byte in text.bytes().skip(start + 1) {
        if byte == b'\n' {
            break;
        }
        length += 1;
        if escaped {
            escaped = false;
        } else if byte == quote {
            let value = String::from_utf8_lossy(&value).into_owned();
            return Ok((Token::Value(value), length));
        } else if byte == b'\\' {
            escaped = true;
            continue;
        }
        value.push(byte);
    }
    let offset = Some(length);
    Err(QueryError { message: "Unterminated string".into(), at: start, length, offset, text: text.to_owned() })
}
