//! `copal vcl fmt`: formats texts in one style without changing their meaning.

use super::{USAGE_ERROR, difference, text_file};
use crate::Streams;
use crate::options::Given;
use std::ffi::OsString;
use surface::legible;
use vcl::SourceText;

pub(super) fn run(given: Given, streams: &mut Streams) -> i32 {
    let way = match (given.has('d'), given.has('c'), given.has('w')) {
        (true, ..) => Way::Difference,
        (_, true, _) => Way::Check,
        (.., true) => Way::Write,
        _ => Way::Print,
    };
    let check = given.has('c');
    let from_input = given.has('s');
    let mut files = given.rest;
    if from_input {
        files.push("-".into());
    }
    if files.is_empty() {
        files.push("-".into());
    }
    let mut status = 0;
    for file in &files {
        status = status.max(format_file(file, way, check, streams));
    }
    status
}

/// Use of a formatted text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// To the standard output.
    Print,
    /// Into the file itself.
    Write,
    /// Only its name, if it differs.
    Check,
    /// Only the lines that differ.
    Difference,
}

fn format_file(file: &OsString, way: Way, check: bool, streams: &mut Streams) -> i32 {
    let shown = if file == "-" { "<stdin>".to_owned() } else { file.to_string_lossy().into_owned() };
    let text = match text_file::read(file, streams.input) {
        Ok((_, text)) => text,
        Err(error) => {
            let _ = writeln!(streams.error, "{shown}: {}", text_file::reason(&error));
            return USAGE_ERROR;
        }
    };
    let formatted = match vcl::format(&SourceText { name: &shown, text: &text }) {
        Ok(formatted) => formatted,
        Err(error) => {
            let _ = writeln!(streams.error, "{error}\n{shown}: left as it is");
            return 1;
        }
    };
    let same = formatted == text;
    match way {
        Way::Difference => {
            let name = format!("{shown} (formatted)");
            let difference = difference::unified(&shown, &text, &name, &formatted);
            let _ = write!(streams.output, "{}", legible::lines(&difference));
        }
        Way::Check if !same => {
            let _ = writeln!(streams.output, "{}", legible::line(shown.as_bytes()));
        }
        Way::Write if file != "-" => {
            if !same && let Err(error) = text_file::replace(file, &formatted) {
                let _ = writeln!(streams.error, "{shown}: {}", text_file::reason(&error));
                return USAGE_ERROR;
            }
        }
        Way::Check => {}
        Way::Write | Way::Print => {
            let _ = streams.output.write_all(&formatted);
        }
    }
    i32::from(check && !same)
}
