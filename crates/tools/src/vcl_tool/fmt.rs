//! `copal vcl fmt`: formats texts in one style without changing their meaning.

use super::{USAGE_ERROR, difference, text_file};
use crate::Streams;
use crate::options::Given;
use std::ffi::OsString;
use surface::legible;
use vcl::SourceText;

pub(super) fn run(given: Given, streams: &mut Streams) -> i32 {
    let (check, diff) = (given.has('c'), given.has('d'));
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
        status = status.max(format_file(file, check, diff, streams));
    }
    status
}

fn format_file(file: &OsString, check: bool, diff: bool, streams: &mut Streams) -> i32 {
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
    if diff {
        let name = format!("{shown} (formatted)");
        let difference = difference::unified(&shown, &text, &name, &formatted);
        let _ = write!(streams.output, "{}", legible::lines(&difference));
    } else if check {
        if !same {
            let _ = writeln!(streams.output, "{}", legible::line(shown.as_bytes()));
        }
    } else if file == "-" {
        let _ = streams.output.write_all(&formatted);
    } else if !same && let Err(error) = text_file::replace(file, &formatted) {
        let _ = writeln!(streams.error, "{shown}: {}", text_file::reason(&error));
        return USAGE_ERROR;
    }
    i32::from(check && !same)
}
