//! Answers to requests about documents.

use super::super::explain;
use super::completion;
use super::documents::Documents;
use super::position::{Lines, units};
use super::words::Words;
use serde_json::{Value, json};
use surface::vmod::FUNCTIONS;
use vcl::{LexemeKind, SourceText};

/// Result of a request: a value, or a code and text.
pub(super) type Answer = Result<Value, (i32, String)>;

/// Code of the protocol: the request failed.
const REQUEST_FAILED: i32 = -32803;
/// Kinds of semantic tokens, in the order of their numbers.
const TOKEN_KINDS: [&str; 6] = ["comment", "string", "number", "keyword", "variable", "function"];
/// Words coloured as keywords.
const KEYWORDS: &[&str] = &[
    "acl", "backend", "call", "director", "else", "elseif", "elsif", "elif", "error", "esi", "if", "import", "include",
    "new", "none", "probe", "remove", "restart", "return", "set", "sub", "unset", "vcl",
];

/// Abilities of this server, as `initialize` reports them.
pub(super) fn capabilities() -> Value {
    json!({
        "capabilities": {
            "positionEncoding": "utf-16",
            "textDocumentSync": { "openClose": true, "change": 2 },
            "hoverProvider": true,
            "completionProvider": { "triggerCharacters": ["."] },
            "signatureHelpProvider": { "triggerCharacters": ["(", ","] },
            "definitionProvider": true,
            "referencesProvider": true,
            "renameProvider": true,
            "documentSymbolProvider": true,
            "documentFormattingProvider": true,
            "codeActionProvider": { "codeActionKinds": ["quickfix"] },
            "semanticTokensProvider": {
                "legend": { "tokenTypes": TOKEN_KINDS, "tokenModifiers": [] },
                "full": true,
            },
        },
        "serverInfo": { "name": "copal lsp", "version": surface::version::COPAL_VERSION },
    })
}

/// Answer to a request; `None` for an unknown method.
pub(super) fn answer(documents: &Documents, method: &str, params: &Value) -> Option<Answer> {
    let uri = params["textDocument"]["uri"].as_str().unwrap_or("");
    let text = documents.text(uri).unwrap_or("");
    let offset = Lines::of(text.as_bytes()).offset(&params["position"]).unwrap_or(0);
    let subject = Subject { documents, uri, text, offset };
    Some(match method {
        "textDocument/hover" => Ok(subject.hover().unwrap_or(Value::Null)),
        "textDocument/completion" => Ok(subject.completion()),
        "textDocument/signatureHelp" => Ok(subject.signature().unwrap_or(Value::Null)),
        "textDocument/definition" => Ok(subject.places(true)),
        "textDocument/references" => Ok(subject.places(false)),
        "textDocument/rename" => subject.rename(params["newName"].as_str().unwrap_or("")),
        "textDocument/documentSymbol" => Ok(subject.symbols()),
        "textDocument/formatting" => subject.format(),
        "textDocument/codeAction" => Ok(Value::Array(documents.fixes(uri, &params["range"]))),
        "textDocument/semanticTokens/full" => Ok(json!({ "data": semantic_tokens(text) })),
        _ => return None,
    })
}

/// The place that a request is about.
struct Subject<'a> {
    documents: &'a Documents,
    uri: &'a str,
    text: &'a str,
    offset: usize,
}

impl Subject<'_> {
    fn words(&self) -> Words<'_> {
        Words::of(self.text.as_bytes())
    }

    fn hover(&self) -> Option<Value> {
        let words = self.words();
        let index = words.at(self.offset)?;
        let path = words.path(index);
        let of_object = || {
            let (object, method) = path.split_once('.')?;
            explain::explanation(&format!("{}.{method}", words.class_of(object)?))
        };
        let text = explain::explanation(&path).or_else(of_object)?;
        let (start, end) = (words.lexemes[index].start, words.lexemes[index].end);
        let range = Lines::of(self.text.as_bytes()).range(start, end);
        Some(json!({ "contents": { "kind": "plaintext", "value": text }, "range": range }))
    }

    fn completion(&self) -> Value {
        let mut names = Vec::new();
        for file in self.documents.program_of(self.uri) {
            let content = self.documents.content(&file).unwrap_or_default();
            let words = Words::of(&content);
            names.extend(words.declared().iter().map(|one| words.shown(one.name).to_owned()));
        }
        Value::Array(completion::items(&self.words(), self.offset, self.documents.syntax(self.uri), &names))
    }

    fn signature(&self) -> Option<Value> {
        let words = self.words();
        let (path, argument) = words.call_at(self.offset)?;
        let of_object = path.split_once('.').and_then(|(object, method)| Some((words.class_of(object)?, method)));
        let row = FUNCTIONS.iter().find(|row| match &of_object {
            Some((class, method)) => *class == format!("{}.{}", row.vmod, row.class) && row.name == *method,
            None if row.class.is_empty() => path == format!("{}.{}", row.vmod, row.name),
            None => row.name.is_empty() && path == format!("{}.{}", row.vmod, row.class),
        })?;
        let parameters: Vec<Value> =
            row.arguments.iter().map(|argument| json!({ "label": explain::argument(argument) })).collect();
        let signature =
            json!({ "label": explain::signature(row), "documentation": row.text, "parameters": parameters });
        Some(json!({ "signatures": [signature], "activeSignature": 0, "activeParameter": argument }))
    }

    /// The declared name at the place.
    fn name(&self) -> Option<String> {
        let words = self.words();
        let index = words.at(self.offset)?;
        let name = words.shown(index);
        let is_use = words.uses(name).contains(&words.lexemes[index]);
        (is_use && self.is_declared(name)).then(|| name.to_owned())
    }

    fn is_declared(&self, name: &str) -> bool {
        self.documents.program_of(self.uri).iter().any(|file| {
            let content = self.documents.content(file).unwrap_or_default();
            let words = Words::of(&content);
            words.declared().iter().any(|one| words.shown(one.name) == name)
        })
    }

    /// Ranges of a name in all files of the program: its declarations, or all its uses.
    fn ranges(&self, name: &str, only_declared: bool) -> Vec<(String, Value)> {
        let mut found = Vec::new();
        for file in self.documents.program_of(self.uri) {
            let content = self.documents.content(&file).unwrap_or_default();
            let (words, lines) = (Words::of(&content), Lines::of(&content));
            let declared: Vec<_> = words.declared().iter().map(|one| words.lexemes[one.name]).collect();
            for lexeme in words.uses(name) {
                if !only_declared || declared.contains(&lexeme) {
                    found.push((self.documents.uri(&file), lines.range(lexeme.start, lexeme.end)));
                }
            }
        }
        found
    }

    fn places(&self, only_declared: bool) -> Value {
        let Some(name) = self.name() else { return Value::Array(Vec::new()) };
        let ranges = self.ranges(&name, only_declared).into_iter();
        Value::Array(ranges.map(|(uri, range)| json!({ "uri": uri, "range": range })).collect())
    }

    fn rename(&self, new: &str) -> Answer {
        let refused = |text: &str| Err((REQUEST_FAILED, text.to_owned()));
        let Some(name) = self.name() else { return refused("only names that the VCL declares can be renamed") };
        if name.starts_with("vcl_") || new.starts_with("vcl_") {
            return refused("names that begin with vcl_ belong to the language");
        }
        let is_name = new.starts_with(|c: char| c.is_ascii_alphabetic())
            && new.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if !is_name || explain::explanation(new).is_some() {
            return refused("not a name that VCL accepts, or a word of the language");
        }
        if self.is_declared(new) {
            return refused("this name is already in use");
        }
        let mut changes = serde_json::Map::new();
        for (uri, range) in self.ranges(&name, false) {
            let edits = changes.entry(uri).or_insert_with(|| json!([]));
            if let Value::Array(edits) = edits {
                edits.push(json!({ "range": range, "newText": new }));
            }
        }
        Ok(json!({ "changes": changes }))
    }

    fn symbols(&self) -> Value {
        let (words, lines) = (self.words(), Lines::of(self.text.as_bytes()));
        let mut symbols = Vec::new();
        for one in words.declared() {
            let keyword = words.shown(one.keyword);
            // Kinds of the protocol: function, object, constant.
            let kind = match keyword {
                "sub" => 12,
                "acl" | "probe" => 14,
                _ => 19,
            };
            let (whole, name) = (words.lexemes[one.keyword], words.lexemes[one.name]);
            symbols.push(json!({
                "name": words.shown(one.name),
                "detail": keyword,
                "kind": kind,
                "range": lines.range(whole.start, words.lexemes[one.last].end.max(name.end)),
                "selectionRange": lines.range(name.start, name.end),
            }));
        }
        Value::Array(symbols)
    }

    fn format(&self) -> Answer {
        let source = SourceText { name: self.uri, text: self.text.as_bytes() };
        let formatted = vcl::format(&source).map_err(|error| (REQUEST_FAILED, error.text))?;
        if formatted == self.text.as_bytes() {
            return Ok(json!([]));
        }
        let range = Lines::of(self.text.as_bytes()).range(0, self.text.len());
        Ok(json!([{ "range": range, "newText": String::from_utf8_lossy(&formatted) }]))
    }
}

/// Semantic tokens in the encoding of the protocol: five numbers each, relative to the one before.
/// A lexeme of several lines is one token a line.
fn semantic_tokens(text: &str) -> Vec<usize> {
    let words = Words::of(text.as_bytes());
    let lines = Lines::of(text.as_bytes());
    let mut data = Vec::new();
    let (mut last_line, mut last_column) = (0, 0);
    for (index, lexeme) in words.lexemes.iter().enumerate() {
        let kind = match lexeme.kind {
            LexemeKind::Comment => 0,
            LexemeKind::Text => 1,
            LexemeKind::Number => 2,
            LexemeKind::Sign => continue,
            LexemeKind::Word => {
                let after_dot = index > 0 && words.shown(index - 1) == ".";
                match () {
                    () if !after_dot && KEYWORDS.contains(&words.shown(index)) => 3,
                    () if words.shown(index + 1) == "(" => 5,
                    () => 4,
                }
            }
        };
        let mut start = lexeme.start;
        for piece in text.as_bytes()[lexeme.start..lexeme.end].split_inclusive(|&byte| byte == b'\n') {
            let length = units(piece.trim_ascii_end());
            if length > 0 {
                let (line, column) = lines.position(start);
                let from = if line == last_line { column - last_column } else { column };
                data.extend([line - last_line, from, length, kind, 0]);
                (last_line, last_column) = (line, column);
            }
            start += piece.len();
        }
    }
    data
}
