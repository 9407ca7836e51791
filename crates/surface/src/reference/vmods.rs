//! The page of the VMODs.

use super::document::Document;
use crate::vcl::{METHODS, Type, at};
use crate::vmod::examples::{EXAMPLES, ExampleRow};
use crate::vmod::foreign::FOREIGN;
use crate::vmod::{ArgumentRow, FUNCTIONS, FunctionRow, VMODS, VmodRow};
use std::fmt::Write;

pub(super) fn page() -> Document {
    let mut page = Document::new("VMODs", "functions that VCL can import");
    page.say(
        "This page lists every VMOD that VCL can import, with its functions. All of them are part of the program: nothing is loaded from outside, \
         and a path in an import is ignored. You can give arguments in order or by name (name = value). An argument in brackets may be left out. \
         An argument with = may be left out too, and then has the value shown.",
    );
    let mut vmods: Vec<&VmodRow> = VMODS.iter().collect();
    vmods.sort_by_key(|vmod| vmod.name);
    for vmod in vmods {
        of_vmod(vmod, &mut page);
    }
    page.section("VMODs that are not available");
    page.say("An import of one of these is an error, whose message names the replacement.");
    for row in FOREIGN {
        let instead = if row.instead.is_empty() { "nothing here does that" } else { row.instead };
        page.item(row.name, "", &format!("{}; {instead}.", row.purpose));
    }
    page
}

fn of_vmod(vmod: &VmodRow, page: &mut Document) {
    page.section(vmod.name);
    page.say(vmod.text);
    let rows = || FUNCTIONS.iter().filter(|row| row.vmod == vmod.name);
    for row in rows().filter(|row| row.class.is_empty()) {
        of_function(row, &format!("{}.{}", row.vmod, row.name), page);
    }
    for constructor in rows().filter(|row| row.returns == Type::Instance) {
        let (name, class) = (vmod.name, constructor.class);
        let director = if vmod.directors.contains(&class) { " A director." } else { "" };
        page.part(&format!("{name}.{class}"));
        page.item(
            &format!("new x = {name}.{class}({});", arguments(constructor.arguments)),
            "",
            &format!("{}{director}", constructor.text),
        );
        for row in rows().filter(|row| row.class == class && row.returns != Type::Instance) {
            of_function(row, &format!("x.{}", row.name), page);
        }
    }
    for example in EXAMPLES.iter().filter(|example| example.vmod == vmod.name) {
        page.code(example.vcl);
        let shown = result(example);
        if !shown.is_empty() {
            page.say(&shown);
        }
    }
}

/// The input and the result of an example, in words.
fn result(example: &ExampleRow) -> String {
    let fields = |fields: &[(&str, &str)]| {
        fields.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join(" · ")
    };
    let mut text = String::new();
    for (path, content) in example.files {
        let _ = match std::str::from_utf8(content) {
            Ok(content) => write!(text, "{path} has the content {}. ", content.trim_end()),
            Err(_) => write!(text, "{path} is a database for tests. "),
        };
    }
    if !example.request.is_empty() {
        let _ = write!(text, "A request with {} gets {}", fields(example.request), example.status);
    } else if !example.response.is_empty() {
        let _ = write!(text, "A request gets {}", example.status);
    }
    if !example.response.is_empty() {
        let _ = write!(text, " with {}", fields(example.response));
    }
    if !text.is_empty() && !text.ends_with(". ") {
        text.push('.');
    }
    text.trim_end().to_owned()
}

fn of_function(row: &FunctionRow, name: &str, page: &mut Document) {
    let place = place(row.at).map_or(String::new(), |place| format!(" {place}"));
    let shown = format!("{} {name}({})", row.returns.name(), arguments(row.arguments));
    page.item(&shown, "", &format!("{}{place}", row.text));
}

fn arguments(rows: &[ArgumentRow]) -> String {
    let shown = |row: &ArgumentRow| {
        let mut text = row.kind.name().to_owned();
        if !row.values.is_empty() {
            let _ = write!(text, " {{{}}}", row.values.join(", "));
        }
        if !row.name.is_empty() {
            let _ = write!(text, " {}", row.name);
        }
        if let Some(default) = row.default {
            let _ = write!(text, " = {default}");
        }
        if row.optional { format!("[{text}]") } else { text }
    };
    rows.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// Methods in which a function may be called, in words; `None` = all.
fn place(methods: u16) -> Option<String> {
    Some(match methods {
        at::ALL => return None,
        at::CLIENT => "On the client side only.".to_owned(),
        at::BACKEND => "On the backend side only.".to_owned(),
        other => {
            let names: Vec<&str> = METHODS.iter().filter(|row| other & row.bit != 0).map(|row| row.name).collect();
            format!("Only in {}.", names.join(", "))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_show_types_words_and_defaults() {
        let page = page().markdown();
        for line in [
            "- `BOOL x.add_backend(BACKEND backend, [STRING ident], [DURATION rampup], [REAL weight])`: ",
            "- `new x = directors.fallback(BOOL sticky = false);`: ",
            "- `STRING std.toupper(STRANDS s)`: The text in upper case.\n",
            "[ENUM {CHOSEN, IGNORE, ALL} healthy]",
        ] {
            assert!(page.contains(line), "{line}");
        }
    }

    #[test]
    fn restricted_functions_document_their_methods() {
        assert_eq!(place(at::ALL), None);
        assert_eq!(place(at::CLIENT).as_deref(), Some("On the client side only."));
        assert_eq!(place(at::HIT | at::MISS).as_deref(), Some("Only in vcl_miss, vcl_hit."));
    }
}
