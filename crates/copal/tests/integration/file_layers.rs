//! The files of the crates where layering matters most import one another downwards only.
//!
//! What counts is a path that names a module: `use crate::a::b::C`, `super::b`, `crate::a::f()`. A file with submodules does not import
//! them by declaring them. Tests are left out.

use crate::layers::root;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Crates whose files have no circles. A crate that gets there is added.
const CRATES: &[&str] = &[
    "engine",
    "cache",
    "store",
    "backend",
    "body",
    "http1",
    "semantics",
    "proxy-protocol",
    "http2",
    "http3",
    "eviction",
    "manager",
    "preflight",
    "worker",
    "net",
];

/// A module's path below the crate's root: `["request", "task"]`.
type Module = Vec<String>;

fn modules(folder: &Path, prefix: &Module, found: &mut BTreeMap<Module, String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let module = [prefix.as_slice(), std::slice::from_ref(&name)].concat();
        if path.is_dir() {
            modules(&path, &module, found);
        } else if name != "lib" && name != "tests" && !name.ends_with("_tests") {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap();
            let (mut lines, mut kept) = (code.lines(), String::new());
            while let Some(line) = lines.next() {
                match line.trim() {
                    "#[cfg(test)]" => _ = lines.next(),
                    line if line.starts_with("//") => {}
                    line => kept.extend([line, "\n"]),
                }
            }
            found.insert(module, kept);
        }
    }
}

/// The paths that begin at `at`, with groups in braces taken apart.
fn paths(text: &str) -> Vec<Module> {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && !"_:".contains(letter)).unwrap_or(text.len());
    let head: Module = text[..end].split("::").filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let rest = &text[end..];
    if !(text[..end].ends_with("::") && rest.starts_with('{')) {
        return vec![head];
    }
    let (mut depth, mut start, mut all) = (0, 1, Vec::new());
    for (index, letter) in rest.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if (letter == ',' && depth == 1) || depth == 0 {
            let part = rest[start..index].trim();
            if !part.is_empty() {
                all.extend(paths(part).into_iter().map(|path| [head.as_slice(), &path].concat()));
            }
            start = index + 1;
        }
        if depth == 0 {
            break;
        }
    }
    all
}

/// The modules that the code of one names.
fn imports(module: &Module, code: &str, all: &BTreeMap<Module, String>) -> BTreeSet<Module> {
    let mut found = BTreeSet::new();
    for word in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(word) {
            let is_middle = code[..at].ends_with(|letter: char| letter.is_alphanumeric() || "_:".contains(letter));
            if is_middle {
                continue;
            }
            for path in paths(&code[at..]) {
                let mut here = module.clone();
                let mut words = path.into_iter().peekable();
                while let Some(word) = words.next_if(|word| matches!(word.as_str(), "crate" | "super" | "self")) {
                    match word.as_str() {
                        "crate" => here.clear(),
                        "super" => _ = here.pop(),
                        _ => {}
                    }
                }
                for word in words {
                    let deeper = [here.as_slice(), &[word]].concat();
                    if !all.contains_key(&deeper) {
                        break;
                    }
                    here = deeper;
                }
                if !here.is_empty() && here != *module && all.contains_key(&here) {
                    found.insert(here);
                }
            }
        }
    }
    found
}

/// A way from a module back to itself, if there is one.
fn circle(graph: &BTreeMap<Module, BTreeSet<Module>>) -> Option<Vec<String>> {
    fn visit<'a>(
        module: &'a Module,
        graph: &'a BTreeMap<Module, BTreeSet<Module>>,
        way: &mut Vec<&'a Module>,
        done: &mut BTreeSet<&'a Module>,
    ) -> Option<Vec<String>> {
        if let Some(start) = way.iter().position(|one| *one == module) {
            return Some(way[start..].iter().chain([&module]).map(|one| one.join("::")).collect());
        }
        if done.contains(module) {
            return None;
        }
        way.push(module);
        let found = graph[module].iter().find_map(|next| visit(next, graph, way, done));
        way.pop();
        done.insert(module);
        found
    }
    let mut done = BTreeSet::new();
    graph.keys().find_map(|module| visit(module, graph, &mut Vec::new(), &mut done))
}

#[test]
fn no_file_imports_one_that_imports_it() {
    for name in CRATES {
        let mut all = BTreeMap::new();
        modules(&root().join("crates").join(name).join("src"), &Vec::new(), &mut all);
        assert!(all.len() > 3, "{name} has hardly any files: is it read from the right place?");
        let graph = all.iter().map(|(module, code)| (module.clone(), imports(module, code, &all))).collect();
        assert_eq!(circle(&graph), None, "files of {name} in a circle");
    }
}

#[test]
fn paths_in_groups_are_taken_apart() {
    let joined = |text: &str| paths(text).iter().map(|path| path.join("/")).collect::<Vec<_>>();
    assert_eq!(joined("crate::a::{self, b::{C, d}, E};"), ["crate/a/self", "crate/a/b/C", "crate/a/b/d", "crate/a/E"]);
    assert_eq!(joined("super::f(x)"), ["super/f"]);
    let all: BTreeMap<Module, String> = ["a", "b"].map(|name| (vec![name.to_owned()], String::new())).into();
    let of = |code: &str| imports(&vec!["a".to_owned()], code, &all).len();
    assert_eq!((of("use crate::b::X;"), of("use super::b;"), of("crate::a::x()"), of("use crate::c;")), (1, 1, 0, 0));
    let graph = BTreeMap::from([(vec!["a".to_owned()], BTreeSet::from([vec!["b".to_owned()]])), {
        (vec!["b".to_owned()], BTreeSet::from([vec!["a".to_owned()]]))
    }]);
    assert_eq!(circle(&graph), Some(vec!["a".to_owned(), "b".to_owned(), "a".to_owned()]));
}
