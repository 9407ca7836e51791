//! Conversion of a command line to words, and back.
//!
//! Words are separated by white space. Double quotes group a word, and only whole words can be
//! quoted: a quote inside a bare word is an error. Text after a closing quote begins the next word,
//! unless it is another quote. Backslash escapes (`\n \r \t \" \\`, `\ooo` of one to three digits,
//! `\xHH`) work inside and outside quotes. Bytes that are not UTF-8 become U+FFFD: a word is text
//! for people. Compat: Varnish also refuses `"a" "b"`, since it overlooks the blank between them;
//! here these are two words.

/// Reason why a line cannot be split into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyntaxError {
    /// A quoted word is not closed.
    MissingQuote,
    /// A quote where no word begins or ends.
    MisplacedQuote,
    /// A quoted word directly after another.
    MissingSeparator,
    /// An unknown or unfinished backslash sequence.
    Backslash,
}

impl SyntaxError {
    /// The text of the reply with status 100.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            SyntaxError::MissingQuote => "Missing '\"'",
            SyntaxError::MisplacedQuote => "Invalid '\"'",
            SyntaxError::MissingSeparator => "Missing separator between arguments",
            SyntaxError::Backslash => "Invalid backslash sequence",
        }
    }
}

/// Splits a line into words.
///
/// # Errors
/// See [`SyntaxError`].
pub fn split(line: &[u8]) -> Result<Vec<String>, SyntaxError> {
    Ok(split_octets(line)?.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect())
}

/// Like [`split`], but each word as bytes.
///
/// # Errors
/// See [`SyntaxError`].
pub fn split_octets(line: &[u8]) -> Result<Vec<Vec<u8>>, SyntaxError> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        rest = &rest[rest.iter().take_while(|byte| is_space(**byte)).count()..];
        if rest.is_empty() {
            return Ok(words);
        }
        let (word, after) = if rest[0] == b'"' { quoted(&rest[1..])? } else { bare(rest)? };
        words.push(word);
        rest = after;
    }
}

/// True if this is white space between words; that includes the vertical tab.
#[must_use]
pub fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// A word up to its closing quote, which must not be followed by another quote.
fn quoted(mut rest: &[u8]) -> Result<(Vec<u8>, &[u8]), SyntaxError> {
    let mut word = Vec::new();
    loop {
        match rest {
            [] => return Err(SyntaxError::MissingQuote),
            [b'\\', ..] => {
                let (byte, length) = escape(rest).ok_or(SyntaxError::Backslash)?;
                word.push(byte);
                rest = &rest[length..];
            }
            [b'"', after @ ..] => {
                if after.first() == Some(&b'"') {
                    return Err(SyntaxError::MissingSeparator);
                }
                return Ok((word, after));
            }
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

/// A word up to white space.
fn bare(mut rest: &[u8]) -> Result<(Vec<u8>, &[u8]), SyntaxError> {
    let mut word = Vec::new();
    loop {
        match rest {
            [] => return Ok((word, rest)),
            [byte, ..] if is_space(*byte) => return Ok((word, rest)),
            [b'\\', ..] => {
                let (byte, length) = escape(rest).ok_or(SyntaxError::Backslash)?;
                word.push(byte);
                rest = &rest[length..];
            }
            [b'"', ..] => return Err(SyntaxError::MisplacedQuote),
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

/// The byte that the backslash sequence at the start of `text` denotes, and the length of the
/// sequence; `None` if it is unknown or incomplete. Test scripts use the same sequences.
#[must_use]
pub fn escape(text: &[u8]) -> Option<(u8, usize)> {
    match *text.get(1)? {
        b'n' => Some((b'\n', 2)),
        b'r' => Some((b'\r', 2)),
        b't' => Some((b'\t', 2)),
        byte @ (b'"' | b'\\') => Some((byte, 2)),
        b'0'..=b'7' => {
            let digits = text[1..].iter().take(3).take_while(|digit| (b'0'..=b'7').contains(digit)).count();
            // As many digits as fit into a byte.
            let value =
                text[1..=digits].iter().fold(0u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0'));
            Some((value, 1 + digits))
        }
        b'x' => {
            let digits = text.get(2..4)?;
            let high = char::from(digits[0]).to_digit(16)?;
            let low = char::from(digits[1]).to_digit(16)?;
            u8::try_from(high * 16 + low).ok().map(|byte| (byte, 4))
        }
        _ => None,
    }
}

/// Writes a word in such a way that [`split`] returns it unchanged.
#[must_use]
pub fn quote(word: &str) -> String {
    let plain = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\');
    if plain {
        return word.to_owned();
    }
    let mut out = String::with_capacity(word.len() + 2);
    out.push('"');
    for letter in word.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if letter.is_ascii_control() => out.push_str(&format!("\\{:03o}", letter as u32)),
            _ => out.push(letter),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Result<&[&str], SyntaxError>) {
        let expected = expected.map(|words| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(split(line.as_bytes()), expected, "{line:?}");
    }

    #[test]
    fn lines_are_cut_as_varnish_cuts_them() {
        check("", Ok(&[]));
        check("  ping\t-j ", Ok(&["ping", "-j"]));
        check("pi\\x6eg", Ok(&["ping"]));
        check("a \"b c\" \"\" d\\040e", Ok(&["a", "b c", "", "d e"]));
        check("\"a\\n\\r\\t\\\"\\\\\"", Ok(&["a\n\r\t\"\\"]));
        check("\"a b", Err(SyntaxError::MissingQuote));
        check("a\"b\"", Err(SyntaxError::MisplacedQuote));
        check("\"a\"b \"c\"\td", Ok(&["a", "b", "c", "d"]));
        check("\"a\"\"b\"", Err(SyntaxError::MissingSeparator));
        check("\x0b a\x0bb", Ok(&["a", "b"]));
        check("a \\q", Err(SyntaxError::Backslash));
        check("a \\", Err(SyntaxError::Backslash));
        check("a \\18 \\401", Ok(&["a", "\u{1}8", "\u{1}"]));
        check("a \\x4", Err(SyntaxError::Backslash));
    }

    #[test]
    fn a_quoted_word_is_read_back_unchanged() {
        for word in ["", "plain", "two words", "q\"uo\\te", "li\nne", "\u{1}\u{7f}", "é"] {
            assert_eq!(split(quote(word).as_bytes()), Ok(vec![word.to_owned()]));
        }
    }
}
