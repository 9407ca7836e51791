//! Parser of the tools' command lines, driven by their rows in `surface::program`.

use crate::streams::Streams;
use std::ffi::{OsStr, OsString};
use surface::nearest::did_you_mean;
use surface::program::{Called, Program, program};

/// Options and words of the command line.
pub struct Given {
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

    /// Copy without these options, whose meaning differs for another reader.
    pub fn without(&self, letters: &[char]) -> Given {
        let options = self.options.iter().filter(|(letter, _)| !letters.contains(letter)).cloned().collect();
        Given { options, rest: self.rest.clone() }
    }

    /// True if the option was given.
    pub fn has(&self, letter: char) -> bool {
        self.last(letter).is_some()
    }
}

/// Parses the command line of a part of Copal.
///
/// # Errors
/// The exit status of a program that is already done.
pub fn parse(part: &str, args: &[OsString], streams: &mut Streams) -> Result<Given, i32> {
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
            let words = program.options().filter_map(|row| row.word);
            let meant = shown.strip_prefix("--").map(|word| did_you_mean(word, "--", words)).unwrap_or_default();
            return Err(wrong(program, &format!("invalid option -- '{shown}'{meant}"), streams));
        };
        match (row.letter, row.word) {
            (_, Some("help")) => {
                let _ = streams.output.write_all(program.usage(streams.called).as_bytes());
                return Err(0);
            }
            (_, Some("optstring")) => {
                let _ = writeln!(streams.output, "{}", program.optstring());
                return Err(0);
            }
            ('V', _) => {
                let (banner, version) = (surface::version::VARNISH_BANNER, surface::version::COPAL_VERSION);
                let _ = writeln!(streams.error, "{} ({banner})\nCopal {version}", program.name(streams.called));
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

/// Reports an error in the command line; returns the exit status. A program that Varnish has too
/// also shows the first line of its usage text, which scripts look for.
pub fn wrong(program: &Program, what: &str, streams: &mut Streams) -> i32 {
    let name = program.name(streams.called);
    let _ = match (streams.called, program.stock) {
        (Called::Stock, Some(_)) => {
            writeln!(streams.error, "{name}: {what}\n{}\nsee {name} --help", program.usage_line(Called::Stock))
        }
        _ => writeln!(streams.error, "{name}: {what}; see {name} --help"),
    };
    program.usage_status
}
