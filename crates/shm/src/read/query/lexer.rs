//! A query's words.

use super::QueryError;

/// What a word is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token {
    /// End of the text.
    End,
    /// End of a line, and so of an expression.
    Line,
    /// Unquoted word.
    Word(String),
    /// Quoted string, unescaped.
    Quoted(String),
    /// Punctuation or operator.
    Sign(&'static str),
}

/// A word and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub token: Token,
    pub at: usize,
    pub length: usize,
}

const SIGNS: [&str; 17] = ["==", "!=", "<=", ">=", "!~", "<", ">", "~", "(", ")", "{", "}", "[", "]", ":", ",", "\\\n"];

/// Splits a query into words; the last one is always [`Token::End`].
pub(super) fn split(text: &str) -> Result<Vec<Placed>, QueryError> {
    let bytes = text.as_bytes();
    let mut words = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        let rest = &text[at..];
        let (token, length) = if byte == b'\n' {
            (Token::Line, 1)
        } else if byte.is_ascii_whitespace() {
            at += 1;
            continue;
        } else if byte == b'#' {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        } else if byte == b'"' || byte == b'\'' {
            quoted(text, at)?
        } else if is_word(byte) {
            let length = rest.bytes().take_while(|byte| is_word(*byte)).count();
            (Token::Word(rest[..length].to_owned()), length)
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            if *sign == "\\\n" {
                at += 2;
                continue;
            }
            (Token::Sign(sign), sign.len())
        } else {
            let length = rest.chars().next().map_or(1, char::len_utf8);
            return Err(QueryError { message: "Syntax error".into(), at, length, text: text.to_owned() });
        };
        words.push(Placed { token, at, length });
        at += length;
    }
    words.push(Placed { token: Token::End, at: text.len(), length: 0 });
    Ok(words)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'_' | b'.' | b'*')
}

/// The quoted string that starts at `start`. A backslash makes the next character stand for itself.
fn quoted(text: &str, start: usize) -> Result<(Token, usize), QueryError> {
    let quote = text.as_bytes()[start];
    let mut value = Vec::new();
    let mut escaped = false;
    for (index, byte) in text.bytes().enumerate().skip(start + 1) {
        if escaped {
            escaped = false;
        } else if byte == quote {
            let value = String::from_utf8_lossy(&value).into_owned();
            return Ok((Token::Quoted(value), index + 1 - start));
        } else if byte == b'\\' {
            escaped = true;
            continue;
        }
        if byte == b'\n' {
            break;
        }
        value.push(byte);
    }
    let length = text[start..].find('\n').unwrap_or(text.len() - start);
    Err(QueryError { message: "Unterminated string".into(), at: start, length, text: text.to_owned() })
}
