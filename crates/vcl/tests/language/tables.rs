//! The tables of `surface` against the compiler: everything that a row allows is accepted, and
//! everything else is refused with the code that names the reason.

use crate::world::{Files, compile};
use std::collections::BTreeMap;
use surface::diagnostic::Code;
use surface::vcl::{Action, Generation, METHODS, Type, VARIABLES, VariableRow};
use surface::vmod::{ArgumentRow, FUNCTIONS, FunctionRow, VMODS};
use vcl::Severity;

/// Compiles one statement in every method, each on a line of its own; returns the code of the first
/// error for each method.
fn in_every_method(version: u8, head: &str, statement: &str) -> BTreeMap<&'static str, Code> {
    let first_line = head.lines().count() as u32 + 3;
    let mut text = format!("vcl 4.{};\nbackend default {{ .host = \"192.0.2.1\"; }}\n{head}", version % 10);
    for row in METHODS {
        text += &format!("sub {} {{ {statement} }}\n", row.name);
    }
    let mut found = BTreeMap::new();
    if let Err(error) = compile(text.as_bytes(), &Files::default(), |options| options.err_unref = false) {
        for message in error.diagnostics.iter().filter(|message| message.severity == Severity::Error) {
            let line = message.place().unwrap_or_else(|| panic!("{statement}: {message:?}")).line;
            let row = METHODS.get((line - first_line) as usize).unwrap_or_else(|| panic!("{text}\n{message:?}"));
            found.entry(row.name).or_insert(message.code);
        }
    }
    found
}

/// A value of that type that can be used anywhere.
fn literal(kind: Type) -> &'static str {
    match kind {
        Type::Bool => "true",
        Type::Int => "1",
        Type::Real => "1.5",
        Type::Duration => "1s",
        Type::Time => "now",
        Type::Bytes => "1KB",
        Type::Ip => "\"192.0.2.1\"",
        Type::Backend => "default",
        Type::Blob => ":aGk=:",
        Type::Stevedore => "storage.s0",
        Type::Regex => "\"x\"",
        _ => "\"x\"",
    }
}

/// A condition that reads the variable.
fn reading(row: &VariableRow, name: &str) -> String {
    match row.kind {
        Type::Int
        | Type::Real
        | Type::Duration
        | Type::Time
        | Type::Bytes
        | Type::Ip
        | Type::Backend
        | Type::Stevedore => {
            format!("if ({name} == {}) {{ }}", literal(row.kind))
        }
        Type::Blob => format!("if (\"\" + {name} == \"x\") {{ }}"),
        Type::Http => format!("std.rollback({name});"),
        _ => format!("if ({name}) {{ }}"),
    }
}

#[test]
fn a_variable_is_what_its_row_says_in_every_method_and_version() {
    let mut checked = 0;
    for row in VARIABLES {
        let name = row.name.replace("http.*", "http.x").replace("storage.*", "storage.s0");
        for version in [40, 41] {
            // Another row with the same name may be for the other version.
            let exists = (row.syntax_min..=row.syntax_max).contains(&version);
            if !exists && VARIABLES.iter().any(|other| other.name == row.name && other.syntax_min != row.syntax_min) {
                continue;
            }
            let rollback =
                FUNCTIONS.iter().find(|row| row.vmod == "std" && row.name == "rollback").map_or(0, |row| row.at);
            let head = if row.kind == Type::Http { "import std;\n" } else { "" };
            let readable = if row.kind == Type::Http { row.read & rollback } else { row.read };
            let cases = [
                (reading(row, &name), readable, Code::NotReadable, row.read),
                (format!("set {name} = {};", literal(row.kind)), row.write, Code::NotSettable, row.write),
                (format!("unset {name};"), row.unset, Code::NotUnsettable, row.unset),
            ];
            for (statement, allowed, refusal, anywhere) in cases {
                let found = in_every_method(version, head, &statement);
                for method in METHODS {
                    let code = found.get(method.name).copied();
                    let expect = if exists && allowed & method.bit != 0 { None } else { Some(refusal) };
                    let fits = match (expect, code) {
                        (None, code) => code.is_none(),
                        (Some(_), Some(Code::OtherVersion)) => !exists,
                        // A use that is never allowed is reported as such; so is reading a body.
                        (Some(_), Some(Code::ReadOnly | Code::TypeMismatch | Code::UnknownSymbol)) => anywhere == 0,
                        (Some(_), Some(Code::NotReadable)) => true,
                        (Some(refusal), code) => code == Some(refusal),
                    };
                    assert!(
                        fits,
                        "4.{} {}: {statement} gives {code:?}, expected {expect:?}",
                        version % 10,
                        method.name
                    );
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 7_000, "{checked}");
}

#[test]
fn an_action_ends_the_methods_whose_rows_have_it() {
    for &action in Action::ALL {
        let statement = match action {
            Action::Synth => "return (synth(200));".to_owned(),
            Action::Vcl => "return (vcl(label));".to_owned(),
            action => format!("return ({});", action.name()),
        };
        let found = in_every_method(41, "", &statement);
        for method in METHODS {
            let expect = (!method.allows(action, Generation::V4)).then_some(Code::InvalidReturn);
            assert_eq!(found.get(method.name).copied(), expect, "{}: {statement}", method.name);
        }
        if !action.takes_arguments() {
            let found = in_every_method(41, "", &format!("return ({}(1));", action.name()));
            assert!(METHODS.iter().all(|method| found[method.name] == Code::ReturnArguments), "{found:?}");
        }
    }
}

/// An argument of the right type, or `None` if no literal fits.
fn argument(row: &ArgumentRow) -> Option<String> {
    Some(match row.kind {
        Type::Enum => (*row.values.first()?).to_owned(),
        Type::Acl => "a".to_owned(),
        Type::Probe => "p".to_owned(),
        Type::Sub => "s".to_owned(),
        Type::Header | Type::Http | Type::Void => return None,
        kind => literal(kind).to_owned(),
    })
}

/// A call of a function with all required arguments.
fn call(row: &FunctionRow) -> Option<String> {
    let mut arguments = Vec::new();
    let mut skipped = false;
    for parameter in row.arguments {
        if parameter.default.is_some() || parameter.optional {
            skipped = true;
            continue;
        }
        let value = argument(parameter)?;
        arguments.push(if skipped { format!("{} = {value}", parameter.name) } else { value });
    }
    Some(format!("{}.{}({})", row.vmod, row.name, arguments.join(", ")))
}

#[test]
fn functions_can_be_called_in_the_methods_of_their_row() {
    let mut checked = 0;
    for row in FUNCTIONS.iter().filter(|row| row.class.is_empty()) {
        let Some(call) = call(row) else { continue };
        let head = format!(
            "import {};\nacl a {{ }} probe p {{ }} sub s {{ }}\nbackend probed {{ .host = \"192.0.2.1\"; .probe = p; }}\n",
            row.vmod
        );
        let messages = |statement: &str| {
            let text =
                format!("{head}sub used {{ if (client.ip ~ a) {{ call s; }} set req.backend_hint = probed; }}\n");
            in_every_method(41, &text, statement)
        };
        let found = messages(&format!("{call};"));
        for method in METHODS {
            let expect = (row.at & method.bit == 0).then_some(Code::NotReadable);
            assert_eq!(found.get(method.name).copied(), expect, "{}: {call}", method.name);
            checked += 1;
        }
    }
    assert!(checked > 500, "{checked}");
}

#[test]
fn every_vmod_can_be_imported_under_any_name() {
    for row in VMODS {
        let text = format!("vcl 4.1;\nimport {0};\nimport {0} as other from \"x\";\nbackend default none;\n", row.name);
        assert!(compile(text.as_bytes(), &Files::default(), |_| {}).is_ok(), "{}", row.name);
    }
}
