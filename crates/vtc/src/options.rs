//! The command line of the runner, whose options are rows of `surface::program`.

use std::ffi::OsString;
use std::path::PathBuf;

use surface::program::{Called, program};
use surface::test_script;

/// The row of the runner.
const PART: &str = "test";

/// Folders that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// None.
    Nothing,
    /// Folders of failed tests.
    Failed,
    /// All.
    Everything,
}

/// Values of the command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// Longest log that is kept, in bytes.
    pub log_bytes_max: usize,
    /// Macros by name.
    pub macros: Vec<(String, String)>,
    /// True if a build tree is tested.
    pub in_build_tree: bool,
    /// Number of tests that run at a time.
    pub jobs: usize,
    /// True to continue after a failure.
    pub goes_on: bool,
    /// Folders that are kept.
    pub leave: Leave,
    /// Number of runs of each test.
    pub iterations: u32,
    /// Parameters for every daemon.
    pub parameters: Vec<String>,
    /// 0 for failures only, 1 for a line per test, 2 for all logs.
    pub verbosity: u8,
    /// Time limit of a test, in seconds.
    pub seconds_max: u64,
    /// The scripts.
    pub scripts: Vec<PathBuf>,
}

/// The result of parsing the command line.
#[derive(Debug)]
pub enum Parsed {
    /// Run scripts.
    Run(Box<Options>),
    /// Print this and exit successfully.
    Print(String),
}

/// Parses the command line; `seconds_max` is the default time limit.
///
/// # Errors
/// The error text, and the exit status.
pub fn parse(called: Called, arguments: &[OsString], seconds_max: u64) -> Result<Parsed, (String, i32)> {
    let mut options = Options {
        log_bytes_max: 1 << 20,
        macros: Vec::new(),
        in_build_tree: false,
        jobs: 1,
        goes_on: false,
        leave: Leave::Nothing,
        iterations: 1,
        parameters: Vec::new(),
        verbosity: 1,
        seconds_max,
        scripts: Vec::new(),
    };
    let mut parser = lexopt::Parser::from_args(arguments.iter().cloned());
    let usage = |what: String| (format!("{what}\n{}", help(called)), 1);
    loop {
        let letter = match parser.next() {
            Ok(None) => break,
            Ok(Some(lexopt::Arg::Value(script))) => {
                options.scripts.push(script.into());
                continue;
            }
            // Compat: the stock runner treats -h like any unknown letter, with status 1.
            Ok(Some(lexopt::Arg::Short('h'))) => return Err((help(called), 1)),
            Ok(Some(lexopt::Arg::Long("help"))) => return Ok(Parsed::Print(help(called))),
            Ok(Some(lexopt::Arg::Long("help-commands"))) => return Ok(Parsed::Print(commands())),
            Ok(Some(lexopt::Arg::Long("help-features"))) => return Ok(Parsed::Print(features())),
            Ok(Some(lexopt::Arg::Short(letter))) => letter,
            Ok(Some(lexopt::Arg::Long(name))) => return Err(usage(format!("invalid option -- '--{name}'"))),
            Err(error) => return Err(usage(error.to_string())),
        };
        let Some(row) = program(PART).options().find(|row| row.is_letter && row.letter == letter) else {
            return Err(usage(format!("invalid option -- '{letter}'")));
        };
        let mut argument = String::new();
        if !row.argument.is_empty() {
            let given = parser.value().map_err(|_| usage(format!("option requires an argument -- '{letter}'")))?;
            argument = given.to_string_lossy().into_owned();
        }
        let wrong = || (format!("Cannot parse {letter} opt '{argument}'"), 2);
        let number = || argument.parse::<u64>().map_err(|_| wrong());
        match letter {
            'b' => options.log_bytes_max = bytes(&argument).ok_or_else(wrong)?,
            'D' => {
                let (name, text) = argument.split_once('=').ok_or_else(wrong)?;
                options.macros.push((name.to_owned(), text.to_owned()));
            }
            'i' => options.in_build_tree = true,
            'j' => options.jobs = usize::try_from(number()?).unwrap_or(usize::MAX).max(1),
            'k' => options.goes_on = !options.goes_on,
            'L' => options.leave = Leave::Everything,
            'l' => options.leave = Leave::Failed,
            'n' => options.iterations = u32::try_from(number()?).map_err(|_| wrong())?.max(1),
            'p' => options.parameters.push(argument),
            'q' => options.verbosity = options.verbosity.saturating_sub(1),
            't' => options.seconds_max = number()?,
            'v' => options.verbosity = (options.verbosity + 1).min(2),
            'W' => options.parameters.push("debug=+witness".to_owned()),
            _ => {}
        }
    }
    if options.scripts.is_empty() {
        return Err(usage("no script was named".to_owned()));
    }
    Ok(Parsed::Run(Box::new(options)))
}

/// A size such as `64k` or `1M`.
fn bytes(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(['b', 'B']);
    let (digits, shift) = match digits.char_indices().last()? {
        (at, 'k' | 'K') => (&digits[..at], 10),
        (at, 'm' | 'M') => (&digits[..at], 20),
        (at, 'g' | 'G') => (&digits[..at], 30),
        _ => (digits, 0),
    };
    let number: usize = digits.parse().ok()?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes <= u32::MAX as usize)
}

fn help(called: Called) -> String {
    program(PART).usage(called)
}

fn commands() -> String {
    let mut text = String::new();
    let mut place = None;
    for row in test_script::COMMANDS {
        if place != Some(row.place) {
            text += &format!("{}:\n", row.place.text());
            place = Some(row.place);
        }
        text += &format!("    {:<16} {}\n", row.name, row.text);
    }
    text
}

fn features() -> String {
    test_script::FEATURES.iter().map(|row| format!("{:<20} {}\n", row.name, row.text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Result<Parsed, (String, i32)> {
        parse(Called::Stock, &line.iter().map(OsString::from).collect::<Vec<_>>(), 60)
    }

    #[test]
    fn options_are_those_of_the_stock_runner() {
        let line =
            ["-b", "64k", "-C", "-D", "a=b=c", "-j4", "-k", "-l", "-n", "3", "-p", "x=y", "-q", "-t", "9", "a.vtc"];
        let Ok(Parsed::Run(options)) = parsed(&line) else { panic!() };
        assert_eq!((options.log_bytes_max, options.jobs, options.iterations, options.seconds_max), (65536, 4, 3, 9));
        assert_eq!(options.macros, [("a".to_owned(), "b=c".to_owned())]);
        assert_eq!((options.goes_on, options.leave, options.verbosity), (true, Leave::Failed, 0));
        assert_eq!((options.parameters, options.scripts), (vec!["x=y".to_owned()], vec![PathBuf::from("a.vtc")]));
    }

    #[test]
    fn invalid_line_is_answered_with_the_usage() {
        assert_eq!(parsed(&[]).unwrap_err().1, 1);
        assert_eq!(parsed(&["-Z", "a.vtc"]).unwrap_err().1, 1);
        assert_eq!(parsed(&["-D", "x", "a.vtc"]).unwrap_err(), ("Cannot parse D opt 'x'".to_owned(), 2));
        assert_eq!(parsed(&["-b", "lots", "a.vtc"]).unwrap_err().1, 2);
        assert!(parsed(&["-h"]).unwrap_err().0.starts_with("Usage: "));
        for flag in ["--help", "--help-commands", "--help-features"] {
            assert!(matches!(parsed(&[flag]), Ok(Parsed::Print(text)) if text.len() > 100), "{flag}");
        }
    }
}
