//! The single program: its name or its first argument tells which part of Copal it is.
//!
//! | name | first argument | what |
//! | --- | --- | --- |
//! | `varnishd` | `daemon` | the server |
//! | `varnishadm`, `varnishlog`, `varnishncsa` | `adm`, `log`, `ncsa` | the tools: commands and log |
//! | `varnishstat`, `varnishtop`, `varnishhist` | `stat`, `top`, `hist` | the tools: full screens |
//! | | `why` | explains requests in plain words |
//! | | `policy` | what hit ratios an access log would have had, by eviction policy and size |
//! | | `bench` | makes load on a server and says how it fared |
//! | | `vcl` | checks and explains VCL |
//! | | `preflight` | what of an installation of Varnish works as it is, changes or blocks |
//! | `varnishtest` | `test` | the runner of test scripts |
//! | | `demo` | a slow blog, Copal in front of it, and the difference |
//! | | `upgrade` | lets a new program take over from a running server |
//! | | `worker` | the server's second process; only the server starts it |
//!
//! `copal help PART` prints what `copal PART --help` prints.
//!
//! Only the last component of the name counts, so a link to the program from anywhere is enough.

#![forbid(unsafe_code)]

mod demo;

use manager::Role;
use nix::sys::prctl;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use surface::program::{Program, parts};

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
    Varnishd,
    Worker,
    Adm,
    Log,
    Ncsa,
    Stat,
    Top,
    Hist,
    Vcl,
    Test,
    Why,
    Policy,
    Preflight,
    Bench,
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
        "adm" => Part::Adm,
        "log" => Part::Log,
        "ncsa" => Part::Ncsa,
        "stat" => Part::Stat,
        "top" => Part::Top,
        "hist" => Part::Hist,
        "vcl" => Part::Vcl,
        "test" => Part::Test,
        "why" => Part::Why,
        "policy" => Part::Policy,
        "bench" => Part::Bench,
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
fn choose(mut arguments: Vec<OsString>) -> Result<(Part, Vec<OsString>), String> {
    let called = if arguments.is_empty() { OsString::new() } else { arguments.remove(0) };
    let name = Path::new(&called).file_name().map(OsStr::to_string_lossy).unwrap_or_default();
    if let Some(part) = part_of_name(&name) {
        return Ok((part, arguments));
    }
    let parts = listed();
    if name.starts_with("varnish") {
        return Err(format!("{name}: Copal has no such program; it has {parts}"));
    }
    let Some(first) = arguments.first().map(|first| first.to_string_lossy().into_owned()) else {
        return Ok((Part::Help, arguments));
    };
    match part_of_argument(&first) {
        Some(Part::Help) if arguments.len() > 1 => help_of(&arguments[1].to_string_lossy(), &parts),
        Some(part) => Ok((part, arguments.split_off(1))),
        None => Err(format!("copal: no part is called '{first}'; there are {parts}, and --help")),
    }
}

/// `help NAME`: that part, with the option that makes it print its help.
fn help_of(name: &str, parts: &str) -> Result<(Part, Vec<OsString>), String> {
    match part_of_argument(name) {
        Some(part @ (Part::Help | Part::Version)) => Ok((part, Vec::new())),
        Some(Part::Worker) | None => Err(format!("copal help: no part is called '{name}'; there are {parts}")),
        Some(part) => Ok((part, vec![OsString::from("--help")])),
    }
}

/// The number after `--control`; the other arguments of a worker are for readers of the process list.
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

fn print(text: &str) -> i32 {
    use std::io::Write;
    // The reader may close the output early.
    let _ = std::io::stdout().write_all(text.as_bytes());
    0
}

fn main() {
    let status = match choose(std::env::args_os().collect()) {
        Ok((part, arguments)) => match part {
            Part::Daemon => manager::daemon(Role::Copal, &arguments),
            Part::Varnishd => manager::daemon(Role::Varnishd, &arguments),
            Part::Worker => run_worker(&arguments),
            Part::Adm => tools::adm(&arguments),
            Part::Log => tools::log(&arguments),
            Part::Ncsa => tools::ncsa(&arguments),
            Part::Stat => tools::stat(&arguments),
            Part::Top => tools::top(&arguments),
            Part::Hist => tools::hist(&arguments),
            Part::Vcl => tools::vcl(&arguments),
            Part::Test => vtc::run(&arguments),
            Part::Why => tools::why(&arguments),
            Part::Policy => tools::policy(&arguments),
            Part::Preflight => preflight::run(&arguments),
            Part::Bench => tools::bench(&arguments),
            Part::Upgrade => tools::upgrade(&arguments),
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
        choose(line.iter().map(OsString::from).collect()).map(|(part, arguments)| (part, arguments.len()))
    }

    #[test]
    fn a_link_is_the_program_that_it_is_named_after() {
        assert_eq!(chosen(&["/usr/sbin/varnishd", "-F", "-a", ":80"]), Ok((Part::Varnishd, 3)));
        assert_eq!(chosen(&["varnishadm", "ping"]), Ok((Part::Adm, 1)));
        assert_eq!(chosen(&["./x/varnishncsa"]), Ok((Part::Ncsa, 0)));
    }

    #[test]
    fn any_other_name_goes_by_its_first_argument() {
        assert_eq!(chosen(&["copal", "daemon", "-F"]), Ok((Part::Daemon, 1)));
        assert_eq!(chosen(&["/tmp/varnishd-dir/accelerator", "varnishlog"]), Ok((Part::Log, 0)));
        assert_eq!(chosen(&["copal"]), Ok((Part::Help, 0)));
        assert_eq!(chosen(&["copal", "--version"]), Ok((Part::Version, 0)));
        assert_eq!(chosen(&[]), Ok((Part::Help, 0)));
    }

    #[test]
    fn help_with_a_part_is_the_help_of_that_part() {
        for (name, part) in [("vcl", Part::Vcl), ("varnishd", Part::Varnishd), ("test", Part::Test)] {
            let arguments = ["copal", "help", name].map(OsString::from).to_vec();
            assert_eq!(choose(arguments), Ok((part, vec![OsString::from("--help")])));
        }
        assert_eq!(chosen(&["copal", "help"]), Ok((Part::Help, 0)));
        assert!(chosen(&["copal", "help", "nothing"]).unwrap_err().contains("'nothing'"));
        assert!(chosen(&["copal", "help", "worker"]).is_err());
    }

    #[test]
    fn what_there_is_not_gets_one_line() {
        for line in [&["varnishfoo"][..], &["copal", "varnishfoo"], &["copal", "-F"]] {
            let text = chosen(line).unwrap_err();
            assert!(text.contains("daemon, adm, log, ncsa, stat") && !text.contains('\n'), "{text}");
        }
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
