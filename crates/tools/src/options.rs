//! Options of the tools: one table per program feeds parsing, usage and `--optstring`.
//!
//! Options that the stock programs have are letters; those that only we have are words after two dashes.

use std::ffi::{OsStr, OsString};

use crate::Streams;

/// One option.
pub(crate) struct OptionRow {
    /// The letter after the dash; for a word option, the letter that identifies it in [`Given`].
    pub letter: char,
    /// The word after two dashes, for an option without a letter.
    pub word: Option<&'static str>,
    /// The name of its argument; empty for none.
    pub argument: &'static str,
    /// What it does.
    pub text: &'static str,
}

/// Shorthand for a row.
pub(crate) const fn option(letter: char, argument: &'static str, text: &'static str) -> OptionRow {
    OptionRow { letter, word: None, argument, text }
}

/// Shorthand for the row of an option that is a word.
pub(crate) const fn word_option(
    letter: char,
    word: &'static str,
    argument: &'static str,
    text: &'static str,
) -> OptionRow {
    OptionRow { letter, word: Some(word), argument, text }
}

/// A program and its options.
pub(crate) struct Program {
    /// The stock program's name.
    pub name: &'static str,
    /// Its options, in the order of the usage text.
    pub options: &'static [OptionRow],
    /// What may follow the options; empty if nothing may.
    pub rest: &'static str,
    /// Exit status for a wrong command line.
    pub usage_status: i32,
    /// True when the first word that is not an option ends the options.
    pub stops_at_word: bool,
}

/// What was given on the command line.
pub(crate) struct Given {
    /// The options in order, each with its argument.
    pub options: Vec<(char, OsString)>,
    /// The words that are not options.
    pub rest: Vec<OsString>,
}

impl Given {
    /// The last argument given to an option.
    pub fn last(&self, letter: char) -> Option<&OsStr> {
        self.options.iter().rev().find(|(found, _)| *found == letter).map(|(_, argument)| argument.as_os_str())
    }

    /// True when the option was given.
    pub fn has(&self, letter: char) -> bool {
        self.last(letter).is_some()
    }
}

impl Program {
    /// Parses a command line. `Err` is the exit status of a program that has nothing more to do.
    pub fn parse(&self, args: &[OsString], streams: &mut Streams) -> Result<Given, i32> {
        let mut parser = lexopt::Parser::from_args(args.iter().cloned());
        let mut given = Given { options: Vec::new(), rest: Vec::new() };
        loop {
            let letter = match parser.next() {
                Ok(None) => return Ok(given),
                Ok(Some(lexopt::Arg::Value(word))) => {
                    if self.rest.is_empty() {
                        return Err(self.wrong(&format!("unexpected word '{}'", word.to_string_lossy()), streams));
                    }
                    given.rest.push(word);
                    if self.stops_at_word {
                        given.rest.extend(parser.raw_args().into_iter().flatten());
                        return Ok(given);
                    }
                    continue;
                }
                Ok(Some(lexopt::Arg::Long("help"))) => 'h',
                Ok(Some(lexopt::Arg::Long("optstring"))) => {
                    let _ = writeln!(streams.output, "{}", self.optstring());
                    return Err(0);
                }
                Ok(Some(lexopt::Arg::Long(name))) => match self.options.iter().find(|row| row.word == Some(name)) {
                    Some(row) => row.letter,
                    None => {
                        let what = format!("invalid option -- '--{name}'");
                        return Err(self.wrong(&what, streams));
                    }
                },
                Ok(Some(lexopt::Arg::Short(letter))) => {
                    if !self.options.iter().any(|row| row.letter == letter && row.word.is_none()) {
                        return Err(self.wrong(&format!("invalid option -- '{letter}'"), streams));
                    }
                    letter
                }
                Err(error) => return Err(self.wrong(&error.to_string(), streams)),
            };
            let Some(row) = self.options.iter().find(|row| row.letter == letter) else {
                return Err(self.wrong(&format!("invalid option -- '{letter}'"), streams));
            };
            match letter {
                'h' => {
                    let _ = streams.output.write_all(self.usage().as_bytes());
                    return Err(0);
                }
                'V' => {
                    let _ = writeln!(
                        streams.error,
                        "{} ({})\nCopal {}",
                        self.name,
                        surface::version::VARNISH_BANNER,
                        surface::version::COPAL_VERSION
                    );
                    return Err(0);
                }
                _ => {}
            }
            let argument = if row.argument.is_empty() {
                OsString::new()
            } else {
                match parser.value() {
                    Ok(argument) => argument,
                    Err(_) => {
                        let name = row.word.map_or_else(|| letter.to_string(), str::to_owned);
                        return Err(self.wrong(&format!("option requires an argument -- '{name}'"), streams));
                    }
                }
            };
            given.options.push((letter, argument));
        }
    }

    /// Reports what is wrong with the command line, and prints the usage.
    fn wrong(&self, what: &str, streams: &mut Streams) -> i32 {
        let _ = writeln!(streams.error, "{}: {what} (-h lists the options)", self.name);
        let _ = writeln!(streams.error, "{}", self.usage().lines().next().unwrap_or_default());
        self.usage_status
    }

    fn usage(&self) -> String {
        let mut text = format!("Usage: {} <options>", self.name);
        if !self.rest.is_empty() {
            text.push(' ');
            text.push_str(self.rest);
        }
        text.push_str("\n\nOptions:\n");
        for row in self.options {
            let name = row.word.map_or_else(|| format!("-{}", row.letter), |word| format!("--{word}"));
            let blank = if row.argument.is_empty() { "" } else { " " };
            let flag = format!("[{name}{blank}{}]", row.argument);
            text.push_str(&format!(" {flag:<25} {}\n", row.text));
        }
        text
    }

    /// The options in the form of getopt(3), for wrapper scripts.
    fn optstring(&self) -> String {
        let mut rows: Vec<_> = self.options.iter().filter(|row| row.word.is_none()).collect();
        rows.sort_by_key(|row| (row.letter.to_ascii_lowercase(), row.letter.is_ascii_lowercase()));
        rows.iter().flat_map(|row| [Some(row.letter), (!row.argument.is_empty()).then_some(':')]).flatten().collect()
    }
}
