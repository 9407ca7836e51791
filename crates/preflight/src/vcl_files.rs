//! VCL: compiled in the way of the daemon, with its storages, labels and parameters; every message
//! is a verdict.

use crate::files::Root;
use crate::report::{Place, Report};
use std::path::{Path, PathBuf};
use surface::parameter::Parameters;
use surface::vmod::VMODS;
use vcl::{CompileOptions, Diagnostic, ReadFile, Severity, SourceText};

/// Dependencies of VCL besides its text.
pub(crate) struct Surroundings<'a> {
    pub(crate) root: &'a Root,
    pub(crate) parameters: &'a Parameters,
    pub(crate) storages: Vec<String>,
    pub(crate) labels: Vec<String>,
    /// A listener is a Unix-domain socket, which needs VCL 4.1.
    pub(crate) has_unix_socket: bool,
}

/// Compiles a VCL file, searched in `vcl_path` unless its path is absolute.
pub(crate) fn judge(file: &str, named_at: &Place, around: &Surroundings<'_>, report: &mut Report) {
    let folders: Vec<PathBuf> =
        around.parameters.vcl_path.split(':').filter(|part| !part.is_empty()).map(PathBuf::from).collect();
    let found = if Path::new(file).is_absolute() {
        Some(PathBuf::from(file))
    } else {
        folders.iter().map(|folder| folder.join(file)).find(|path| around.root.has(path))
    };
    let Some(path) = found else {
        return report.blocks(
            named_at,
            format!("{file}: in none of the directories of vcl_path"),
            "write the whole path",
        );
    };
    let name = path.display().to_string();
    let text = match around.root.read(&path) {
        Ok(text) => text,
        Err(error) => {
            let why = manager::arguments::reason(&error);
            return report.blocks(named_at, format!("{name}: {why}"), "the file must be there and readable");
        }
    };
    report.note_read(&name);
    let parameters = around.parameters;
    let options = CompileOptions {
        vcl_path: &folders,
        unsafe_path: parameters.vcc_unsafe_path,
        err_unref: parameters.vcc_err_unref,
        storages: &around.storages,
        labels: &around.labels,
        syntax_min: if around.has_unix_socket { 41 } else { 40 },
        follows_rfc: parameters.http_policy == "rfc",
        files: around.root,
        ..CompileOptions::default()
    };
    match vcl::compile(&SourceText { name: &name, text: &text }, &options) {
        Ok(compiled) => {
            let program = &compiled.program;
            let generation = program.generation();
            let whole = Place::new(&name, 0);
            if generation.is_legacy() {
                let what = format!("VCL {}, read and run as that generation did", generation.name());
                report.works(&whole, format!("{what}; copal vcl migrate writes it as VCL 4.1"));
            } else {
                report.works(&whole, format!("VCL {}.{}", program.syntax / 10, program.syntax % 10));
            }
            for source in program.sources.iter().filter(|source| !source.name.starts_with('<')) {
                report.note_read(&source.name);
                imports(&source.name, source.text.as_bytes(), report);
            }
            tell(&compiled.diagnostics, &name, report);
        }
        Err(error) => {
            imports(&name, &text, report);
            tell(&error.diagnostics, &name, report);
            if error.hidden > 0 {
                report.blocks(&Place::new(&name, 0), format!("{} more errors", error.hidden), "mend the others first");
            }
        }
    }
}

/// Names the imported VMODs that exist here; the compiler reports the others.
fn imports(file: &str, text: &[u8], report: &mut Report) {
    for (index, line) in String::from_utf8_lossy(text).lines().enumerate() {
        let Some(rest) = line.trim_start().strip_prefix("import ") else { continue };
        let name = rest.trim_start().split(|letter: char| letter == ';' || letter.is_whitespace()).next();
        if let Some(row) = VMODS.iter().find(|row| Some(row.name) == name) {
            report.works(&Place::new(file, index + 1), format!("import {}: built in", row.name));
        }
    }
}

fn tell(messages: &[Diagnostic], file: &str, report: &mut Report) {
    for message in messages {
        let place = match message.place() {
            Some(place) => Place::new(&place.file, place.line as usize),
            None => Place::new(file, 0),
        };
        let number = message.code.number();
        let explained = format!("copal vcl explain {number}");
        let remedy = match &message.hint {
            Some(hint) => format!("{} ({explained})", hint.trim_end()),
            None => explained,
        };
        let what = format!("{number}: {}", message.message());
        match message.severity {
            Severity::Error => report.blocks(&place, what, remedy),
            Severity::Warning => report.changes(&place, what, remedy),
        }
    }
}
