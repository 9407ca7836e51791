//! Completion at the cursor: commands and their arguments, according to their syntax lines in
//! `surface::cli`.
//!
//! `<param>` is a parameter, `<configname>` a VCL on the server, `<backend_pattern>` one of its
//! backends, `<filename>` a local file; a word without brackets represents itself. Nothing else can
//! be completed.

use std::path::Path;

use serde_json::Value;
use surface::cli::{BAN_FIELDS, COMMANDS, CommandRow, command};
use surface::encoding::ENCODINGS;
use surface::legible;
use surface::parameter::{
    BitRow, COMPILER_BITS, DEBUG_BITS, EXPERIMENTAL_BITS, FEATURE_BITS, PARAMETERS, ParameterKind,
};
use surface::tag::TAGS;

/// Most candidates shown.
const CANDIDATES_MAX: usize = 500;

/// Kinds of names that only the server can list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// VCLs and labels.
    Vcl,
    /// Labels.
    Label,
    /// Backends and directors.
    Backend,
}

impl Kind {
    /// The command line that requests them.
    pub fn question(self) -> &'static str {
        match self {
            Kind::Vcl | Kind::Label => "vcl.list -j\n",
            Kind::Backend => "backend.list -j *.*\n",
        }
    }

    /// The names in the answer.
    pub fn names(self, answer: &str) -> Vec<String> {
        let Ok(Value::Array(answer)) = serde_json::from_str(answer) else { return Vec::new() };
        // The version, the command and the time come first.
        let rows = answer.iter().skip(3);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let names: Vec<String> = match self {
            Kind::Backend => rows.filter_map(Value::as_object).flat_map(|names| names.keys().cloned()).collect(),
            Kind::Vcl => rows.filter_map(|row| text(&row["name"])).collect(),
            Kind::Label => rows.filter(|row| row["state"] == "label").filter_map(|row| text(&row["name"])).collect(),
        };
        names.into_iter().filter(|name| is_plain(name)).collect()
    }
}

/// The candidates for the last typed word, each as displayed and as inserted, and the start of that
/// word. `ask` gets names from the server.
pub(super) fn candidates(typed: &str, ask: impl Fn(Kind) -> Vec<String>) -> (usize, Vec<(String, String)>) {
    // Lines of a here-document are not completed.
    if typed.contains('\n') {
        return (typed.len(), Vec::new());
    }
    let start = typed.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let (before, word) = typed.split_at(start);
    let mut words = before.split_whitespace();
    let Some(verb) = words.next() else {
        let verbs =
            COMMANDS.iter().filter(|row| !row.hidden || word.starts_with("debug") || word.starts_with("vcl.sy"));
        return (start, chosen(verbs.map(|row| row.verb.to_owned()), word, " "));
    };
    let Some(row) = command(verb.strip_prefix('-').unwrap_or(verb)) else { return (start, Vec::new()) };
    let given: Vec<&str> = words.filter(|word| !word.starts_with('-')).collect();
    let placeholders: Vec<Vec<&str>> = placeholders(row);
    if word.starts_with('-') {
        let options = placeholders.iter().flatten().filter(|choice| choice.starts_with('-'));
        return (start, chosen(options.map(|choice| (*choice).to_owned()), word, " "));
    }
    let arguments: Vec<&Vec<&str>> =
        placeholders.iter().filter(|choices| !choices.iter().all(|choice| choice.starts_with('-'))).collect();
    let repeats = row.arguments_max.is_none();
    let Some(choices) = arguments.get(given.len()).or_else(|| arguments.last().filter(|_| repeats)) else {
        return (start, Vec::new());
    };
    let mut found = Vec::new();
    for choice in choices.iter() {
        found.extend(match *choice {
            "<configname>" | "<name_pattern>" | "<vcl>" if verb == "vcl.load" || verb == "vcl.inline" => Vec::new(),
            "<configname>" | "<name_pattern>" => chosen(ask(Kind::Vcl).into_iter(), word, " "),
            "<label>" => chosen(ask(Kind::Label).into_iter(), word, " "),
            "<backend_pattern>" => chosen(ask(Kind::Backend).into_iter(), word, " "),
            "<param>" => chosen(PARAMETERS.iter().map(|row| row.name.to_owned()), word, " "),
            "<value>" => chosen(values(given.first().copied()).into_iter(), word, " "),
            "<command>" => chosen(COMMANDS.iter().map(|row| row.verb.to_owned()), word, " "),
            "<filename>" => files(word),
            "<field>" => chosen(BAN_FIELDS.iter().map(|field| (*field).to_owned()), word, ""),
            literal if !literal.starts_with(['<', '-']) => chosen([literal.to_owned()].into_iter(), word, " "),
            _ => Vec::new(),
        });
    }
    found.sort();
    found.dedup();
    (start, found)
}

/// The arguments of a completely typed command, to be shown after it.
pub(super) fn hint(line: &str) -> Option<String> {
    let verb = line.strip_suffix(' ')?;
    let row = command(verb)?;
    row.syntax.strip_prefix(verb).map(|rest| rest.trim_start().to_owned()).filter(|rest| !rest.is_empty())
}

/// The arguments in a syntax line, each with its alternatives.
fn placeholders(row: &CommandRow) -> Vec<Vec<&'static str>> {
    let syntax: &'static str = row.syntax;
    let arguments = syntax.split(' ').skip(1).take_while(|argument| !argument.starts_with("[&&"));
    arguments
        .map(|argument| {
            let argument = argument.trim_start_matches('[').trim_end_matches("...").trim_end_matches(']');
            match argument {
                "<configname|label>" => vec!["<configname>"],
                _ => argument.split('|').collect(),
            }
        })
        .collect()
}

/// True if a name is one plain word; others are not offered. A newline would end the command, and a
/// terminal would interpret control characters when the name is shown.
fn is_plain(name: &str) -> bool {
    let is_special =
        |letter: char| letter.is_whitespace() || matches!(letter, '"' | '\\') || legible::is_commanding(letter);
    !name.contains(is_special)
}

fn chosen(words: impl Iterator<Item = String>, start: &str, after: &str) -> Vec<(String, String)> {
    words.filter(|word| word.starts_with(start)).take(CANDIDATES_MAX).map(|word| (word.clone(), word + after)).collect()
}

/// The possible values of a parameter, if they are a choice.
fn values(parameter: Option<&str>) -> Vec<String> {
    let mut found = vec!["default".to_owned()];
    let Some(row) = PARAMETERS.iter().find(|row| Some(row.name) == parameter) else { return found };
    let bits = |rows: &[BitRow]| rows.iter().map(|row| format!("+{}", row.name)).collect();
    found.extend(match row.kind {
        ParameterKind::Bool => vec!["on".to_owned(), "off".to_owned()],
        ParameterKind::DebugBits => bits(DEBUG_BITS),
        ParameterKind::FeatureBits => bits(FEATURE_BITS),
        ParameterKind::ExperimentalBits => bits(EXPERIMENTAL_BITS),
        ParameterKind::CompilerBits => bits(COMPILER_BITS),
        ParameterKind::LogMask => TAGS.iter().map(|row| format!("+{}", row.name)).collect(),
        ParameterKind::Encodings => ENCODINGS.iter().map(|encoding| encoding.name().to_owned()).collect(),
        _ => Vec::new(),
    });
    found
}

fn files(word: &str) -> Vec<(String, String)> {
    let (prefix, start) = word.split_at(word.rfind('/').map_or(0, |at| at + 1));
    let folder = if prefix.is_empty() { "." } else { prefix };
    let Ok(entries) = std::fs::read_dir(Path::new(folder)) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten().take(CANDIDATES_MAX * 10) {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let hidden = name.starts_with('.') && !start.starts_with('.');
        if hidden || !name.starts_with(start) || !is_plain(&name) {
            continue;
        }
        let after = if entry.path().is_dir() { "/" } else { " " };
        found.push((name.clone(), format!("{prefix}{name}{after}")));
    }
    found.truncate(CANDIDATES_MAX);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(typed: &str) -> Vec<String> {
        let ask = |kind| match kind {
            Kind::Vcl => vec!["boot".to_owned(), "blue".to_owned(), "red".to_owned()],
            Kind::Label => vec!["red".to_owned()],
            Kind::Backend => vec!["boot.default".to_owned()],
        };
        candidates(typed, ask).1.into_iter().map(|(shown, _)| shown).collect()
    }

    #[test]
    fn commands_and_their_arguments_are_known() {
        assert_eq!(shown("vcl.d"), ["vcl.deps", "vcl.discard"]);
        assert_eq!(shown("vcl.use b"), ["blue", "boot"]);
        assert_eq!(shown("vcl.use blue --p"), ["--percent"]);
        assert_eq!(shown("vcl.label "), ["red"]);
        assert_eq!(shown("vcl.label red b"), ["blue", "boot"]);
        assert_eq!(shown("vcl.discard boot b"), ["blue", "boot"]);
        assert_eq!(shown("vcl.state boot w"), ["warm"]);
        assert_eq!(shown("backend.set_health "), ["boot.default"]);
        assert_eq!(shown("backend.set_health * s"), ["sick"]);
        assert_eq!(shown("param.show default_t"), ["default_ttl"]);
        assert_eq!(shown("param.show -j default_t"), ["default_ttl"]);
        assert_eq!(shown("param.show ch"), ["changed"]);
        assert_eq!(shown("param.show -"), ["-l", "-j"]);
        assert_eq!(shown("param.set http_gzip_support o"), ["off", "on"]);
        assert_eq!(shown("param.set debug +sync"), ["+syncvsl"]);
        assert_eq!(shown("param.set vsl_mask +Hash"), ["+Hash"]);
        assert_eq!(shown("help pi"), ["pid", "ping"]);
        assert_eq!(shown("ban obj.s"), ["obj.status"]);
        assert_eq!(shown("pid "), [""; 0]);
        assert_eq!(shown("nonsense "), [""; 0]);
        assert_eq!(shown("vcl.inline x << E\nvcl.d"), [""; 0]);
        assert!(!shown("").contains(&"debug.xid".to_owned()) && shown("debug.x") == ["debug.xid"]);
    }

    #[test]
    fn files_are_completed_with_their_folders() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("site.vcl"), "").unwrap();
        std::fs::create_dir(folder.path().join("sites")).unwrap();
        let path = folder.path().to_str().unwrap();
        let (start, mut found) = candidates(&format!("vcl.load new {path}/si"), |_| Vec::new());
        found.sort();
        assert_eq!(start, "vcl.load new ".len());
        let words: Vec<String> = found.into_iter().map(|(_, word)| word).collect();
        assert_eq!(words, [format!("{path}/site.vcl "), format!("{path}/sites/")]);
    }

    #[test]
    fn files_whose_names_are_more_than_a_word_are_not_offered() {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().unwrap();
        let names: [&[u8]; 8] = [
            b"a.vcl",
            b"a\nvcl.discard boot",
            b"a\x1b]0;title\x07",
            b"a\tb",
            b"a b",
            b"a\"b",
            "a\u{a0}\u{202e}b".as_bytes(),
            b"a\xff",
        ];
        for name in names {
            std::fs::write(folder.path().join(std::ffi::OsStr::from_bytes(name)), "").unwrap();
        }
        assert_eq!(shown(&format!("vcl.load new {}/", folder.path().to_str().unwrap())), ["a.vcl"]);
    }

    #[test]
    fn answers_of_a_server_are_read_or_ignored() {
        let list = r#"[ 2, ["vcl.list", "-j"], 1.0, {"status":"active","state":"auto","name":"boot"}, {"state":"label","name":"l"}]"#;
        assert_eq!(Kind::Vcl.names(list), ["boot", "l"]);
        assert_eq!(Kind::Label.names(list), ["l"]);
        let list = r#"[ 3, ["backend.list"], 1.0, {"boot.a": {"type":"backend"}, "boot.b": {}}]"#;
        assert_eq!(Kind::Backend.names(list), ["boot.a", "boot.b"]);
        assert_eq!(Kind::Backend.names("no JSON"), [""; 0]);
        assert_eq!(Kind::Vcl.names("[1, 2, 3, 4]"), [""; 0]);
    }

    #[test]
    fn the_arguments_of_a_whole_command_are_hinted_at() {
        assert_eq!(hint("vcl.discard "), Some("<name_pattern>...".to_owned()));
        assert_eq!(hint("vcl.discard"), None);
        assert_eq!(hint("ping x "), None);
        assert_eq!(hint("quit "), None);
    }
}
