//! The single program: its name or its first argument tells which part of Copal it is.
//!
//! | name | first argument | what |
//! | --- | --- | --- |
//! | `varnishd` | `daemon` | the server |
//! | `varnishadm`, `varnishlog`, `varnishncsa` | `adm`, `log`, `ncsa` | the tools: commands and log |
//! | `varnishstat`, `varnishtop`, `varnishhist` | `stat`, `top`, `hist` | the tools: full screens |
//! | | `why` | explains requests in plain words |
//! | | `policy` | what hit ratios an access log would have had, by eviction policy and size |
//! | | `vcl` | checks and explains VCL |
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

/// Exit status for an unknown name or argument.
const USAGE_ERROR: i32 = 2;

const HELP: &str = "\
Copal, an HTTP accelerator that stands in for Varnish.

Usage: copal <part> [arguments]

  demo      a slow blog, Copal in front of it, and the difference
  daemon    the server (varnishd)
  adm       commands to a running server (varnishadm)
  log       its log, by transaction (varnishlog)
  ncsa      its log, one line a request (varnishncsa)
  stat      its counters (varnishstat)
  top       the most frequent records of its log (varnishtop)
  hist      how long requests take, as a histogram (varnishhist)
  why       why a request was a hit, a miss, a pass or an error
  policy    what hit ratio each eviction policy would have had with an access log
  vcl       checks and explains VCL, without a server
  upgrade   lets the program that is installed now take over from a running server
  test      runs test scripts, .vtc (varnishtest)

  help <part>  the options of a part, as <part> --help prints them
  --help       this text
  --version    the version

A link to this program that is named like the program in parentheses is that program.
";

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
    Upgrade,
    Demo,
    Help,
    Version,
}

/// The part for a link's name.
fn part_of_name(name: &str) -> Option<Part> {
    match name {
        "varnishd" => Some(Part::Varnishd),
        "varnishadm" => Some(Part::Adm),
        "varnishlog" => Some(Part::Log),
        "varnishncsa" => Some(Part::Ncsa),
        "varnishstat" => Some(Part::Stat),
        "varnishtop" => Some(Part::Top),
        "varnishhist" => Some(Part::Hist),
        "varnishtest" => Some(Part::Test),
        _ => None,
    }
}

/// The part for a first argument: its short name, or the name of the link.
fn part_of_argument(argument: &str) -> Option<Part> {
    match argument {
        "daemon" => Some(Part::Daemon),
        "worker" => Some(Part::Worker),
        "adm" => Some(Part::Adm),
        "log" => Some(Part::Log),
        "ncsa" => Some(Part::Ncsa),
        "stat" => Some(Part::Stat),
        "top" => Some(Part::Top),
        "hist" => Some(Part::Hist),
        "vcl" => Some(Part::Vcl),
        "test" => Some(Part::Test),
        "why" => Some(Part::Why),
        "policy" => Some(Part::Policy),
        "upgrade" => Some(Part::Upgrade),
        "demo" => Some(Part::Demo),
        "--help" | "-h" | "help" => Some(Part::Help),
        "--version" | "-V" => Some(Part::Version),
        _ => part_of_name(argument),
    }
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
    let parts = "demo, daemon, adm, log, ncsa, stat, top, hist, why, policy, vcl, upgrade, test (varnishd, varnishadm, varnishlog, \
                 varnishncsa, varnishstat, varnishtop, varnishhist, varnishtest)";
    if name.starts_with("varnish") {
        return Err(format!("{name}: Copal has no such program; it has {parts}"));
    }
    let Some(first) = arguments.first().map(|first| first.to_string_lossy().into_owned()) else {
        return Ok((Part::Help, arguments));
    };
    match part_of_argument(&first) {
        Some(Part::Help) if arguments.len() > 1 => help_of(&arguments[1].to_string_lossy(), parts),
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
            Part::Upgrade => tools::upgrade(&arguments),
            Part::Demo => demo::run(&arguments),
            Part::Help => print(HELP),
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
    fn a_worker_finds_its_control_connection() {
        let arguments = |line: &[&str]| line.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(control_descriptor(&arguments(&["--control", "3", "-n", "/x"])), Some(3));
        assert_eq!(control_descriptor(&arguments(&["--control"])), None);
        assert_eq!(control_descriptor(&arguments(&["--control", "x"])), None);
    }
}
