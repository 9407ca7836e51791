//! `copal vcl migrate`: rewrites an old VCL in VCL 4.1.

use super::{USAGE_ERROR, text_file, wrong};
use crate::Streams;
use std::ffi::OsString;
use std::path::PathBuf;
use surface::vcl::Generation;
use vcl::{CompileOptions, SourceText};

pub(super) const HELP: &str = "\
Usage: copal vcl migrate [options] FILE

Writes a VCL of Varnish 1, 2, 3 or 4.0 anew in VCL 4.1, so that it does what it did. Comments and layout stay where they can;
files that it includes become part of it. Where a meaning cannot carry over, a comment that begins with 'migrate:' says so;
all of them are listed on the standard error. - is the standard input.

  -o file          where to write; without it, the standard output
  --in-place       into the file itself
  -I directory     where includes are looked for first (several times)
  --dialect name   auto, 1, 2.0, 2.1, 3.0 or 4: the generation of the old text; auto looks at it
  --storage name   a storage besides s0 and Transient (several times)

Exit status: 0 done, 1 the old text does not compile, or the new one needs work, 2 wrong command line or unreadable file.
";

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

pub(super) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let request = match parse(args) {
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

fn parse(args: &[OsString]) -> Result<Request, String> {
    let storages = vec!["s0".to_owned(), "Transient".to_owned()];
    let mut request = Request { storages, ..Request::default() };
    let mut parser = lexopt::Parser::from_args(args.iter().cloned());
    let wrong = |error: lexopt::Error| error.to_string();
    let text = |value: OsString| value.into_string().map_err(|_| "an argument is no text".to_owned());
    while let Some(argument) = parser.next().map_err(wrong)? {
        match argument {
            lexopt::Arg::Value(file) if request.file.is_none() => request.file = Some(file),
            lexopt::Arg::Value(_) => return Err("one file at a time".to_owned()),
            lexopt::Arg::Short('o') => request.output = Some(parser.value().map_err(wrong)?),
            lexopt::Arg::Short('I') => request.path.push(PathBuf::from(parser.value().map_err(wrong)?)),
            lexopt::Arg::Long("in-place") => request.in_place = true,
            lexopt::Arg::Long("dialect") => {
                let name = text(parser.value().map_err(wrong)?)?;
                request.generation = match Generation::of_name(&name) {
                    None if name != "auto" => return Err("--dialect takes auto, 1, 2.0, 2.1, 3.0 or 4".to_owned()),
                    generation => generation,
                };
            }
            lexopt::Arg::Long("storage") => request.storages.push(text(parser.value().map_err(wrong)?)?),
            lexopt::Arg::Short(letter) => return Err(format!("invalid option '-{letter}'")),
            lexopt::Arg::Long(name) => return Err(format!("invalid option '--{name}'")),
        }
    }
    if request.in_place && (request.output.is_some() || request.file.as_deref().is_some_and(|file| file == "-")) {
        return Err("--in-place takes a file and no -o".to_owned());
    }
    Ok(request)
}
