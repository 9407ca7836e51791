//! The page of invariants, collected from the module headers.
//!
//! A header states one as `*Invariant:*` or `*Invariants:*`; it ends with the paragraph, or before
//! the next such word (`*Locks*:`) or the sources. Regenerate the page with
//! `REFERENCE_UPDATE=1 cargo test -p copal --test integration invariants`.

use crate::layers::{files_below, root};
use std::collections::BTreeMap;
use std::fmt::Write;

const PAGE: &str = "docs/internals/invariants.md";

const INTRODUCTION: &str = "# Invariants\n\n\
    Statements that hold at all times, each in the header of the module that keeps it. This page is generated from the\n\
    headers: `REFERENCE_UPDATE=1 cargo test -p copal --test integration invariants`. Change an invariant there, with a\n\
    decision record.\n";

/// The paragraphs of a module header, each on one line.
fn paragraphs(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for line in text.lines().map_while(|line| line.strip_prefix("//!")) {
        match (line.trim(), all.last_mut()) {
            ("", _) => all.push(String::new()),
            (words, Some(last)) => {
                last.push_str(if last.is_empty() { "" } else { " " });
                last.push_str(words);
            }
            (_, None) => {}
        }
    }
    all
}

/// The statements of a paragraph.
fn invariants(paragraph: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in paragraph.match_indices("*Invariant") {
        let rest = &paragraph[at + 1..];
        let Some(begin) =
            rest.find([':', '*']).map(|end| end + rest[end..].len() - rest[end..].trim_start_matches([':', '*']).len())
        else {
            continue;
        };
        let statement = &rest[begin..];
        let ends = [
            " *Lock",
            " *Limit",
            " *Bound",
            " *Order",
            " *Invariant",
            " *Intended",
            " Source:",
            " Compat:",
            " Next file",
        ];
        let end = ends.iter().filter_map(|end| statement.find(end)).min().unwrap_or(statement.len());
        found.push(statement[..end].trim().to_owned());
    }
    found
}

/// Links of rustdoc as plain code.
fn without_links(text: &str) -> String {
    text.replace("[`", "`").replace("`]", "`")
}

fn page() -> String {
    let mut crates: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files_below(&root().join("crates"), "rs") {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        let owner = name.split('/').nth(1).unwrap_or_default().to_owned();
        if name.contains("/tests/") {
            continue;
        }
        for statement in paragraphs(&text).iter().flat_map(|paragraph| invariants(paragraph)) {
            crates.entry(owner.clone()).or_default().push(format!("- `{name}`: {}", without_links(&statement)));
        }
    }
    let mut page = INTRODUCTION.to_owned();
    for (owner, mut lines) in crates {
        lines.sort();
        let _ = write!(page, "\n## {owner}\n\n{}\n", lines.join("\n"));
    }
    page
}

#[test]
fn the_page_of_invariants_is_that_of_the_module_headers() {
    let page = page();
    assert!(page.lines().filter(|line| line.starts_with("- ")).count() > 100, "hardly any invariants were found");
    if std::env::var_os("REFERENCE_UPDATE").is_some() {
        std::fs::write(root().join(PAGE), &page).unwrap();
    }
    let written = std::fs::read_to_string(root().join(PAGE)).unwrap_or_default();
    assert!(written == page, "{PAGE} differs from the module headers: run this test with REFERENCE_UPDATE=1");
}

#[test]
fn invariants_are_cut_out_of_a_header() {
    let header =
        "//! Head.\n//!\n//! Text. *Invariants:* one; two, with\n//! more. *Locks*: none. *Invariant*: three.\n\ncode";
    let found: Vec<_> = paragraphs(header).iter().flat_map(|paragraph| invariants(paragraph)).collect();
    assert_eq!(found, ["one; two, with more.", "three."]);
}
