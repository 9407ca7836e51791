//! The files of each crate import one another downwards only.
//!
//! An import is a path that names a module or an item of it: `use crate::a::b::C`, `super::b`,
//! `crate::a::f()`. An item that a module exports from elsewhere (`pub use`) counts as an import of
//! the module that defines it. A file does not import its submodules by declaring them, but by
//! paths that begin with their names: then they must not import it. Tests are left out.

use crate::layers::root;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A module's path below the crate's root: `["request", "task"]`; the root itself is empty.
type Module = Vec<String>;

/// The code of each module, without comments, tests and declarations of modules.
type Sources = BTreeMap<Module, String>;

fn modules(folder: &Path, prefix: &Module, found: &mut Sources) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let module = match name.as_str() {
            "lib" | "main" if prefix.is_empty() => Vec::new(),
            _ => [prefix.as_slice(), std::slice::from_ref(&name)].concat(),
        };
        if name == "tests" || name.ends_with("_tests") {
            continue;
        }
        if path.is_dir() {
            modules(&path, &module, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.insert(module, without_tests(&std::fs::read_to_string(&path).unwrap()));
        }
    }
}

/// Leaves out comments, and what is compiled for tests only: the item behind `#[cfg(test)]`, to its
/// `;` or closing brace.
fn without_tests(text: &str) -> String {
    let (mut lines, mut kept) = (text.lines(), String::new());
    while let Some(line) = lines.next() {
        match line.trim() {
            "#[cfg(test)]" => {
                let indent = line.len() - line.trim_start().len();
                let ends = |line: &str| {
                    let is_outer = line.len() - line.trim_start().len() == indent;
                    is_outer && line.ends_with([';', '}', ',']) && !line.trim().starts_with("#[")
                };
                _ = lines.by_ref().find(|line| ends(line));
            }
            line if line.starts_with("//") => {}
            line => kept.extend([line, "\n"]),
        }
    }
    kept
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

/// The items that each module exports from elsewhere: by module and name, the path as written.
type Exports = BTreeMap<Module, BTreeMap<String, Module>>;

fn exports(all: &Sources) -> Exports {
    all.iter().map(|(module, code)| (module.clone(), exports_of(code))).collect()
}

fn exports_of(code: &str) -> BTreeMap<String, Module> {
    let mut found = BTreeMap::new();
    for (at, statement) in uses(code) {
        if !code[..at].ends_with(['\n', ';']) && at > 0 {
            continue;
        }
        for path in paths(statement) {
            if let Some(name) = path.last().cloned() {
                found.insert(name, path);
            }
        }
    }
    found
}

/// The statements `pub use …;` and `pub(crate) use …;`: where each begins, and the text behind
/// `use`.
fn uses(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.match_indices("pub").filter_map(|(at, _)| {
        let rest = &code[at..code[at..].find(';').map_or(code.len(), |end| at + end)];
        let (visibility, statement) = rest.split_once("use ")?;
        let is_export =
            visibility.trim() == "pub" || visibility.starts_with("pub(") && visibility.trim().ends_with(')');
        is_export.then_some((at, statement.trim()))
    })
}

/// The module in which the item of a path is defined, seen from `from`; `None` for other crates.
fn resolve(from: &Module, path: &[String], all: &Sources, exports: &Exports, depth: usize) -> Option<Module> {
    let mut here = match path.first()?.as_str() {
        "crate" => Vec::new(),
        "super" | "self" => from.clone(),
        first => {
            let child = [from.as_slice(), &[first.to_owned()]].concat();
            all.contains_key(&child).then(|| from.clone())?
        }
    };
    let mut words = path.iter().peekable();
    while let Some(word) = words.next_if(|word| matches!(word.as_str(), "crate" | "super" | "self")) {
        if word == "super" {
            here.pop();
        }
    }
    for word in words {
        let deeper = [here.as_slice(), std::slice::from_ref(word)].concat();
        if all.contains_key(&deeper) {
            here = deeper;
            continue;
        }
        // An item, which may come from elsewhere.
        let exported = exports.get(&here).and_then(|names| names.get(word)).filter(|_| depth < 8);
        return exported.and_then(|path| resolve(&here, path, all, exports, depth + 1)).or(Some(here));
    }
    Some(here)
}

/// The modules that the code of one names. What it exports from elsewhere it does not use itself.
fn imports(module: &Module, code: &str, all: &Sources, exports: &Exports) -> BTreeSet<Module> {
    let exported: Vec<_> = uses(code).map(|(at, text)| at..at + text.len() + "pub(crate) use ".len()).collect();
    let mut found = BTreeSet::new();
    let words = ["crate::", "super::", "self::"].map(str::to_owned);
    for word in words.into_iter().chain(beginnings_of_children(module, all)) {
        for (at, _) in code.match_indices(&word) {
            let is_middle = code[..at].ends_with(|letter: char| letter.is_alphanumeric() || "_:$".contains(letter));
            if is_middle || exported.iter().any(|range| range.contains(&at)) {
                continue;
            }
            for path in paths(&code[at..]) {
                let target = resolve(module, &path, all, exports, 0);
                found.extend(target.filter(|target| target != module && all.contains_key(target)));
            }
        }
    }
    found
}

/// The beginnings of paths to a module's own children.
fn beginnings_of_children(module: &Module, all: &Sources) -> Vec<String> {
    let is_child = |other: &&Module| other.len() == module.len() + 1 && other.starts_with(module);
    all.keys().filter(is_child).map(|child| format!("{}::", child[module.len()])).collect()
}

/// The modules that a module imports, directly or not.
fn reachable(module: &Module, graph: &Graph) -> BTreeSet<Module> {
    let (mut found, mut pending) = (BTreeSet::new(), vec![module]);
    while let Some(module) = pending.pop() {
        pending.extend(graph[module].iter().filter(|next| found.insert((*next).clone())));
    }
    found
}

/// Modules that import themselves through others.
fn in_circles(graph: &Graph) -> Vec<String> {
    graph.keys().filter(|module| reachable(module, graph).contains(*module)).map(|module| module.join("::")).collect()
}

/// Crates with files that import their own children, which import them: the number of such files.
/// It only falls.
const KNOWN: &[(&str, usize)] = &[
    ("crates/cache", 15),
    ("crates/engine", 15),
    ("crates/manager", 14),
    ("crates/store", 8),
    ("crates/tools", 16),
    ("crates/vcl", 17),
];

type Graph = BTreeMap<Module, BTreeSet<Module>>;

fn graph(all: &Sources) -> Graph {
    let exports = exports(all);
    all.iter().map(|(module, code)| (module.clone(), imports(module, code, all, &exports))).collect()
}

#[test]
fn no_file_imports_one_that_imports_it() {
    let mut checked = 0;
    for folder in crate_folders() {
        let mut all = BTreeMap::new();
        modules(&root().join(&folder).join("src"), &Vec::new(), &mut all);
        let circles = in_circles(&graph(&all));
        let known = KNOWN.iter().find(|(name, _)| *name == folder).map_or(0, |(_, most)| *most);
        assert_eq!(circles.len(), known, "{folder}: files in circles, {known} are known: {circles:?}");
        checked += all.len();
    }
    assert!(checked > 500, "hardly any files: are they read from the right place?");
}

/// The folders of all crates, from the root of the repository.
fn crate_folders() -> Vec<String> {
    let crates = std::fs::read_dir(root().join("crates")).unwrap().flatten();
    let names = crates.map(|entry| format!("crates/{}", entry.file_name().to_str().unwrap()));
    names.chain(["xtask".to_owned()]).collect()
}

/// Modules named `a::b`, with their code.
fn planted(modules: &[(&str, &str)]) -> Sources {
    let path = |name: &str| name.split("::").filter(|word| !word.is_empty()).map(str::to_owned).collect();
    modules.iter().map(|(name, code)| (path(name), without_tests(code))).collect()
}

#[test]
fn planted_circles_are_found() {
    for modules in [
        &[("a", "use crate::b::X;"), ("b", "use super::a;")][..],
        // Through an export of the root, and of another module.
        &[("", "pub use a::A;"), ("a", "use crate::b::X;"), ("b", "use crate::A;")],
        &[("a", "use crate::b::X;"), ("b", "use crate::c::A;"), ("c", "pub(crate) use crate::a::A;")],
        &[("a", "use crate::b::X;"), ("a::deep", "pub struct A;"), ("b", "use crate::a::A;")],
        // Behind a module of tests.
        &[("a", "#[cfg(test)]\nmod tests;\nuse crate::b::X;"), ("b", "use crate::a::A;")],
        // A parent with its child.
        &[("a", "mod deep;\nuse deep::X;\npub struct A;"), ("a::deep", "use super::A;\npub struct X;")],
        &[("a", "fn f() {\n    deep::g();\n}\npub struct A;"), ("a::deep", "use crate::a::A;")],
        // With the root itself.
        &[("", "use crate::a::f;\npub struct Root;"), ("a", "use crate::Root;")],
    ] {
        assert_ne!(in_circles(&graph(&planted(modules))), [""; 0], "{modules:?}");
    }
    for modules in [
        &[("", "pub use a::A;\nmod a;\nmod b;"), ("a", "pub struct A;"), ("b", "use crate::A;")][..],
        &[("a", "#[cfg(test)]\nmod tests {\n    use crate::b::X;\n}\nstruct A;"), ("b", "use crate::a::A;")],
        &[("a", "// crate::b::X\nstruct A;"), ("b", "use crate::a::A;")],
        &[("a", "mod deep;\npub use deep::X;\npub struct A;"), ("a::deep", "use super::A;\npub struct X;")],
        &[("a", "mod deep;\nuse deep::X;"), ("a::deep", "use crate::b::B;\npub struct X;"), ("b", "struct B;")],
    ] {
        assert_eq!(in_circles(&graph(&planted(modules))), [""; 0], "{modules:?}");
    }
}

#[test]
fn paths_in_groups_are_taken_apart() {
    let joined = |text: &str| paths(text).iter().map(|path| path.join("/")).collect::<Vec<_>>();
    assert_eq!(joined("crate::a::{self, b::{C, d}, E};"), ["crate/a/self", "crate/a/b/C", "crate/a/b/d", "crate/a/E"]);
    assert_eq!(joined("super::f(x)"), ["super/f"]);
}
