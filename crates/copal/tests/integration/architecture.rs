//! The documents, checked against the tree: every crate and path that ARCHITECTURE.md and the
//! README name exists.

use crate::layers::{dependencies, files_below, root};

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

/// The targets of links outside of code blocks, without fragments and addresses of other sites.
fn link_targets(text: &str) -> Vec<String> {
    let prose = text.split("```").step_by(2);
    let targets = prose.flat_map(|part| part.split("](").skip(1)).filter_map(|rest| rest.split(')').next());
    let files = targets.filter_map(|target| target.split('#').next());
    files
        .filter(|file| !file.is_empty() && !file.contains("://") && !file.starts_with("mailto:"))
        .map(str::to_owned)
        .collect()
}

/// Rows of the tables of a document, each with the heading above it.
fn rows(text: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    let mut heading = "";
    text.lines().filter_map(move |line| {
        heading = line.strip_prefix("## ").unwrap_or(heading);
        let cells = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
        Some((heading, cells)).filter(|_| !line.starts_with("| ---"))
    })
}

#[test]
fn every_change_of_varnish_names_a_test_that_exists() {
    let text = std::fs::read_to_string(root().join("docs/migrate/upgrading.md")).unwrap();
    let language = std::fs::read_to_string(root().join("crates/vcl/tests/literate/upgrading.md")).unwrap();
    let sections: Vec<&str> = language.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let sources: String =
        files_below(&root().join("crates"), "rs").iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let mut used = Vec::new();
    for (version, cells) in rows(&text).filter(|(_, cells)| cells[0] != "Varnish") {
        let [change, here, test] = cells[..] else { panic!("{version}: a row has three cells: {cells:?}") };
        assert!(!here.is_empty(), "{change}");
        match test.trim_matches('`') {
            "language" => {
                let section = format!("{version}: {change}");
                assert!(sections.contains(&&section[..]), "no section {section}");
                used.push(section);
            }
            script if script.ends_with(".vtc") => {
                assert!(root().join("tests/vtc").join(script).exists(), "no script {script}");
            }
            name => assert!(sources.contains(&format!("fn {name}()")), "no test {name}"),
        }
    }
    let unused: Vec<_> = sections.iter().filter(|section| !used.iter().any(|name| name == *section)).collect();
    assert!(unused.is_empty(), "sections without a row: {unused:?}");
}

#[test]
fn every_link_of_the_documents_leads_to_a_file() {
    let entrance = std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    let entrance = entrance.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    for path in entrance.chain(files_below(&root().join("docs"), "md")) {
        let text = std::fs::read_to_string(&path).unwrap();
        for target in link_targets(&text) {
            let linked = path.with_file_name(&target);
            assert!(linked.exists(), "{} links to {target}, which does not exist", path.display());
        }
    }
}

#[test]
fn the_entrance_pages_are_short() {
    for (page, bytes_max) in [("README.md", 6 << 10), ("ARCHITECTURE.md", 10 << 10)] {
        let bytes = std::fs::metadata(root().join(page)).unwrap().len();
        assert!(bytes <= bytes_max, "{page} has {bytes} bytes, {bytes_max} are allowed");
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
fn every_module_has_a_header() {
    for name in dependencies().keys() {
        for path in files_below(&root().join("crates").join(name).join("src"), "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.starts_with("//!"), "{} has no module header", path.display());
        }
    }
}
