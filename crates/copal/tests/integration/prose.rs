//! Comments and documents use the usual terms of the trade: phrases that force a reader to
//! translate do not occur, and no comment is wider than 100 columns.
//!
//! Checked are the comments of all Rust sources, and the Markdown documents without code. The
//! glossary lists the terms; `CONTRIBUTING.md` says what to write instead.

use crate::layers::{files_below, root};

/// Words at the beginning of a comment: a relative clause used as a noun.
const BEGINNINGS: &[&str] =
    &["what", "whether", "who", "whoever", "how many", "how much", "how long", "how often", "how far"];

/// Phrases, with replacements.
const PHRASES: &[(&str, &str)] = &[
    ("nobody", "no client, no task, unowned"),
    ("somebody", "a client, another task"),
    ("everybody", "all clients, all tasks"),
    ("whoever", "the caller, a client that"),
    ("in place of", "instead of"),
    ("for want of", "for lack of"),
    ("all the same", "anyway"),
    ("beside", "next to, besides, together with"),
    ("hears", "receives"),
    ("is told", "receives, is notified"),
    ("is patient", "waits"),
    ("lies in", "is stored in, is in"),
    ("lies at", "is at"),
    ("stands in", "is in"),
    ("stands at", "is at"),
    ("for so long", "for this time, until the timeout"),
    ("so many bytes", "N bytes"),
    ("is no", "is not a"),
    ("are no", "are not"),
];

/// Widest line of a comment, in characters, with its indentation.
const COLUMNS_MAX: usize = 100;

/// A fault: file, line, and what to change.
type Fault = String;

/// Lower-case words, without marks: code in backticks is left out.
fn words(text: &str) -> Vec<String> {
    let prose: String = text.split('`').step_by(2).collect::<Vec<_>>().join(" _ ");
    let is_letter = |letter: char| letter.is_alphanumeric() || "_'’-".contains(letter);
    prose.split(|letter| !is_letter(letter)).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// The phrases of a text, which is one paragraph.
fn phrases(text: &str) -> Vec<String> {
    let words = words(text);
    let mut faults = Vec::new();
    for (phrase, instead) in PHRASES {
        let parts: Vec<&str> = phrase.split(' ').collect();
        for at in 0..words.len() {
            let is_here = words[at..].iter().map(String::as_str).take(parts.len()).eq(parts.iter().copied());
            // "There is no room" is plain.
            let is_plain = phrase.ends_with(" no")
                && (words[..at].iter().rev().take(3).any(|word| word == "there")
                    || words
                        .get(at + 2)
                        .is_some_and(|word| ["longer", "more", "less", "better"].contains(&word.as_str())));
            if is_here && !is_plain {
                faults.push(format!("\"{phrase}\": write {instead}"));
            }
        }
    }
    faults
}

fn is_beginning(text: &str) -> bool {
    let words = words(text);
    BEGINNINGS.iter().any(|beginning| words.iter().map(String::as_str).zip(beginning.split(' ')).all(|(a, b)| a == b))
        && !text.trim_end().ends_with('?')
        && !words.is_empty()
}

/// The comments of a source: consecutive lines are one. First line, text, widest line.
fn comments(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let content = ["//!", "///", "//"].iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim);
        match content {
            Some("") | None => is_open = false,
            Some(content) if is_open => {
                let last = found.last_mut().unwrap();
                last.1.push(' ');
                last.1.push_str(content);
            }
            Some(content) => {
                is_open = true;
                found.push((number + 1, content.to_owned()));
            }
        }
    }
    found
}

fn faults_of_source(name: &str, text: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (line, comment) in comments(text) {
        let mut of_comment = phrases(&comment);
        if is_beginning(&comment) {
            of_comment.push("begins with a relative clause: write a noun phrase or a verb".to_owned());
        }
        faults.extend(of_comment.into_iter().map(|fault| format!("{name}:{line}: {fault}")));
    }
    let mut is_code = false;
    for (number, line) in text.lines().enumerate() {
        let content = line.trim_start().trim_start_matches(['/', '!']).trim_start();
        let is_comment = line.trim_start().starts_with("//");
        is_code = is_comment && is_code ^ content.starts_with("```");
        // Examples, drawings and tables cannot be wrapped.
        if is_comment && !is_code && !content.starts_with('|') && line.chars().count() > COLUMNS_MAX {
            faults.push(format!("{name}:{}: wider than {COLUMNS_MAX} columns", number + 1));
        }
    }
    faults
}

fn faults_of_document(name: &str, text: &str) -> Vec<Fault> {
    let (mut is_code, mut paragraph, mut start) = (false, String::new(), 1);
    let mut faults = Vec::new();
    for (number, line) in text.lines().chain([""]).enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        if is_code || is_fence || line.trim().is_empty() || line.starts_with("    ") || line.starts_with('|') {
            let found = phrases(&std::mem::take(&mut paragraph));
            faults.extend(found.into_iter().map(|fault| format!("{name}:{start}: {fault}")));
            start = number + 2;
        } else {
            paragraph.extend([line, " "]);
        }
    }
    faults
}

#[test]
fn comments_and_documents_use_the_usual_terms() {
    let mut faults = Vec::new();
    let below = |folder: &str| ["rs", "md"].map(|extension| files_below(&root().join(folder), extension)).concat();
    let mut files = ["crates", "xtask", "fuzz", "docs"].map(below).concat();
    files.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root().join(name)));
    let mut sources_read = 0;
    for path in &files {
        let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        // The list of phrases is here; in the glossary, former words; generated pages follow their
        // tables.
        let is_left_out = ["tests/integration/prose.rs", "glossary.md"].iter().any(|end| name.ends_with(end))
            || name.starts_with("docs/reference/");
        let text = std::fs::read_to_string(path).unwrap();
        if name.ends_with(".rs") && !is_left_out {
            sources_read += 1;
            faults.extend(faults_of_source(&name, &text));
        } else if !is_left_out {
            faults.extend(faults_of_document(&name, &text));
        }
    }
    assert!(sources_read > 900, "hardly any sources: {sources_read}");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn faults_of_prose_are_found_by_line() {
    let source = "fn f() {}\n\n/// Whether it is open.\nfn g() {}\n// It is no file, and\n// nobody hears it.\n";
    let faults = faults_of_source("a.rs", source).join("\n");
    assert_eq!(
        faults,
        "a.rs:3: begins with a relative clause: write a noun phrase or a verb\n\
         a.rs:5: \"nobody\": write no client, no task, unowned\n\
         a.rs:5: \"hears\": write receives\n\
         a.rs:5: \"is no\": write is not a"
    );
    let plain = "/// There is no room in `what nobody hears`, which is no longer used.\n// What is a beacon?\n";
    assert_eq!(faults_of_source("a.rs", plain), [""; 0]);
    let wide = format!("// {}\n", "wide ".repeat(20));
    assert_eq!(faults_of_source("a.rs", &wide), ["a.rs:1: wider than 100 columns"]);
    assert_eq!(
        faults_of_document("a.md", "A file\nlies in a folder.\n\n```\nnobody\n```\n"),
        ["a.md:1: \"lies in\": write is stored in, is in"]
    );
}
