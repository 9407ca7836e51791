//! `copal vcl lint`: faults of a VCL that compiles, for people, for programs and for code scanning.

mod forms;
mod report;
#[cfg(test)]
mod tests;

use super::display::{counted, has_colour};
use super::settings::{Settings, text};
use super::text_file;
use crate::options::{self, Given};
use crate::streams::Streams;
use report::Report;
use std::ffi::OsString;
use surface::legible;
use surface::lint::Level;
use surface::program::program;
use vcl::SourceText;

/// Exit status for an invalid command line, and for files that cannot be read.
const USAGE_ERROR: i32 = 2;

/// Form of the output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Pretty,
    Json,
    Sarif,
    Github,
}

/// The command line.
struct Request {
    form: Form,
    deny: Level,
    settings: Settings,
    files: Vec<OsString>,
}

pub(super) fn run(given: Given, streams: &mut Streams) -> i32 {
    let request = match read(given) {
        Ok(request) => request,
        Err(text) => return options::wrong(program("vcl lint"), &text, streams),
    };
    let mut status = 0;
    let mut reports = Vec::new();
    for file in &request.files {
        let (name, text) = match text_file::read(file, streams.input) {
            Ok(read) => read,
            Err(error) => {
                let shown = file.to_string_lossy();
                let shown = legible::line(shown.as_bytes());
                let _ = writeln!(streams.error, "{shown}: {}", text_file::reason(&error));
                status = USAGE_ERROR;
                continue;
            }
        };
        let result = request.settings.with(|options| vcl::lint(&SourceText { name: &name, text: &text }, options));
        let report = Report { name, result };
        if report.is_denied(request.deny) {
            status = status.max(1);
        }
        if request.form == Form::Pretty {
            show(&report, streams);
        }
        reports.push(report);
    }
    let written = match request.form {
        Form::Pretty => return status,
        Form::Json => format!("{:#}\n", forms::json(&reports)),
        Form::Sarif => format!("{:#}\n", forms::sarif(&reports)),
        Form::Github => forms::github(&reports),
    };
    let _ = write!(streams.output, "{}", legible::json(&written));
    status
}

fn read(given: Given) -> Result<Request, String> {
    let settings = Settings::default();
    let mut request = Request { form: Form::Pretty, deny: Level::Error, settings, files: given.rest };
    for (letter, argument) in given.options {
        match letter {
            'J' => request.form = Form::Json,
            'S' => request.form = Form::Sarif,
            'G' => request.form = Form::Github,
            'D' => {
                let name = text(argument)?;
                request.deny = Level::of_name(&name).ok_or("--deny takes note, warning or error")?;
            }
            _ => request.settings.take(letter, argument)?,
        }
    }
    if request.files.is_empty() {
        return Err("which file?".to_owned());
    }
    Ok(request)
}

fn show(report: &Report, streams: &mut Streams) {
    let colour = has_colour(streams);
    let (messages, suppressed, hidden): (Vec<String>, usize, usize) = match &report.result {
        Ok(linted) => {
            let messages = linted.findings.iter().map(|finding| finding.pretty(colour)).collect();
            (messages, linted.suppressed, linted.hidden)
        }
        Err(error) => (error.diagnostics.iter().map(|message| message.pretty(colour)).collect(), 0, error.hidden),
    };
    for message in messages {
        let _ = writeln!(streams.output, "{message}");
    }
    let counts = [
        (report.count(Level::Error), "error"),
        (report.count(Level::Warning), "warning"),
        (report.count(Level::Note), "note"),
    ];
    let mut words: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| counted(*count, word)).collect();
    if words.is_empty() {
        words.push("ok".to_owned());
    }
    if suppressed > 0 {
        words.push(format!("{suppressed} suppressed"));
    }
    if hidden > 0 {
        words.push(format!("{hidden} not shown"));
    }
    let _ = writeln!(streams.output, "{}: {}", legible::line(report.name.as_bytes()), words.join(", "));
}
