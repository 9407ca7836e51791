//! `copal vcl check`: compiles texts and shows every message; runs nothing.

use super::display::{counted, has_colour};
use super::settings::Settings;
use super::{USAGE_ERROR, json, text_file, wrong};
use crate::Streams;
use crate::options::Given;
use serde_json::{Value, json};
use std::ffi::OsString;
use surface::legible;
use vcl::{Diagnostic, Severity, SourceText};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Pretty,
    Text,
    Json,
}

/// The command line.
struct Request {
    form: Form,
    settings: Settings,
    files: Vec<OsString>,
}

pub(super) fn run(given: Given, streams: &mut Streams) -> i32 {
    let request = match read(given) {
        Ok(request) => request,
        Err(text) => return wrong("check", &text, streams),
    };
    let mut status = 0;
    let mut document = Vec::new();
    let (mut errors, mut warnings, mut hidden_in_all) = (0, 0, 0);
    for file in &request.files {
        let (name, text) = match text_file::read(file, streams.input) {
            Ok(read) => read,
            Err(error) => {
                let _ = writeln!(streams.error, "{}: {}", file.to_string_lossy(), text_file::reason(&error));
                status = USAGE_ERROR;
                continue;
            }
        };
        let (messages, hidden) = compile(&request, &name, &text);
        let count = |severity| messages.iter().filter(|message| message.severity == severity).count();
        let (file_errors, file_warnings) = (count(Severity::Error) + hidden, count(Severity::Warning));
        if file_errors > 0 {
            status = status.max(1);
        }
        errors += file_errors;
        warnings += file_warnings;
        hidden_in_all += hidden;
        if request.form == Form::Json {
            document.extend(messages.iter().map(|message| json::message(&name, message)));
        } else {
            show(&request, &messages, streams);
            if request.form == Form::Pretty {
                let name = legible::line(name.as_bytes());
                let _ = writeln!(streams.output, "{name}: {}", summary(file_errors, file_warnings));
            }
        }
    }
    if request.form == Form::Json {
        let document = json!({
            "errors": errors,
            "warnings": warnings,
            "not_shown": hidden_in_all,
            "diagnostics": Value::from(document),
        });
        let _ = writeln!(streams.output, "{}", legible::json(&format!("{document:#}")));
    }
    status
}

fn read(given: Given) -> Result<Request, String> {
    let mut request = Request { form: Form::Pretty, settings: Settings::default(), files: given.rest };
    for (letter, argument) in given.options {
        match letter {
            'J' => request.form = Form::Json,
            'T' => request.form = Form::Text,
            _ => request.settings.take(letter, argument)?,
        }
    }
    if request.files.is_empty() {
        return Err("which file?".to_owned());
    }
    Ok(request)
}

fn compile(request: &Request, name: &str, text: &[u8]) -> (Vec<Diagnostic>, usize) {
    match request.settings.with(|options| vcl::compile(&SourceText { name, text }, options)) {
        Ok(compiled) => (compiled.diagnostics, 0),
        Err(error) => (error.diagnostics, error.hidden),
    }
}

fn show(request: &Request, messages: &[Diagnostic], streams: &mut Streams) {
    let colour = has_colour(streams);
    for message in messages {
        let text = match request.form {
            Form::Text => message.text(),
            _ => message.pretty(colour),
        };
        let _ = writeln!(streams.output, "{text}");
    }
}

fn summary(errors: usize, warnings: usize) -> String {
    match (errors, warnings) {
        (0, 0) => "ok".to_owned(),
        (0, warnings) => counted(warnings, "warning"),
        (errors, 0) => counted(errors, "error"),
        (errors, warnings) => format!("{}, {}", counted(errors, "error"), counted(warnings, "warning")),
    }
}
