//! The single program: its name or its first argument selects the part of Copal to run.
//!
//! | name | first argument | part |
//! | --- | --- | --- |
//! | `varnishd` | `daemon` | the server |
//! | `varnishadm`, `varnishlog`, `varnishncsa` | `adm`, `log`, `ncsa` | tools: commands, log |
//! | `varnishstat`, `varnishtop`, `varnishhist` | `stat`, `top`, `hist` | tools: full screens |
//! | | `why` | explains requests in plain words |
//! | | `keys` | reports what fills and splits the cache |
//! | | `record`, `replay` | records requests, and tries a VCL with them |
//! | | `policy` | hit ratios for an access log, by eviction policy and size |
//! | | `bench` | generates load on a server and reports the results |
//! | | `observe` | serves the counters to Prometheus |
//! | | `init` | writes a VCL for an application, with tests |
//! | | `vcl` | checks, tests and explains VCL |
//! | | `lsp` | language server for VCL, for editors |
//! | | `preflight` | checks an installation of Varnish |
//! | `varnishtest` | `test` | the runner of test scripts |
//! | | `demo` | a slow blog, Copal in front of it, and the difference |
//! | | `status`, `stop` | what a server is doing, and its end |
//! | | `upgrade` | lets a new program take over from a running server |
//! | | `worker` | the server's second process; only the server starts it |
//! | | `fleet-agent` | exchanges invalidations with a fleet; only the server starts it |
//!
//! `copal help PART` prints what `copal PART --help` prints.
//!
//! Only the last component of the name counts, so a link to the program from anywhere is enough.

#![forbid(unsafe_code)]

mod demo;
mod output;

use nix::sys::prctl;
use output::print;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use surface::nearest::did_you_mean;
use surface::option::FLEET_AGENT;
use surface::program::{Called, Program, parts};

/// Exit status for an unknown name or argument.
const USAGE_ERROR: i32 = 2;

/// The text of `--help`.
fn help() -> String {
    let mut text = "Copal, an HTTP accelerator that stands in for Varnish.

Usage: copal <part> [arguments]

"
    .to_owned();
    for program in parts() {
        let stock = program.stock.map(|name| format!(" ({name})")).unwrap_or_default();
        text += &format!(
            "  {:<9} {}{stock}
",
            program.part, program.line
        );
    }
    text + "
  help <part>  the options of a part, as <part> --help prints them
  --help       this text
  --version    the version

A link to this program that is named like the program in parentheses is that program.
"
}

/// A part of Copal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Daemon,
    Status,
    Stop,
    Varnishd,
    Worker,
    FleetAgent,
    Adm,
    Log,
    Ncsa,
    Stat,
    Top,
    Hist,
    Init,
    Vcl,
    Lsp,
    Test,
    Why,
    Keys,
    Record,
    Replay,
    Policy,
    Preflight,
    Bench,
    Observe,
    Dash,
    Upgrade,
    Demo,
    Help,
    Version,
}

/// The part of a row, if the program is called by our name or by that of the stock program.
fn part_of_row(program: &Program, is_stock_name: bool) -> Option<Part> {
    Some(match program.part {
        "daemon" if is_stock_name => Part::Varnishd,
        "daemon" => Part::Daemon,
        "status" => Part::Status,
        "stop" => Part::Stop,
        "adm" => Part::Adm,
        "log" => Part::Log,
        "ncsa" => Part::Ncsa,
        "stat" => Part::Stat,
        "top" => Part::Top,
        "hist" => Part::Hist,
        "init" => Part::Init,
        "vcl" => Part::Vcl,
        "lsp" => Part::Lsp,
        "test" => Part::Test,
        "why" => Part::Why,
        "keys" => Part::Keys,
        "record" => Part::Record,
        "replay" => Part::Replay,
        "policy" => Part::Policy,
        "bench" => Part::Bench,
        "observe" => Part::Observe,
        "dash" => Part::Dash,
        "preflight" => Part::Preflight,
        "upgrade" => Part::Upgrade,
        "demo" => Part::Demo,
        _ => return None,
    })
}

/// The part for a link's name.
fn part_of_name(name: &str) -> Option<Part> {
    parts().find(|program| program.stock == Some(name)).and_then(|program| part_of_row(program, true))
}

/// The part for a first argument: its short name, or the name of the link.
fn part_of_argument(argument: &str) -> Option<Part> {
    match argument {
        "worker" => Some(Part::Worker),
        FLEET_AGENT => Some(Part::FleetAgent),
        "--help" | "-h" | "help" => Some(Part::Help),
        "--version" | "-V" => Some(Part::Version),
        _ => match parts().find(|program| program.part == argument) {
            Some(program) => part_of_row(program, false),
            None => part_of_name(argument),
        },
    }
}

/// The names of all parts, for messages.
fn listed() -> String {
    let names: Vec<&str> = parts().map(|program| program.part).collect();
    let stock: Vec<&str> = parts().filter_map(|program| program.stock).collect();
    format!("{} ({})", names.join(", "), stock.join(", "))
}

/// The part to run and its arguments.
///
/// # Errors
/// One line that lists the parts.
fn choose(mut arguments: Vec<OsString>) -> Result<(Part, Called, Vec<OsString>), String> {
    let called = if arguments.is_empty() { OsString::new() } else { arguments.remove(0) };
    let name = Path::new(&called).file_name().map(OsStr::to_string_lossy).unwrap_or_default();
    if let Some(part) = part_of_name(&name) {
        return Ok((part, Called::Stock, arguments));
    }
    let parts = listed();
    if name.starts_with("varnish") {
        return Err(format!("{name}: Copal has no such program; it has {parts}"));
    }
    let Some(first) = arguments.first().map(|first| first.to_string_lossy().into_owned()) else {
        return Ok((Part::Help, Called::Copal, arguments));
    };
    match part_of_argument(&first) {
        Some(Part::Help) if arguments.len() > 1 => help_of(&arguments[1].to_string_lossy(), &parts),
        Some(part) => Ok((part, called_by(&first), arguments.split_off(1))),
        None => Err(format!("copal: no part is called '{first}'{}; there are {parts}, and --help", meant(&first))),
    }
}

/// The name of an argument that selects a part.
fn called_by(argument: &str) -> Called {
    if part_of_name(argument).is_some() { Called::Stock } else { Called::Copal }
}

/// The part that was probably meant, for a message.
fn meant(word: &str) -> String {
    let names = parts().flat_map(|program| [Some(program.part), program.stock]).flatten();
    did_you_mean(word, "", names.chain(["help"]))
}

/// `help NAME`: that part, with the option that makes it print its help.
fn help_of(name: &str, parts: &str) -> Result<(Part, Called, Vec<OsString>), String> {
    match part_of_argument(name) {
        Some(part @ (Part::Help | Part::Version)) => Ok((part, Called::Copal, Vec::new())),
        Some(Part::Worker | Part::FleetAgent) | None => {
            Err(format!("copal help: no part is called '{name}'{}; there are {parts}", meant(name)))
        }
        Some(part) => Ok((part, called_by(name), vec![OsString::from("--help")])),
    }
}

/// The number after `--control`; the other arguments of a worker are for readers of the process
/// list.
fn control_descriptor(arguments: &[OsString]) -> Option<i32> {
    let position = arguments.iter().position(|argument| argument == "--control")?;
    arguments.get(position + 1)?.to_str()?.parse().ok()
}

fn run_worker(arguments: &[OsString]) -> i32 {
    let Some(descriptor) = control_descriptor(arguments) else {
        eprintln!("copal worker: only the server starts this");
        return USAGE_ERROR;
    };
    let _ = prctl::set_name(c"copal-worker");
    worker::run(descriptor)
}

/// The commands that run the engine are in a crate of their own.
fn vcl(arguments: &[OsString]) -> i32 {
    match arguments.first().and_then(|word| word.to_str()) {
        Some("test") => vcl_test::test(&arguments[1..]),
        Some("trace") => vcl_test::trace(&arguments[1..]),
        _ => tools::vcl(arguments),
    }
}

fn main() {
    let status = match choose(std::env::args_os().collect()) {
        Ok((part, called, arguments)) => match part {
            Part::Daemon => manager::daemon(Called::Copal, &arguments),
            Part::Varnishd => manager::daemon(Called::Stock, &arguments),
            Part::Worker => run_worker(&arguments),
            Part::FleetAgent => fleet_agent::run(&arguments),
            Part::Adm => tools::adm(called, &arguments),
            Part::Log => tools::log(called, &arguments),
            Part::Ncsa => tools::ncsa(called, &arguments),
            Part::Stat => tools::stat(called, &arguments),
            Part::Top => tools::top(called, &arguments),
            Part::Hist => tools::hist(called, &arguments),
            Part::Init => tools::init(&arguments),
            Part::Vcl => vcl(&arguments),
            Part::Test => vtc::run(called, &arguments),
            Part::Why => tools::why(&arguments),
            Part::Keys => tools::keys(&arguments),
            Part::Record => tools::record(&arguments),
            Part::Replay => vcl_test::replay(&arguments),
            Part::Lsp => tools::lsp(&arguments),
            Part::Policy => tools::policy(&arguments),
            Part::Preflight => preflight::run(&arguments),
            Part::Bench => tools::bench(&arguments),
            Part::Observe => observe::run(&arguments),
            Part::Dash => observe::dash(&arguments),
            Part::Upgrade => tools::upgrade(&arguments),
            Part::Status => tools::status(&arguments),
            Part::Stop => tools::stop(&arguments),
            Part::Demo => demo::run(&arguments),
            Part::Help => print(&help()),
            Part::Version => print(&format!("copal {}\n", surface::version::COPAL_VERSION)),
        },
        Err(text) => {
            eprintln!("{}", surface::legible::lines(text.as_bytes()));
            USAGE_ERROR
        }
    };
    std::process::exit(status);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(line: &[&str]) -> Result<(Part, usize), String> {
        choose(line.iter().map(OsString::from).collect()).map(|(part, _, arguments)| (part, arguments.len()))
    }

    #[test]
    fn a_link_is_the_program_that_it_is_named_after() {
        assert_eq!(chosen(&["/usr/sbin/varnishd", "-F", "-a", ":80"]), Ok((Part::Varnishd, 3)));
        assert_eq!(chosen(&["varnishadm", "ping"]), Ok((Part::Adm, 1)));
        assert_eq!(chosen(&["./x/varnishncsa"]), Ok((Part::Ncsa, 0)));
    }

    #[test]
    fn under_any_other_name_the_first_argument_decides() {
        assert_eq!(chosen(&["copal", "daemon", "-F"]), Ok((Part::Daemon, 1)));
        assert_eq!(chosen(&["/tmp/varnishd-dir/accelerator", "varnishlog"]), Ok((Part::Log, 0)));
        assert_eq!(chosen(&["copal"]), Ok((Part::Help, 0)));
        assert_eq!(chosen(&["copal", "--version"]), Ok((Part::Version, 0)));
        assert_eq!(chosen(&[]), Ok((Part::Help, 0)));
    }

    #[test]
    fn help_with_a_part_is_the_help_of_that_part() {
        for (name, part, called) in [
            ("vcl", Part::Vcl, Called::Copal),
            ("varnishd", Part::Varnishd, Called::Stock),
            ("test", Part::Test, Called::Copal),
        ] {
            let arguments = ["copal", "help", name].map(OsString::from).to_vec();
            assert_eq!(choose(arguments), Ok((part, called, vec![OsString::from("--help")])));
        }
        assert_eq!(chosen(&["copal", "help"]), Ok((Part::Help, 0)));
        assert!(chosen(&["copal", "help", "nothing"]).unwrap_err().contains("'nothing'"));
        assert!(chosen(&["copal", "help", "worker"]).is_err());
    }

    #[test]
    fn unknown_program_names_get_one_line() {
        for line in [&["varnishfoo"][..], &["copal", "varnishfoo"], &["copal", "-F"]] {
            let text = chosen(line).unwrap_err();
            assert!(text.contains("daemon, status, stop, adm, log, ncsa, stat") && !text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn tool_calls_itself_by_the_name_it_was_called_by() {
        let called = |line: &[&str]| choose(line.iter().map(OsString::from).collect()).unwrap().1;
        assert_eq!(called(&["copal", "log"]), Called::Copal);
        assert_eq!(called(&["/usr/bin/varnishlog", "-d"]), Called::Stock);
        assert_eq!(called(&["copal", "varnishlog"]), Called::Stock);
    }

    #[test]
    fn part_that_was_probably_meant_is_named() {
        for (line, meant) in [
            (&["copal", "deamon"][..], "; did you mean daemon?"),
            (&["copal", "lgo"], "; did you mean log?"),
            (&["copal", "varnishstats"], "; did you mean varnishstat?"),
            (&["copal", "help", "wyh"], "; did you mean why?"),
        ] {
            let text = chosen(line).unwrap_err();
            assert!(text.contains(meant), "{text}");
        }
        assert!(!chosen(&["copal", "nothing-like-it"]).unwrap_err().contains("did you mean"));
    }

    #[test]
    fn every_row_is_a_part() {
        let help = help();
        for program in parts() {
            let part = part_of_argument(program.part);
            assert!(part.is_some(), "{}", program.part);
            assert!(help.contains(&format!("  {:<9} {}", program.part, program.line)), "{help}");
            if let Some(stock) = program.stock {
                assert_eq!(part_of_name(stock), if stock == "varnishd" { Some(Part::Varnishd) } else { part });
            }
        }
    }

    #[test]
    fn a_worker_finds_its_control_connection() {
        let arguments = |line: &[&str]| line.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(control_descriptor(&arguments(&["--control", "3", "-n", "/x"])), Some(3));
        assert_eq!(control_descriptor(&arguments(&["--control"])), None);
        assert_eq!(control_descriptor(&arguments(&["--control", "x"])), None);
    }
}
