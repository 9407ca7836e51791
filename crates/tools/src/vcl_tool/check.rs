//! `copal vcl check`: compiles texts and shows every message; runs nothing.

use super::{USAGE_ERROR, json, text_file, wrong};
use crate::Streams;
use crate::options::Given;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use surface::legible;
use surface::parameter::{Parameters, value};
use surface::vcl::Generation;
use vcl::{CompileOptions, Diagnostic, Severity, SourceText};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Pretty,
    Text,
    Json,
}

/// The command line.
struct Request {
    form: Form,
    parameters: Parameters,
    path: Vec<PathBuf>,
    generation: Option<Generation>,
    labels: Vec<String>,
    storages: Vec<String>,
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
    let mut request = Request {
        form: Form::Pretty,
        parameters: Parameters::default(),
        path: Vec::new(),
        generation: None,
        labels: Vec::new(),
        storages: vec!["s0".to_owned(), "Transient".to_owned()],
        files: given.rest,
    };
    for (letter, argument) in given.options {
        match letter {
            'J' => request.form = Form::Json,
            'T' => request.form = Form::Text,
            'p' => set_parameter(&mut request.parameters, &text(argument)?)?,
            'I' => request.path.push(PathBuf::from(argument)),
            'd' => request.generation = dialect(&text(argument)?)?,
            'l' => request.labels.push(text(argument)?),
            's' => request.storages.push(text(argument)?),
            _ => {}
        }
    }
    if request.files.is_empty() {
        return Err("which file?".to_owned());
    }
    Ok(request)
}

fn text(value: OsString) -> Result<String, String> {
    value.into_string().map_err(|_| "an argument is no text".to_owned())
}

fn set_parameter(parameters: &mut Parameters, setting: &str) -> Result<(), String> {
    let (name, wanted) = setting.split_once('=').ok_or("-p takes param=value")?;
    value::set(parameters, &Parameters::default(), name, wanted, &[])
        .map_err(|error| error.text().trim().replace('\n', " "))
}

fn dialect(name: &str) -> Result<Option<Generation>, String> {
    if name == "auto" {
        return Ok(None);
    }
    Generation::of_name(name).map(Some).ok_or_else(|| "--dialect takes auto, 1, 2.0, 2.1, 3.0 or 4".to_owned())
}

fn compile(request: &Request, name: &str, text: &[u8]) -> (Vec<Diagnostic>, usize) {
    let parameters = &request.parameters;
    let mut path = request.path.clone();
    path.extend(parameters.vcl_path.split(':').filter(|part| !part.is_empty()).map(PathBuf::from));
    let options = CompileOptions {
        vcl_path: &path,
        unsafe_path: parameters.vcc_unsafe_path,
        err_unref: parameters.vcc_err_unref,
        storages: &request.storages,
        labels: &request.labels,
        generation: request.generation,
        ..CompileOptions::default()
    };
    match vcl::compile(&SourceText { name, text }, &options) {
        Ok(compiled) => (compiled.diagnostics, 0),
        Err(error) => (error.diagnostics, error.hidden),
    }
}

fn show(request: &Request, messages: &[Diagnostic], streams: &mut Streams) {
    let colour = streams.program
        && std::io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    for message in messages {
        let text = match request.form {
            Form::Text => message.text(),
            _ => message.pretty(colour),
        };
        let _ = writeln!(streams.output, "{text}");
    }
}

fn summary(errors: usize, warnings: usize) -> String {
    let counted = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    match (errors, warnings) {
        (0, 0) => "ok".to_owned(),
        (0, warnings) => counted(warnings, "warning"),
        (errors, 0) => counted(errors, "error"),
        (errors, warnings) => format!("{}, {}", counted(errors, "error"), counted(warnings, "warning")),
    }
}
