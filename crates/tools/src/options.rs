//! Parses the command lines of the tools by their rows in `surface::program`.

use crate::Streams;
use std::ffi::{OsStr, OsString};
use surface::program::{Program, program};

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

    /// Without these options: to whoever else reads them, they would mean something else.
    pub fn without(&self, letters: &[char]) -> Given {
        let options = self.options.iter().filter(|(letter, _)| !letters.contains(letter)).cloned().collect();
        Given { options, rest: self.rest.clone() }
    }

    /// True when the option was given.
    pub fn has(&self, letter: char) -> bool {
        self.last(letter).is_some()
    }
}

/// Parses the command line of a part of Copal. `Err` is the exit status of a program that has nothing more to do.
pub(crate) fn parse(part: &str, args: &[OsString], streams: &mut Streams) -> Result<Given, i32> {
    let program = program(part);
    let mut parser = lexopt::Parser::from_args(args.iter().cloned());
    let mut given = Given { options: Vec::new(), rest: Vec::new() };
    loop {
        let (row, shown) = match parser.next() {
            Ok(None) => return Ok(given),
            Ok(Some(lexopt::Arg::Value(word))) => {
                if program.rest.is_empty() {
                    return Err(wrong(program, &format!("unexpected word '{}'", word.to_string_lossy()), streams));
                }
                given.rest.push(word);
                if program.stops_at_word {
                    given.rest.extend(parser.raw_args().into_iter().flatten());
                    return Ok(given);
                }
                continue;
            }
            Ok(Some(lexopt::Arg::Long(word))) => {
                (program.options().find(|row| row.word == Some(word)), format!("--{word}"))
            }
            Ok(Some(lexopt::Arg::Short(letter))) => {
                (program.options().find(|row| row.is_letter && row.letter == letter), letter.to_string())
            }
            Err(error) => return Err(wrong(program, &error.to_string(), streams)),
        };
        let Some(row) = row else {
            return Err(wrong(program, &format!("invalid option -- '{shown}'"), streams));
        };
        match (row.letter, row.word) {
            (_, Some("help")) => {
                let _ = streams.output.write_all(program.usage().as_bytes());
                return Err(0);
            }
            (_, Some("optstring")) => {
                let _ = writeln!(streams.output, "{}", program.optstring());
                return Err(0);
            }
            ('V', _) => {
                let (banner, version) = (surface::version::VARNISH_BANNER, surface::version::COPAL_VERSION);
                let _ = writeln!(streams.error, "{} ({banner})\nCopal {version}", program.name());
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
                    let name = row.word.map_or_else(|| row.letter.to_string(), str::to_owned);
                    return Err(wrong(program, &format!("option requires an argument -- '{name}'"), streams));
                }
            }
        };
        given.options.push((row.letter, argument));
    }
}

/// Reports what is wrong with the command line; returns the exit status. A program that Varnish has too shows the first line of its usage
/// text as well, which scripts look for.
pub(crate) fn wrong(program: &Program, what: &str, streams: &mut Streams) -> i32 {
    let name = program.name();
    let _ = match program.stock {
        Some(_) => writeln!(streams.error, "{name}: {what}\n{}\nsee {name} --help", program.usage_line()),
        None => writeln!(streams.error, "{name}: {what}; see {name} --help"),
    };
    program.usage_status
}
