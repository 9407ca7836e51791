//! The command line.

use crate::inherited;
use crate::listener::Listener;
use crate::service::Plan;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use surface::program::{Called, program};

/// Exit status if serving is impossible.
const FAILURE: i32 = 1;

/// Runs the program; returns the exit status.
pub(crate) fn run(arguments: &[OsString]) -> i32 {
    let program = program("observe");
    let name = program.name(Called::Copal);
    if arguments.first().is_some_and(|first| first == inherited::MARK) {
        return match inherited::run(&arguments[1..]) {
            Ok(()) => 0,
            Err(why) => {
                eprintln!("{why}");
                FAILURE
            }
        };
    }
    let parsed = match parse(arguments) {
        Ok(Parsed::Help) => {
            print!("{}", program.usage(Called::Copal));
            return 0;
        }
        Ok(Parsed::Run(options)) => options,
        Err(why) => {
            eprintln!("{name}: {why}; see {name} --help");
            return program.usage_status;
        }
    };
    match serve(&name, &parsed) {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("{name}: {why}");
            FAILURE
        }
    }
}

/// A command line.
#[derive(PartialEq, Debug)]
enum Parsed {
    Help,
    Run(Box<Options>),
}

#[derive(PartialEq, Debug)]
struct Options {
    work_directory: PathBuf,
    metrics: Vec<String>,
    plan: Plan,
}

fn parse(arguments: &[OsString]) -> Result<Parsed, String> {
    let mut parser = lexopt::Parser::from_args(arguments.iter().cloned());
    let (mut directory, mut metrics, mut plan) = (None, Vec::new(), Plan::default());
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        match argument {
            lexopt::Arg::Short('n') => directory = Some(value(&mut parser)?),
            lexopt::Arg::Long("metrics") => metrics.push(value(&mut parser)?.to_string_lossy().into_owned()),
            lexopt::Arg::Short('h') | lexopt::Arg::Long("help") => return Ok(Parsed::Help),
            lexopt::Arg::Long(word) => {
                let word = word.to_owned();
                // A dashboard needs a way to the server: copal dash, or the daemon's -o dash.
                if word.starts_with("dash") || !plan.take(&word, || value(&mut parser))? {
                    return Err(format!("invalid option '--{word}'"));
                }
            }
            other => return Err(other.unexpected().to_string()),
        }
    }
    if metrics.is_empty() && plan.is_empty() {
        return Err("there is nothing to do: --metrics, --access-log or --otlp is missing".to_owned());
    }
    let work_directory = shm::read::vsm::work_directory(directory.as_deref());
    Ok(Parsed::Run(Box::new(Options { work_directory, metrics, plan })))
}

fn value(parser: &mut lexopt::Parser) -> Result<OsString, String> {
    parser.value().map_err(|error| error.to_string())
}

fn serve(name: &str, options: &Options) -> Result<(), String> {
    let prepared = options.plan.prepare()?;
    let mut listeners = Vec::new();
    for address in &options.metrics {
        listeners.extend(Listener::bind(address).map_err(|error| format!("cannot listen on {address}: {error}"))?);
    }
    // A reader of the messages may have left, which must not end this process.
    let mut messages = io::stderr();
    for listener in &listeners {
        let _ = writeln!(messages, "{name}: serving {listener}");
    }
    if !shm::read::vsm::Vsm::new(&options.work_directory).poll().manager_running {
        let directory = options.work_directory.as_os_str().as_encoded_bytes();
        let _ = writeln!(messages, "{name}: no server runs in {} yet", surface::legible::line(directory));
    }
    prepared.run(&options.work_directory, &listeners, None, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Result<Parsed, String> {
        parse(&line.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn command_line_names_a_server_and_addresses() {
        let metrics = vec![":1".to_owned(), "unix:/s".to_owned()];
        let expected = Options { work_directory: "/x/y".into(), metrics, plan: Plan::default() };
        assert_eq!(
            parsed(&["-n", "/x/y", "--metrics", ":1", "--metrics=unix:/s"]),
            Ok(Parsed::Run(Box::new(expected)))
        );
        assert_eq!(parsed(&["--help"]), Ok(Parsed::Help));
        assert!(matches!(parsed(&["--access-log", "stdout"]), Ok(Parsed::Run(_))));
        for wrong in
            [&["--access-log", "x"][..], &[], &["-n", "/x"], &["--metrics"], &["--metrics", ":1", "word"], &["--trace"]]
        {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn every_option_of_the_table_is_parsed() {
        for row in program("observe").options() {
            let flag = row.word.map_or_else(|| format!("-{}", row.letter), |word| format!("--{word}"));
            let value = match row.word {
                Some("access-log") => "stdout",
                Some("otlp") => "http://127.0.0.1:1",
                Some("otlp-sample") => "1",
                _ => ":1",
            };
            let line = [flag.as_str(), value, "--metrics", ":1"];
            let result = parsed(if row.argument.is_empty() { &line[..1] } else { &line });
            assert!(!result.is_err_and(|why| why.contains("invalid option")), "{flag}");
        }
    }
}
