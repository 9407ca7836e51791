//! The documents, checked against the tree: every crate and path that ARCHITECTURE.md and the README name exists.

use crate::layers::{dependencies, root};

/// Words in backquotes that look like paths of this repository.
fn paths(text: &str) -> Vec<String> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| {
            ["crates/", "docs/", "fuzz/", "tests/", "xtask/", ".ci/"].iter().any(|prefix| word.starts_with(prefix))
        })
        .flat_map(|word| match (word.find('{'), word.find('}')) {
            (Some(open), Some(close)) => word[open + 1..close]
                .split(',')
                .map(|part| format!("{}{}{}", &word[..open], part.trim(), &word[close + 1..]))
                .collect(),
            _ => vec![word.to_owned()],
        })
        .collect()
}

#[test]
fn every_path_named_in_the_documents_exists() {
    for document in ["ARCHITECTURE.md", "README.md", "CONTRIBUTING.md", "SECURITY.md", "STYLE.md"] {
        let text = std::fs::read_to_string(root().join(document)).unwrap();
        for path in paths(&text) {
            assert!(root().join(&path).exists(), "{document} names {path}, which does not exist");
        }
    }
}

#[test]
fn every_crate_is_in_the_architecture() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for name in dependencies().keys() {
        assert!(text.contains(&format!("`{name}`")), "ARCHITECTURE.md does not mention crate `{name}`");
    }
}

#[test]
fn every_module_says_what_it_is() {
    let mut folders: Vec<_> = dependencies().keys().map(|name| root().join("crates").join(name).join("src")).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(text.starts_with("//!"), "{} has no module header", path.display());
            }
        }
    }
}
