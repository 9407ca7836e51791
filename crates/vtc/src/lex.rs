//! Lexer that splits the text of a script into commands and words. The only parser of the language.
//!
//! A command is a line. A word is a run of characters without blanks, a `"quoted string"` with
//! backslash escapes, or a `{block}` over any number of lines in which only the braces are counted.
//! A backslash at the end of a line joins the next one. Lines that start with `#` are comments.
//! Commands are parsed one at a time, when they are reached: the text after a command that ends the
//! test is never examined, as in the stock runner.
//!
//! *Invariant:* every word has the number of the line where it starts, so that a block that is
//! itself a script can report the place of a failure. Source: vtc(7), and the behaviour of the
//! stock 7.1.1 runner on odd texts. Next: `specification.rs`.

use cli_proto::command_line::escape;

/// Most words of one command.
pub const WORDS_MAX: usize = 200;

/// One word, without its quotes or braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The bytes; scripts may contain any.
    pub bytes: Vec<u8>,
    /// The line it starts on.
    pub line: u32,
}

impl Word {
    /// A word as text, for names, numbers and messages.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// One command, with at least one word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its name and its arguments.
    pub words: Vec<Word>,
    /// The line it starts on.
    pub line: u32,
    /// Its first line as written, for the log.
    pub source: String,
}

/// Reason why a text can't be parsed any further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The line with the error, or the start of the unfinished construct.
    pub line: u32,
    /// The error.
    pub message: String,
}

/// A text, and the position of the parser.
#[derive(Clone, Debug)]
pub struct Script<'a> {
    text: &'a [u8],
    at: usize,
    line: u32,
}

impl<'a> Script<'a> {
    /// Starts parsing a text whose first line has this number.
    #[must_use]
    pub fn new(text: &'a [u8], first_line: u32) -> Script<'a> {
        Script { text, at: 0, line: first_line }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn step(&mut self) {
        if self.peek() == Some(b'\n') {
            self.line = self.line.saturating_add(1);
        }
        self.at += 1;
    }

    fn rest_of_line(&self) -> &'a [u8] {
        let rest = &self.text[self.at.min(self.text.len())..];
        &rest[..rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())]
    }

    /// Moves to the start of the next command; false if there is none.
    fn find_command(&mut self) -> bool {
        while let Some(byte) = self.peek() {
            if byte == b'#' {
                self.at += self.rest_of_line().len();
            } else if is_blank(byte) {
                self.step();
            } else {
                return true;
            }
        }
        false
    }

    fn cut(&mut self) -> Result<Command, SyntaxError> {
        let (line, source) = (self.line, String::from_utf8_lossy(self.rest_of_line()).into_owned());
        let mut words = Vec::new();
        while let Some(byte) = self.peek() {
            if byte == b'\n' {
                break;
            }
            if is_blank(byte) {
                self.step();
                continue;
            }
            if byte == b'\\' && self.text.get(self.at + 1) == Some(&b'\n') {
                self.step();
                self.step();
                continue;
            }
            if words.len() == WORDS_MAX {
                return Err(SyntaxError { line, message: format!("a command of more than {WORDS_MAX} words") });
            }
            let line = self.line;
            let bytes = match byte {
                b'"' => self.quoted()?,
                b'{' => self.block()?,
                _ => self.bare(),
            };
            words.push(Word { bytes, line });
        }
        Ok(Command { words, line, source })
    }

    fn bare(&mut self) -> Vec<u8> {
        let start = self.at;
        while self.peek().is_some_and(|byte| !is_blank(byte)) {
            self.at += 1;
        }
        self.text[start..self.at].to_vec()
    }

    fn quoted(&mut self) -> Result<Vec<u8>, SyntaxError> {
        let error = |message: &str| SyntaxError { line: self.line, message: message.to_owned() };
        let unterminated = error("Unterminated quoted string");
        let bad_escape = error("Invalid backslash sequence in quoted string");
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            match self.peek() {
                None | Some(b'\n') => return Err(unterminated),
                Some(b'"') => break,
                Some(b'\\') => {
                    let (byte, length) = escape(&self.text[self.at..]).ok_or(bad_escape.clone())?;
                    bytes.push(byte);
                    self.at += length;
                }
                Some(byte) => {
                    bytes.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        Ok(bytes)
    }

    fn block(&mut self) -> Result<Vec<u8>, SyntaxError> {
        let opened = self.line;
        let start = self.at + 1;
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                _ => {}
            }
            self.step();
            if depth == 0 {
                return Ok(self.text[start..self.at - 1].to_vec());
            }
        }
        Err(SyntaxError { line: opened, message: "Unterminated block: a '{' has no '}'".to_owned() })
    }
}

impl Iterator for Script<'_> {
    type Item = Result<Command, SyntaxError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.find_command() {
            let cut = self.cut();
            match &cut {
                // The start of the next command is unknown.
                Err(_) => self.at = self.text.len(),
                // A backslash that joins an empty line to the next. Compat: the stock runner
                // crashes.
                Ok(command) if command.words.is_empty() => continue,
                Ok(_) => {}
            }
            return Some(cut);
        }
        None
    }
}

/// The words inside a macro: separated by blanks or commas, quoted like the words of a command.
///
/// # Errors
/// The error in the text.
pub fn macro_words(text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let is_separator = |byte: u8| is_blank(byte) || byte == b',';
    let mut words = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if is_separator(text[at]) {
            at += 1;
            continue;
        }
        let quoted = text[at] == b'"';
        at += usize::from(quoted);
        let mut word = Vec::new();
        loop {
            match text.get(at) {
                None if quoted => return Err("Missing '\"'".to_owned()),
                None => break,
                Some(b'"') if quoted => {
                    at += 1;
                    break;
                }
                Some(byte) if !quoted && is_separator(*byte) => break,
                Some(b'\\') => {
                    let (byte, length) = escape(&text[at..]).ok_or("Invalid backslash sequence")?;
                    word.push(byte);
                    at += length;
                }
                Some(byte) => {
                    word.push(*byte);
                    at += 1;
                }
            }
        }
        words.push(word);
    }
    Ok(words)
}

/// True for the separators of words.
fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(text: &str) -> Vec<Vec<String>> {
        Script::new(text.as_bytes(), 1).map(|command| command.unwrap().words.iter().map(Word::text).collect()).collect()
    }

    fn error(text: &str) -> SyntaxError {
        Script::new(text.as_bytes(), 1).find_map(Result::err).expect("an error")
    }

    #[test]
    fn a_line_is_a_command_and_blanks_separate_words() {
        assert_eq!(commands("a b\tc\n\n  # no\n\td\n"), [vec!["a", "b", "c"], vec!["d"]]);
        assert_eq!(commands("a \\\n  b\n"), [vec!["a", "b"]]);
        assert_eq!(commands("a #b"), [vec!["a", "#b"]]);
        assert!(commands(" \n# nothing").is_empty());
        assert_eq!(commands("a\n\\\n\nb\n \\\n"), [vec!["a"], vec!["b"]], "joined empty lines are no command");
        assert_eq!(commands("\\\n# b"), [vec!["#", "b"]]);
    }

    #[test]
    fn quotes_have_escapes_and_blocks_have_none() {
        assert_eq!(
            commands(r#"a "b \"c\" \x41\101\n\\" {d "e} {f{g}h}"#),
            [vec!["a", "b \"c\" AA\n\\", "d \"e", "f{g}h"]]
        );
        assert_eq!(commands("a\"b c\"d"), [vec!["a\"b", "c\"d"]]);
        assert_eq!(commands("\"a\"\"b\""), [vec!["a", "b"]]);
        assert_eq!(commands("a {}"), [vec!["a", ""]]);
    }

    #[test]
    fn words_know_their_lines() {
        let text = "one\ntwo {\n three {\n four\n }\n} five\n";
        let mut script = Script::new(text.as_bytes(), 10);
        assert_eq!(script.next().unwrap().unwrap().line, 10);
        let two = script.next().unwrap().unwrap();
        assert_eq!((two.line, two.words[1].line, two.words[2].line), (11, 11, 15));
        let inner = Script::new(&two.words[1].bytes, two.words[1].line).next().unwrap().unwrap();
        assert_eq!((inner.line, inner.source.as_str()), (12, "three {"));
    }

    #[test]
    fn unterminated_text_is_reported_with_its_line() {
        assert_eq!(
            error("a\nb {\n c\n"),
            SyntaxError { line: 2, message: "Unterminated block: a '{' has no '}'".into() }
        );
        assert_eq!(error("a\n\nb \"c\n"), SyntaxError { line: 3, message: "Unterminated quoted string".into() });
        assert!(error("a \"\\q\"").message.contains("backslash"));
        assert!(error(&"a ".repeat(WORDS_MAX + 1)).message.contains("200 words"));
    }

    #[test]
    fn macros_are_cut_at_commas_and_blanks() {
        let words = |text: &str| macro_words(text.as_bytes());
        assert_eq!(words(" a, b,,c "), Ok(vec![b"a".to_vec(), b"b".to_vec(), b"c".to_vec()]));
        assert_eq!(words(r#"a,"b, c",\n"#), Ok(vec![b"a".to_vec(), b"b, c".to_vec(), b"\n".to_vec()]));
        assert!(words("\"a").is_err() && words("\\q").is_err());
    }
}
