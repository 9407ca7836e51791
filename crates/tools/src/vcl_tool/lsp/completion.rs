//! Completion: only words that the dialect permits in the subroutine at the place.

use super::words::Words;
use serde_json::{Value, json};
use surface::vcl::explanation::KEYWORDS;
use surface::vcl::legacy::Language;
use surface::vcl::{Generation, METHODS, Type, VARIABLES, at};
use surface::vmod::{FUNCTIONS, VMODS};

/// Kinds of completion items in the protocol.
mod kind {
    pub(super) const METHOD: u8 = 2;
    pub(super) const FUNCTION: u8 = 3;
    pub(super) const VARIABLE: u8 = 6;
    pub(super) const MODULE: u8 = 9;
    pub(super) const KEYWORD: u8 = 14;
    pub(super) const REFERENCE: u8 = 18;
}

/// Use of a variable at the place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    Write,
    Unset,
}

/// The items at a byte of a text. `syntax`: language version times ten. `names`: the declared names
/// of the program.
pub(super) fn items(words: &Words<'_>, offset: usize, syntax: u8, names: &[String]) -> Vec<Value> {
    let before = String::from_utf8_lossy(&words.text[..offset]);
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let typed = &before[before.trim_end_matches(is_part).len()..];
    let lead = before[..before.len() - typed.len()].trim_end();
    let generation = Generation::of_syntax(syntax);
    let sub = words.sub_at(offset);
    let mut found = Items { typed: typed.to_owned(), items: Vec::new() };
    if last_word(lead) == "sub" {
        found.methods(generation);
    } else if last_word(lead) == "import" {
        VMODS.iter().for_each(|row| found.add(row.name, kind::MODULE, row.text, ""));
    } else if lead.strip_suffix('(').is_some_and(|lead| last_word(lead.trim_end()) == "return") {
        found.actions(sub, generation);
    } else if let Some(sub) = sub {
        let usage = match last_word(lead) {
            "set" => Use::Write,
            "unset" | "remove" => Use::Unset,
            _ => Use::Read,
        };
        let bit = method_bit(sub, generation);
        found.variables(bit, usage, syntax);
        if usage == Use::Read {
            found.functions(words, bit);
            KEYWORDS.iter().for_each(|row| found.add(row.name, kind::KEYWORD, row.form, row.text));
            names.iter().for_each(|name| found.add(name, kind::REFERENCE, "", ""));
        }
    } else {
        KEYWORDS.iter().for_each(|row| found.add(row.name, kind::KEYWORD, row.form, row.text));
    }
    found.items
}

fn last_word(text: &str) -> &str {
    text.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or("")
}

/// Bits of a subroutine; all of them for one of the author.
fn method_bit(name: &str, generation: Generation) -> u16 {
    let row = match Language::of(generation) {
        Some(language) => language.methods.iter().find(|row| row.name == name).map(|row| row.method.row()),
        None => METHODS.iter().find(|row| row.name == name),
    };
    row.map_or(at::ALL, |row| row.bit)
}

struct Items {
    typed: String,
    items: Vec<Value>,
}

impl Items {
    /// Adds an item if it begins with the typed text. After a dot only the rest is inserted:
    /// editors differ in whether a dot is part of a word.
    fn add(&mut self, label: &str, kind: u8, detail: &str, text: &str) {
        let rest = label.get(..self.typed.len()).filter(|head| head.eq_ignore_ascii_case(&self.typed));
        if rest.is_none() || label.is_empty() || self.items.iter().any(|item| item["label"] == label) {
            return;
        }
        let from = self.typed.rfind('.').map_or(0, |dot| dot + 1);
        let insert = label.strip_suffix('*').unwrap_or(label);
        self.items.push(json!({
            "label": label, "kind": kind, "detail": detail, "documentation": text,
            "insertText": insert.get(from..).unwrap_or(insert),
            "filterText": insert.get(from..).unwrap_or(insert),
        }));
    }

    fn methods(&mut self, generation: Generation) {
        match Language::of(generation) {
            Some(language) => {
                let text = |row: &surface::vcl::legacy::LegacyMethodRow| row.method.text();
                language.methods.iter().for_each(|row| self.add(row.name, kind::METHOD, "", text(row)));
            }
            None => METHODS.iter().for_each(|row| self.add(row.name, kind::METHOD, "", row.method.text())),
        }
    }

    fn actions(&mut self, sub: Option<&str>, generation: Generation) {
        let is_own = |name: &str| sub == Some(name) || sub.is_some_and(|sub| method_bit(sub, generation) == at::ALL);
        match Language::of(generation) {
            Some(language) => {
                for row in language.methods.iter().filter(|row| is_own(row.name)) {
                    row.returns.iter().for_each(|one| self.add(one.word, kind::KEYWORD, "", one.action.text()));
                }
            }
            None => {
                for row in METHODS.iter().filter(|row| is_own(row.name)) {
                    row.actions.iter().for_each(|action| self.add(action.name(), kind::KEYWORD, "", action.text()));
                }
            }
        }
    }

    fn variables(&mut self, bit: u16, usage: Use, syntax: u8) {
        match Language::of(Generation::of_syntax(syntax)) {
            Some(language) => {
                for row in language.variables {
                    let at = if usage == Use::Read { row.read } else { row.write };
                    if at & bit != 0 {
                        self.add(row.name, kind::VARIABLE, row.kind.name(), "");
                    }
                }
            }
            None => {
                for row in VARIABLES.iter().filter(|row| (row.syntax_min..=row.syntax_max).contains(&syntax)) {
                    let at = match usage {
                        Use::Read => row.read,
                        Use::Write => row.write,
                        Use::Unset => row.unset,
                    };
                    if at & bit != 0 && row.kind != Type::Void {
                        self.add(row.name, kind::VARIABLE, row.kind.name(), row.text);
                    }
                }
            }
        }
    }

    /// Functions of the imported VMODs, and methods of objects.
    fn functions(&mut self, words: &Words<'_>, bit: u16) {
        let imported: Vec<&str> = (0..words.lexemes.len())
            .filter(|&index| words.shown(index) == "import")
            .map(|index| words.shown(index + 1))
            .collect();
        let class =
            self.typed.split_once('.').and_then(|(object, _)| Some((object.to_owned(), words.class_of(object)?)));
        for row in FUNCTIONS.iter().filter(|row| row.at & bit != 0) {
            let signature = super::super::explain::signature(row);
            match &class {
                Some((object, class)) if !row.name.is_empty() && *class == format!("{}.{}", row.vmod, row.class) => {
                    self.add(&format!("{object}.{}", row.name), kind::METHOD, &signature, row.text);
                }
                Some(_) => {}
                None if !imported.contains(&row.vmod) => {}
                None if row.class.is_empty() => {
                    self.add(&format!("{}.{}", row.vmod, row.name), kind::FUNCTION, &signature, row.text);
                }
                None if row.name.is_empty() => {
                    self.add(&format!("{}.{}", row.vmod, row.class), kind::FUNCTION, &signature, row.text);
                }
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str, syntax: u8) -> Vec<String> {
        let items = items(&Words::of(text.as_bytes()), text.len(), syntax, &[]);
        items.iter().map(|item| item["label"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn only_words_permitted_in_the_subroutine_are_offered() {
        let ttl = |sub: &str| labels(&format!("sub {sub} {{ set beresp.t"), 41).contains(&"beresp.ttl".to_owned());
        assert!(ttl("vcl_backend_response") && !ttl("vcl_recv"));
        assert!(labels("sub vcl_recv { return (", 41).contains(&"pipe".to_owned()));
        assert!(!labels("sub vcl_deliver { return (", 41).contains(&"pipe".to_owned()));
        assert!(labels("import std;\nsub vcl_recv { std.tol", 41).contains(&"std.tolower".to_owned()));
        assert!(labels("sub vcl_recv { std.tol", 41).is_empty());
    }

    #[test]
    fn an_old_dialect_has_its_own_words() {
        assert!(labels("sub vcl_fetch { return (hit", 30).contains(&"hit_for_pass".to_owned()));
        assert!(labels("sub vcl_f", 30).contains(&"vcl_fetch".to_owned()));
        assert!(!labels("sub vcl_f", 41).contains(&"vcl_fetch".to_owned()));
    }
}
