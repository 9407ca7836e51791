//! `-x`: parts of the documentation, generated from the tables.

use super::Role;
use std::fmt::Write;
use surface::cli::COMMANDS;
use surface::option::letter;
use surface::parameter::{PARAMETERS, value};
use surface::tag::TAGS;

/// The text of a topic; `None` when there is no such topic.
#[must_use]
pub fn dump(role: Role, what: &str) -> Option<String> {
    let mut out = String::new();
    match what {
        "optstring" => {
            let _ = writeln!(out, "{}", letter::optstring());
        }
        "builtin" => {
            let compiled = vcl::compile(
                &vcl::SourceText { name: "<none>", text: b"vcl 4.1; backend default none;" },
                &vcl::CompileOptions { follows_rfc: role == Role::Copal, ..vcl::CompileOptions::default() },
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
            let defaults = role.defaults();
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
