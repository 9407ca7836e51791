//! Runner of `tests/literate/*.md`: prose, VCL in fences, followed by the compiler's messages or
//! the program's effects.
//!
//! | fence | content |
//! | --- | --- |
//! | `vcl` | a whole VCL |
//! | `recv`, or `in vcl_deliver` | statements of that subroutine in a VCL with one backend |
//! | `file NAME` | a file that the texts up to the next heading can include, as `/vcl/NAME` |
//! | `messages` | messages about the text before it; without this fence, none |
//! | `prints` | effects of running the subroutine (for `vcl`, name it: `vcl vcl_deliver`) |
//!
//! Further words are settings: `4.0`, `err_unref=off`, `unsafe_path=off`, `acl_pedantic=off`,
//! `syntax_min=41`, `inline` (the text has no file name), `dialect=3.0`. With the environment
//! variable `LITERATE_UPDATE` the expectations are rewritten to match the present results.

use crate::host::RecordingHost;
use crate::world::{Files, MAIN, compile, compile_as};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use surface::diagnostic::{CODES, Code};
use surface::vcl::{Generation, METHODS, Method, legacy};
use vcl::{CompileError, CompileOptions, Compiled, Diagnostic, Place, Severity};
use vcl_run::eval::{Machine, Outcome};
use vcl_run::link::LinkedProgram;
use vcl_run::value::Scratch;

/// A text, and its expected result.
struct Case {
    text: String,
    settings: Vec<String>,
    method: Option<Method>,
    /// Line of the document where the text begins.
    line: usize,
    messages: Option<Expected>,
    prints: Option<Expected>,
}

#[derive(Clone)]
struct Expected {
    /// Indices of the first and last line inside the fence.
    from: usize,
    to: usize,
    text: String,
}

struct Document {
    lines: Vec<String>,
    cases: Vec<(Case, Files)>,
}

fn method(name: &str) -> Option<Method> {
    let old = || legacy::Language::of(Generation::V3)?.methods.iter().find(|row| row.name == name);
    METHODS.iter().find(|row| row.name == name).map(|row| row.method).or_else(|| old().map(|row| row.method))
}

fn read(path: &Path) -> Document {
    let lines: Vec<String> = std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect();
    let mut document = Document { cases: Vec::new(), lines: Vec::new() };
    let mut files = Files::default();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at].as_str();
        if line.starts_with('#') {
            files = Files::default();
        }
        let Some(info) = line.strip_prefix("```") else {
            at += 1;
            continue;
        };
        let end = (at + 1..lines.len())
            .find(|&end| lines[end] == "```")
            .unwrap_or_else(|| panic!("{}:{}: a fence that never ends", path.display(), at + 1));
        let body: String = lines[at + 1..end].iter().map(|line| format!("{line}\n")).collect();
        let words: Vec<&str> = info.split_whitespace().collect();
        let expected = Expected { from: at + 1, to: end, text: body.clone() };
        let previous = document.cases.last_mut().map(|(case, _)| case);
        match words[..] {
            ["file", name] => {
                files.0.insert(format!("/vcl/{name}"), body);
            }
            ["messages"] => previous.expect("messages belong to a text").messages = Some(expected),
            ["prints"] => previous.expect("what is printed belongs to a text").prints = Some(expected),
            ["vcl", ref settings @ ..] => {
                let method = settings.iter().find_map(|word| method(word));
                let settings = settings.iter().map(|&word| word.to_owned()).collect();
                let case = Case { text: body, settings, method, line: at + 1, messages: None, prints: None };
                document.cases.push((case, Files(files.0.clone())));
            }
            ["recv", ref settings @ ..] => {
                let case = statements("vcl_recv", &body, settings, at + 1);
                document.cases.push((case, Files(files.0.clone())));
            }
            ["in", sub, ref settings @ ..] => {
                let case = statements(sub, &body, settings, at + 1);
                document.cases.push((case, Files(files.0.clone())));
            }
            _ => {}
        }
        at = end + 1;
    }
    document.lines = lines;
    document
}

/// Puts statements into a subroutine of an otherwise minimal VCL.
fn statements(sub: &str, body: &str, settings: &[&str], line: usize) -> Case {
    let version = if settings.contains(&"4.0") { "4.0" } else { "4.1" };
    Case {
        text: format!("vcl {version};\nbackend default {{ .host = \"192.0.2.1\"; }}\nsub {sub} {{\n{body}}}\n"),
        settings: settings.iter().map(|&word| word.to_owned()).collect(),
        method: method(sub),
        line,
        messages: None,
        prints: None,
    }
}

fn compiled(case: &Case, files: &Files) -> Result<Compiled, CompileError> {
    let is = |word: &str| case.settings.iter().any(|setting| setting == word);
    let name = if is("inline") { "<vcl.inline>" } else { MAIN };
    compile_as(name, case.text.as_bytes(), files, |options: &mut CompileOptions| {
        options.err_unref = !is("err_unref=off");
        options.unsafe_path = !is("unsafe_path=off");
        options.acl_pedantic = !is("acl_pedantic=off");
        if is("syntax_min=41") {
            options.syntax_min = 41;
        }
        let dialect = case.settings.iter().find_map(|setting| setting.strip_prefix("dialect="));
        options.generation = dialect.and_then(Generation::of_name);
    })
}

/// The text that a place covers, as words.
fn covered(place: &Place, case: &Case, files: &Files) -> String {
    let text = files.0.get(&place.file).map_or(case.text.as_str(), String::as_str);
    let words = text.get(place.start as usize..place.end as usize).unwrap_or("?");
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(60) {
        Some((cut, _)) => format!("{}...", &words[..cut]),
        None if words.is_empty() => "the end".to_owned(),
        None => format!("`{words}`"),
    }
}

fn shown(message: &Diagnostic, case: &Case, files: &Files) -> String {
    let severity = if message.severity == Severity::Error { "error" } else { "warning" };
    let one_line =
        |text: &str| text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" | ");
    let place = message.place().map_or(String::new(), |place| {
        let file = if !files.0.contains_key(&place.file) { String::new() } else { format!(" of {}", place.file) };
        format!(" at {}{file}", covered(place, case, files))
    });
    let mut text = format!("{severity} {}{place}: {}\n", message.code.number(), one_line(&message.message()));
    for (words, place) in message.related() {
        let _ = writeln!(text, "  {} at {}", one_line(&words), covered(place, case, files));
    }
    if let Some(hint) = &message.hint {
        // The list of VMODs grows, and does not belong in these documents.
        const LIST: &str = "VMODs are part of the program: ";
        let hint = hint.find(LIST).map_or(hint.clone(), |at| format!("{}...", &hint[..at + LIST.len()]));
        let _ = writeln!(text, "  hint: {hint}");
    }
    text
}

/// The effects of the subroutine, one line for each action, and its end.
fn run(compiled: Compiled, method: Method) -> String {
    let program = LinkedProgram::link(compiled.program).expect("a compiled program links");
    let mut host = RecordingHost::new(&program);
    let mut scratch = Scratch::new(1 << 20);
    let outcome = Machine::new().run(&program, method, &mut host, &mut scratch);
    let mut text: String =
        host.done.iter().filter(|line| !line.starts_with("VCL_call ")).map(|line| format!("{line}\n")).collect();
    if let Outcome::Return(_, arguments) = outcome {
        if let Some(status) = arguments.status {
            let _ = writeln!(text, "status {status} {}", String::from_utf8_lossy(scratch.get(arguments.reason)));
        }
        if let Some(seconds) = arguments.duration {
            let _ = writeln!(text, "for {seconds} s");
        }
    }
    text.replace("VCL_return ", "return ")
}

fn documents() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/literate");
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    found.sort();
    found
}

#[test]
fn every_text_says_and_does_what_its_document_tells() {
    let update = std::env::var_os("LITERATE_UPDATE").is_some();
    let mut seen: BTreeSet<Code> = BTreeSet::new();
    let mut wrong = String::new();
    for path in documents() {
        let document = read(&path);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // Lines of the document to replace with the present results, the last ones first.
        let mut changes: Vec<(Expected, String)> = Vec::new();
        for (case, files) in &document.cases {
            let result = compiled(case, files);
            let messages = match &result {
                Ok(compiled) => &compiled.diagnostics,
                Err(error) => &error.diagnostics,
            };
            seen.extend(messages.iter().map(|message| message.code));
            let said: String = messages.iter().map(|message| shown(message, case, files)).collect();
            let expected = case.messages.as_ref().map_or("", |expected| expected.text.as_str());
            if said != expected {
                let _ = writeln!(wrong, "{name}:{}: expected\n{expected}got\n{said}", case.line);
                changes.extend(case.messages.clone().map(|expected| (expected, said)));
            }
            if let Some(expected) = &case.prints {
                let done = match (result, case.method) {
                    (Ok(compiled), Some(method)) => run(compiled, method),
                    _ => "it cannot run\n".to_owned(),
                };
                if done != expected.text {
                    let _ = writeln!(wrong, "{name}:{}: expected\n{}got\n{done}", case.line, expected.text);
                    changes.push((expected.clone(), done));
                }
            }
        }
        if update && !changes.is_empty() {
            let mut lines = document.lines;
            changes.sort_by_key(|(expected, _)| std::cmp::Reverse(expected.from));
            for (expected, text) in changes {
                lines.splice(expected.from..expected.to, text.lines().map(str::to_owned));
            }
            std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let missing: Vec<&str> = CODES.iter().filter(|row| !seen.contains(&row.code)).map(|row| row.number).collect();
    assert!(missing.is_empty(), "codes that no document shows: {missing:?}");
}

/// The examples in the table of messages cause the stated message, and no longer cause it when
/// corrected.
#[test]
fn examples_of_messages_are_true() {
    let mut files = Files::default();
    files.0.insert("/vcl/other.vcl".into(), "sub vcl_deliver { set resp.http.x = \"y\"; }\n".into());
    files.0.insert("/vcl/newer.vcl".into(), "vcl 4.1;\n".into());
    files.0.insert("/vcl/itself.vcl".into(), "include \"itself.vcl\";\n".into());
    for row in CODES {
        // Texts of megabytes, or with hundreds of brackets, are only described there.
        let described = [Code::SourceTooLarge, Code::NestedTooDeep].contains(&row.code);
        let messages = |text: &str| {
            let change = |options: &mut CompileOptions| {
                options.unsafe_path = row.code != Code::IncludeUnsafe;
                options.generation = (row.code == Code::DialectOther).then_some(Generation::V3);
            };
            match compile(text.as_bytes(), &files, change) {
                Ok(compiled) => compiled.diagnostics,
                Err(error) => error.diagnostics,
            }
        };
        if !described {
            let bad = if row.code == Code::IncludeRelative {
                compile_as("<vcl.inline>", row.bad.as_bytes(), &files, |_| {}).unwrap_err().diagnostics
            } else {
                messages(row.bad)
            };
            assert!(bad.iter().any(|message| message.code == row.code), "{}: {bad:#?}", row.number);
        }
        let good = messages(row.good);
        let wrong = |message: &&Diagnostic| message.code == row.code || message.severity == Severity::Error;
        assert_eq!(good.iter().find(wrong), None, "{}", row.number);
    }
}
