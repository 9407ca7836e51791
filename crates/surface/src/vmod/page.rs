//! The reference page of the VMODs, `docs/vmods.md`, generated from the table.
//!
//! `REFERENCE_UPDATE=1 cargo test -p surface` rewrites the file; without that, the test fails when the file differs from
//! the table.

use super::{ArgumentRow, FUNCTIONS, FunctionRow, VMODS, VmodRow};
use crate::vcl::{METHODS, Type, at};
use std::fmt::Write;

const INTRODUCTION: &str = "\
# VMODs

This page lists every VMOD that VCL can `import`, with its functions. All of them are part of the program: nothing is loaded from outside,
and a path in an `import` is ignored. You can give arguments in order or by name (`name = value`). An argument in brackets may be left out.
An argument with `=` may be left out too, and then has the value shown.

This page is written from `crates/surface/src/vmod.rs`, the table that the compiler checks calls against. To write it anew:
`REFERENCE_UPDATE=1 cargo test -p surface`.
";

/// The page, as Markdown.
#[must_use]
pub fn page() -> String {
    let mut out = INTRODUCTION.to_owned();
    out.push('\n');
    let mut vmods: Vec<&VmodRow> = VMODS.iter().collect();
    vmods.sort_by_key(|vmod| vmod.name);
    for vmod in &vmods {
        let _ = writeln!(out, "- [{0}](#{0}): {1}", vmod.name, vmod.text);
    }
    for vmod in &vmods {
        of_vmod(vmod, &mut out);
    }
    out
}

fn of_vmod(vmod: &VmodRow, out: &mut String) {
    let _ = writeln!(out, "\n## {}\n\n{}", vmod.name, vmod.text);
    let rows = || FUNCTIONS.iter().filter(|row| row.vmod == vmod.name);
    if rows().any(|row| row.class.is_empty()) {
        out.push('\n');
    }
    for row in rows().filter(|row| row.class.is_empty()) {
        of_function(row, &format!("{}.{}", row.vmod, row.name), out);
    }
    for constructor in rows().filter(|row| row.returns == Type::Instance) {
        let (name, class) = (vmod.name, constructor.class);
        let arguments = arguments(constructor.arguments);
        let director = if vmod.directors.contains(&class) { " A director." } else { "" };
        let _ = writeln!(out, "\n### {name}.{class}\n\n`new x = {name}.{class}({arguments});`\n");
        let _ = writeln!(out, "{}{director}\n", constructor.text);
        for row in rows().filter(|row| row.class == class && row.returns != Type::Instance) {
            of_function(row, &format!("x.{}", row.name), out);
        }
    }
}

fn of_function(row: &FunctionRow, name: &str, out: &mut String) {
    let place = place(row.at).map_or(String::new(), |place| format!(" {place}"));
    let _ = writeln!(out, "- `{} {name}({})`: {}{place}", row.returns.name(), arguments(row.arguments), row.text);
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

/// Where a function may be called; `None` = everywhere.
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
    use std::path::Path;

    #[test]
    fn the_reference_page_is_what_the_table_says() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/vmods.md");
        let page = page();
        if std::env::var_os("REFERENCE_UPDATE").is_some() {
            std::fs::write(&path, &page).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        let stale = page.lines().zip(written.lines()).find(|(wanted, found)| wanted != found);
        assert!(written == page, "docs/vmods.md is stale, run REFERENCE_UPDATE=1 cargo test -p surface: {stale:?}");
    }

    #[test]
    fn signatures_show_types_words_and_defaults() {
        let page = page();
        for line in [
            "- `BOOL x.add_backend(BACKEND backend, [STRING ident], [DURATION rampup], [REAL weight])`: ",
            "`new x = directors.fallback(BOOL sticky = false);`",
            "- `STRING std.toupper(STRANDS s)`: The text in upper case.\n",
            "[ENUM {CHOSEN, IGNORE, ALL} healthy]",
        ] {
            assert!(page.contains(line), "{line}");
        }
    }

    #[test]
    fn where_a_function_may_be_called_is_said_when_it_is_not_everywhere() {
        assert_eq!(place(at::ALL), None);
        assert_eq!(place(at::CLIENT).as_deref(), Some("On the client side only."));
        assert_eq!(place(at::HIT | at::MISS).as_deref(), Some("Only in vcl_miss, vcl_hit."));
    }
}
