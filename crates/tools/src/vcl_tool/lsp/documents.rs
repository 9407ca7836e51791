//! The documents that an editor has open, and their problems.
//!
//! A document that another open one includes is checked as part of that one. Included files come
//! from the editor if they are open there, else from disk by the rules of the compiler. A path of
//! the client is never opened: its documents come with their texts.

use super::position::{Lines, path_of, plain, uri_of};
use crate::vcl_tool::settings::Settings;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use surface::diagnostic::Code;
use surface::limits::{LSP_DOCUMENTS_BYTES_MAX, LSP_DOCUMENTS_MAX, VCL_SOURCE_BYTES_MAX};
use surface::lint::Level;
use vcl::{CompileOptions, FileKind, Place, ReadFile, Resolve, Severity, SourceText, Suggestion, SystemFiles};

/// A problem at a range of bytes of a file.
#[derive(Clone)]
pub(super) struct Problem {
    file: PathBuf,
    start: usize,
    end: usize,
    /// 1 error, 2 warning, 3 information.
    severity: u8,
    code: &'static str,
    message: String,
    fixes: Vec<(PathBuf, usize, usize, String)>,
}

/// An open document.
struct Document {
    path: PathBuf,
    text: String,
    /// The text, or one that it includes, has changed since the last check.
    is_stale: bool,
    /// Language version times ten, by the last check that could tell.
    syntax: u8,
    /// Files that the last check read.
    included: BTreeSet<PathBuf>,
    problems: Vec<Problem>,
}

/// All open documents, by URI.
#[derive(Default)]
pub(super) struct Documents {
    open: BTreeMap<String, Document>,
    published: BTreeSet<String>,
}

impl Documents {
    /// Opens a document, or replaces its text.
    ///
    /// # Errors
    /// More or longer documents than the limits permit.
    pub(super) fn set(&mut self, uri: &str, text: String) -> Result<(), &'static str> {
        let others = self.open.iter().filter(|(other, _)| *other != uri);
        let (count, bytes) = others.fold((0, 0), |(count, bytes), (_, one)| (count + 1, bytes + one.text.len()));
        if count >= LSP_DOCUMENTS_MAX || bytes + text.len() > LSP_DOCUMENTS_BYTES_MAX {
            return Err("too many or too large open documents");
        }
        if text.len() > VCL_SOURCE_BYTES_MAX {
            return Err("a document that is larger than a VCL may be");
        }
        let path = path_of(uri);
        self.touch(&path);
        match self.open.get_mut(uri) {
            Some(document) => {
                document.text = text;
                document.is_stale = true;
            }
            None => {
                let (included, problems) = (BTreeSet::new(), Vec::new());
                let document = Document { path, text, is_stale: true, syntax: 41, included, problems };
                self.open.insert(uri.to_owned(), document);
            }
        }
        Ok(())
    }

    /// Replaces a range, or all, of a document, as a change event says.
    ///
    /// # Errors
    /// An unknown document, a malformed event, or a text beyond the limits.
    pub(super) fn change(&mut self, uri: &str, event: &Value) -> Result<(), &'static str> {
        let new = event["text"].as_str().ok_or("a change without a text")?;
        let document = self.open.get(uri).ok_or("a change of a document that is not open")?;
        let text = match event.get("range").filter(|range| !range.is_null()) {
            None => new.to_owned(),
            Some(range) => {
                let old = &document.text;
                let lines = Lines::of(old.as_bytes());
                let start = lines.offset(&range["start"]).ok_or("a change without a range")?;
                let end = lines.offset(&range["end"]).ok_or("a change without a range")?.max(start);
                [&old[..start], new, &old[end..]].concat()
            }
        };
        self.set(uri, text)
    }

    pub(super) fn close(&mut self, uri: &str) {
        if let Some(document) = self.open.remove(uri) {
            self.touch(&document.path);
        }
    }

    /// Marks documents that include a file. A document that failed to include is in doubt too.
    fn touch(&mut self, path: &Path) {
        for document in self.open.values_mut() {
            document.is_stale |= document.included.contains(path);
        }
    }

    pub(super) fn text(&self, uri: &str) -> Option<&str> {
        self.open.get(uri).map(|document| &*document.text)
    }

    /// Language version of a document, times ten: that of a document that includes it, if one does.
    pub(super) fn syntax(&self, uri: &str) -> u8 {
        let Some(document) = self.open.get(uri) else { return 41 };
        let root = self.open.values().find(|other| other.included.contains(&document.path));
        root.unwrap_or(document).syntax
    }

    /// Text of a file: from the editor, or else from disk if a checked document includes it.
    pub(super) fn content(&self, path: &Path) -> Option<Vec<u8>> {
        if let Some(document) = self.open.values().find(|document| document.path == path) {
            return Some(document.text.clone().into_bytes());
        }
        let is_included = self.open.values().any(|document| document.included.contains(path));
        is_included.then(|| SystemFiles.read(path).ok())?
    }

    /// The files of a program: the document, those that include it, and all that these include.
    pub(super) fn program_of(&self, uri: &str) -> BTreeSet<PathBuf> {
        let Some(document) = self.open.get(uri) else { return BTreeSet::new() };
        let mut files = BTreeSet::from([document.path.clone()]);
        files.extend(document.included.iter().cloned());
        for other in self.open.values().filter(|other| other.included.contains(&document.path)) {
            files.insert(other.path.clone());
            files.extend(other.included.iter().cloned());
        }
        files
    }

    /// Checks what has changed.
    pub(super) fn check(&mut self, settings: &Settings) {
        let stale: Vec<String> =
            self.open.iter().filter(|(_, document)| document.is_stale).map(|(uri, _)| uri.clone()).collect();
        for uri in stale {
            let document = &self.open[&uri];
            let files = Overlay { documents: self, read: RefCell::default() };
            let (problems, syntax) = check(document, settings, &files);
            let included = files.read.into_inner();
            let Some(document) = self.open.get_mut(&uri) else { continue };
            document.is_stale = false;
            document.syntax = syntax.unwrap_or(document.syntax);
            (document.problems, document.included) = (problems, included);
        }
    }

    /// The problems to show: those of documents that no other one includes.
    fn shown(&self) -> impl Iterator<Item = &Problem> {
        let is_root = |document: &&Document| {
            !self.open.values().any(|other| {
                let both = document.included.contains(&other.path);
                other.included.contains(&document.path) && (!both || other.path < document.path)
            })
        };
        self.open.values().filter(is_root).flat_map(|document| &document.problems)
    }

    /// The notifications that bring the client up to date.
    pub(super) fn publications(&mut self) -> Vec<Value> {
        let mut by_file: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for uri in self.published.iter().chain(self.open.keys()) {
            by_file.entry(uri.clone()).or_default();
        }
        let mut files: BTreeMap<&Path, Vec<&Problem>> = BTreeMap::new();
        for problem in self.shown() {
            files.entry(&problem.file).or_default().push(problem);
        }
        for (file, problems) in files {
            let text = self.content(file).unwrap_or_default();
            let lines = Lines::of(&text);
            let shown = problems.iter().map(|problem| problem.json(&lines)).collect();
            by_file.insert(self.uri(file), shown);
        }
        let named = by_file.iter().filter(|(_, problems)| !problems.is_empty()).map(|(uri, _)| uri.clone());
        self.published = named.collect();
        let method = "textDocument/publishDiagnostics";
        let message = |(uri, problems)| json!({ "jsonrpc": "2.0", "method": method, "params": { "uri": uri, "diagnostics": problems } });
        by_file.into_iter().map(message).collect()
    }

    /// The URI of a file: the one that the client uses, if it is open.
    pub(super) fn uri(&self, path: &Path) -> String {
        let open = self.open.iter().find(|(_, document)| document.path == path);
        open.map_or_else(|| uri_of(path), |(uri, _)| uri.clone())
    }

    /// The corrections of problems in a range of a document.
    pub(super) fn fixes(&self, uri: &str, range: &Value) -> Vec<Value> {
        let Some(document) = self.open.get(uri) else { return Vec::new() };
        let lines = Lines::of(document.text.as_bytes());
        let (Some(start), Some(end)) = (lines.offset(&range["start"]), lines.offset(&range["end"])) else {
            return Vec::new();
        };
        let touches =
            |problem: &&Problem| problem.file == document.path && problem.start <= end && start <= problem.end;
        let mut actions = Vec::new();
        for problem in self.shown().filter(touches) {
            for (file, start, end, replacement) in &problem.fixes {
                let text = self.content(file).unwrap_or_default();
                let edit = json!({ "range": Lines::of(&text).range(*start, *end), "newText": replacement });
                let title = if replacement.is_empty() {
                    format!("Remove ({})", problem.code)
                } else {
                    format!("Write {} ({})", replacement.trim(), problem.code)
                };
                actions.push(json!({
                    "title": title,
                    "kind": "quickfix",
                    "diagnostics": [problem.json(&lines)],
                    "edit": { "changes": { self.uri(file): [edit] } },
                }));
            }
        }
        actions
    }
}

impl Problem {
    fn json(&self, lines: &Lines<'_>) -> Value {
        json!({
            "range": lines.range(self.start, self.end),
            "severity": self.severity,
            "code": self.code,
            "source": "copal",
            "message": self.message,
        })
    }
}

/// Files of the compiler: open documents first. Remembers the names of those it was asked for.
struct Overlay<'a> {
    documents: &'a Documents,
    read: RefCell<BTreeSet<PathBuf>>,
}

impl ReadFile for Overlay<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let name = plain(path);
        let open = self.documents.open.values().find(|document| document.path == name);
        let text = match open {
            Some(document) => Ok(document.text.clone().into_bytes()),
            None => SystemFiles.read(path),
        };
        self.read.borrow_mut().insert(name);
        text
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<PathBuf>> {
        SystemFiles.glob(pattern)
    }

    fn kind(&self, path: &Path) -> io::Result<FileKind> {
        SystemFiles.kind(path)
    }
}

/// Resolves every name to one address: an editor must not wait for a name server.
struct NoNameServer;

impl Resolve for NoNameServer {
    fn addresses(&self, _: &str) -> Result<Vec<IpAddr>, String> {
        Ok(vec![IpAddr::from([192, 0, 2, 1])])
    }

    fn port(&self, service: &str) -> Option<u16> {
        vcl::SystemResolver.port(service)
    }
}

/// Problems of a document with what it includes, and its language version if it compiles.
fn check(document: &Document, settings: &Settings, files: &Overlay<'_>) -> (Vec<Problem>, Option<u8>) {
    let name = document.path.to_string_lossy().into_owned();
    let source = SourceText { name: &name, text: document.text.as_bytes() };
    settings.with(|options| {
        let mut path = options.vcl_path.to_vec();
        path.extend(document.path.parent().map(Path::to_path_buf));
        // A file to be included needs no backend of its own.
        let is_fragment = !document.text.contains("backend ") && !document.text.contains("vcl 4");
        let default_backend = options.default_backend.or(is_fragment.then_some(FRAGMENT_BACKEND));
        let options = CompileOptions {
            vcl_path: &path,
            err_unref: false,
            default_backend,
            resolver: &NoNameServer,
            files,
            ..*options
        };
        let mut problems = Vec::new();
        let diagnostics = match vcl::compile(&source, &options) {
            Err(error) => {
                problems.extend(error.diagnostics.iter().map(|one| of_diagnostic(one, &document.path)));
                return (problems, syntax_of(&document.text));
            }
            Ok(compiled) => (compiled.diagnostics, compiled.program.syntax),
        };
        let (warnings, syntax) = diagnostics;
        // The linter has rules for these.
        let others = warnings.iter().filter(|one| !matches!(one.code, Code::Unused | Code::Unreachable));
        problems.extend(others.map(|one| of_diagnostic(one, &document.path)));
        if let Ok(linted) = vcl::lint(&source, &options) {
            for finding in linted.findings {
                let severity = match finding.rule.row().level {
                    Level::Error => 1,
                    Level::Warning => 2,
                    Level::Note => 3,
                };
                let message = format!("{}\n{}", finding.message, finding.hint);
                let fixes = finding.fix.iter().map(edit).collect();
                problems.push(problem(&finding.place, severity, finding.rule.row().id, message, fixes));
            }
        }
        (problems, Some(syntax))
    })
}

/// Backend of a file to be included.
const FRAGMENT_BACKEND: &str = "backend default { .host = \"192.0.2.1\"; }";

/// Language version of a text that does not compile, by its most distinct words.
fn syntax_of(text: &str) -> Option<u8> {
    let has = |word: &str| text.contains(word);
    match () {
        () if has("vcl 4.0") => Some(40),
        () if has("vcl 4.") => Some(41),
        () if has("vcl_fetch") || has("vcl_error") => Some(30),
        () => None,
    }
}

fn of_diagnostic(diagnostic: &vcl::Diagnostic, document: &Path) -> Problem {
    let severity = match diagnostic.severity {
        Severity::Error => 1,
        Severity::Warning => 2,
    };
    let hint = diagnostic.hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default();
    let message = diagnostic.message() + &hint;
    let code = diagnostic.code.row().number;
    let fixes = diagnostic.suggestions.iter().map(edit).collect();
    match diagnostic.place() {
        Some(place) => problem(place, severity, code, message, fixes),
        None => Problem { file: document.to_owned(), start: 0, end: 0, severity, code, message, fixes },
    }
}

fn edit(suggestion: &Suggestion) -> (PathBuf, usize, usize, String) {
    let place = &suggestion.place;
    (plain(Path::new(&place.file)), place.start as usize, place.end as usize, suggestion.replacement.clone())
}

fn problem(
    place: &Place,
    severity: u8,
    code: &'static str,
    message: String,
    fixes: Vec<(PathBuf, usize, usize, String)>,
) -> Problem {
    let (start, end) = (place.start as usize, place.end as usize);
    Problem { file: plain(Path::new(&place.file)), start, end, severity, code, message, fixes }
}
