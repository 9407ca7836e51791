//! Words of a command, and numbers in them.

use std::time::Duration;

use crate::journal::Journal;
use crate::lex::Word;
use crate::outcome::Outcome;

/// The words after a command's name.
pub struct Arguments {
    words: std::vec::IntoIter<Word>,
    journal: Journal,
    name: String,
}

impl Arguments {
    pub(crate) fn new(words: Vec<Word>, journal: Journal, name: String) -> Arguments {
        Arguments { words: words.into_iter(), journal, name }
    }

    /// The next word, if there is one.
    pub fn next(&mut self) -> Option<Word> {
        self.words.next()
    }

    /// The next word without taking it.
    pub fn peek(&self) -> Option<&Word> {
        self.words.as_slice().first()
    }

    /// The next word, which must exist; `what` describes it.
    ///
    /// # Errors
    /// It is missing: the test fails.
    pub fn need(&mut self, what: &str) -> Outcome<Word> {
        self.next().ok_or_else(|| self.journal.fail(format!("{}: {what} is missing", self.name)))
    }

    /// Like [`Arguments::need`], as text.
    ///
    /// # Errors
    /// It is missing: the test fails.
    pub fn text(&mut self, what: &str) -> Outcome<String> {
        self.need(what).map(|word| word.text())
    }

    /// A whole number, decimal or with the prefix `0x` or `0`.
    ///
    /// # Errors
    /// It is missing or not a number: the test fails.
    pub fn number(&mut self, what: &str) -> Outcome<u64> {
        let text = self.text(what)?;
        parse_number(&text)
            .ok_or_else(|| self.journal.fail(format!("{}: {what} is no whole number: '{text}'", self.name)))
    }

    /// A time in seconds, optionally with a fraction.
    ///
    /// # Errors
    /// It is missing or not a number: the test fails.
    pub fn seconds(&mut self, what: &str) -> Outcome<Duration> {
        let text = self.text(what)?;
        let seconds = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        seconds.ok_or_else(|| self.journal.fail(format!("{}: {what} is no time in seconds: '{text}'", self.name)))
    }

    /// Checks that no words are left.
    ///
    /// # Errors
    /// Some are: the test fails.
    pub fn end(&mut self) -> Outcome {
        match self.next() {
            None => Ok(()),
            Some(word) => Err(self.journal.fail(format!("{}: unexpected word '{}'", self.name, word.text()))),
        }
    }
}

/// Parses a whole number like C's strtoul with base 0, but without trailing text.
pub fn parse_number(text: &str) -> Option<u64> {
    let text = text.trim();
    let text = text.strip_prefix('+').unwrap_or(text);
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).ok();
    }
    match text.strip_prefix('0') {
        Some(digits) if !digits.is_empty() => u64::from_str_radix(digits, 8).ok(),
        _ => text.parse().ok(),
    }
}
