//! `copal vcl migrate`: rewrites an old VCL in VCL 4.1.

use super::{USAGE_ERROR, text_file, wrong};
use crate::Streams;
use crate::options::Given;
use std::ffi::OsString;
use std::path::PathBuf;
use surface::vcl::Generation;
use vcl::{CompileOptions, SourceText};

/// The command line.
#[derive(Default)]
struct Request {
    file: Option<OsString>,
    output: Option<OsString>,
    in_place: bool,
    path: Vec<PathBuf>,
    generation: Option<Generation>,
    storages: Vec<String>,
}

pub(super) fn run(given: Given, streams: &mut Streams) -> i32 {
    let request = match read(given) {
        Ok(request) => request,
        Err(text) => return wrong("migrate", &text, streams),
    };
    let Some(file) = &request.file else {
        return wrong("migrate", "which file?", streams);
    };
    let shown = file.to_string_lossy();
    let (name, text) = match text_file::read(file, streams.input) {
        Ok(read) => read,
        Err(error) => {
            let _ = writeln!(streams.error, "{shown}: {}", text_file::reason(&error));
            return USAGE_ERROR;
        }
    };
    let options = CompileOptions {
        vcl_path: &request.path,
        storages: &request.storages,
        generation: request.generation,
        ..CompileOptions::default()
    };
    let migrated = match vcl::migrate(&SourceText { name: &name, text: &text }, &options) {
        Ok(migrated) => migrated,
        Err(error) => {
            let _ = writeln!(streams.error, "{error}\n{shown}: not migrated");
            return 1;
        }
    };
    let target = if request.in_place { request.file.as_ref() } else { request.output.as_ref() };
    let written = match target.filter(|target| *target != "-") {
        Some(target) => text_file::replace(target, &migrated.text),
        None => streams.output.write_all(&migrated.text),
    };
    if let Err(error) = written {
        let _ = writeln!(streams.error, "{}: {}", target.unwrap_or(file).to_string_lossy(), text_file::reason(&error));
        return USAGE_ERROR;
    }
    for note in &migrated.notes {
        let _ = writeln!(streams.error, "{}:{}: {}", note.file, note.line, note.text);
    }
    let notes = migrated.notes.len();
    let generation = migrated.generation.name();
    let _ = writeln!(
        streams.error,
        "{shown}: read as VCL {generation}, written as VCL 4.1, with {notes} note{}",
        if notes == 1 { "" } else { "s" }
    );
    match migrated.problem {
        Some(problem) => {
            let _ = writeln!(streams.error, "\nThe new text needs work:\n{problem}");
            1
        }
        None => 0,
    }
}

fn read(given: Given) -> Result<Request, String> {
    let storages = vec!["s0".to_owned(), "Transient".to_owned()];
    let mut request = Request { storages, ..Request::default() };
    let text = |value: OsString| value.into_string().map_err(|_| "an argument is no text".to_owned());
    for file in given.rest {
        if request.file.replace(file).is_some() {
            return Err("one file at a time".to_owned());
        }
    }
    for (letter, argument) in given.options {
        match letter {
            'o' => request.output = Some(argument),
            'i' => request.in_place = true,
            'I' => request.path.push(PathBuf::from(argument)),
            'd' => {
                let name = text(argument)?;
                request.generation = match Generation::of_name(&name) {
                    None if name != "auto" => return Err("--dialect takes auto, 1, 2.0, 2.1, 3.0 or 4".to_owned()),
                    generation => generation,
                };
            }
            's' => request.storages.push(text(argument)?),
            _ => {}
        }
    }
    if request.in_place && (request.output.is_some() || request.file.as_deref().is_some_and(|file| file == "-")) {
        return Err("--in-place takes a file and no -o".to_owned());
    }
    Ok(request)
}
