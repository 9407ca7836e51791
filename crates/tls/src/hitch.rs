//! The grammar of hitch.conf, in which certificates and TLS listeners are configured: text to
//! [`Assignment`]s.
//!
//! ```text
//! file       = { assignment }
//! assignment = key "=" ( word { word } | "{" { assignment } "}" )
//! word       = letters without blanks, or "…" on one line
//! ```
//! The words of a value are on one line; otherwise lines have no meaning, and a word that is
//! followed by `=` begins the next assignment. `#` begins a comment. The caller interprets the
//! keys. *Invariant:* nesting is bounded, so no file exhausts the stack.

use std::fmt;
use surface::limits::TLS_FILE_DEPTH_MAX;

/// `key = value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The key, as written.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// The line of the key, from 1.
    pub line: usize,
}

/// Value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// One word or several.
    Words(Vec<String>),
    /// Assignments in braces.
    Block(Vec<Assignment>),
}

/// A syntax error and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The line, from 1.
    pub line: usize,
    /// Description of the error.
    pub what: String,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// The text of a line, to be shown with an error.
#[must_use]
pub fn line_of(text: &str, line: usize) -> &str {
    text.lines().nth(line.saturating_sub(1)).unwrap_or("").trim()
}

/// Parses a whole file.
///
/// # Errors
/// The first mistake.
pub fn parse(text: &str) -> Result<Vec<Assignment>, SyntaxError> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0 };
    let all = parser.assignments(0)?;
    match parser.tokens.get(parser.at) {
        None => Ok(all),
        Some(token) => Err(parser.error(token.line, "a '}' without its '{'")),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    kind: Kind,
    line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Word(String),
    /// A word in quotes, which is never a key.
    Quoted(String),
    Equals,
    Open,
    Close,
}

fn tokens(text: &str) -> Result<Vec<Token>, SyntaxError> {
    let mut tokens = Vec::new();
    for (line, content) in (1..).zip(text.split('\n')) {
        let error = |what: &str| SyntaxError { line, what: what.to_owned() };
        let mut rest = content.trim_start();
        while let Some(first) = rest.chars().next() {
            let (kind, length) = match first {
                '#' => break,
                '=' => (Kind::Equals, 1),
                '{' => (Kind::Open, 1),
                '}' => (Kind::Close, 1),
                '"' => {
                    let end = rest[1..].find('"').ok_or_else(|| error("a '\"' that nothing closes"))?;
                    (Kind::Quoted(rest[1..=end].to_owned()), end + 2)
                }
                _ => {
                    let is_end = |letter: char| letter.is_whitespace() || "#={}\"".contains(letter);
                    let end = rest.find(is_end).unwrap_or(rest.len());
                    (Kind::Word(rest[..end].to_owned()), end)
                }
            };
            if let Kind::Word(word) | Kind::Quoted(word) = &kind
                && word.chars().any(char::is_control)
            {
                return Err(error("a control character"));
            }
            tokens.push(Token { kind, line });
            rest = rest[length..].trim_start();
        }
    }
    Ok(tokens)
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn error(&self, line: usize, what: impl Into<String>) -> SyntaxError {
        SyntaxError { line, what: what.into() }
    }

    /// The line of the next token, or of the last one.
    fn line(&self) -> usize {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |token| token.line)
    }

    /// Assignments up to the end of the file or of the block; the brace that ends it is not
    /// consumed.
    fn assignments(&mut self, depth: usize) -> Result<Vec<Assignment>, SyntaxError> {
        if depth > TLS_FILE_DEPTH_MAX {
            return Err(self.error(self.line(), "blocks inside one another without end"));
        }
        let mut all = Vec::new();
        while let Some(token) = self.tokens.get(self.at) {
            let line = token.line;
            let key = match &token.kind {
                Kind::Close => break,
                Kind::Word(word) => word.clone(),
                Kind::Quoted(_) | Kind::Equals | Kind::Open => return Err(self.error(line, "a key is expected here")),
            };
            self.at += 1;
            if self.take(&Kind::Equals).is_none() {
                return Err(self.error(line, format!("'=' is missing after '{key}'")));
            }
            let value = self.value(&key, line, depth)?;
            all.push(Assignment { key, value, line });
        }
        Ok(all)
    }

    fn value(&mut self, key: &str, line: usize, depth: usize) -> Result<Value, SyntaxError> {
        if self.take(&Kind::Open).is_some() {
            let block = self.assignments(depth + 1)?;
            return match self.take(&Kind::Close) {
                Some(()) => Ok(Value::Block(block)),
                None => Err(self.error(line, format!("the '{{' of '{key}' is not closed"))),
            };
        }
        let (mut words, mut last_line) = (Vec::new(), 0);
        while let Some(token) = self.tokens.get(self.at) {
            // On another line it is most likely a key without its '='.
            if !words.is_empty() && token.line != last_line {
                break;
            }
            last_line = token.line;
            let follows = self.tokens.get(self.at + 1).map(|next| &next.kind);
            match &token.kind {
                Kind::Quoted(word) => words.push(word.clone()),
                Kind::Word(word) if words.is_empty() || follows != Some(&Kind::Equals) => words.push(word.clone()),
                _ => break,
            }
            self.at += 1;
        }
        if words.is_empty() {
            return Err(self.error(line, format!("'{key}' has no value")));
        }
        Ok(Value::Words(words))
    }

    fn take(&mut self, kind: &Kind) -> Option<()> {
        let found = self.tokens.get(self.at).is_some_and(|token| token.kind == *kind);
        self.at += usize::from(found);
        found.then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(key: &str, line: usize, words: &[&str]) -> Assignment {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Assignment { key: key.to_owned(), value: Value::Words(words), line }
    }

    #[test]
    fn assignments_stand_alone_or_in_blocks() {
        let text = "# all\nfrontend = {\n  host = \"*\" # any\n  port = 443 }\ntls-protos =\n TLSv1.2 TLSv1.3 pem-file=\"a # b\"\n";
        let block = Value::Block(vec![words("host", 3, &["*"]), words("port", 4, &["443"])]);
        let expected = vec![
            Assignment { key: "frontend".to_owned(), value: block, line: 2 },
            words("tls-protos", 5, &["TLSv1.2", "TLSv1.3"]),
            words("pem-file", 6, &["a # b"]),
        ];
        assert_eq!(parse(text), Ok(expected));
        assert_eq!(parse("\n # nothing\n"), Ok(vec![]));
    }

    #[test]
    fn mistake_is_reported_with_its_line() {
        let refuses = |text: &str, line: usize, what: &str| {
            assert_eq!(parse(text), Err(SyntaxError { line, what: what.to_owned() }), "{text}");
        };
        refuses("a = b\nc\nd = e", 2, "'=' is missing after 'c'");
        refuses("a = b\nc d = e", 2, "'=' is missing after 'c'");
        refuses("\na = ", 2, "'a' has no value");
        refuses("a = \"b\nc = \"d\"", 1, "a '\"' that nothing closes");
        refuses("a = {\nb = c\n", 1, "the '{' of 'a' is not closed");
        refuses("a = b }", 1, "a '}' without its '{'");
        refuses("a = b\n\"c\" \"d\"\n= e", 2, "a key is expected here");
        refuses("a = b\u{7}", 1, "a control character");
        let deep = "a = {".repeat(1000);
        assert_eq!(parse(&deep).unwrap_err().what, "blocks inside one another without end");
        assert_eq!(line_of("a\n  b c  \n", 2), "b c");
    }
}
