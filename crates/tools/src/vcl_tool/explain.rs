//! `copal vcl explain`: the meaning of a message code or a word of VCL. Everything comes from the
//! tables of `surface`.

mod old;

use crate::Streams;
use crate::options::Given;
use std::fmt::Write as _;
use surface::diagnostic::{CODES, Code};
use surface::lint::Rule;
use surface::vcl::explanation::KEYWORDS;
use surface::vcl::{Action, Generation, METHODS, Type, VARIABLES, VariableRow};
use surface::vmod::{ArgumentRow, FUNCTIONS, FunctionRow, VMODS};

pub(super) fn run(given: Given, streams: &mut Streams) -> i32 {
    let args = given.rest;
    if args.is_empty() {
        let list: String = CODES.iter().map(|row| format!("{}  {}\n", row.number, row.title)).collect();
        let _ = streams.output.write_all(list.as_bytes());
        return 0;
    }
    let mut status = 0;
    for (index, argument) in args.iter().enumerate() {
        let word = argument.to_string_lossy();
        match explanation(&word) {
            Some(text) => {
                let separator = if index > 0 { "\n" } else { "" };
                let _ = write!(streams.output, "{separator}{text}");
            }
            None => {
                let names = names();
                let near = vcl::nearest_word(&word, names.iter().map(String::as_str));
                let help = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
                let _ = writeln!(streams.error, "copal vcl explain: nothing is called '{word}'{help}");
                status = 1;
            }
        }
    }
    status
}

/// The meaning of a word or code; `None` if there is none.
pub(super) fn explanation(word: &str) -> Option<String> {
    if let Some(code) = Code::by_number(word) {
        return Some(code_text(code));
    }
    if let Some(rule) = Rule::of_id(word) {
        return Some(rule_text(rule));
    }
    let lower = word.to_ascii_lowercase();
    let mut parts: Vec<String> = Vec::new();
    parts.extend(METHODS.iter().find(|row| row.name == lower).map(|row| {
        let actions: Vec<&str> = row.actions.iter().map(|action| action.name()).collect();
        format!(
            "{}: a subroutine of the language\n  {}\n  returns: {}\n",
            row.name,
            row.method.text(),
            actions.join(", ")
        )
    }));
    parts.extend(Action::ALL.iter().find(|action| action.name() == lower).map(|&action| action_text(action)));
    parts.extend(KEYWORDS.iter().find(|row| row.name == lower).map(|row| format!("{}\n  {}\n", row.form, row.text)));
    parts.extend(variables(&lower).map(variable_text));
    parts.extend(VMODS.iter().find(|row| row.name == lower).map(|row| {
        let mut text = format!("{}: a VMOD\n  {}\n\n", row.name, row.text);
        for function in FUNCTIONS.iter().filter(|function| function.vmod == row.name) {
            let _ = writeln!(text, "  {}", signature(function));
        }
        text
    }));
    let full = |row: &FunctionRow| {
        [row.vmod, row.class, row.name].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
    };
    parts.extend(FUNCTIONS.iter().filter(|row| full(row).eq_ignore_ascii_case(&lower)).map(|row| {
        let mut text = format!("{}\n  {}\n", signature(row), row.text);
        if row.at != surface::vcl::at::ALL {
            let _ = writeln!(text, "  available in: {}", methods(row.at));
        }
        if row.name.is_empty() {
            for method in FUNCTIONS.iter().filter(|m| (m.vmod, m.class) == (row.vmod, row.class) && !m.name.is_empty())
            {
                let _ = writeln!(text, "  {}", signature(method));
            }
        }
        text
    }));
    if parts.is_empty() {
        parts.extend(old::explanation(&lower));
    }
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// Everything that can be explained by name.
fn names() -> Vec<String> {
    let functions = FUNCTIONS.iter().map(|row| {
        [row.vmod, row.class, row.name].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
    });
    let words = VARIABLES.iter().map(|row| row.name).chain(METHODS.iter().map(|row| row.name));
    let words = words.chain(Action::ALL.iter().map(|action| action.name())).chain(KEYWORDS.iter().map(|row| row.name));
    let words = words.chain(VMODS.iter().map(|row| row.name)).chain(old::names());
    words.map(str::to_owned).chain(functions).collect()
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

fn rule_text(rule: Rule) -> String {
    let row = rule.row();
    format!(
        "{} ({}): {}\n\n{}\n\nFound:\n\n{}\nInstead:\n\n{}",
        row.id,
        row.level.name(),
        row.title,
        wrapped(row.why),
        indented(row.bad),
        indented(row.good)
    )
}

fn code_text(code: Code) -> String {
    let row = code.row();
    format!(
        "{}: {}\n\n{}\n\nCauses it:\n\n{}\nInstead:\n\n{}",
        row.number,
        row.title,
        wrapped(row.explanation),
        indented(row.bad),
        indented(row.good)
    )
}

/// Wraps into lines of at most 90 characters, if the words permit.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        if column > 0 && column + 1 + word.len() > 90 {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    out
}

fn action_text(action: Action) -> String {
    let by: Vec<&str> = METHODS.iter().filter(|row| row.allows(action, Generation::V4)).map(|row| row.name).collect();
    format!("return ({}): an action\n  {}\n  returned by: {}\n", action.name(), action.text(), by.join(", "))
}

/// The rows of a variable: one for each version of the language that has it.
fn variables(word: &str) -> impl Iterator<Item = &'static VariableRow> {
    let family = match word.split('.').collect::<Vec<_>>()[..] {
        [object, "http", _] => format!("{object}.http.*"),
        ["storage", _, property] => format!("storage.*.{property}"),
        _ => word.to_owned(),
    };
    VARIABLES.iter().filter(move |row| row.name == family)
}

fn variable_text(row: &VariableRow) -> String {
    let mut text = format!("{}: {}\n  {}\n", row.name, row.kind.name(), row.text);
    match (row.syntax_min, row.syntax_max) {
        (41, _) => text += "  since: VCL 4.1\n",
        (_, 40) => text += "  only in: VCL 4.0\n",
        _ => {}
    }
    for (what, at) in [("read", row.read), ("set", row.write), ("unset", row.unset)] {
        if at != 0 {
            let _ = writeln!(text, "  {what} in: {}", methods(at));
        }
    }
    text
}

fn methods(at: u16) -> String {
    if at == surface::vcl::at::ALL {
        return "every subroutine".to_owned();
    }
    let names: Vec<&str> = METHODS.iter().filter(|row| at & row.bit != 0).map(|row| row.name).collect();
    names.join(", ")
}

pub(super) fn signature(row: &FunctionRow) -> String {
    let arguments: Vec<String> = row.arguments.iter().map(argument).collect();
    let arguments = arguments.join(", ");
    match (row.class, row.name) {
        ("", name) => format!("{} {}.{name}({arguments})", row.returns.name(), row.vmod),
        (class, "") => format!("new name = {}.{class}({arguments})", row.vmod),
        (_, name) => format!("{} name.{name}({arguments})", row.returns.name()),
    }
}

pub(super) fn argument(row: &ArgumentRow) -> String {
    let mut text =
        if row.kind == Type::Enum { format!("{{{}}}", row.values.join(", ")) } else { row.kind.name().to_owned() };
    if !row.name.is_empty() {
        text = format!("{text} {}", row.name);
    }
    if let Some(default) = row.default {
        text = format!("{text} = {default}");
    }
    if row.optional { format!("[{text}]") } else { text }
}
