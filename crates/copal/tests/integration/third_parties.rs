//! Licences, sources and duplicate versions of all crates, by the lists in deny.toml. cargo-deny
//! does the same and takes minutes to build.

use crate::layers::root;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Name, version and licence of the crates that are built for this kind of machine, with those of
/// tests and build scripts.
fn crates() -> Vec<[String; 3]> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["tree", "--workspace", "--locked", "--offline", "--edges", "normal,build,dev"])
        .args(["--prefix", "none", "--format", "{p}|{l}|"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        // name vVERSION (remark)|licence| (*)
        let (package, rest) = line.split_once('|')?;
        let mut words = package.split(' ');
        let version = words.clone().nth(1)?.strip_prefix('v')?;
        Some([words.next()?, version, rest.split('|').next()?].map(str::to_owned))
    };
    let lines = text.lines().filter(|text| !text.is_empty());
    let crates: BTreeSet<_> = lines.map(|text| line(text).unwrap_or_else(|| panic!("{text}"))).collect();
    assert!(crates.len() > 100, "{crates:?}");
    crates.into_iter().collect()
}

/// The quoted words of a list of deny.toml: the first of each line.
fn list(name: &str) -> BTreeSet<String> {
    let settings = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let lines = settings.lines().skip_while(|line| *line != format!("{name} = [")).skip(1);
    let lines = lines.take_while(|line| *line != "]");
    lines.map(|line| line.split('"').nth(1).unwrap_or_else(|| panic!("{line}")).to_owned()).collect()
}

/// True if an SPDX expression can be fulfilled with these licences. `/` is an old form of `OR`.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut place = 0;
    let fulfilled = alternatives(&words, &mut place, allowed);
    assert_eq!(place, words.len(), "{expression}");
    fulfilled
}

fn alternatives(words: &[&str], place: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut fulfilled = parts(words, place, allowed);
    while words.get(*place) == Some(&"OR") {
        *place += 1;
        fulfilled |= parts(words, place, allowed);
    }
    fulfilled
}

fn parts(words: &[&str], place: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut fulfilled = term(words, place, allowed);
    while words.get(*place) == Some(&"AND") {
        *place += 1;
        fulfilled &= term(words, place, allowed);
    }
    fulfilled
}

fn term(words: &[&str], place: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let word = words[*place];
    *place += 1;
    if word == "(" {
        let fulfilled = alternatives(words, place, allowed);
        assert_eq!(words.get(*place), Some(&")"));
        *place += 1;
        return fulfilled;
    }
    if words.get(*place) == Some(&"WITH") {
        *place += 2;
        // An exception is a licence of its own.
        return allowed.contains(&format!("{word} WITH {}", words[*place - 1]));
    }
    allowed.contains(word)
}

#[test]
fn expressions_of_licences_are_understood() {
    let allowed = BTreeSet::from(["MIT", "ISC"].map(str::to_owned));
    for expression in ["MIT", "GPL-3.0 OR MIT", "GPL-3.0/MIT", "ISC AND (MIT OR GPL-3.0)", "GPL-3.0 OR ISC AND MIT"] {
        assert!(is_allowed(expression, &allowed), "{expression}");
    }
    for expression in ["GPL-3.0", "GPL-3.0 AND MIT", "(GPL-3.0 OR ISC) AND GPL-3.0", "MIT WITH LLVM-exception"] {
        assert!(!is_allowed(expression, &allowed), "{expression}");
    }
}

#[test]
fn every_crate_has_a_permitted_licence_and_source() {
    let allowed = list("allow");
    for [name, _, licence] in crates() {
        assert!(!licence.is_empty(), "{name} names no licence");
        assert!(is_allowed(&licence, &allowed), "{name}: {licence} is not allowed by deny.toml");
    }
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    for line in lock.lines().filter(|line| line.starts_with("source = ")) {
        assert!(line.starts_with("source = \"registry+"), "{line}");
    }
}

#[test]
fn duplicate_versions_are_those_that_are_listed() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for [name, version, _] in crates() {
        versions.entry(name).or_default().insert(version);
    }
    let skipped = list("skip");
    for (name, versions) in &versions {
        let others: Vec<_> =
            versions.iter().filter(|version| !skipped.contains(&format!("{name}@{version}"))).collect();
        assert!(others.len() <= 1, "{name} is there as {others:?}; deny.toml lists old versions with a reason");
    }
    for skip in &skipped {
        let (name, version) = skip.split_once('@').unwrap();
        let is_duplicate = versions.get(name).is_some_and(|all| all.len() > 1 && all.contains(version));
        assert!(is_duplicate, "deny.toml lists {skip}, which is no duplicate any more");
    }
}
