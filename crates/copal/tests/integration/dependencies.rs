//! Dependencies in the manifests, checked against the sources and against
//! docs/internals/dependencies.md.

use crate::layers::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Libraries whose names differ from their packages' by more than `-` and `_`.
const LIBRARIES: &[(&str, &str)] = &[("md-5", "md5")];

/// Dependencies that no source names, with the reason.
const UNNAMED: &[(&str, &str, &str)] = &[];

/// A crate of the workspace.
struct Member {
    name: String,
    /// Sections of the manifest by the name in their brackets: their dependencies, and how they are
    /// specified.
    sections: BTreeMap<String, BTreeMap<String, String>>,
    /// The sources without their tests.
    shipped: String,
    /// All sources.
    all: String,
}

impl Member {
    fn read(folder: &Path) -> Member {
        let sections = sections(&fs::read_to_string(folder.join("Cargo.toml")).unwrap());
        let (mut shipped, mut all) = (String::new(), String::new());
        let mut folders = vec![folder.to_owned()];
        while let Some(path) = folders.pop() {
            for path in entries(&path) {
                let is_test = !path.starts_with(folder.join("src"))
                    || path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"))
                    || path.components().any(|part| part.as_os_str() == "tests");
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let text = fs::read_to_string(&path).unwrap();
                    let lines: String = text
                        .lines()
                        .filter(|line| !line.trim_start().starts_with("//"))
                        .flat_map(|line| [line, "\n"])
                        .collect();
                    if !is_test {
                        // Tests come last in a file.
                        shipped.push_str(lines.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default());
                    }
                    all.push_str(&lines);
                }
            }
        }
        let name = folder.canonicalize().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        Member { name, sections, shipped, all }
    }

    /// The dependencies in a section.
    fn asks(&self, section: &str) -> impl Iterator<Item = (&String, &String)> {
        self.sections.get(section).into_iter().flatten()
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn members() -> Vec<Member> {
    let crates = entries(&root().join("crates"));
    crates.iter().chain([&root().join("xtask")]).map(|folder| Member::read(folder)).collect()
}

/// The sections of a manifest and their keys: `serde.workspace = true` gives `serde` with
/// `workspace = true`.
fn sections(manifest: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut sections: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut section = String::new();
    for line in manifest.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_matches(['[', ']']).to_owned();
        } else if let Some((key, rest)) = line.split_once(['.', '=']) {
            sections.entry(section.clone()).or_default().insert(key.trim().to_owned(), rest.trim().to_owned());
        }
    }
    sections
}

/// True if a source has a path that begins with the library of a package.
fn names(source: &str, package: &str) -> bool {
    let other = LIBRARIES.iter().find(|(name, _)| *name == package);
    let library = other.map_or_else(|| package.replace('-', "_"), |(_, library)| (*library).to_owned());
    let path = format!("{library}::");
    source.match_indices(&path).any(|(at, _)| {
        let before = &source[..at];
        let before = before.strip_suffix("::").unwrap_or(before);
        !before.ends_with(|last: char| last.is_alphanumeric() || matches!(last, '_' | ':' | '>'))
    })
}

#[test]
fn every_dependency_is_named_in_a_source() {
    let excused = |member: &Member, name: &str| UNNAMED.iter().any(|(from, to, _)| *from == member.name && *to == name);
    for member in members() {
        for (section, source, what) in [
            ("dependencies", &member.shipped, "no source but perhaps a test"),
            ("build-dependencies", &member.all, "no source"),
            ("dev-dependencies", &member.all, "no source"),
        ] {
            for (name, _) in member.asks(section) {
                let is_named = names(source, name) || excused(&member, name);
                assert!(is_named, "{what} of {} names {name}, which its [{section}] ask for", member.name);
            }
        }
        for (name, how) in member.asks("dev-dependencies") {
            let is_twice = member.asks("dependencies").any(|(shipped, _)| shipped == name);
            assert!(!is_twice || how.contains("features"), "{} asks for {name} twice", member.name);
        }
    }
}

#[test]
fn every_dependency_of_the_workspace_has_a_user() {
    let members = members();
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    for name in sections(&workspace)["workspace.dependencies"].keys() {
        let is_used = members.iter().any(|member| member.sections.values().any(|section| section.contains_key(name)));
        assert!(is_used, "no crate asks for {name}");
    }
}

/// The first table of the page: by name, the crates that may use it. `tests`: those that use it
/// only in tests.
fn owners_of_the_page() -> BTreeMap<String, BTreeSet<String>> {
    let page = fs::read_to_string(root().join("docs/internals/dependencies.md")).unwrap();
    let mut owners = BTreeMap::new();
    for row in
        page.lines().skip_while(|line| !line.starts_with("| ---")).skip(1).take_while(|line| line.starts_with('|'))
    {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [names, who, what] = cells[..] else { panic!("three cells: {row}") };
        assert!(!what.is_empty(), "what for? {row}");
        for name in names.split(", ") {
            let who = who.split(", ").map(str::to_owned).collect();
            assert!(owners.insert(name.trim_matches('`').to_owned(), who).is_none(), "two rows for {name}");
        }
    }
    owners
}

#[test]
fn every_dependency_has_the_owners_that_its_line_names() {
    let members = members();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for member in &members {
        let is_ours = |name: &str| members.iter().any(|member| member.name == name);
        for (section, test) in [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)] {
            for (name, _) in member.asks(section).filter(|(name, _)| !is_ours(name)) {
                let is_shipped_too = member.asks("dependencies").any(|(shipped, _)| shipped == name);
                if !(test && is_shipped_too) {
                    let owner = if test { "tests" } else { &member.name };
                    found.entry(name.clone()).or_default().insert(owner.to_owned());
                }
            }
        }
    }
    let page = owners_of_the_page();
    for (name, owners) in &found {
        let said = page
            .get(name)
            .unwrap_or_else(|| panic!("docs/internals/dependencies.md has no line for `{name}`: {owners:?}"));
        assert_eq!(said, owners, "docs/internals/dependencies.md, `{name}`");
    }
    for name in page.keys() {
        assert!(
            found.contains_key(name),
            "docs/internals/dependencies.md has a line for `{name}`, which no crate asks for"
        );
    }
}
