//! `copal preflight`: reads an existing installation of Varnish and reports the parts that work
//! unchanged, those that change and those that block.
//!
//! It changes nothing and makes no connection: it reads files and, if requested, `/proc`. Its
//! verdicts come from the parts that would run the installation: options and their values are
//! judged by the manager's own parser ([`manager::arguments`]), VCL by the compiler, hitch.conf by
//! the parser of `-A`, varnishncsa's options by its own table. *Invariant:* no rule of theirs is
//! repeated here, so report and behaviour cannot differ. *Invariant:* the content of files is shown
//! through [`surface::legible`] only.
//!
//! Reading order: `request` (the command line) → `installation` (files to read) → `unit`,
//! `environment`, `process` (sources of words) → `daemon`, `vcl_files`, `parameters`, `hitch`,
//! `ncsa` (the verdicts) → `report`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod files;
mod report;

mod words;

mod confinement;
mod environment;
mod process;
mod unit;

mod daemon;
mod hitch;
mod ncsa;
mod parameters;
mod vcl_files;

mod installation;
mod request;

use report::Report;
use std::ffi::OsString;
use std::io::Write;
use surface::legible;
use surface::program::program;

/// Exit status for a wrong command line, or if there is nothing to check.
const USAGE_ERROR: i32 = 3;

/// Runs `copal preflight`. Returns the exit status: 0 all works as it is, 1 something changes, 2
/// something blocks, 3 the command line is wrong or there is nothing to check.
#[must_use]
pub fn run(args: &[OsString]) -> i32 {
    run_to(args, &mut std::io::stdout().lock(), &mut std::io::stderr())
}

/// [`run`] with the caller's output streams.
#[must_use]
pub fn run_to(args: &[OsString], output: &mut dyn Write, error: &mut dyn Write) -> i32 {
    let request = match request::parse(args) {
        Ok(request) => request,
        Err(text) => {
            let text = format!("copal preflight: {text}; see copal preflight --help");
            let _ = writeln!(error, "{}", legible::lines(text.as_bytes()));
            return USAGE_ERROR;
        }
    };
    if request.help {
        let _ = output.write_all(program("preflight").usage(surface::program::Called::Copal).as_bytes());
        return 0;
    }
    let mut report = Report::default();
    if let Err(text) = installation::examine(&request, &mut report) {
        let _ = writeln!(error, "{}", legible::lines(format!("copal preflight: {text}").as_bytes()));
        return USAGE_ERROR;
    }
    let _ = match request.json {
        true => report.write_json(output),
        false => report.write_text(output, request.problems),
    };
    report.status()
}
