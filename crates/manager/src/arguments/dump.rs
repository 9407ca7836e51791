//! `-x`: parts of the documentation, generated from the tables.

use crate::default_parameters::default_parameters;
use std::fmt::Write;
use surface::cli::COMMANDS;
use surface::option::letter;
use surface::parameter::{PARAMETERS, value};
use surface::program::Called;
use surface::tag::TAGS;

/// The text of a topic; `None` if the topic does not exist.
#[must_use]
pub fn dump(called: Called, what: &str) -> Option<String> {
    let mut out = String::new();
    match what {
        "optstring" => {
            let _ = writeln!(out, "{}", letter::optstring());
        }
        "builtin" => {
            let compiled = vcl::compile(
                &vcl::SourceText { name: "<none>", text: b"vcl 4.1; backend default none;" },
                &vcl::CompileOptions { follows_rfc: called == Called::Copal, ..vcl::CompileOptions::default() },
            );
            if let Some(source) = compiled.ok().and_then(|compiled| compiled.program.sources.last().cloned()) {
                out.push_str(&source.text);
            }
        }
        "cli" => {
            for row in COMMANDS.iter().filter(|row| !row.hidden) {
                let _ = writeln!(out, "{}\n  {}\n", row.syntax, row.help);
            }
        }
        "parameter" => {
            let defaults = default_parameters(called);
            for row in PARAMETERS {
                let default = value::format(&defaults, row);
                let _ = writeln!(out, "{}\n\t* Default: {default}", row.name);
                if !row.unit.is_empty() {
                    let _ = writeln!(out, "\t* Units: {}", row.unit);
                }
                if let Some(min) = row.min {
                    let _ = writeln!(out, "\t* Minimum: {min}");
                }
                if let Some(max) = row.max {
                    let _ = writeln!(out, "\t* Maximum: {max}");
                }
                let _ = writeln!(out, "\n{}\n", row.text);
            }
        }
        "vsl" => {
            for row in &TAGS {
                let _ = writeln!(out, "{}\n\t{}\n", row.name, row.payload);
            }
        }
        _ => return None,
    }
    Some(out)
}
