//! The meaning of words of VCL before 4.0: the versions that had them, and their replacements in
//! VCL 4.

use std::fmt::Write as _;
use surface::vcl::legacy::{Language, LegacyVariableRow, Means};
use surface::vcl::{Generation, METHODS, VARIABLES, Var};

/// The generations before 4.0, with their words.
fn languages() -> impl Iterator<Item = (&'static str, &'static Language)> {
    Generation::ALL.iter().filter_map(|generation| Some((generation.name(), Language::of(*generation)?)))
}

/// All old words that can be explained.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    languages().flat_map(|(_, language)| {
        let endings = language.methods.iter().flat_map(|row| row.returns.iter().map(|ending| ending.word));
        let methods = language.methods.iter().map(|row| row.name);
        language.variables.iter().map(|row| row.name).chain(methods).chain(endings)
    })
}

/// The meaning of an old word; `None` if it is not one.
pub(super) fn explanation(word: &str) -> Option<String> {
    method(word).or_else(|| ending(word)).or_else(|| variable(word)).or_else(|| {
        let instead = vcl::instead_of(word)?;
        Some(format!("{word}: a word of VCL before 4.0\n  {instead}\n"))
    })
}

fn method(word: &str) -> Option<String> {
    let mut text = String::new();
    for (generation, language) in languages() {
        let Some(row) = language.methods.iter().find(|row| row.name == word) else { continue };
        if text.is_empty() {
            let _ = writeln!(text, "{word}: a subroutine of VCL before 4.0\n  VCL 4 says: {}", row.method.row().name);
        }
        let endings: Vec<&str> = row.returns.iter().map(|ending| ending.word).collect();
        let _ = writeln!(text, "  returns in {generation}: {}", endings.join(", "));
    }
    (!text.is_empty()).then_some(text)
}

fn ending(word: &str) -> Option<String> {
    let mut text = String::new();
    for (generation, language) in languages() {
        let rows = || language.methods.iter().flat_map(|row| row.returns.iter().map(move |ending| (row, ending)));
        let by: Vec<&str> = rows().filter(|(_, ending)| ending.word == word).map(|(row, _)| row.name).collect();
        let Some((_, first)) = rows().find(|(_, ending)| ending.word == word) else { continue };
        if text.is_empty() {
            let action = first.action.name();
            let _ = writeln!(text, "return ({word}): an action of VCL before 4.0\n  VCL 4 says: return ({action})");
        }
        let _ = writeln!(text, "  returned in {generation} by: {}", by.join(", "));
    }
    (!text.is_empty()).then_some(text)
}

fn variable(word: &str) -> Option<String> {
    let family = match word.split('.').collect::<Vec<_>>()[..] {
        [object, "http", _] => format!("{object}.http.*"),
        _ => word.to_owned(),
    };
    let mut text = String::new();
    for (generation, language) in languages() {
        for row in language.variables.iter().filter(|row| row.name == family) {
            if text.is_empty() {
                let _ = writeln!(text, "{family}: {}, a variable of VCL before 4.0", row.kind.name());
            }
            let _ = write!(text, "  {generation}");
            for (what, at) in [("read", row.read), ("set", row.write)] {
                if at != 0 {
                    let _ = write!(text, ", {what} in {}", methods(language, at));
                }
            }
            let _ = writeln!(text, "; {}", now(row));
        }
    }
    (!text.is_empty()).then_some(text)
}

/// The former names of the methods of a set.
fn methods(language: &Language, at: u16) -> String {
    let named = METHODS.iter().filter(|row| at & row.bit != 0).filter_map(|row| language.method(row.method));
    named.map(|row| row.name).collect::<Vec<_>>().join(", ")
}

/// The replacement in VCL 4.
fn now(row: &LegacyVariableRow) -> String {
    let name = |var: Var| VARIABLES.iter().find(|row| row.var == var).map(|row| row.name);
    match row.means {
        Means::Variable(Var::Cacheable) => "VCL 4 has the opposite: beresp.uncacheable".to_owned(),
        Means::Variable(Var::Saintmode) => "VCL 4 has the VMOD saintmode".to_owned(),
        Means::Variable(var) => name(var).map_or("VCL 4 has none".to_owned(), |name| format!("VCL 4 says: {name}")),
        Means::Port(var) => format!("VCL 4 says: std.port({})", name(var).unwrap_or("ip")),
        Means::Healthy(var) => format!("VCL 4 says: std.healthy({})", name(var).unwrap_or("backend")),
        Means::Hash => "VCL 4 says: hash_data(...)".to_owned(),
        Means::Nothing | Means::True => "it has no effect any more".to_owned(),
    }
}
